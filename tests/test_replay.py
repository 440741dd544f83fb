"""Games to look at: recorded and live ones, what is thought of them, and whose eyes they are seen with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import SHORT_MATCH, Players, lay, legal_texts, played_games, snapshot, start
from spite_env import Game, Rules
from spite_env.arena import duel
from spite_env.information import InformationSets
from spite_env.policies import (
    Evaluation,
    GreedyPolicy,
    PolicyError,
    ProbabilityPolicy,
    RandomPolicy,
    decide,
    evaluation_of,
)
from spite_env.record import Record, Recorder, RecordError
from spite_env.replay import Frame, RecordFile, Replay, _ply, of_policies, of_record
from spite_env.rollouts import Rollouts

ONE = np.zeros(1, np.intp)

VARIANTS = pytest.mark.parametrize(
    "rules",
    [Rules(payoff_size=3), Rules.classic().replace(payoff_size=4), Rules(payoff_size=3, recycle="bottom"), SHORT_MATCH],
    ids=["g4a", "classic", "bottom", "match"],
)


def recorded(first: str, second: str, rules: Rules, seed: int) -> list[Record]:
    """Return the records of the first game (or match) of a duel."""
    records: list[Record] = []
    duel(first, second, rules, games=2, seed=seed, record=records.append)
    later = [number for number, record in enumerate(records) if record.get("match", {"game": 0})["game"] == 0]
    return records[: later[1]]


def decisions(record: Record) -> list[tuple[int, str]]:
    """Return who decided what, told from the events of a record."""
    told = []
    for event in record["events"]:
        if event["type"] == "play":
            source = "wild" if (event["source"], event["card"]) == ("hand", "K") else event["source"].replace(":", "")
            told.append((event["player"], f"{source}>center{event['center']}"))
        elif event["type"] == "discard":
            told.append((event["player"], f"discard {event['card']}>side{event['side']}"))
        elif event["type"] == "end_turn":
            told.append((event["player"], "end_turn"))
    return told


def shown(replay: Replay) -> list[tuple[int, str]]:
    return [(frame.last.player, frame.last.text) for frame in replay if frame.last is not None]


def positions(frames: list[Frame]) -> list[dict[str, Any]]:
    return [frame.game.position(0) for frame in frames]


# -- the games ---------------------------------------------------------------------------------------------------------


@VARIANTS
def test_a_live_game_is_the_first_one_of_the_duel(rules: Rules) -> None:
    records = recorded("greedy", "random", rules, seed=11)
    replay = of_policies("greedy", "random", rules, seed=11, evaluator=None)
    assert shown(replay) == [told for record in records for told in decisions(record)]
    ends = [frame for frame in replay if frame.next is None]
    results = [record["result"] for record in records]
    assert len(ends) == len(results)
    if rules.match_points is None:
        assert ends[0].game.points[0].tolist() == results[0]["points"]
    deals = [frame.game.position(0) for frame in replay if frame.last is None]
    assert [deal["payoff"] for deal in deals] == [record["deal"]["payoff"] for record in records]


@VARIANTS
def test_a_record_is_shown_as_it_was_played(rules: Rules) -> None:
    records = recorded("greedy", "random", rules, seed=11)
    live = of_policies("greedy", "random", rules, seed=11, evaluator=None)
    expected = positions(list(live))
    found = []
    for record in records:
        replay = of_record(record, evaluator=None)
        assert shown(replay) == decisions(record)
        found += positions(list(replay))
    for position in (*expected, *found):
        position.pop("scores")  # the last table of a match's game is shown before they count
    assert found == expected


def test_the_orders_that_a_record_states_are_those_shown() -> None:
    (record,) = recorded("greedy", "random", Rules(payoff_size=6), seed=3)
    stated = [event["stock"] for event in record["events"] if event["type"] == "recycle"]
    assert len(stated) > 1
    expected = positions(list(of_record(record, evaluator=None)))
    found = positions(list(of_record({**record, "seed": 4}, evaluator=None)))
    assert found == expected, "the seed decides nothing that the record states"
    stocks = [position["stock"] for position in found]
    assert all(stock in stocks for stock in stated)


def test_a_forfeit_is_the_last_thing_shown() -> None:
    records: list[Record] = []
    game = Game(Rules(), 1, seed=5)
    with Recorder(game, ["a", "b"], records.append):
        game.step([int(np.argmax(game.legal_actions()[0]))])
        before = game.position(0)
        game.forfeit([0])
    frames = list(of_record(records[0], evaluator=None))
    assert [frame.last and frame.last.text for frame in frames[1:]][-1] == "forfeits"
    assert len(frames) == 3
    assert frames[1].game.position(0) == frames[2].game.position(0) == before
    assert not frames[1].game.state.over[0]
    assert frames[1].next == frames[2].last
    assert frames[2].chance == float(frames[2].last.player == 1)
    assert "forfeits" in frames[2].table("mover", ("a", "b")).last_text


def test_a_game_from_a_position_is_shown_from_there() -> None:
    records: list[Record] = []
    game = start(Rules(), payoff="29", hand="A", opponent_payoff="5", stock="3456789")
    position = game.position(0)
    with Recorder(game, ["a", "b"], records.append):
        for text in ("hand>center0", "end_turn"):
            game.step([game.actions.parse(text)])
        game.forfeit([0])
    replay = of_record(records[0], evaluator=None)
    assert replay.frames[0].game.position(0) == position
    assert shown(replay)[:2] == [(0, "hand>center0"), (0, "end_turn")]


def test_a_decision_names_its_card() -> None:
    layout = {"payoff": "K", "hand": "A9K", "sides": ["2", "", "K"], "centers": ["", "A"], "opponent_payoff": "5"}
    game = start(Rules(), **layout)
    cards = {"payoff>center1": "K", "hand>center0": "A", "wild>center1": "K", "side0>center1": "2"}
    for text, card in {**cards, "side2>center1": "K", "discard 9>side1": "9"}.items():
        assert text in legal_texts(game)
        assert _ply(game, game.actions.parse(text)).card == card
    assert _ply(game, game.actions.end_turn).card == ""
    assert _ply(game, None).card == ""


class Counting(RandomPolicy):
    """Counts the decisions asked of it."""

    asked = 0

    def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
        self.asked += 1
        return super().act(observation, action_mask, infosets, indices)


def test_frames_are_made_as_they_are_asked_for() -> None:
    policies = Counting(), Counting()
    replay = of_policies(*policies, Rules.mini(), seed=2, evaluator=None)
    assert sum(policy.asked for policy in policies) == 1
    assert replay.reach(3) == 3
    assert replay.reach(1) == 1
    assert len(replay.frames) == 4
    assert sum(policy.asked for policy in policies) == 4
    last = replay.reach(10**6)
    assert last == len(replay.frames) - 1
    assert replay.frames[-1].next is None
    assert replay.reach(-1) == 0
    for frame, after in zip(replay.frames, replay.frames[1:], strict=False):
        game = frame.game.copy()
        assert after.last is frame.next
        game.step([frame.next.action])
        assert game.position(0) == after.game.position(0)


def test_two_players_of_one_name_are_told_apart() -> None:
    assert of_policies("greedy", "greedy", Rules.mini()).players == ("greedy (0)", "greedy (1)")


def test_of_long_names_the_ends_are_shown() -> None:
    (record,) = recorded("greedy", "random", Rules.mini(), seed=1)
    record["players"] = [f"agents.network:runs/{name}/network.npz" for name in ("first", "second")]
    replay = of_record(record, evaluator=None)
    assert replay.players == ("…s/first/network.npz", "…/second/network.npz")
    assert [player.name for player in replay.frames[0].table("0", replay.players).players] == list(replay.players)


class Broken(RandomPolicy):
    evaluation = None

    def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
        raise KeyError("oops")


@pytest.mark.parametrize("place", ["first", "second", "evaluator"])
def test_who_misbehaves_is_named(place: str) -> None:
    named: dict[str, Any] = {"first": "greedy", "second": "greedy", "evaluator": None, place: Broken()}
    with pytest.raises(PolicyError, match=r"policy 'Broken' failed in game 0 .*oops"):
        list(of_policies(**named))


def test_an_evaluator_may_play_too() -> None:
    policy = Rollouts("greedy", 2)
    plain = of_policies(policy, "random", Rules.mini(), seed=4, evaluator=None)
    evaluated = of_policies(policy, "random", Rules.mini(), seed=4, evaluator=policy)
    assert positions(list(plain)) == positions(list(evaluated))


# -- stacked games -----------------------------------------------------------------------------------------------------


def test_stacked_games_go_on_as_they_would_alone() -> None:
    parts = [played_games(Rules(), count, seed=count, most=60) for count in (1, 4, 2)]
    stacked = Game.stacked(parts)
    assert stacked.num_games == 7
    players = Players(Rules(), 7, seed=0)
    for _ in range(30):
        actions = players.choose(stacked)
        stacked.step(actions)
        for part, first in zip(parts, (0, 1, 5), strict=True):
            part.step(actions[first : first + part.num_games])
    alone = [snapshot(part, number) for part in parts for number in range(part.num_games)]
    assert [snapshot(stacked, number) for number in range(7)] == alone


def test_stacked_games_do_not_show_the_result_of_the_game_before() -> None:
    ended = Game.from_positions(Rules(), [lay(Rules(), payoff="A")] * 2, autoreset=True)
    ended.step([ended.actions.parse("payoff>center0")], [0])
    assert ended.terminated[0]
    stacked = Game.stacked([ended, ended])
    assert not stacked.terminated.any()
    assert stacked.winner.tolist() == [-1] * 4
    assert not stacked.points.any()


# -- what is thought ---------------------------------------------------------------------------------------------------


def thought(policy: Any, game: Game, seed: int = 0) -> tuple[np.ndarray, Evaluation]:
    """Return a policy's actions in all games of a batch, and what it thinks of them."""
    policy.reset(game.rules, game.num_games, seed)
    actions = decide(policy, "policy", game, np.arange(game.num_games))
    told = evaluation_of(policy, "policy", game.legal_actions())
    assert told is not None
    return actions, told


