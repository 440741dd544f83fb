"""Results as rows of a table, and as tables in the terminal."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from spite_env.arena import DuelResult, Interval

if TYPE_CHECKING:
    from rich.console import Console

    from spite_env.tournament import TournamentResult

#: The columns of every table of duels.
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
    "margin = (wins - losses) / games; intervals are 95 %, over pairs of games with the same deal and swapped seats; "
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
        raise ImportError("tables need rich: pip install 'spite_env[arena]' (or ask for JSON: --json)") from error
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
    _print_faults(console, results)


def print_tournament(console: Console, result: TournamentResult) -> None:
    """Print a tournament's ratings and its cross table, the best policy first."""
    from rich.table import Table

    table = Table("policy", "rating", *result.names, show_lines=True)
    for rating in result.ratings:
        cells = ("" if name == rating.name else _cross_cell(result.duel(rating.name, name)) for name in result.names)
        low, high = rating.interval
        table.add_row(rating.name, f"{rating.rating:+.0f}\n[{low:+.0f}, {high:+.0f}]", *cells)
    console.print(table)
    console.print(
        "each row's margin = (wins - losses) / games, and its wins / draws / losses; ratings are on Elo's scale with\n"
        "a mean of 0, a draw counts as half a win; intervals are 95 %, over pairs of games with the same deal"
    )
    _print_faults(console, result.duels())


def write_csv(path: str | os.PathLike[str], result: TournamentResult) -> None:
    """Write a tournament's duels, one a line, each seen from the better policy; pairs of values make two columns."""
    left_out = {"rules", "test", "verdict", "faults", "pairs"}
    names = [item.name for item in fields(DuelResult) if item.name not in left_out]
    rows = [_flat({name: getattr(duel, name) for name in names}) for duel in result.duels()]
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in values.items():
        if name.endswith("interval"):
            row |= dict(zip((f"{name}_low", f"{name}_high"), value or (None, None), strict=True))
        elif isinstance(value, tuple):
            row |= dict(zip((f"{name}_first", f"{name}_second"), value, strict=True))
        else:
            row[name] = value
    return row


def _cross_cell(result: DuelResult) -> str:
    low, high = result.margin_interval
    shares = (count / result.games for count in (result.wins, result.draws + result.truncated, result.losses))
    return f"{result.margin:+.3f} ± {(high - low) / 2:.3f}\n" + " / ".join(f"{share:.0%}" for share in shares)


def _print_faults(console: Console, results: Iterable[DuelResult]) -> None:
    for result in results:
        for fault in result.faults:
            console.print(f"fault: {fault}", markup=False)


def _with_interval(value: float | None, interval: Interval | None, form: str) -> str:
    if value is None or interval is None:
        return "none decided"
    return f"{form} [{form}, {form}]".format(value, *interval)
