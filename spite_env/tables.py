"""Results as rows of a table, and as tables in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spite_env.arena import DuelResult, Interval

if TYPE_CHECKING:
    from rich.console import Console

COLUMNS = (
    "policy",
    "against",
    "games",
    "wins",
    "draws",
    "losses",
    "points",
    "margin",
    "wins / (wins + losses)",
    "length",
)

#: What a table of duels shows beyond these.
MORE = (
    "starters' margin",
    "starters' wins / (wins + losses)",
    "variance ratio",
    "forfeits",
    "verdict",
)

#: What the columns don't say.
NOTE = (
    "margin = (wins - losses) / games; intervals are 95 %, over pairs of games with the same deal and swapped seats;\n"
    "variance ratio = variance of pairs / variance of pairs of games with different deals"
)


def duel_cells(result: DuelResult) -> tuple[str, ...]:
    """Return a duel's row of a table, in the order of :data:`COLUMNS`."""
    draws = f"{result.draws} (+{result.truncated} truncated)" if result.truncated else f"{result.draws}"
    return (
        *result.players,
        f"{result.games}",
        f"{result.wins}",
        draws,
        f"{result.losses}",
        f"{result.points[0]} : {result.points[1]}",
        _with_interval(result.margin, result.margin_interval, "{:+.3f}"),
        _with_interval(result.win_share, result.win_share_interval, "{:.1%}"),
        f"{result.mean_length:.0f}",
    )


def _more_cells(result: DuelResult) -> tuple[str, ...]:
    """Return what :data:`MORE` names."""
    return (
        _with_interval(result.starter_margin, result.starter_margin_interval, "{:+.3f}"),
        _with_interval(result.starter_share, result.starter_share_interval, "{:.1%}"),
        "nothing varied" if result.variance_ratio is None else f"{result.variance_ratio:.2f}",
        f"{result.forfeits[0]} : {result.forfeits[1]}",
        _verdict(result),
    )


def _verdict(result: DuelResult) -> str:
    if result.test is None:
        return "no test"
    first, second = result.players
    margin, alpha, beta = result.test.margin, result.test.alpha, result.test.beta
    verdicts = {
        "first": f"{first} is better",
        "second": f"{second} is better",
        "equal": f"equal within {margin:g}",
        "open": f"undecided within {margin:g}",
    }
    return f"{verdicts[result.verdict or 'open']} (alpha {alpha:g}, beta {beta:g})"


def make_console() -> Console:
    """Return a rich console.

    Raises:
        ImportError: rich is not installed; the message says how to install it.
    """
    try:
        from rich.console import Console
    except ImportError as error:
        raise ImportError("tables need rich: pip install 'spite_env[arena]' (or ask for JSON)") from error
    return Console(highlight=False)


def print_duels(console: Console, *results: DuelResult) -> None:
    """Print duels as a table, one column a duel."""
    from rich.table import Table

    table = Table(show_header=False)
    cells = ([*duel_cells(result), *_more_cells(result)] for result in results)
    for row in zip((*COLUMNS, *MORE), *cells, strict=True):
        table.add_row(*row)
    console.print(table)
    console.print(NOTE)
    if any(result.test is not None for result in results):
        console.print("the intervals don't account for when a sequential test stops; its verdict does")
    for result in results:
        for fault in result.faults:
            console.print(f"fault: {fault}", markup=False)


def _with_interval(value: float | None, interval: Interval | None, form: str) -> str:
    if value is None or interval is None:
        return "none decided"
    return f"{form} [{form}, {form}]".format(value, *interval)