def test_rollouts_see_a_win_and_a_loss() -> None:
    near = {"payoff": "2", "centers": ["A"], "opponent_payoff": "99999"}
    won = [start(Rules(), mover=mover, **near) for mover in (0, 1)]
    _, told = thought(Rollouts("greedy", 16), Game.stacked(won))
    assert told.value.tolist() == [1, 1]
    lost = start(Rules(), payoff="99999", hand="QQQQQ", opponent_payoff="2", centers=["A"])
    _, told = thought(Rollouts("greedy", 16), lost)
    assert told.value.tolist() == [-1]


def test_rollouts_act_as_their_policy_and_know_no_hidden_card() -> None:
    game = played_games(Rules(payoff_size=4), 12, seed=1, most=40)
    other = InformationSets(game, np.arange(12)).sample(1, np.random.default_rng(0))
    assert any(game.position(number) != other.position(number) for number in range(12))
    (actions, told), (same, told_again) = (thought(Rollouts("greedy", 8), batch) for batch in (game, other))
    np.testing.assert_array_equal(actions, same)
    np.testing.assert_array_equal(told.value, told_again.value)
    assert len(set(told.value.tolist())) > 2
    greedy = GreedyPolicy()
    greedy.reset(game.rules, 12, 0)
    np.testing.assert_array_equal(actions, decide(greedy, "greedy", game, np.arange(12)))


