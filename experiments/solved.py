"""How many of the solved positions each agent solves.

    python experiments/solved.py

Each line of ``solved_positions.jsonl`` is a position, its best moves (any of them solves it), why they are best, and
the kind of proof (``tests/test_solved.py`` proves every line). An agent is asked for its move in many copies of each
position, so that the score of one that draws lots is the mean of its luck.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agents import AGENTS
from experiments.options import destination, from_on, known_policy, seed_number
from experiments.reporting import machine, write_results
from spite_env import Game, Rules
from spite_env.policies import POLICIES, Policy, decide, make_policy, policy_name
from spite_env.rules import checked_integer

POSITIONS = Path(__file__).with_name("solved_positions.jsonl")

#: The kinds of proofs, and what an agent has to find.
PROOFS = {"win": "a win within the turn", "deny": "a way not to lose at once", "solve": "the best end of a short game"}


@dataclass(frozen=True)
class Solved:
    """A position with its best moves.

    Attributes:
        name: What to call it.
        rules: The name of the preset.
        proof: The kind of proof, a key of :data:`PROOFS`.
        position: The position.
        best: The texts of the best moves.
        why: Why they are best.
    """

    name: str
    rules: str
    proof: str
    position: dict[str, Any]
    best: list[str]
    why: str

    def game(self, copies: int = 1) -> Game:
        """Return games that start there."""
        return Game.from_positions(Rules.preset(self.rules), [self.position] * copies)


def load(path: Path = POSITIONS) -> list[Solved]:
    """Return the solved positions of a file."""
    return [Solved(**json.loads(line)) for line in path.read_text().splitlines()]


def score(policy: str | Policy, solved: Solved, copies: int = 1, seed: int = 0) -> float:
    """Return the share of copies of a position in which a policy chooses one of the best moves.

    A policy that refuses to play a position's variant of the game doesn't solve it.

    Raises:
        ValueError: an impossible seed.
    """
    checked_integer("seed", seed, 0, 2**64 - 1)
    game = solved.game(copies)
    player = make_policy(policy)
    try:
        player.reset(game.rules, copies, seed)
    except ValueError:
        return 0.0
    chosen = decide(player, policy_name(policy), game, np.arange(copies))
    return float(np.isin(chosen, [game.actions.parse(text) for text in solved.best]).mean())


def main() -> None:
    """Score agents and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--agents",
        nargs="+",
        type=known_policy,
        default=[*POLICIES, *AGENTS],
        help="names (default: all built-in ones)",
    )
    parser.add_argument(
        "--copies", type=from_on(1), default=200, help="games that start in a position (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=seed_number, default=0, help="of the agents' random choices (default: %(default)s)"
    )
    parser.add_argument("--out", type=destination, default="runs/solved")
    options = parser.parse_args()
    positions = load()
    kinds = {proof: f"{doc} ({sum(solved.proof == proof for solved in positions)})" for proof, doc in PROOFS.items()}
    rows, scores = [], {}
    for agent in options.agents:
        scores[agent] = {
            solved.name: score(agent, solved, options.copies, options.seed + number)
            for number, solved in enumerate(positions)
        }
        by_kind = {
            kind: sum(scores[agent][solved.name] for solved in positions if solved.proof == proof)
            for proof, kind in kinds.items()
        }
        row = {f"all ({len(positions)})": sum(by_kind.values()), **by_kind}
        rows.append({"agent": agent, **{column: f"{solved:.1f}" for column, solved in row.items()}})
        print(rows[-1], flush=True)
    details = {"machine": machine(), "seed": options.seed, "copies": options.copies, "scores": scores}
    print(write_results(options.out, rows, details))


if __name__ == "__main__":
    main()
