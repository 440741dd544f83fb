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

#: What the columns don't say.
NOTE = "margin = (wins - losses) / games; intervals are 95 %, over pairs of games with the same deal and swapped seats"


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


def make_console() -> Console:
    """Return a rich console.

    Raises:
        ImportError: rich is not installed; the message says how to install it.
    """
    try:
        from rich.console import Console
    except ImportError as error:
        raise ImportError("tables need rich: pip install 'spite_env[train]' (or ask for JSON)") from error
    return Console(highlight=False)


def print_duels(console: Console, *results: DuelResult) -> None:
    """Print duels as a table, one column a duel."""
    from rich.table import Table

    table = Table(show_header=False)
    for row in zip(COLUMNS, *map(duel_cells, results), strict=True):
        table.add_row(*row)
    console.print(table)
    console.print(NOTE)


def _with_interval(value: float | None, interval: Interval | None, form: str) -> str:
    if value is None or interval is None:
        return "none decided"
    return f"{form} [{form}, {form}]".format(value, *interval)
