"""Play all built-in agents against one another, and write the ladder: who beats whom, and by how much.

Each cell says what share of the decided games the row's agent won against the column's, and how many games nobody won.
Ratings count a draw as half a win. ``--resume`` goes on where an interrupted run of the same agents stopped.

    python experiments/ladder.py
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from agents import AGENTS
from experiments.options import destination, from_on, known_policy, seed_number
from experiments.reporting import machine, write_results
from spite_env import Rules
from spite_env.arena import DuelResult
from spite_env.policies import POLICIES
from spite_env.tournament import TournamentResult, tournament

BUILT_IN = (*POLICIES, *AGENTS)

#: Agents that think long: their duels have fewer games.
SLOW = ("search",)


def play(agents: list[str], pairs: int, slow_pairs: int, seed: int, workers: int, results: Path) -> TournamentResult:
    """Return the result of the tournament."""
    return tournament(
        agents,
        Rules(),
        games={agent: 2 * (slow_pairs if agent in SLOW else pairs) for agent in agents},
        seed=seed,
        file=results,
        workers=workers,
        progress=lambda played, total: print(f"{played} of {total} pairs", flush=True),
    )


def cell(result: DuelResult) -> str:
    """Return what the row's agent did against the column's."""
    drawn = f"{(result.draws + result.truncated) / result.games:.1%} drawn"
    if result.win_share is None or result.win_share_interval is None:
        return drawn
    low, high = result.win_share_interval
    return f"{result.win_share:.1%} [{low:.1%}, {high:.1%}], {drawn}"


def rows(result: TournamentResult) -> list[dict[str, str]]:
    """Return the table, the best agent first."""
    table = []
    for rating in result.ratings:
        low, high = rating.interval
        row = {"agent": rating.name, "rating": f"{rating.rating:+.0f} [{low:+.0f}, {high:+.0f}]"}
        for other in result.names:
            row[f"against {other}"] = "" if other == rating.name else cell(result.duel(rating.name, other))
        table.append(row)
    return table


def main() -> None:
    """Play, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "agents",
        nargs="*",
        type=known_policy,
        metavar="AGENT",
        default=list(BUILT_IN),
        help="default: all that are built in",
    )
    parser.add_argument("--pairs", type=from_on(1), default=2000, help="pairs of games of each two agents")
    parser.add_argument("--slow-pairs", type=from_on(1), default=200, help=f"the same where {' or '.join(SLOW)} plays")
    parser.add_argument("--quick", action="store_true", help="a few pairs each, to see that everything works")
    parser.add_argument("--seed", type=seed_number, default=3_000_000)
    parser.add_argument("--workers", type=from_on(1), default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--results", type=destination, default="runs/ladder.jsonl", help="what has been played so far")
    parser.add_argument("--resume", action="store_true", help="don't play again what is in there")
    parser.add_argument("--heatmap", type=destination, metavar="FILE.png", help="draw the margins, too")
    parser.add_argument(
        "--out", type=destination, default="runs/ladder", help="where the table goes, without an ending"
    )
    options = parser.parse_args()
    if len(set(options.agents)) < max(len(options.agents), 2):
        parser.error(f"{' '.join(options.agents)} can't play one another; give two agents or more, each once")
    if options.quick:
        options.pairs, options.slow_pairs = 20, 2

    if not options.resume:
        options.results.unlink(missing_ok=True)
    shared = (options.seed, options.workers, options.results)
    result = play(options.agents, options.pairs, options.slow_pairs, *shared)
    print(write_results(options.out, rows(result), {"machine": machine(), "tournament": result.to_dict()}))
    if options.heatmap is not None:
        from spite_env.heatmap import save_heatmap

        save_heatmap(options.heatmap, result)


if __name__ == "__main__":
    main()
