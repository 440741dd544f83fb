"""The policies random, greedy and hoarder, and how policies are found."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import ALL_PRESETS, chi_square, chi_square_limit, legal_texts, over, played_games, start
from spite_env import Game, Policy, Rules, random_legal_actions
from spite_env.observation import ObservationTable
from spite_env.policies import GreedyPolicy, PriorityPolicy, RandomPolicy, decide, make_policy
from spite_env.rules import PRESETS

NAMES = ("random", "greedy", "hoarder")
EVERY_POLICY = pytest.mark.parametrize("name", NAMES)
EVERY_PRESET = pytest.mark.parametrize("rules", ALL_PRESETS, ids=PRESETS)


def ready(name: str, rules: Rules, num_games: int, seed: int = 0) -> Policy:
    policy = make_policy(name)
    policy.reset(rules, num_games, seed)
    return policy


def act(policy: Policy, game: Game, indices: list[int] | None = None) -> NDArray[np.intp]:
    games = np.arange(game.num_games) if indices is None else np.array(indices, np.intp)
    return policy.act(game.observe()[games], game.legal_actions()[games], None, games)


# -- what they choose ------------------------------------------------------------------------------------------------


def choices(name: str, rules: Rules, legal: set[str]) -> set[str]:
    """Return the actions that a policy by its definition may choose, each with the same probability."""
    centers = range(rules.center_piles)
    others = {text for text in legal if text == "end_turn" or text.startswith("discard")}
    if name == "random":
        return legal
    for center in centers:
        if f"payoff>center{center}" in legal:
            return {f"payoff>center{center}"}
    if name == "hoarder":
        return others
    for center in centers:
        for source in (*(f"side{side}" for side in range(rules.side_piles)), "hand"):
            if f"{source}>center{center}" in legal:
                return {f"{source}>center{center}"}
    return {"wild>center0"} if "wild>center0" in legal else others


@EVERY_POLICY
@EVERY_PRESET
def test_a_policy_chooses_by_its_definition(name: str, rules: Rules) -> None:
    game = played_games(rules, 1500, seed=1, most=120)
    policy = ready(name, rules, 1500)
    for _ in range(2):
        actions = act(policy, game)
        for row, action in zip(game.legal_actions(), actions.tolist(), strict=True):
            legal = {game.actions.text(number) for number in np.flatnonzero(row).tolist()}
            assert game.actions.text(action) in choices(name, rules, legal)


LAYOUTS: dict[str, dict[str, Any]] = {
    "plays and discards": {"hand": "AKK27", "payoff": "9", "sides": ["A", "3"], "centers": ["", "A2"]},
    "nothing to play": {"hand": "55778", "payoff": "9"},
    "one kind of discard": {"hand": "55555", "payoff": "9"},
    "only to end": {"payoff": "9"},
    "one legal play": {"payoff": "9", "sides": ["A"], "centers": ["A", "A"]},
    "all kinds": {"hand": "A5TQK", "payoff": "A", "sides": ["A", "A", "A", "K"]},
}


@EVERY_POLICY
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_choices_are_uniform_over_actions(name: str, layout: dict[str, Any]) -> None:
    times = 20_000
    game = start(Rules(), stock="", **layout).copy(np.zeros(times, np.intp))
    actions = act(ready(name, Rules(), times, seed=5), game)
    counts = np.bincount(actions, minlength=game.actions.n)
    expected = choices(name, Rules(), legal_texts(game))
    numbers = [game.actions.parse(text) for text in expected]
    assert counts[numbers].sum() == times
    if len(numbers) > 1:
        assert chi_square(counts[numbers], np.full(len(numbers), times / len(numbers))) < chi_square_limit(
            len(numbers) - 1
        )


@EVERY_POLICY
def test_choices_are_uniform_over_the_decisions_of_one_game(name: str) -> None:
    times = 10_000
    game = start(Rules(), stock="", hand="55778", payoff="9")
    policy = ready(name, Rules(), 1, seed=6)
    observation, mask, index = game.observe(), game.legal_actions(), np.array([0])
    actions = [int(policy.act(observation, mask, None, index)[0]) for _ in range(times)]
    counts = np.bincount(actions, minlength=game.actions.n)[mask[0]]
    assert counts.sum() == times
    assert chi_square(counts, np.full(12, times / 12)) < chi_square_limit(11)
    # A choice says nothing about the next one.
    pairs = np.unique(np.array(actions[:-1]) * 100 + actions[1:], return_counts=True)[1]
    assert len(pairs) == 144
    assert chi_square(pairs, np.full(144, (times - 1) / 144)) < chi_square_limit(143)


@pytest.mark.parametrize("columns", [1, 7, 74, 255, 256, 700])
def test_random_legal_actions_are_legal_and_uniform(columns: int) -> None:
    rng = np.random.default_rng(columns)
    for rows in (1, 5, 31, 32, 400):
        mask = rng.random((rows, columns)) < 0.3
        mask[np.arange(rows), rng.integers(columns, size=rows)] = True
        for given_mask in (mask, np.asfortranarray(mask)):
            for uniform in (rng.random(rows), np.zeros(rows), np.full(rows, np.nextafter(1.0, 0.0))):
                actions = random_legal_actions(given_mask, uniform)
                expected = [
                    np.flatnonzero(row)[int(number * row.sum())] for row, number in zip(mask, uniform, strict=True)
                ]
                np.testing.assert_array_equal(actions, expected)


# -- what their choices depend on ------------------------------------------------------------------------------------


def played(rules: Rules, name: str, num_games: int, policy_seed: int = 3) -> list[list[int]]:
    """Let a policy play both sides, and return each game's actions."""
    game = Game(rules, num_games, seed=2)
    policy = ready(name, rules, num_games, policy_seed)
    chosen: list[list[int]] = [[] for _ in range(num_games)]
    for _ in range(60):
        (live,) = np.nonzero(~over(game))
        if not live.size:
            break
        actions = act(policy, game, live.tolist())
        for index, action in zip(live.tolist(), actions.tolist(), strict=True):
            chosen[index].append(action)
        game.step(actions, live)
    return chosen


