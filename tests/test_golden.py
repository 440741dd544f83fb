"""Recorded games, which every platform and every version must replay bit by bit.

After a deliberate change of the deals, of the rules or of the observations, write them anew, from the root of the
repository, and say so in the change log: ``PYTHONPATH=. python tests/test_golden.py``.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import PLAYERS, SHORT_MATCH, Players, over
from spite_env import Game, Rules
from spite_env.rules import PRESETS

FILE = Path(__file__).parent / "data" / "golden.json"

RULES = {name: Rules.preset(name) for name in PRESETS} | {
    "match": SHORT_MATCH,
    "bottom": Rules(recycle="bottom", first_player="random", payoff_size=10),
}

ENCODINGS = ("compact", "onehot")


def digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, separators=(",", ":")).encode()).hexdigest()


def replayed(rules: Rules, seed: int, actions: list[str]) -> dict[str, Any]:
    """Play a game's actions and return all that it shows on the way and at its end."""
    games = [Game(rules, 1, seed, encoding=encoding) for encoding in ENCODINGS]
    observations = {encoding: hashlib.sha256() for encoding in ENCODINGS}
    masks = hashlib.sha256()
    game = games[0]
    first = digest(game.position(0))

    def look() -> None:
        masks.update(np.ascontiguousarray(game.legal_actions()).tobytes())
        for encoding, shown in zip(ENCODINGS, games, strict=True):
            for viewer in PLAYERS:
                observations[encoding].update(np.ascontiguousarray(shown.observe(viewer)).tobytes())

    look()
    for text in actions:
        for each in games:
            each.step([each.actions.parse(text)])
        look()
    return {
        "first_position": first,
        "last_position": digest(game.position(0)),
        "masks": masks.hexdigest(),
        **{f"{encoding}_observations": hashed.hexdigest() for encoding, hashed in observations.items()},
        "terminated": bool(game.terminated[0]),
        "truncated": bool(game.truncated[0]),
        "winner": int(game.winner[0]),
        "points": game.points[0].tolist(),
    }


def golden() -> list[dict[str, Any]]:
    games: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
    return games


@pytest.mark.parametrize(
    "recorded", golden() if FILE.exists() else [], ids=lambda game: f"{game['rules']}-{game['seed']}"
)
def test_a_recorded_game_replays_bit_by_bit(recorded: dict[str, Any]) -> None:
    shown = replayed(RULES[recorded["rules"]], recorded["seed"], recorded["actions"])
    assert recorded == {key: recorded[key] for key in ("rules", "seed", "actions")} | shown


def test_games_of_every_variant_are_recorded_to_their_end() -> None:
    games = golden()
    assert {game["rules"] for game in games} == set(RULES)
    assert all(game["terminated"] or game["truncated"] for game in games)
    assert {-1, 0, 1} == {game["winner"] for game in games}
    assert any(max(game["points"]) > 1 for game in games)


def write() -> None:
    """Play new games and write them down."""
    recorded = []
    for name, rules in RULES.items():
        for number, seed in enumerate((0, 7, 2**64 - 1)):
            game = Game(rules, 1, seed)
            players = Players(rules, 1, seed=number, only=("fitting", "emptying", "any")[number])
            actions = []
            while not over(game)[0]:
                action = players.choose(game)
                actions.append(game.actions.text(int(action[0])))
                game.step(action)
            recorded.append({"rules": name, "seed": seed, "actions": actions} | replayed(rules, seed, actions))
    text = ",\n".join(json.dumps(game) for game in recorded)
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write()
