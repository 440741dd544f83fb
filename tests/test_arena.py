"""Duels: paired deals, reproducible results, honest intervals."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from spite_env import Rules, arena
from spite_env.arena import duel, margin_interval, share_interval
from spite_env.policies import GreedyPolicy


def counts(result: arena.DuelResult) -> tuple[int, ...]:
    return result.wins, result.draws, result.truncated, result.losses, *result.points


def records(first: str, second: str, rules: Rules, **options: Any) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    duel(first, second, rules, record=written.append, **options)
    return written


@pytest.mark.parametrize("preset", ["g4a", "classic", "skip_bo", "mini"])
def test_every_game_is_counted_once(preset: str) -> None:
    result = duel("greedy", "random", Rules.preset(preset), games=60, seed=5)
    assert result.wins + result.draws + result.truncated + result.losses == result.games == 60
    assert result.margin == (result.wins - result.losses) / 60
    json.dumps(result.to_dict(), allow_nan=False)


def test_truncated_games_are_shown_apart_from_draws() -> None:
    result = duel("random", "random", Rules(max_steps=7), games=20)
    assert counts(result) == (0, 0, 20, 0, 0, 0)


def test_greedy_wins_against_the_hoarder_and_never_loses_to_random_play() -> None:
    assert duel("greedy", "hoarder", games=400, seed=1).margin_interval[0] > 0
    result = duel("greedy", "random", games=400, seed=1)
    assert result.losses == 0
    assert result.margin_interval[0] > 0


def test_swapping_the_policies_mirrors_the_result() -> None:
    one, other = duel("greedy", "hoarder", games=100, seed=3), duel("hoarder", "greedy", games=100, seed=3)
    assert one.players == other.players[::-1]
    assert one.games == other.games


def test_a_pair_has_one_deal_and_both_seatings() -> None:
    played = records("greedy", "random", Rules(), games=8, seed=11)
    assert [record["players"] for record in played] == [["greedy", "random"], ["random", "greedy"]] * 4
    for one, other in zip(played[::2], played[1::2], strict=True):
        assert one["deal"] == other["deal"]
        assert one["seed"] == other["seed"]
    assert played[0]["seed"] == 11
    assert len({record["seed"] for record in played}) == 4


def test_the_same_seed_gives_the_same_games_whatever_their_number_and_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules = Rules.mini()
    played = records("greedy", "random", rules, games=20, seed=2)
    assert records("greedy", "random", rules, games=20, seed=2) == played
    assert records("greedy", "random", rules, games=12, seed=2) == played[:12]
    assert records("greedy", "random", rules, games=20, seed=3) != played
    monkeypatch.setattr(arena, "BATCH", 3)
    assert records("greedy", "random", rules, games=20, seed=2) == played


def test_a_policy_may_play_itself() -> None:
    policy = GreedyPolicy()
    result = duel(policy, policy, Rules.mini(), games=40, seed=1)
    assert result.players == ("GreedyPolicy", "GreedyPolicy")
    assert counts(result) == counts(duel("greedy", "greedy", Rules.mini(), games=40, seed=1))


def test_matches_are_played_to_their_points() -> None:
    result = duel("greedy", "hoarder", Rules.mini().replace(match_points=3), games=10, seed=1)
    assert result.wins + result.losses == 10
    assert sum(result.points) >= 30


@pytest.mark.parametrize("games", [0, 1, 7, -2, 2.0, True])
def test_games_come_in_pairs(games: Any) -> None:
    with pytest.raises(ValueError, match=r"games=.* is not allowed; .*(2 or more|even number)"):
        duel("random", "random", games=games)


def test_an_unknown_policy_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'gredy'.*random, greedy, expert, hoarder"):
        duel("gredy", "random")


class Stubborn(GreedyPolicy):
    """Answers with a fixed array."""

    answer: Any = 73

    def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
        return np.full(len(indices), self.answer)


@pytest.mark.parametrize(
    ("answer", "message"),
    [(73, r"'Stubborn' chose action 73 in game 0, .*discard"), (-1, "action -1"), (74, "action 74"), (0.5, "float64")],
)
def test_a_policy_that_misbehaves_is_named(answer: Any, message: str) -> None:
    policy = Stubborn()
    policy.answer = answer
    with pytest.raises(ValueError, match=message):
        duel(policy, "random", games=4)


def test_observations_reach_the_policies_that_want_them() -> None:
    seen = []

    class Watching(GreedyPolicy):
        needs_observation = True

        def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
            seen.append(observation.copy())
            return super().act(observation, action_mask, infosets, indices)

    duel(Watching(), "random", games=4, seed=1, encoding="compact")
    assert all(row.any(axis=1).all() for row in seen)


@pytest.mark.parametrize("edge", [0.0, 0.1, 0.6])
def test_intervals_cover_a_known_edge(edge: float) -> None:
    rng = np.random.default_rng(7)
    weights = np.array([0.3 - edge / 4, 0.4 - edge / 2, 0.3 + 3 * edge / 4])  # of loss, draw, win
    truth = weights[2] - weights[0]
    share = weights[2] / (weights[0] + weights[2])
    covered_margin = covered_share = 0
    trials, pairs = 1000, 300
    for _ in range(trials):
        games = rng.choice([-1, 0, 1], size=(pairs, 2), p=weights)
        low, high = margin_interval(games.mean(axis=1))
        covered_margin += low <= truth <= high
        interval = share_interval((games > 0).sum(axis=1), (games != 0).sum(axis=1))
        assert interval is not None
        covered_share += interval[0] <= share <= interval[1]
    assert 0.93 <= covered_margin / trials <= 0.97
    assert 0.93 <= covered_share / trials <= 0.97


def test_intervals_stay_open_where_nothing_varied() -> None:
    assert margin_interval(np.zeros(100)) == pytest.approx((-0.0362, 0.0362), abs=1e-4)
    assert margin_interval(np.ones(100)) == pytest.approx((1 - 0.0724, 1.0), abs=1e-4)
    assert share_interval(np.full(50, 2), np.full(50, 2)) == pytest.approx((1 - 0.0711, 1.0), abs=1e-4)
    assert share_interval(np.zeros(5), np.zeros(5)) is None
