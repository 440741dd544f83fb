"""The solved positions: what the file says of each is proved anew, by exhaustive search on the core.

There are three kinds of proofs, none of which uses a card that the mover can't see:

``win``
    The mover can win within this turn: its last pay-off card is face up. The best moves are those after which it still
    can; any other gives the win away for now.
``deny``
    The opponent will win in its next turn with cards that lie openly on its piles, whatever it draws, unless the mover
    prevents it (it can't win itself). The best moves are those after which it still can prevent it.
``solve``
    All hidden cards are of one rank, so that the mover knows where each card is. Both players' moves are searched to
    the game's end. A turn that shuffles the stock without ending the game may be worth anything from -1 (lost) to 1
    (won); the best moves are those whose worth is proved to exceed that of all others.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from experiments.solved import Solved, load, main, score
from helpers import moves, over, turn_key, wins_this_turn
from spite_env import Game

Worth = tuple[int, int]

UNKNOWN = (-1, 1)


def is_safe(game: Game) -> bool:
    """Return whether the opponent, to move now, could not win with the cards that lie openly on its piles."""
    position = game.position(0)
    opponent = 1 - position["turn"]
    position["hands"][opponent] = []
    position["turn"] = opponent
    return not wins_this_turn(Game.from_positions(game.rules, [position]))


def can_deny(game: Game, seen: set[str] | None = None) -> bool:
    """Return whether the mover can play so that the opponent can't win with open cards."""
    seen = set() if seen is None else seen
    if is_safe(game):
        return True
    for action, after in moves(game):
        name = turn_key(after) if action < game.actions.num_plays else ""
        if name and name not in seen:
            seen.add(name)
            if can_deny(after, seen):
                return True
    return False


def worth(game: Game, player: int, known: dict[str, Worth], shuffles: int) -> Worth:
    """Return the least and the most that a position is worth to a player.

    The turn began after so many shuffles; if it has seen another, nothing is known of what the stock yields next.
    """
    if over(game)[0]:
        value = 0 if game.winner[0] < 0 else 1 if game.winner[0] == player else -1
        return value, value
    stirred = game.state.shuffles[0] > shuffles
    name = f"{turn_key(game)} {stirred}"
    if name not in known:  # no position comes again without a shuffle
        found = [worth_after(game, action, after, player, known, shuffles) for action, after in moves(game)]
        choose = max if game.current_player[0] == player else min
        known[name] = choose(low for low, _ in found), choose(high for _, high in found)
    return known[name]


def worth_after(game: Game, action: int, after: Game, player: int, known: dict[str, Worth], shuffles: int) -> Worth:
    if action >= game.actions.num_plays:
        if game.state.shuffles[0] > shuffles:
            return UNKNOWN
        shuffles = int(after.state.shuffles[0])
    return worth(after, player, known, shuffles)


def hidden_cards(game: Game) -> list[str]:
    position = game.position(0)
    hidden = [*position["stock"], *position["hands"][1 - position["turn"]]]
    return [*hidden, *(card for pile in position["payoff"] for card in pile[:-1])]


def prove(game: Game, proof: str) -> list[str]:
    """Return the best moves, proved; none if nothing can be proved."""
    position = game.position(0)
    mover = position["turn"]
    plays = game.actions.num_plays
    best: list[int] = []
    assert not game.rules.refill_mid_turn, "a hand drawn within the turn isn't known before"
    if proof == "win":
        assert len(position["payoff"][mover]) == 1
        for action, after in moves(game):
            if action < plays and (over(after)[0] or wins_this_turn(after)):
                best.append(action)
    elif proof == "deny":
        assert len(position["payoff"][1 - mover]) == 1
        assert len(position["stock"]) > game.rules.hand_size, "the opponent's refill must not end the game"
        assert not wins_this_turn(game)
        safe = is_safe(game)
        best = [action for action, after in moves(game) if (safe if action >= plays else can_deny(after))]
    else:
        assert proof == "solve"
        assert len(set(hidden_cards(game))) <= 1, "the mover doesn't know where each card is"
        known: dict[str, Worth] = {}
        found = {action: worth_after(game, action, after, mover, known, 0) for action, after in moves(game)}
        most = max(low for low, _ in found.values())
        if all(low == most or high < most for low, high in found.values()):
            best = [action for action, (low, _) in found.items() if low == most]
    return [game.actions.text(action) for action in best]


SOLVED = load()


def test_there_are_many_positions_of_every_kind() -> None:
    assert len(SOLVED) >= 40
    assert len({solved.name for solved in SOLVED}) == len(SOLVED)
    for proof in ("win", "deny", "solve"):
        assert sum(solved.proof == proof for solved in SOLVED) >= 10


@pytest.mark.parametrize("solved", SOLVED, ids=[solved.name for solved in SOLVED])
def test_the_best_moves_are_proved(solved: Solved) -> None:
    game = solved.game()
    best = prove(game, solved.proof)
    assert sorted(solved.best) == sorted(best)
    assert 0 < len(best) < np.count_nonzero(game.legal_actions())


def test_the_expert_finds_every_win_within_the_turn() -> None:
    assert all(score("expert", solved) == 1 for solved in SOLVED if solved.proof == "win")


def test_who_refuses_a_variant_does_not_solve_its_positions() -> None:
    small = next(solved for solved in load() if solved.rules != "g4a")
    assert score("network", small) == 0


def test_the_score_of_one_that_draws_lots_is_its_mean_over_copies() -> None:
    [solved] = [solved for solved in SOLVED if solved.name == "Straight from the hand"]
    legal = np.count_nonzero(solved.game().legal_actions())
    assert score("random", solved, copies=1000) == pytest.approx(len(solved.best) / legal, abs=0.03)


def test_the_script_writes_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "solved"
    monkeypatch.setattr("sys.argv", ["solved.py", "--agents", "greedy", "--copies", "1", "--out", str(out)])
    main()
    assert out.with_suffix(".md").read_text().startswith(f"| agent | all ({len(SOLVED)}) |")
    scores = json.loads(out.with_suffix(".json").read_text())["scores"]["greedy"]
    assert set(scores) == {solved.name for solved in SOLVED}
    assert set(scores.values()) == {0, 1}
