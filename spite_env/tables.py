"""Results as tables, for the terminal and for Markdown files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spite_env.arena import DuelResult, Interval

if TYPE_CHECKING:
    from rich.table import Table

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


def duel_markdown(*results: DuelResult) -> str:
    """Return duels as a Markdown table."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *map(duel_cells, results)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + f"\n\n{NOTE}\n"


def duel_table(*results: DuelResult) -> Table:
    """Return duels as a table for a rich console.

    Raises:
        ImportError: rich is not installed; the message says how to install it.
    """
    try:
        from rich.table import Table
    except ImportError as error:
        raise ImportError("tables need rich: pip install 'spite_env[train]' (or ask for JSON)") from error
    table = Table(caption=NOTE)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in COLUMNS[:2] else "right")
    for result in results:
        table.add_row(*duel_cells(result))
    return table


def _with_interval(value: float | None, interval: Interval | None, form: str) -> str:
    if value is None or interval is None:
        return "none decided"
    return f"{form} [{form}, {form}]".format(value, *interval)
