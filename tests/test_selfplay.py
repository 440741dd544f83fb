"""Self-play in both seats: the stream against the core, and its returns against one player's own at a time."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import Players
from spite_env import Game, Rules
from spite_env.selfplay import SelfPlay, Step, negamax_gae

#: Games of both outcomes, of draws and of cuts, a few decisions long.
LIVELY = Rules(payoff_size=3, ranks=6, copies=6, max_steps=40)

#: Matches that are a few decisions long too.
MATCH = dataclasses.replace(Rules.mini(), match_points=3, max_games=3, max_steps=20)

RULES = {"lively": LIVELY, "mini": Rules.mini(), "mid-turn refill": Rules.classic(), "match": MATCH}


def played(stream: SelfPlay, length: int, seed: int = 0) -> tuple[NDArray[np.int64], list[Step]]:
    """Play, and return the deciders and what each decision led to."""
    players = Players(stream.rules, stream.num_games, seed)
    deciders, steps = [], []
    for _ in range(length):
        deciders.append(stream.game.current_player)
        steps.append(stream.step(players.choose(stream.game)))
    return np.stack(deciders), steps


def stacked(steps: list[Step]) -> Step:
    return Step(*map(np.stack, zip(*steps, strict=True)))


# -- the stream ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "reward"),
    [(LIVELY, "win"), (Rules.mini(), "margin"), (Rules.classic(), "points"), (MATCH, "points")],
)
def test_the_games_are_those_of_a_game_with_the_same_seed(rules: Rules, reward: str) -> None:
    stream = SelfPlay(40, rules, seed=3, reward=reward, card_reward=0.25)
    twin = Game(rules, 40, 3, autoreset=True)
    players, ended = Players(rules, 40, 1), 0
    for _ in range(150):
        np.testing.assert_array_equal(stream.observe(), twin.observe())
        np.testing.assert_array_equal(stream.action_masks(), twin.legal_actions())
        actions, mover = players.choose(twin), twin.current_player
        texts = np.array([twin.actions.text(action) for action in actions.tolist()])
        step = stream.step(actions)
        twin.step(actions)
        over, points = twin.terminated | twin.truncated, twin.points.astype(np.float64)
        np.testing.assert_array_equal(step.ended, over)
        np.testing.assert_array_equal(step.truncated, twin.truncated)
        np.testing.assert_array_equal(step.switched[~over], (twin.current_player != mover)[~over])
        assert not step.switched[twin.terminated].any()
        if rules.match_points is None:
            passed = np.char.startswith(texts, "discard") | (texts == "end_turn")
            np.testing.assert_array_equal(step.switched, passed & ~twin.terminated)
        gain = 1.0 if reward == "win" else np.abs(points[:, 0] - points[:, 1])
        gain = np.where(twin.winner < 0, 0, np.where(twin.winner == mover, gain, -gain))
        gain /= rules.payoff_size if reward == "margin" else 1
        np.testing.assert_array_equal(
            step.rewards, (gain + 0.25 * np.char.startswith(texts, "payoff")).astype(np.float32)
        )
        ended += np.count_nonzero(over)
    assert ended > 5 or rules == Rules.classic()


def test_all_kinds_of_ends_are_told_once() -> None:
    stream = SelfPlay(60, LIVELY, seed=1)
    told: list[dict[str, Any]] = []

    def hear(kind: str, games: NDArray[np.intp], **details: Any) -> None:
        if kind == "end":
            left = stream.game.state.pile_size[:, 0, games].T.tolist()
            for row, game in enumerate(games.tolist()):
                end = {"game": game, "left": left[row], "winner": int(details["winner"][row])}
                told.append({**end, "truncated": bool(details["truncated"])})

    stream.game.listener = hear
    _, steps = played(stream, 150)
    first = stream.results()
    more = played(stream, 150)[1]
    results = np.concatenate([first, stream.results()])
    assert stream.results().size == 0
    results = results[np.argsort(results["game"], kind="stable")]
    told.sort(key=lambda end: end["game"])
    assert results["game"].tolist() == [end["game"] for end in told]
    assert results["winner"].tolist() == [end["winner"] for end in told]
    assert results["truncated"].tolist() == [end["truncated"] for end in told]
    assert results["payoff_left"].tolist() == [end["left"] for end in told]
    assert set(results["winner"].tolist()) == {-1, 0, 1}
    assert 0 < results["truncated"].sum() < (results["winner"] < 0).sum()
    ended = stacked(steps + more).ended
    for game in range(60):
        lengths = np.diff(np.flatnonzero(ended[:, game]), prepend=-1)
        assert results["length"][results["game"] == game].tolist() == lengths.tolist()
    assert set(results["payoff_size"].tolist()) == {3}


def test_views_are_of_the_mover_and_every_array_is_new() -> None:
    stream = SelfPlay(30, LIVELY, seed=2)
    kept: list[tuple[NDArray[Any], bytes]] = []
    players = Players(LIVELY, 30, 2)
    for _ in range(40):
        views = [stream.game.observe(viewer) for viewer in (0, 1)]
        seen = stream.observe()
        np.testing.assert_array_equal(seen, np.where(stream.game.current_player[:, None] == 0, *views))
        arrays = [seen, stream.action_masks(), *stream.step(players.choose(stream.game)), stream.final_observation]
        kept += [(array, array.tobytes()) for array in arrays]
    assert all(array.tobytes() == content for array, content in kept)
    mask = stream.action_masks()
    mask[:] = True  # theirs to change
    assert not stream.action_masks().all()


def test_the_last_view_of_a_truncated_game_is_kept() -> None:
    stream, cut = SelfPlay(30, LIVELY, seed=4), 0
    last: dict[int, NDArray[np.uint8]] = {}

    def hear(kind: str, games: NDArray[np.intp], **details: Any) -> None:
        if kind == "end" and details["truncated"]:
            last.update(zip(games.tolist(), stream.game.observe(indices=games), strict=True))

    stream.game.listener = hear
    players = Players(LIVELY, 30, 4)
    for _ in range(100):
        last.clear()
        truncated = stream.step(players.choose(stream.game)).truncated
        expected = [last[game] for game in np.flatnonzero(truncated).tolist()]
        np.testing.assert_array_equal(stream.final_observation, np.reshape(expected, (-1, stream.game.observation.n)))
        cut += len(expected)
    assert cut > 3


def test_payoff_sizes_are_drawn_and_change_for_later_games_only() -> None:
    streams = [SelfPlay(64, LIVELY, seed=seed, payoff_sizes=[1, 2]) for seed in (5, 5, 6)]
    sizes = [stream.game.state.pile_size[:, 0] for stream in streams]
    assert set(sizes[0][0].tolist()) == {1, 2}
    np.testing.assert_array_equal(sizes[0][0], sizes[0][1])
    np.testing.assert_array_equal(sizes[0], sizes[1])
    assert (sizes[0] != sizes[2]).any()
    started = sizes[0][0].copy()
    stream = streams[0]
    stream.dealer.set_payoff_sizes([3])
    played(stream, 200)
    results = stream.results()
    firsts = [int(results["payoff_size"][results["game"] == game][0]) for game in range(64)]
    assert firsts == started.tolist()
    laters = np.concatenate([results["payoff_size"][results["game"] == game][1:] for game in range(64)])
    assert laters.size > 64
    assert set(laters.tolist()) == {3}


def test_a_wrong_action_changes_nothing() -> None:
    stream = SelfPlay(4, LIVELY)
    before = pickle.dumps(stream.game)
    with pytest.raises(ValueError, match="action 99 is not legal in game 2"):
        stream.step([*stream.action_masks().argmax(axis=1)[:2], 99, 0])
    assert pickle.dumps(stream.game) == before
    assert stream.results().size == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"card_reward": -1.0}, "card_reward=-1.0"),
        ({"card_reward": float("nan")}, "card_reward=nan"),
        ({"reward": "gold"}, "reward='gold'"),
        ({"payoff_sizes": []}, "payoff_sizes="),
        ({"payoff_sizes": [4]}, "payoff_sizes=4"),
        ({"rules": MATCH, "payoff_sizes": [1]}, "single games"),
        ({"num_games": 0}, "num_games=0"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SelfPlay(**{"num_games": 2, "rules": LIVELY, **options})


# -- advantages ------------------------------------------------------------------------------------------------------


def players_own_advantages(
    player: int,
    deciders: NDArray[np.int64],
    step: Step,
    values: NDArray[np.float64],
    final_values: NDArray[np.float64],
    gamma: float,
    gae_lambda: float,
) -> NDArray[np.float64]:
    """Return the advantages of one player's decisions, from all rewards and values turned to that player's side.

    Slow and plain: lambda-weighted sums of errors over one game of one row after the other.
    """
    length, count = step.rewards.shape
    advantages = np.full((length, count), np.nan)
    for game in range(count):
        for t in np.flatnonzero(deciders[:length, game] == player).tolist():
            total, weight = 0.0, 1.0
            for later in range(t, length):
                here = 1 if deciders[later, game] == player else -1
                there = 1 if deciders[later + 1, game] == player else -1
                if step.ended[later, game]:
                    there = -here if step.switched[later, game] else here
                    after = final_values[later, game]
                else:
                    after = values[later + 1, game]
                error = here * step.rewards[later, game] + gamma * there * after - here * values[later, game]
                total += weight * error
                weight *= gamma * gae_lambda
                if step.ended[later, game]:
                    break
            advantages[t, game] = total
    return advantages


@pytest.mark.parametrize(("gamma", "gae_lambda"), [(0.9, 0.8), (1.0, 1.0), (0.97, 0.0)])
@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_advantages_are_those_of_each_player_alone(rules: Rules, gamma: float, gae_lambda: float) -> None:
    stream = SelfPlay(8, rules, seed=7, card_reward=0.3)
    deciders, steps = played(stream, 80)
    deciders = np.concatenate([deciders, stream.game.current_player[None]])
    step = stacked(steps)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(81, 8))
    final_values = rng.normal(size=(80, 8)) * step.truncated
    advantages, returns = negamax_gae(
        step.rewards, values, step.ended, step.switched, gamma=gamma, gae_lambda=gae_lambda, final_values=final_values
    )
    of_players = [
        players_own_advantages(player, deciders, step, values, final_values, gamma, gae_lambda) for player in (0, 1)
    ]
    np.testing.assert_allclose(advantages, np.where(deciders[:-1] == 0, *of_players), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(returns, advantages + values[:-1], rtol=1e-4, atol=1e-5)
    assert step.ended.any() or rules == Rules.classic()


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_undiscounted_returns_are_the_games_outcome_and_cards(rules: Rules) -> None:
    stream = SelfPlay(12, rules, seed=8, card_reward=0.5)
    ends: dict[int, list[tuple[int, int]]] = {game: [] for game in range(12)}
    cards: list[tuple[int, int, int]] = []
    now = 0

    def hear(kind: str, games: NDArray[np.intp], **details: Any) -> None:
        if kind == "end" and rules.match_points is None:
            for game, winner in zip(games.tolist(), details["winner"].tolist(), strict=True):
                ends[game].append((now, winner))
        elif kind == "play":
            paid = np.flatnonzero(details["source"] == 0)
            cards.extend((now, int(games[row]), int(details["player"][row])) for row in paid)

    stream.game.listener = hear
    players, deciders, steps = Players(rules, 12, 0), [], []
    for now in range(150):  # noqa: B007 - the listener reads it
        deciders.append(stream.game.current_player)
        steps.append(stream.step(players.choose(stream.game)))
    step = stacked(steps)
    if rules.match_points is not None:  # its games end within the episode: take the episodes from the results
        for result in stream.results():
            ends[int(result["game"])].append((-1, int(result["winner"])))
        for game, listed in ends.items():
            times = np.flatnonzero(step.ended[:, game]).tolist()
            ends[game] = [(time, winner) for time, (_, winner) in zip(times, listed, strict=True)]
    _, returns = negamax_gae(step.rewards, np.zeros((151, 12)), step.ended, step.switched, gamma=1, gae_lambda=1)
    checked = 0
    for game in range(12):
        begin = 0
        for end, winner in ends[game]:
            for t in range(begin, end + 1):
                player = int(deciders[t][game])
                later = [who for time, where, who in cards if where == game and t <= time <= end]
                own = later.count(player) - later.count(1 - player)
                outcome = 0 if winner < 0 else 1 if winner == player else -1
                assert returns[t, game] == pytest.approx(outcome + 0.5 * own, abs=1e-4)
                checked += 1
            begin = end + 1
    assert checked > 300


def test_the_discount_counts_the_decisions_of_both_players() -> None:
    rewards = np.array([[0.0], [0.0], [0.0], [1.0]])
    switched = np.array([[False], [True], [True], [False]])  # players 0, 0, 1, 0
    ended = np.array([[False], [False], [False], [True]])
    _, returns = negamax_gae(rewards, np.zeros((5, 1)), ended, switched, gamma=0.5, gae_lambda=1)
    assert returns[:, 0].tolist() == [0.125, 0.25, -0.5, 1.0]


def test_misfitting_shapes_are_named() -> None:
    flags = np.zeros((3, 2), np.bool_)
    with pytest.raises(ValueError, match=r"values has the shape \(3, 2\); with these rewards it must be \(4, 2\)"):
        negamax_gae(np.zeros((3, 2)), np.zeros((3, 2)), flags, flags, gamma=1, gae_lambda=1)
    with pytest.raises(ValueError, match="switched has the shape"):
        negamax_gae(np.zeros((3, 2)), np.zeros((4, 2)), flags, flags[:1], gamma=1, gae_lambda=1)


def test_flags_that_are_no_bool_are_refused() -> None:
    rewards, values, flags = np.zeros((2, 3)), np.zeros((3, 3)), np.zeros((2, 3), bool)
    for wrong in (flags.astype(int), flags.astype(np.uint8), flags.astype(float)):
        with pytest.raises(ValueError, match=f"ended are {wrong.dtype}; they must be bool"):
            negamax_gae(rewards, values, wrong, flags, gamma=1.0, gae_lambda=1.0)
        with pytest.raises(ValueError, match="switched are"):
            negamax_gae(rewards, values, flags, wrong, gamma=1.0, gae_lambda=1.0)
    with pytest.raises(ValueError, match=r"rewards have the shape \(2,\)"):
        negamax_gae(np.zeros(2), values, flags, flags, gamma=1.0, gae_lambda=1.0)