def test_rollouts_of_a_match_are_those_of_its_game() -> None:
    game = Game(SHORT_MATCH, 4, seed=1)
    _, told = thought(Rollouts("greedy", 8), game)
    assert (np.abs(told.value) <= 1).all()


def test_the_network_tells_its_probabilities() -> None:
    from agents.network import NetworkPolicy

    game = played_games(Rules(), 20, seed=2, most=80)
    actions, told = thought(NetworkPolicy(), game)
    np.testing.assert_allclose(told.probabilities.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(told.probabilities.argmax(axis=1), actions)
    assert not told.probabilities[~game.legal_actions()].any()


def test_a_model_tells_its_probabilities() -> None:
    class Model(ProbabilityPolicy):
        def sizes(self) -> tuple[int, int]:
            return game.observation.n, game.actions.n

        def probabilities(self, observation: Any, action_mask: Any) -> Any:
            return action_mask / action_mask.sum(axis=1, keepdims=True)

    game = played_games(Rules(), 5, seed=2, most=80)
    policy = Model()
    assert evaluation_of(policy, "model", game.legal_actions()) is None
    _, told = thought(policy, game)
    legal = game.legal_actions()
    np.testing.assert_allclose(told.probabilities, legal / legal.sum(axis=1, keepdims=True), atol=1e-9)


def test_the_search_tells_its_rollouts() -> None:
    from agents.search import SearchPolicy

    game = played_games(Rules(), 6, seed=2, most=80)
    actions, told = thought(SearchPolicy(32, prior="playout", rollout="playout"), game)
    rows = np.arange(6)
    np.testing.assert_allclose(told.probabilities.sum(axis=1), 1)
    assert (told.probabilities[rows, actions] > 0).all()
    known = ~np.isnan(told.action_values)
    assert known.any()
    assert (told.probabilities[known] > 0).all()
    np.testing.assert_array_equal(told.value, told.action_values[rows, actions])


def test_the_search_thinks_well_of_a_position_that_wins() -> None:
    from agents.search import SearchPolicy

    good, bad = {"payoff": "7", "opponent_payoff": "99999999"}, {"payoff": "77777777", "opponent_payoff": "9"}
    games = [start(Rules(), hand="33QQQ", sides=["A", "2"], **layout) for layout in (good, bad)]
    _, told = thought(SearchPolicy(32, prior="playout", rollout="playout"), Game.stacked(games))
    assert told.value[0] > 0.3 > -0.3 > told.value[1]


@pytest.mark.parametrize(
    "told",
    [
        Evaluation("", probabilities=np.zeros((1, 3))),
        Evaluation("", probabilities=np.full((1, 74), np.nan)),
        Evaluation("", probabilities=np.full((1, 74), -0.5)),
        Evaluation("", action_values=np.full((1, 74), 3.0)),
        Evaluation("", value=np.array([-1.5])),
        Evaluation("", value=np.array(0.5)),
    ],
)
def test_impossible_thoughts_are_refused(told: Evaluation) -> None:
    policy = RandomPolicy()
    policy.evaluation = told  # type: ignore[attr-defined]
    with pytest.raises(PolicyError, match="'odd' tells impossible"):
        evaluation_of(policy, "odd", np.ones((1, 74), np.bool_))


def test_who_tells_from_its_first_reset_on_may_evaluate() -> None:
    class Late(RandomPolicy):
        def reset(self, rules: Rules, num_games: int, seed: int) -> None:
            super().reset(rules, num_games, seed)
            self.evaluation: Evaluation | None = None

        def act(self, *arguments: Any) -> NDArray[np.intp]:
            chosen = super().act(*arguments)
            self.evaluation = Evaluation("half", value=np.full(len(chosen), 0.5))
            return chosen

    frames = list(of_policies("random", "random", Rules.mini(), evaluator=Late()))
    assert {frame.evaluation.value[0] for frame in frames if frame.evaluation is not None} == {0.5}


def test_who_tells_nothing_has_no_evaluation() -> None:
    assert evaluation_of(RandomPolicy(), "random", np.ones((1, 74), np.bool_)) is None
    with pytest.raises(ValueError, match="'random' doesn't tell what it thinks"):
        of_policies("greedy", "greedy", evaluator="random")


def test_an_evaluator_changes_no_game() -> None:
    rules = Rules(payoff_size=2)
    plain = of_policies("random", "greedy", rules, seed=4, evaluator=None)
    evaluated = of_policies("random", "greedy", rules, seed=4, at_once=16)
    assert positions(list(plain)) == positions(list(evaluated))
    assert all(frame.evaluation is not None for frame in evaluated if frame.next is not None)
    assert {frame.chance for frame in plain} <= {None, 0.0, 0.5, 1.0}


def test_evaluating_many_at_once_tells_the_same() -> None:
    (record,) = recorded("greedy", "random", Rules(payoff_size=2), seed=6)
    one, many = (list(of_record(record, evaluator="network", at_once=number)) for number in (1, 7))
    assert len(one) == len(many)
    for frame, same in zip(one[:-1], many[:-1], strict=True):
        np.testing.assert_allclose(frame.evaluation.probabilities, same.evaluation.probabilities, atol=1e-6)
    assert one[-1].evaluation is None


def test_the_chance_is_that_of_player_0() -> None:
    near = {"payoff": "2", "hand": "3", "centers": ["A"], "opponent_payoff": "99999", "stock": "4567"}
    records: list[Record] = []
    for mover in (0, 1):
        game = start(Rules(), mover=mover, **near)
        with Recorder(game, ["a", "b"], records.append):
            game.step([game.actions.parse("payoff>center0")])
    for record, expected in zip(records, (1.0, 0.0), strict=True):
        assert [frame.chance for frame in of_record(record)] == [expected] * 2


def test_what_is_shown_of_an_evaluation_is_its_best_and_what_was_done() -> None:
    game = start(Rules(), payoff="9", hand="A23", sides=["4"])
    table, taken = game.actions, "discard 3>side2"
    weights = {"hand>center0": 0.6, "discard A>side0": 0.3, "discard 2>side0": 0.096, "discard 3>side0": 0.004}
    probabilities = np.zeros((1, table.n))
    values = np.full((1, table.n), np.nan)
    for text, weight in weights.items():
        probabilities[0, table.parse(text)] = weight
    values[0, table.parse("hand>center0")] = 0.5
    told = Evaluation("weights", probabilities, values, np.array([np.nan]))
    frame = Frame(game, None, _ply(game, table.parse(taken), told))
    (opinion,) = frame.opinions(("a", "b"), 8)
    assert (opinion.who, opinion.about, opinion.value) == ("a", "weights", None)
    assert [choice.text for choice in opinion.choices][:2] == ["hand>center0", "discard A>side0"]
    assert opinion.choices[0][1:] == (0.6, 0.5, False)
    (opinion,) = frame.opinions(("a", "b"), 2)
    assert [choice.text for choice in opinion.choices] == ["hand>center0", taken]
    assert opinion.choices[1].taken
    assert frame.chance is None


# -- whose eyes --------------------------------------------------------------------------------------------------------


def test_each_perspective_shows_its_own_hands() -> None:
    names = ("a", "b")
    for mover in (0, 1):
        game = start(Rules(), mover=mover, payoff="29", hand="AQ", opponent_payoff="45", opponent_hand="7")
        frame = Frame(game, None, None)
        hands = {name: [p.hand for p in frame.table(name, names).players] for name in ("0", "1", "mover", "all")}
        for name, open_seats in (("0", {0}), ("1", {1}), ("mover", {mover}), ("all", {0, 1})):
            assert {seat for seat in (0, 1) if None not in hands[name][seat]} == open_seats
        seats = [frame.table(name, names).seat for name in ("0", "1", "mover", "all")]
        assert seats == [0, 1, 0, 0]
        seen = frame.table("mover", names)
        assert set(seen.stock) == {None}
        assert [player.payoff[0] for player in seen.players] == [None, None]
        places = {place for move in seen.legal for place in (move.source, move.target)}
        own = {"payoff", "hand-A", "hand-Q", *(f"side{side}" for side in range(4))}
        assert places - {"center0", "center1", "center2"} == {
            f"{'opponent-' * mover}{place}" for place in own - {"payoff"}
        }
        with pytest.raises(ValueError, match="perspective='both' is not allowed; it is one of 0, 1, mover, all"):
            frame.table("both", names)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lines() -> list[str]:
    records: list[Record] = []
    duel("greedy", "random", Rules.mini(), games=4, seed=1, record=records.append)
    return [json.dumps(record) for record in records]


def test_a_file_hands_out_its_records_by_number(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "games.jsonl"
    path.write_text("\n".join([*lines[:2], "{damaged", lines[3]]))
    records = RecordFile(path)
    assert len(records) == 4
    for number in (3, 0, 1):
        assert records[number] == json.loads(lines[number])
    with pytest.raises(RecordError, match="line 3: invalid JSON"):
        records[2]
    for number in (4, -1):
        with pytest.raises(RecordError, match=f"there is no game {number}; .*games.jsonl' are 0 to 3"):
            records[number]


def test_an_empty_file_holds_no_record(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    path.write_bytes(b"")
    with pytest.raises(RecordError, match="holds no record"):
        RecordFile(path)


def test_a_record_cut_short_or_changed_is_refused(lines: list[str]) -> None:
    record = json.loads(lines[0])
    for events in (record["events"][:-1], record["events"][1:]):
        with pytest.raises(RecordError, match="event"):
            of_record({**record, "events": events})
    with pytest.raises(RecordError, match="format"):
        of_record({**record, "format": "spite-and-malice-record/2"})