@EVERY_POLICY
@EVERY_PRESET
def test_a_policy_plays_a_game_the_same_in_every_batch(name: str, rules: Rules) -> None:
    small = played(rules, name, 1)
    middle = played(rules, name, 7)
    large = played(rules, name, 300)
    assert large[:7] == middle
    assert middle[:1] == small


@EVERY_POLICY
def test_a_policy_plays_the_same_in_any_order_and_any_portions(name: str) -> None:
    rules, count = Rules(), 40
    game = played_games(rules, count, seed=4, most=50)
    whole, portions = ready(name, rules, count, 9), ready(name, rules, count, 9)
    rng = np.random.default_rng(0)
    for _ in range(5):
        expected = act(whole, game)
        order = rng.permutation(count)
        for part in np.array_split(order, 7):
            np.testing.assert_array_equal(act(portions, game, part.tolist()), expected[part])


@EVERY_POLICY
def test_a_reset_starts_a_policy_anew_and_another_seed_plays_otherwise(name: str) -> None:
    game = played_games(Rules(), 200, seed=4, most=50)
    policy = ready(name, Rules(), 200, seed=1)
    first, second = act(policy, game), act(policy, game)
    assert (first != second).any()
    policy.reset(Rules(), 200, 1)
    np.testing.assert_array_equal(act(policy, game), first)
    policy.reset(Rules(), 200, 2)
    assert (act(policy, game) != first).any()


@EVERY_POLICY
def test_policies_do_not_share_anything(name: str) -> None:
    game = played_games(Rules(), 50, seed=4, most=50)
    alone = ready(name, Rules(), 50, seed=1)
    expected = [act(alone, game) for _ in range(3)]
    policy, other = ready(name, Rules(), 50, seed=1), ready(name, Rules(), 50, seed=1)
    for row in expected:
        np.testing.assert_array_equal(act(policy, game), row)
        act(other, game)
        act(other, game)


@EVERY_POLICY
def test_a_policy_leaves_what_it_is_given_alone_and_needs_no_infosets(name: str) -> None:
    game = Game(Rules(), 30, seed=1)
    observation, mask, indices = game.observe(), game.legal_actions().copy(), np.arange(30)
    before = [array.copy() for array in (observation, mask, indices)]
    actions = ready(name, Rules(), 30).act(observation, mask, None, indices)
    assert actions.shape == (30,)
    assert actions.dtype.kind == "i"
    assert mask[indices, actions].all()
    for array, kept in zip((observation, mask, indices), before, strict=True):
        np.testing.assert_array_equal(array, kept)


