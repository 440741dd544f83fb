"""Duels: paired deals, reproducible results, honest intervals."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spite_env import Rules, arena
from spite_env.arena import DuelResult, Tally, duel, margin_interval, share_interval
from spite_env.policies import GreedyPolicy, PolicyError
from spite_env.record import read_records, record_writer
from spite_env.sequential import SequentialTest
from spite_env.verify import verify_file


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


def test_a_tally_seen_from_the_other_side() -> None:
    tally = Tally(((1, 2, 3), (4, 5, 6), (7, 8, 9)), 1, (2, 0), (30, 40), 900, 1.0)
    one = DuelResult.of(("a", "b"), Rules(), 0, tally)
    other = DuelResult.of(("b", "a"), Rules(), 0, tally.swapped())
    assert tally.swapped().swapped() == tally
    assert (one.wins, one.draws, one.losses) == (other.losses, other.draws, other.wins)
    assert one.margin == -other.margin
    assert one.points == other.points[::-1]
    assert one.starter_margin == other.starter_margin
    assert one.starter_share == other.starter_share
    assert one.variance_ratio == pytest.approx(other.variance_ratio)


def test_tallies_of_parts_add_up() -> None:
    pairing = arena.Pairing(("greedy", "hoarder"), ("a", "b"), Rules.mini(), 5)
    [whole] = pairing.play(0, [50], 50)
    first, second = pairing.play(0, [20, 50], 50)
    [third] = pairing.play(20, [50], 50)
    assert second == replace(third, seconds=second.seconds)
    assert first + second == replace(whole, seconds=(first + second).seconds)


def test_who_starts_a_game_is_counted_right() -> None:
    """The starter is who first decides in a record; in these rules that is as often seat 0 as seat 1."""
    rules = Rules(payoff_size=3, first_player="random")
    played: list[dict[str, Any]] = []
    result = duel("greedy", "greedy", rules, games=300, seed=4, names=("a", "b"), record=played.append)
    assert {record["first_player"] for record in played} == {0, 1}
    won = [game["first_player"] == game["result"]["winner"] for game in played if game["result"]["winner"] is not None]
    assert result.starter_share == np.mean(won)
    assert result.starter_margin == (2 * sum(won) - len(won)) / 300
    pairs = np.zeros((3, 3), int)
    for games in zip(played[::2], played[1::2], strict=True):
        place = {}
        for record in games:
            seat, winner = record["players"].index("a"), record["result"]["winner"]
            place[record["first_player"] == seat] = 1 if winner is None else 2 * (winner == seat)
        pairs[place[True], place[False]] += 1
    assert result.pairs == tuple(map(tuple, pairs.tolist()))


def test_the_variance_ratio_is_that_of_pairs_to_games_of_different_deals() -> None:
    tally = Tally(((5, 0, 20), (0, 10, 0), (30, 0, 5)))
    started, other = tally.results()
    rng = np.random.default_rng(7)
    unpaired = (rng.choice(started, 200_000) + rng.choice(other, 200_000)) / 2
    result = DuelResult.of(("a", "b"), Rules(), 0, tally)
    assert result.variance_ratio == pytest.approx(tally.margins().var() / unpaired.var(), rel=0.02)
    assert duel("random", "random", games=2).variance_ratio is None


def test_paired_deals_save_games_where_the_deal_decides() -> None:
    rules = Rules(payoff_size=1, wilds=24)
    result = duel("greedy", "greedy", rules, games=4000, seed=1)
    assert result.variance_ratio is not None
    assert result.variance_ratio < 0.9
    independent = duel("greedy", "random", Rules.mini(), games=4000, seed=1).variance_ratio
    assert independent is not None
    assert independent < 1.1


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
    with pytest.raises(ValueError, match=r"'gredy'.*random, greedy, .*hoarder"):
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


class Faulty(GreedyPolicy):
    """Misbehaves in its third answer, as ``fault`` says."""

    def __init__(self, fault: Any) -> None:
        self.fault, self.asked = fault, 0

    def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
        actions = super().act(observation, action_mask, infosets, indices)
        self.asked += 1
        return self.fault(actions) if self.asked == 3 else actions


def fail(actions: Any) -> Any:
    raise ZeroDivisionError("so it goes")


def cheat(actions: Any) -> Any:
    actions[1] = 73
    return actions


def sleep(actions: Any) -> Any:
    time.sleep(0.06 * len(actions))
    return actions


@pytest.mark.parametrize(
    ("fault", "lost", "message"),
    [
        (fail, "all", "ZeroDivisionError: so it goes"),
        (cheat, 1, "action 73"),
        (lambda actions: actions * np.nan, "all", "float64"),
        (lambda actions: actions[1:], "all", "shape"),
        (lambda actions: None, "all", "object"),
        (sleep, "all", r"took 0\.0\d+ s .*the limit is 0.05 s"),
    ],
)
def test_a_policy_that_misbehaves_stops_the_duel_or_loses(fault: Any, lost: Any, message: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "games": 20,
        "seed": 1,
        "names": ("bad", "good"),
        "time_limit": 0.05 if fault is sleep else None,
    }
    with pytest.raises(PolicyError, match=f"(?s)policy 'bad'.*{message}"):
        duel(Faulty(fault), "random", **options)
    with record_writer(tmp_path / "games.jsonl") as write:
        result = duel(Faulty(fault), "random", on_error="lose", record=write, **options)
    losses = result.forfeits[0]
    assert losses == lost if lost != "all" else 5 <= losses < 20
    assert result.forfeits[1] == 0
    assert result.losses >= losses
    assert result.wins + result.draws + result.losses == result.games == 20
    [told] = result.faults
    assert "policy 'bad'" in told
    forfeited = [
        record for record in read_records(tmp_path / "games.jsonl") if record["result"]["outcome"] == "forfeit"
    ]
    assert len(forfeited) == losses
    assert all(record["players"][record["result"]["by"]] == "bad" for record in forfeited)
    assert verify_file(tmp_path / "games.jsonl") == ([], 20)


def test_a_policy_that_misbehaves_does_not_change_the_other_games() -> None:
    played: dict[str, list[dict[str, Any]]] = {"good": [], "bad": []}
    duel("greedy", "random", games=20, seed=1, names=("a", "b"), record=played["good"].append)
    duel(Faulty(cheat), "random", games=20, seed=1, names=("a", "b"), on_error="lose", record=played["bad"].append)
    assert sum(one != other for one, other in zip(*played.values(), strict=True)) == 1


def test_a_policy_that_forfeits_loses_a_match() -> None:
    rules = Rules.mini().replace(match_points=6)
    result = duel(Faulty(fail), "greedy", rules, games=8, seed=1, on_error="lose")
    assert result.wins + result.losses == 8
    assert 1 <= result.forfeits[0] <= result.losses


def test_a_policy_that_cannot_begin_is_named_whatever_happens_to_errors() -> None:
    class Refusing(GreedyPolicy):
        def reset(self, rules: Rules, num_games: int, seed: int) -> None:
            raise RuntimeError("not these rules")

    with pytest.raises(PolicyError, match="'Refusing' could not begin: RuntimeError: not these rules"):
        duel(Refusing(), "random", games=2, on_error="lose")


@pytest.mark.parametrize(
    ("option", "message"),
    [({"on_error": "win"}, "on_error='win'.*'stop', 'lose'"), ({"time_limit": 0}, "time_limit=0 is not allowed")],
)
def test_impossible_treatment_of_errors(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        duel("random", "random", games=2, **option)


def test_observations_reach_the_policies_that_want_them() -> None:
    seen = []

    class Watching(GreedyPolicy):
        needs_observation = True

        def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
            seen.append(observation.copy())
            return super().act(observation, action_mask, infosets, indices)

    duel(Watching(), "random", games=4, seed=1, encoding="compact")
    assert all(row.any(axis=1).all() for row in seen)


def test_intervals_stay_open_where_nothing_varied() -> None:
    assert margin_interval(np.zeros(100)) == pytest.approx((-0.0362, 0.0362), abs=1e-4)
    assert margin_interval(np.ones(100)) == pytest.approx((1 - 0.0724, 1.0), abs=1e-4)
    assert share_interval(np.full(50, 2), np.full(50, 2)) == pytest.approx((1 - 0.0711, 1.0), abs=1e-4)
    assert share_interval(np.zeros(5), np.zeros(5)) is None


# -- honesty ---------------------------------------------------------------------------------------------------------

#: Probabilities of a pair's two results (loss, neither, win; the first policy's start and the other's), as in an even
#: duel whose starters win more often, and whose deals decide part of the games.
EVEN = np.array([[8, 1, 16], [2, 6, 2], [48, 1, 16]]) / 100
EVEN = (EVEN + EVEN[::-1, ::-1].T) / 2

EDGES = {0.1: 0.9 * EVEN + 0.1 * np.eye(9)[8].reshape(3, 3), 0.5: 0.5 * (EVEN + np.eye(9)[8].reshape(3, 3))}


def simulated(weights: Any, pairs: int, rng: np.random.Generator) -> Tally:
    return Tally(tuple(map(tuple, rng.multinomial(pairs, np.ravel(weights)).reshape(3, 3).tolist())))


@pytest.mark.parametrize("edge", EDGES)
def test_all_intervals_of_a_duel_cover_the_truth_in_19_of_20_duels(edge: float) -> None:
    weights = EDGES[edge]
    truth = DuelResult.of(("a", "b"), Rules(), 0, Tally(tuple(map(tuple, (weights * 10**7).astype(int).tolist()))))
    assert truth.margin == pytest.approx(edge, abs=1e-4)
    rng = np.random.default_rng(11)
    covered = dict.fromkeys(("margin", "win_share", "starter_margin", "starter_share"), 0)
    trials = 1000
    for _ in range(trials):
        result = DuelResult.of(("a", "b"), Rules(), 0, simulated(weights, 300, rng))
        for name in covered:
            low, high = getattr(result, f"{name}_interval")
            covered[name] += low <= getattr(truth, name) <= high
    assert all(0.93 <= count / trials <= 0.97 for count in covered.values()), covered


def test_mirror_duels_are_even_in_either_seat() -> None:
    result = duel("greedy", "greedy", games=8000, seed=1)
    assert result.margin_interval[0] < 0 < result.margin_interval[1]
    table = np.array(result.pairs)
    np.testing.assert_allclose(table, table[::-1, ::-1].T, atol=5 * np.sqrt(table.max()))


def test_intervals_of_mirror_duels_cover_an_even_result_in_19_of_20_duels() -> None:
    duels, pairs = 200, 40
    pairing = arena.Pairing(("random", "random"), ("a", "b"), Rules.mini(), seed=5)
    tallies = pairing.play(0, range(pairs, duels * pairs + 1, pairs), duels * pairs)
    intervals = np.array([margin_interval(tally.margins()) for tally in tallies])
    covered = np.mean((intervals[:, 0] <= 0) & (intervals[:, 1] >= 0))
    assert 0.9 <= covered <= 0.99


@pytest.mark.parametrize(("margin", "alpha", "beta"), [(0.1, 0.05, 0.05), (0.2, 0.1, 0.02)])
@pytest.mark.parametrize("weights", [EVEN, 0.1 * EVEN + 0.9 * np.eye(9)[4].reshape(3, 3)], ids=["lively", "drawish"])
def test_error_rates_of_the_sequential_test_hold(margin: float, alpha: float, beta: float, weights: Any) -> None:
    test = SequentialTest(margin, alpha, beta)
    rng = np.random.default_rng(13)
    trials, most = 500, 20_000
    win_both = np.eye(9)[8]

    def verdicts(edge: float) -> list[str | None]:
        chances = (1 - edge) * np.ravel(weights) + edge * win_both
        values = np.add.outer([-1, 0, 1], [-1, 0, 1]).ravel() / 2
        found: list[str | None] = []
        for _ in range(trials):
            margins = rng.choice(values, most, p=chances)
            found.append(next(filter(None, (test.verdict(margins[:pairs]) for pairs in test.looks(most))), None))
        return found

    def at_most(rate: float) -> float:
        return trials * rate + 3 * np.sqrt(trials * rate)

    even, apart = verdicts(0.0), verdicts(margin)
    assert even.count("first") + even.count("second") <= at_most(alpha)
    assert even.count("equal") >= trials * (1 - alpha) - at_most(alpha)
    assert apart.count("equal") <= at_most(beta)
    assert apart.count("second") == 0
    assert None not in even + apart


def test_looks_grow_and_end_at_the_most_pairs() -> None:
    looks = list(SequentialTest().looks(100))
    assert looks == [32, 40, 50, 63, 79, 99, 100]
    assert list(SequentialTest().looks(10)) == [10]


@pytest.mark.parametrize(
    ("name", "value"), [("margin", 0), ("margin", 1), ("alpha", 0.5), ("beta", -0.1), ("beta", np.nan)]
)
def test_impossible_sequential_tests(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name}={value!r} is not allowed"):
        SequentialTest(**{name: value})


def test_a_duel_stops_when_it_is_decided() -> None:
    rules, options = Rules.mini(), {"games": 4000, "seed": 1}
    decided = duel("greedy", "hoarder", rules, until_decided=SequentialTest(0.1), **options)
    assert decided.verdict == "first"
    assert decided.games < 800
    assert decided.wins == duel("greedy", "hoarder", rules, games=decided.games, seed=1).wins
    assert duel("hoarder", "greedy", rules, until_decided=SequentialTest(0.1), **options).verdict == "second"
    assert duel("greedy", "greedy", rules, until_decided=SequentialTest(0.2), **options).verdict == "equal"
    undecided = duel("greedy", "greedy", rules, games=80, seed=1, until_decided=SequentialTest(0.01))
    assert (undecided.verdict, undecided.games) == ("open", 80)
    json.dumps(undecided.to_dict(), allow_nan=False)
