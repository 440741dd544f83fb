"""What holds of a batch of games whatever is done with it, in whatever order."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from numpy.typing import NDArray

from helpers import any_rules, check_bookkeeping, count_cards, legal_texts, over, snapshot, storage
from spite_env import Game, Rules

MOST_GAMES = 4

PICKS = st.lists(st.integers(0, 10**6), min_size=MOST_GAMES, max_size=MOST_GAMES)
SEEDS = st.integers(0, 2**64 - 1)


class GameMachine(RuleBasedStateMachine):
    """A batch, the same batch with autoreset, and each of its games alone: all play the same."""

    @initialize(rules=any_rules(), seed=SEEDS, num_games=st.integers(1, MOST_GAMES))
    def deal(self, rules: Rules, seed: int, num_games: int) -> None:
        self.game = Game(rules, num_games, seed, encoding="compact")
        self.auto = Game(rules, num_games, seed, encoding="compact", autoreset=True)
        seeds = self.game.state.seed.tolist()
        assert seeds[0] == seed
        self.alone = [Game(rules, 1, seed, encoding="compact") for seed in seeds]
        self.handed_out: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def picked(self, game: Game, picks: list[int]) -> NDArray[np.intp]:
        """Return a legal action for each game; small picks are plays."""
        legal = [np.flatnonzero(row) for row in game.legal_actions()]
        pairs = zip(legal, picks, strict=False)
        return np.array([row[pick % row.size] if row.size else 0 for row, pick in pairs], np.intp)

    def hand_out(self, array: NDArray[Any]) -> None:
        self.handed_out.append((array, array.copy()))

    def play(self, actions: NDArray[np.intp], games: list[int] | None) -> None:
        chosen = actions if games is None else actions[games]
        self.game.step(chosen, games)
        self.auto.step(chosen, games)
        for index in range(self.game.num_games) if games is None else games:
            self.alone[index].step(actions[[index]])
        self.start_ended_games()

    def start_ended_games(self) -> None:
        """Do by hand in the plain batch what autoreset has done already."""
        (ended,) = np.nonzero(over(self.game))
        if not ended.size:
            return
        for name in ("terminated", "truncated", "winner", "points"):
            np.testing.assert_array_equal(getattr(self.game, name)[ended], getattr(self.auto, name)[ended])
        views = np.stack([self.game.observe(viewer) for viewer in (0, 1)], axis=1)
        np.testing.assert_array_equal(self.auto.final_observation[ended], views[ended])
        assert not self.game.legal_actions()[ended].any()

        before = [snapshot(self.game, index) for index in ended.tolist()]
        self.game.step(np.full(ended.size, 10**6), ended)
        assert [snapshot(self.game, index) for index in ended.tolist()] == before, "an ended game has changed"

        self.game.reset(ended)
        for index in ended.tolist():
            assert over(self.alone[index]).all()
            self.alone[index].reset()

    @rule(picks=PICKS)
    def step_all(self, picks: list[int]) -> None:
        self.play(self.picked(self.game, picks), None)

    @rule(rounds=st.lists(PICKS, min_size=5, max_size=25))
    def play_on(self, rounds: list[list[int]]) -> None:
        for picks in rounds:
            self.step_all(picks)

    @rule(picks=PICKS, data=st.data())
    def step_some(self, picks: list[int], data: st.DataObject) -> None:
        games = data.draw(st.lists(st.integers(0, self.game.num_games - 1), unique=True))
        others = sorted(set(range(self.game.num_games)) - set(games))
        before = [snapshot(self.game, index) for index in others]
        self.play(self.picked(self.game, picks), games)
        assert [snapshot(self.game, index) for index in others] == before

    @rule(picks=PICKS, order=st.permutations(range(MOST_GAMES)))
    def one_by_one_is_all_at_once(self, picks: list[int], order: list[int]) -> None:
        actions = self.picked(self.game, picks)
        together, apart = self.game.copy(), self.game.copy()
        together.step(actions)
        for index in order:
            if index < apart.num_games:
                apart.step(actions[[index]], [index])
        for index in range(apart.num_games):
            assert snapshot(together, index) == snapshot(apart, index)

    @rule(data=st.data())
    def mask_is_what_can_be_stepped(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, self.game.num_games - 1))
        mask = self.game.legal_actions()[index]
        tried = self.game.copy(np.full(mask.size, index))
        for action in range(mask.size):
            if mask[action]:
                tried.step([action], [action])
                now, before = tried.state, self.game.state
                assert now.steps[action] != before.steps[index] or now.game_number[action] != before.game_number[index]
            else:
                with pytest.raises(ValueError, match="not legal"):
                    tried.step([action], [action])
                assert snapshot(tried, action) == snapshot(self.game, index)

    @rule(picks=st.lists(PICKS, max_size=20), way=st.sampled_from(["copy", "deepcopy", "pickle", "copy of some"]))
    def copies_are_independent_and_play_the_same(self, picks: list[list[int]], way: str) -> None:
        indices = list(range(self.game.num_games))
        if way == "copy of some":
            indices = [*reversed(indices), 0, 0]
        twin = {
            "copy": lambda: self.game.copy(),
            "deepcopy": lambda: copy.deepcopy(self.game),
            "pickle": lambda: pickle.loads(pickle.dumps(self.game)),
            "copy of some": lambda: self.game.copy(indices),
        }[way]()
        original, before = self.game.copy(), storage(self.game)
        for row in picks:
            actions = self.picked(original, row)
            original.step(actions)
            twin.step(actions[indices])
            for place, index in enumerate(indices):
                assert snapshot(twin, place) == snapshot(original, index)
        twin.reset(seed=1)
        assert storage(self.game) == before

    @rule(data=st.data(), seed=st.none() | SEEDS)
    def reset_some(self, data: st.DataObject, seed: int | None) -> None:
        games = data.draw(st.lists(st.integers(0, self.game.num_games - 1), unique=True))
        self.game.reset(games, seed)
        self.auto.reset(games, seed)
        for index in games:
            self.alone[index].reset(seed=None if seed is None else [int(self.game.state.seed[index])])

    @rule(picks=PICKS, data=st.data())
    def one_illegal_action_changes_nothing(self, picks: list[int], data: st.DataObject) -> None:
        actions = self.picked(self.game, picks)
        index = data.draw(st.integers(0, self.game.num_games - 1))
        (illegal,) = np.nonzero(~self.game.legal_actions()[index])
        actions[index] = data.draw(st.sampled_from([*illegal.tolist(), -1, -(2**63), self.game.actions.n, 2**63 - 1]))
        error = self.refused(actions)
        assert str(actions[index]) in error
        assert f"game {index}" in error
        for text in legal_texts(self.game, index):
            assert f"({text})" in error

    @rule(picks=PICKS, data=st.data())
    def impossible_input_changes_nothing(self, picks: list[int], data: st.DataObject) -> None:
        actions = self.picked(self.game, picks)
        count = self.game.num_games
        twice = [*range(count), 0]
        wrong: list[tuple[Any, Any]] = [
            (actions.astype(float), None),
            (actions.astype(bool), None),
            (actions.astype(str), None),
            (actions.astype(object), None),
            (None, None),
            (actions[:-1], None),
            (np.append(actions, actions), None),
            (actions[:, None], None),
            (int(actions[0]), None),
            (actions[twice], twice),
            (actions[:1], [count]),
            (actions[:1], [-1]),
            (actions[:1], [0.0]),
            (actions[:1], [False]),
            (actions[:1], 0),
            (actions[:1], [[0]]),
            (actions[:1], []),
            (actions, np.ones(count, bool)),
        ]
        self.refused(*data.draw(st.sampled_from(wrong)))

    @rule(data=st.data())
    def impossible_resets_change_nothing(self, data: st.DataObject) -> None:
        count = self.game.num_games
        position = self.game.position(0)
        wrong: list[dict[str, Any]] = [
            {"seed": -1},
            {"seed": 2**64},
            {"seed": True},
            {"seed": 1.0},
            {"seed": "1"},
            {"seed": [1] * (count + 1)},
            {"seed": [1.0] * count},
            {"indices": [0, 0]},
            {"indices": [count]},
            {"indices": [0.0]},
            {"positions": [position] * (count + 1)},
            {"positions": [position] * (count - 1) + [position | {"turn": 2}]},
            {"indices": [0], "positions": [position | {"hands": [["X"], []]}]},
        ]
        arguments = data.draw(st.sampled_from(wrong))
        before = storage(self.game)
        with pytest.raises(ValueError, match=r"."):
            self.game.reset(**arguments)
        assert storage(self.game) == before

    def refused(self, actions: Any, indices: Any = None) -> str:
        before = storage(self.game)
        with pytest.raises(ValueError, match=r".") as caught:
            self.game.step(actions, indices)
        assert storage(self.game) == before
        return str(caught.value)

    @precondition(lambda self: hasattr(self, "game"))
    @invariant()
    def all_cards_are_there(self) -> None:
        deck = np.array(self.game.rules.deck)[:, None]
        for game in (self.game, self.auto):
            np.testing.assert_array_equal(count_cards(game), np.repeat(deck, game.num_games, axis=1))
            check_bookkeeping(game)

    @precondition(lambda self: hasattr(self, "game"))
    @invariant()
    def every_game_plays_as_it_does_alone_and_with_autoreset(self) -> None:
        for index, alone in enumerate(self.alone):
            expected = snapshot(self.game, index)
            assert snapshot(alone, 0) == expected
            without_result = {"result": None}
            assert snapshot(self.auto, index) | without_result == expected | without_result

    @precondition(lambda self: hasattr(self, "game"))
    @invariant()
    def someone_can_move(self) -> None:
        assert self.game.legal_actions().any(axis=1).all()
        assert (self.game.state.steps < self.game.rules.max_steps).all()

    @precondition(lambda self: hasattr(self, "game"))
    @invariant()
    def what_was_handed_out_stays(self) -> None:
        for array, as_it_was in self.handed_out:
            np.testing.assert_array_equal(array, as_it_was)
        self.handed_out = self.handed_out[-20:]
        for game in (self.game, self.auto):
            for array in (game.legal_actions(), game.observe(), game.observe(1), game.final_observation):
                self.hand_out(array)
            for array in (game.current_player, game.terminated, game.truncated, game.winner, game.points):
                self.hand_out(array)


TestGameMachine = GameMachine.TestCase
TestGameMachine.settings = settings(max_examples=settings.default.max_examples // 2, stateful_step_count=25)