@EVERY_POLICY
def test_a_policy_takes_no_games(name: str) -> None:
    assert act(ready(name, Rules(), 3), Game(Rules(), 3), []).shape == (0,)


# -- names -----------------------------------------------------------------------------------------------------------


def test_short_names_and_import_paths_name_policies() -> None:
    assert type(make_policy("random")) is RandomPolicy
    assert type(make_policy("greedy")) is GreedyPolicy
    assert isinstance(make_policy("hoarder"), PriorityPolicy)
    assert type(make_policy("hoarder")).__module__ == "agents.hoarder"
    assert type(make_policy("spite_env.policies:GreedyPolicy")) is GreedyPolicy
    assert make_policy("random") is not make_policy("random")


def ready_made() -> RandomPolicy:
    return RandomPolicy()


READY = RandomPolicy()


def test_an_import_path_may_name_a_function_or_a_policy_itself() -> None:
    assert type(make_policy(f"{__name__}:ready_made")) is RandomPolicy
    assert make_policy(f"{__name__}:READY") is READY


@pytest.mark.parametrize("name", ["", "Random", "gredy", "agents", "hoarder "])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ValueError, match=f"unknown policy {name!r}") as caught:
        make_policy(name)
    for known in (*NAMES, "package.module:name"):
        assert known in str(caught.value)


@pytest.mark.parametrize("name", ["hoarder", "unheard"])
def test_without_a_checkout_the_error_says_where_the_other_agents_are(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "agents" else real(name, *rest)
    )
    with pytest.raises(ValueError, match=f"unknown policy '{name}'.*the other agents come with a checkout"):
        make_policy(name)
    assert type(make_policy("greedy")) is GreedyPolicy


@pytest.mark.parametrize(
    "name",
    ["nowhere:Policy", "spite_env.policies:Nothing", "spite_env.policies:", ":RandomPolicy", "spite_env.nothing:X"],
)
def test_an_import_path_that_leads_nowhere_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"policy '{name}' can't be loaded"):
        make_policy(name)


@pytest.mark.parametrize(
    "name", ["os:path", "os:sep", "json:dumps", ".x:y", "spite_env.policies:Policy", "spite_env.policies:POLICIES"]
)
def test_what_is_no_policy_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        make_policy(name)


@pytest.mark.parametrize("wrong", [None, 5, GreedyPolicy, object()])
def test_objects_that_are_no_policies_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="is no policy: it needs the methods reset and act"):
        make_policy(wrong)


@pytest.mark.parametrize("code", ["raise RuntimeError", "import sys; sys.exit(0)", "def broken(:"])
def test_a_module_that_fails_is_an_error_of_the_name(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_policies.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="'failing_policies:any' can't be loaded"):
        make_policy("failing_policies:any")


def test_another_package_called_agents_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("agents.AGENTS")
    assert isinstance(make_policy("greedy"), GreedyPolicy)
    with pytest.raises(ValueError, match="unknown policy 'hoarder'"):
        make_policy("hoarder")


def test_a_choice_among_very_many_actions_is_legal() -> None:
    game = Game(Rules(center_piles=255, side_piles=255))
    mask = game.legal_actions()
    for uniform in (0.0, 0.5, 0.999999):
        assert mask[0, random_legal_actions(mask, np.array([uniform]))[0]]


class Reader(GreedyPolicy):
    """Asks for a layout, and keeps what it is given."""

    needs_observation = True

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        super().reset(rules, num_games, seed)
        self.observation_table = ObservationTable(rules, "compact", 7)

    def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> NDArray[np.intp]:
        self.seen = observation
        return super().act(observation, action_mask, infosets, indices)


@pytest.mark.parametrize("options", [{}, {"encoding": "compact", "side_depth": 0}])
def test_a_policy_gets_the_layout_that_it_asks_for(options: dict[str, Any]) -> None:
    game = played_games(Rules(), 20, seed=9, most=60, **options)
    policy = Reader()
    policy.reset(Rules(), 20, 0)
    games = np.array([3, 11, 5])
    decide(policy, "reader", game, games)
    np.testing.assert_array_equal(policy.seen, game.observe(indices=games, table=policy.observation_table))
    assert policy.seen.shape == (3, policy.observation_table.n)
