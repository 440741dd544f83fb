"""Game records: what they hold, that they are enough for an independent judge, and that nothing false passes.

``python tests/test_records.py`` writes the golden file ``data/records.jsonl`` anew.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import ALL_PRESETS, SHORT_MATCH, EventLog, Players, any_rules, lay, over, random_position, storage
from reference import Move, Reference
from spite_env import Game, Rules
from spite_env.envs import spite_and_malice_v0
from spite_env.policies import make_policy
from spite_env.position import arrange_stock
from spite_env.record import (
    FORMAT,
    Recorder,
    RecordError,
    read_records,
    record_writer,
    write_records,
)
from spite_env.rules import PRESETS
from spite_env.verify import verify, verify_file

Record = dict[str, Any]

GOLDEN = Path(__file__).parent / "data" / "records.jsonl"

PAIR = ("greedy", "random")

#: Variants with small games, which together have events of every kind, and results of every kind but a forfeit.
SMALL = {
    "mini": Rules.mini(),
    "returns": Rules.mini().replace(recycle="set_aside", copies=5, payoff_size=4, stock_end="short"),
    "bottom": Rules.mini().replace(recycle="bottom", refill_mid_turn=True, first_player="random", payoff_size=3),
    "refills": Rules.mini().replace(recycle="set_aside", refill_mid_turn=True, payoff_size=5, copies=6, side_piles=2),
    "short": Rules.mini().replace(max_steps=9, payoff_size=4, first_player=1),
    "match": Rules.mini().replace(match_points=4, max_games=7, first_player="higher_payoff"),
}

VARIANTS = dict(zip(PRESETS, ALL_PRESETS, strict=True)) | SMALL | {"short match": SHORT_MATCH}


# -- playing and recording ---------------------------------------------------------------------------------------------


def play(game: Game, seed: int, most: int = 10**9) -> None:
    """Play a batch to its end, or ``most`` decisions."""
    players = Players(game.rules, game.num_games, seed)
    for _ in range(most):
        (live,) = np.nonzero(~over(game) | game.autoreset)
        if not live.size:
            break
        game.step(players.choose(game)[live], live)


def recorded(game: Game, seed: int = 0) -> list[Record]:
    """Play a batch to its end and return its records."""
    records: list[Record] = []
    with Recorder(game, PAIR, records.append):
        play(game, seed)
    return records


@cache
def _small_records(name: str) -> str:
    return json.dumps(recorded(Game(SMALL[name], 12, seed=4), seed=5))


def small_records(name: str) -> list[Record]:
    return json.loads(_small_records(name))  # type: ignore[no-any-return]


def judge_file(path: Path, records: list[Any], **options: Any) -> dict[int, RecordError]:
    """Return what `verify_file` finds, by record."""
    write_records(path, records)
    problems, count = verify_file(path, **options)
    assert count == len(records)
    by_record = {problem.record: problem for problem in problems}
    assert list(by_record) == sorted(by_record, key=lambda number: number or 0)
    assert len(by_record) == len(problems)
    return {number: problem for number, problem in by_record.items() if number is not None}


# -- an independent judge ----------------------------------------------------------------------------------------------


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON, in which 1, 1.0 and true differ."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def first_wrong(record: Record) -> int | str | None:
    """Replay a record by the reference: the place of the first wrong event, ``"result"``, or None.

    It knows nothing but the record, and takes its outside for right.
    """
    rules, events, result = record["rules"] | {"match_points": None}, record["events"], record["result"]

    def chance(kind: str, cards: list[str]) -> Any:
        event = dict(enumerate(events)).get(len(reference.events))
        assert type(event) is dict
        assert event.get("type") == kind
        assert type(event.get("stock")) is list
        assert all(type(card) is str for card in event["stock"])
        return event["stock"]

    if "position" in record:
        reference = Reference(rules, chance, position=record["position"])
    else:
        reference = Reference(rules, chance, deal=record["deal"], first_player=record["first_player"])
    checked = 0
    while not (reference.terminated or reference.truncated):
        if checked == len(events):
            if result.get("outcome") != "forfeit":
                return checked
            loser = reference.turn
            points = [0, 0]
            points[1 - loser] = len(reference.payoff[loser])
            forfeited = {"outcome": "forfeit", "winner": 1 - loser, "points": points, "by": loser}
            return None if same(result, forfeited) else "result"
        impossible = False
        try:
            reference.step(_action(reference, events[checked]))
        except ValueError:
            return checked
        except AssertionError:
            impossible = True
        for event in reference.events[checked:]:
            if checked == len(events) or not same(event, events[checked]):
                return checked
            checked += 1
        if impossible:
            return checked
    if checked < len(events):
        return checked
    (finished,) = reference.finished
    expected = {name: finished[name] for name in ("outcome", "winner", "points")}
    return None if same(result, expected) else "result"


def _action(reference: Reference, event: Any) -> int:
    """Return the action of an event, or -1."""
    if type(event) is not dict:
        return -1
    kind, card = event.get("type"), event.get("card")
    if kind == "play":
        source = "wild" if event.get("source") == "hand" and card == "K" else event.get("source")
        move = Move("play", source, event.get("center"))
    else:
        move = Move("discard", card, event.get("side")) if kind == "discard" else Move(kind)
    return reference.moves.index(move) if move in reference.moves else -1


def assert_right(records: list[Record]) -> None:
    """Assert that both judges accept records, and that JSON leaves them unchanged."""
    for record in records:
        assert json.loads(json.dumps(record)) == record
        assert first_wrong(record) is None
    with TemporaryDirectory() as folder:
        assert not judge_file(Path(folder, "records.jsonl"), records, check_seed=True)


def kinds(records: list[Record]) -> set[str]:
    """Return the kinds of events and of outcomes in records."""
    return {event["type"] for record in records for event in record["events"]} | {
        f"outcome {record['result']['outcome']}" for record in records
    }


# -- what a record holds -----------------------------------------------------------------------------------------------

EVENT_KEYS = {
    "play": ["type", "player", "source", "card", "center"],
    "recycle": ["type", "player", "center", "cards", "stock"],
    "discard": ["type", "player", "card", "side"],
    "end_turn": ["type", "player"],
    "return": ["type", "player", "cards", "stock"],
    "draw": ["type", "player", "cards"],
}


@pytest.mark.parametrize("name", VARIANTS)
def test_records_have_the_form_of_the_contract(name: str) -> None:
    rules = VARIANTS[name]
    match = [] if rules.match_points is None else ["match"]
    for record in recorded(Game(rules, 5, seed=3)):
        start = ["format", "rules", "seed", "players", *match, "first_player", "deal"]
        assert list(record) == [*start, "events", "result"]
        assert record["format"] == FORMAT == "spite-and-malice-record/1"
        assert same(record["rules"], rules.to_dict())
        assert record["players"] == list(PAIR)
        assert list(record["deal"]) == ["payoff", "hands", "stock"]
        assert list(record["result"]) == ["outcome", "winner", "points"]
        for event in record["events"]:
            assert list(event) == EVENT_KEYS[event["type"]]
            assert not (event["type"] in ("draw", "return") and not event["cards"])
        if match:
            assert list(record["match"]) == ["id", "game", "scores"]
        _assert_plain(record)


def _assert_plain(value: Any) -> None:
    """Assert that a value consists of the types that JSON gives back."""
    assert type(value) in (dict, list, str, int, bool, type(None))
    if type(value) in (dict, list):
        for item in value.values() if type(value) is dict else value:
            _assert_plain(item)


def test_example_by_hand() -> None:
    """A king from a side pile completes a pile in the middle of a turn; the last pay-off card wins."""
    rules = Rules.mini().replace(payoff_size=3, wilds=3)
    game = Game.from_positions(
        rules,
        [lay(rules, payoff="3A", hand="2K", sides=["K"], opponent_payoff="23", centers=["AK"], stock="3")],
        seed=8,
    )
    records: list[Record] = []
    with Recorder(game, ("one", "two"), records.append):
        for text in ("side0>center0", "payoff>center1", "hand>center1", "payoff>center1"):
            game.step([game.actions.parse(text)])
    (record,) = records
    stock = record["events"][1]["stock"]
    assert sorted(stock) == ["3", "A", "K", "K"]
    assert record == {
        "format": FORMAT,
        "rules": rules.to_dict(),
        "seed": 8,
        "players": ["one", "two"],
        "position": {
            "payoff": [["3", "A"], ["2", "3"]],
            "hands": [["2", "K"], []],
            "sides": [[["K"]], [[]]],
            "centers": [["A", "K"], []],
            "stock": ["3"],
            "set_aside": [],
            "turn": 0,
            "scores": [0, 0],
        },
        "events": [
            {"type": "play", "player": 0, "source": "side:0", "card": "K", "center": 0},
            {"type": "recycle", "player": 0, "center": 0, "cards": ["A", "K", "K"], "stock": stock},
            {"type": "play", "player": 0, "source": "payoff", "card": "A", "center": 1},
            {"type": "play", "player": 0, "source": "hand", "card": "2", "center": 1},
            {"type": "play", "player": 0, "source": "payoff", "card": "3", "center": 1},
        ],
        "result": {"outcome": "win", "winner": 0, "points": [2, 0]},
    }
    assert_right(records)


@pytest.mark.parametrize("name", VARIANTS)
def test_both_judges_accept_recorded_games(name: str) -> None:
    rules = VARIANTS[name]
    game = Game(rules, 8, seed=20)
    records = recorded(game, seed=21)
    assert_right(records)
    first_games = [record for record in records if record.get("match", {"game": 0})["game"] == 0]
    assert [record["seed"] for record in first_games] == game.state.seed.tolist()


def test_small_variants_show_everything() -> None:
    seen = set().union(*(kinds(small_records(name)) for name in SMALL))
    assert seen == {*EVENT_KEYS, "outcome win", "outcome draw", "outcome truncated"}


@given(any_rules(), st.integers(0, 2**64 - 1))
@settings(max_examples=30)
def test_both_judges_accept_games_of_any_rules(rules: Rules, seed: int) -> None:
    assert_right(recorded(Game(rules, 2, seed), seed % 1000))


@pytest.mark.parametrize("name", VARIANTS)
def test_games_from_positions(name: str) -> None:
    rules, rng = VARIANTS[name], random.Random(name)
    positions = [random_position(rules, rng) for _ in range(12)]
    records = recorded(Game.from_positions(rules, positions, seed=6))
    assert_right(records)
    first = [record for record in records if "position" in record]
    assert all("first_player" not in record and "deal" not in record for record in first)
    assert [record["position"] for record in first] == [
        Game.from_positions(rules, [position]).position(0) for position in positions
    ]
    if rules.match_points is None:
        assert len(records) == 12


def test_a_position_without_a_stock_is_recorded_with_it() -> None:
    rules = Rules.mini()
    (record,) = recorded(Game.from_positions(rules, [lay(rules, payoff="3", hand="A", opponent_payoff="2")], seed=1))
    assert len(record["position"]["stock"]) == rules.num_cards - 3
    assert_right([record])


def test_truncated_games() -> None:
    records = small_records("short")
    truncated = [record for record in records if record["result"]["outcome"] == "truncated"]
    assert truncated
    assert all(record["result"] == {"outcome": "truncated", "winner": None, "points": [0, 0]} for record in truncated)


def test_matches() -> None:
    game = Game(SHORT_MATCH, 6, seed=2)
    records = recorded(game)
    scores, starter, number, matches = [9, 0], 0, 0, []
    for record in records:
        if max(scores) >= 9 or number == 5:  # the match before is over
            scores, starter, number = [0, 0], record["first_player"], 0
            matches.append(record["match"]["id"])
        assert record["match"] == {"id": matches[-1], "game": number, "scores": scores}
        assert record["first_player"] == starter
        scores = [score + points for score, points in zip(scores, record["result"]["points"], strict=True)]
        starter, number = 1 - starter, number + 1
    assert matches == [f"{seed}:0" for seed in game.state.seed.tolist()]
    assert game.points[-1].tolist() == scores
    assert len(records) > 12


@pytest.mark.parametrize("rules", [Rules.g4a(), SHORT_MATCH])
def test_forfeits(rules: Rules) -> None:
    game = Game(rules, 6, seed=5)
    records: list[Record] = []
    with Recorder(game, PAIR, records.append):
        play(game, 1, most=25)
        expected = [(game.current_player[index], game.position(index)["payoff"]) for index in range(6)]
        game.forfeit([0, 2, 3, 4, 5])
        play(game, 2)
    assert_right(records)
    forfeits = [record for record in records if record["result"]["outcome"] == "forfeit"]
    assert len(forfeits) >= 3
    for record, seed in zip(forfeits, [record["seed"] for record in forfeits], strict=True):
        loser, payoff = expected[game.state.seed.tolist().index(seed)]
        points = [0, 0]
        points[1 - loser] = len(payoff[loser])
        assert list(record["result"]) == ["outcome", "winner", "points", "by"]
        assert record["result"] == {"outcome": "forfeit", "winner": 1 - loser, "points": points, "by": loser}


def test_the_environment_records_like_the_core() -> None:
    env = spite_and_malice_v0.env(Rules.mini())
    records: list[Record] = []
    with Recorder(env.unwrapped.game, PAIR, records.append):
        env.reset(seed=7)
        rng = np.random.default_rng(0)
        actions = []
        while not any(env.terminations.values()):
            legal = np.flatnonzero(env.observe(env.agent_selection)["action_mask"])
            actions.append(rng.choice(legal))
            env.step(actions[-1])
        env.reset(options={"position": lay(Rules.mini(), payoff="3", hand="A")})
        illegal = np.flatnonzero(env.observe(env.agent_selection)["action_mask"] == 0)[0]
        env.step(illegal)
    core = Game(Rules.mini(), seed=7)
    by_core: list[Record] = []
    with Recorder(core, PAIR, by_core.append):
        for action in actions:
            core.step([action])
    assert records[:1] == by_core
    assert len(records) == 2
    assert records[1]["result"]["by"] == 0
    assert "position" in records[1]
    assert records[1]["episode"] == 1
    assert_right(records)


# -- recorders ---------------------------------------------------------------------------------------------------------


def test_recording_changes_nothing() -> None:
    for rules in (Rules.classic(), SHORT_MATCH):
        games = [Game(rules, 8, seed=9, autoreset=True) for _ in range(2)]
        with Recorder(games[1], PAIR, lambda record: None):
            for game in games:
                play(game, 3, most=150)
        assert storage(games[0]) == storage(games[1])
        assert games[1].listener is None


def test_records_do_not_depend_on_the_batch() -> None:
    seeds = [5, 2**64 - 1, 0]
    together = recorded(Game(Rules.mini(), 3, seed=seeds), 1)
    again = []
    for record in together:
        game = Game(Rules.mini(), 1, seed=record["seed"])
        with Recorder(game, PAIR, again.append):
            for event in record["events"]:
                if _is_decision(event):
                    game.step([_number(game, event)])
    assert [json.dumps(record) for record in again] == [json.dumps(record) for record in together]


def _is_decision(event: Record) -> bool:
    return event["type"] in ("play", "discard", "end_turn")


def _number(game: Game, event: Record) -> int:
    if event["type"] == "play":
        source = "wild" if event["source"] == "hand" and event["card"] == "K" else event["source"].replace(":", "")
        return game.actions.parse(f"{source}>center{event['center']}")
    return game.actions.parse(
        f"discard {event['card']}>side{event['side']}" if event["type"] == "discard" else "end_turn"
    )


@pytest.mark.parametrize("rules", [Rules.mini(), SHORT_MATCH.replace(payoff_size=2, max_games=2)])
def test_autoreset_goes_on_with_new_episodes(rules: Rules) -> None:
    game = Game(rules, 4, seed=11, autoreset=True)
    records: list[Record] = []
    recorder = Recorder(game, PAIR, records.append)
    play(game, 2, most=200)
    recorder.close()
    assert_right(records)
    order = [
        (
            record.get("episode", 0),
            game.state.seed.tolist().index(record["seed"]),
            record.get("match", {}).get("game", 0),
        )
        for record in records
    ]
    assert order == sorted(order)
    for index in range(4):
        episodes = {record.get("episode", 0) for record in records if record["seed"] == game.state.seed[index]}
        last = int(game.state.episode[index])
        assert episodes - {last} == set(range(last))
        assert last >= 1
    assert all(list(record)[2:4] == ["seed", "players" if "episode" not in record else "episode"] for record in records)
    assert all(record.get("episode") != 0 for record in records)
    if rules.match_points is not None:
        assert all(record["match"]["id"] == f"{record['seed']}:{record.get('episode', 0)}" for record in records)


def test_records_come_in_the_order_of_the_games() -> None:
    game = Game(Rules.mini(), 3, seed=1)
    records: list[Record] = []
    recorder = Recorder(game, [("a", "b"), ("c", "d"), ("e", "f")], records.append)

    def names() -> str:
        return "".join(record["players"][0] + str(record.get("episode", 0)) for record in records)

    game.forfeit([2])
    assert names() == ""
    game.forfeit([0])
    assert names() == "a0"
    game.reset([0])
    game.forfeit([0])
    assert names() == "a0"
    game.forfeit([1])
    assert names() == "a0c0e0a1"
    game.reset([0, 1])
    game.forfeit([0])
    game.reset([1])  # breaks off episode 1
    game.forfeit([1])
    assert names() == "a0c0e0a1"
    recorder.close()
    assert names() == "a0c0e0a1a2c2"
    game.reset(seed=4)
    game.forfeit([0, 1, 2])
    assert len(records) == 6
    assert_right(records)


def test_a_broken_off_game_holds_up_no_other() -> None:
    game = Game(Rules.mini(), 2, seed=1)
    records: list[Record] = []
    with Recorder(game, PAIR, records.append):
        game.forfeit([1])
        assert records == []
        game.reset([0])
        assert [record["seed"] for record in records] == [game.state.seed[1]]


def test_a_broken_off_match_keeps_its_games() -> None:
    game = Game(SMALL["match"], 1, seed=3)
    records: list[Record] = []
    with Recorder(game, PAIR, records.append):
        players = Players(game.rules, 1, 0)
        while game.state.game_number[0] < 2:
            game.step(players.choose(game))
        game.reset()
        play(game, 5)
    assert [(record["match"]["id"], record["match"]["game"]) for record in records[:3]] == [
        ("3:0", 0),
        ("3:0", 1),
        ("3:1", 0),
    ]
    assert_right(records)


def test_recorders_listen_beside_others() -> None:
    game = Game(Rules.mini(), 2, seed=1)
    log = EventLog(game)
    first: list[Record] = []
    second: list[Record] = []
    outer, inner = Recorder(game, PAIR, first.append), Recorder(game, ("x", "y"), second.append)
    play(game, 0)
    outer.close()
    game.reset(seed=5)
    play(game, 1)
    inner.close()
    assert [record["events"] for record in second] == [
        ended["events"] for round in (0, 1) for ended in _nth(log, round)
    ]
    assert first == [record | {"players": list(PAIR)} for record in second[:2]]


def _nth(log: EventLog, number: int) -> Iterator[Record]:
    return (finished[number] for finished in log.finished)


def test_a_batch_with_ended_games_is_recorded_from_their_next_deal() -> None:
    game = Game(Rules.mini(), 3, seed=1)
    game.forfeit([0, 1])
    records: list[Record] = []
    with Recorder(game, PAIR, records.append):
        game.forfeit([2])
        game.reset([0, 1])
        play(game, 0)
    assert [record.get("episode", 0) for record in records] == [0, 1, 1]
    assert_right(records)


def test_a_position_that_is_the_deal_of_its_seed_is_recorded_as_one() -> None:
    rules = Rules.mini()
    dealt = Game(rules, 1, seed=5).position(0)
    for seed, name in ((5, "deal"), (6, "position")):
        assert name in recorded(Game.from_positions(rules, [dealt], seed))[0]


def test_a_game_under_way_is_refused() -> None:
    game = Game(Rules.mini(), 2, seed=1)
    game.step(Players(game.rules, 2, 0).choose(game)[1:], [1])
    with pytest.raises(ValueError, match="game 1 is under way"):
        Recorder(game, PAIR, print)
    game = Game(SHORT_MATCH, 1, seed=1)
    players = Players(game.rules, 1, 0)
    while game.state.game_number[0] == 0:
        game.step(players.choose(game))
    with pytest.raises(ValueError, match="game 0 is under way"):
        Recorder(game, PAIR, print)
    assert game.listener is None


@pytest.mark.parametrize("players", ["ab", ("a",), ("a", "b", "c"), [], [("a", "b")] * 2, [("a", "b"), "cd", ("e", 5)]])
def test_impossible_players(players: Any) -> None:
    with pytest.raises(ValueError, match="players"):
        Recorder(Game(Rules.mini(), 3), players, print)


def test_two_games_can_have_two_pairs() -> None:
    game = Game(Rules.mini(), 2)
    records: list[Record] = []
    Recorder(game, [("a", "b"), ("c", "d")], records.append)
    game.forfeit([0, 1])
    assert [record["players"] for record in records] == [["a", "b"], ["c", "d"]]


# -- what is false is refused ------------------------------------------------------------------------------------------

REMOVED = object()


def changed(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Return a copy of a record (or a part of it) in which one value is another, added or removed."""
    if not path:
        return other
    (step, *rest), copied = path, copy.copy(value)
    if other is REMOVED and not rest:
        del copied[step]
    else:
        copied[step] = changed(copied[step] if rest else None, tuple(rest), other)
    return copied


def other_values(name: str, value: Any) -> Iterator[Any]:
    """Yield all kinds of values in the place of one of an event or a result."""
    yield from (REMOVED, None, True, [], {}, "", 1.5, [[]])
    if type(value) is int:
        yield from (value + 1, value - 1, 1 - value, 99, float(value), str(value), value == 1)
    elif type(value) is str:
        yield from (*"A23K7", "payoff", "side:0", "side:1", "side0", "hand", "wild", value + " ", value.lower())
        yield from ({"type": EVENT_KEYS, "outcome": ("win", "draw", "truncated", "forfeit", "loss")}.get(name, ()))
    elif type(value) is list:
        yield from (
            value[1:],
            value[:-1],
            [*value, "A"],
            ["A", *value],
            [*value[:-1], None],
            ["A"] * len(value),
            [value],
        )
        yield from (value[::-1], sorted(value), [*value[1:], *value[:1]], value[:-2] + value[-2:][::-1])
        yield from ([float(item) if type(item) is int else item for item in value], [*value[:-1], True])


def mutations(record: Record) -> Iterator[Record]:
    """Yield copies of a record with each value of its result, and of its first event of each kind, changed."""
    events = record["events"]
    types = [event["type"] for event in events]
    for index in sorted(types.index(kind) for kind in set(types)):
        for name, value in events[index].items():
            for other in other_values(name, value):
                yield changed(record, ("events", index, name), other)
        yield changed(record, ("events", index, "extra"), 0)
        for other in (REMOVED, None, 7, "draw", [], {}, [events[index]]):
            yield changed(record, ("events", index), other)
    for index, event in enumerate(events):
        for place in {index, 0, len(events)}:
            yield record | {"events": [*events[:place], event, *events[place:]]}
        yield record | {"events": [*events[:index], *events[index + 1 : index + 2], event, *events[index + 2 :]]}
        yield record | {"events": events[:index]}
    for name, value in record["result"].items():
        for other in (*other_values(name, value), 0, 1):
            yield changed(record, ("result", name), other)
    yield changed(record, ("result", "by"), 0)
    for by, winner, cards in product((0, 1, None, True), (0, 1), (0, 1, 2)):
        points = [cards, 0] if winner == 0 else [0, cards]
        yield record | {"events": [], "result": {"outcome": "forfeit", "winner": winner, "points": points, "by": by}}


@pytest.mark.parametrize("name", [name for name in SMALL if name != "match"])
def test_judges_agree_on_changed_games(name: str, tmp_path: Path) -> None:
    """Every value of events of every kind is changed in many ways: the impossible is refused, at the same event."""
    chosen: list[Record] = []
    for record in sorted(small_records(name), key=lambda record: len(record["events"])):
        if len(record["events"]) > 4 and not kinds([record]) <= kinds(chosen):
            chosen.append(record)
    mutated = [other for record in chosen for other in mutations(record)]
    problems = judge_file(tmp_path / "mutated.jsonl", mutated)
    for number, record in enumerate(mutated):
        wrong = first_wrong(record)
        problem = problems.get(number)
        if wrong is None or problem is None:
            assert wrong is None, f"record {number}: expected {wrong}"
            assert problem is None
        else:
            assert problem.event == (None if wrong == "result" else wrong), str(problem)
            place = "the result: " if wrong == "result" else f"event {wrong}: "
            assert str(problem).startswith(f"record {number} (seed {record['seed']}): {place}")
    assert len(problems) > 0.9 * len(mutated) > 300
    assert len({problem.event for problem in problems.values()}) > max(len(record["events"]) for record in chosen)


@given(st.data())
@settings(max_examples=150)
def test_judges_agree_on_randomly_changed_games(data: st.DataObject) -> None:
    records = [record for name in ("returns", "bottom", "refills") for record in small_records(name)]
    record = copy.deepcopy(data.draw(st.sampled_from(records)))
    for _ in range(data.draw(st.integers(1, 3))):
        events = record["events"]
        index = data.draw(st.integers(0, len(events) - 1))
        how = data.draw(st.sampled_from(["change", "swap", "drop", "repeat", "shuffle stock"]))
        if how == "change":
            name = data.draw(st.sampled_from(sorted(events[index])))
            donor = data.draw(st.sampled_from([event for event in events if name in event]))
            events[index][name] = copy.deepcopy(donor[name])
        elif how == "swap":
            other = data.draw(st.integers(0, len(events) - 1))
            events[index], events[other] = events[other], events[index]
        elif how == "drop" and len(events) > 2:
            del events[index]
        elif how == "repeat":
            events.insert(index, copy.deepcopy(events[index]))
        elif how == "shuffle stock":
            stocks = [event["stock"] for event in events if "stock" in event] + [record["deal"]["stock"]]
            data.draw(st.randoms(use_true_random=False)).shuffle(data.draw(st.sampled_from(stocks)))
    wrong = first_wrong(record)
    if wrong is None:
        verify(record)
    else:
        with pytest.raises(RecordError) as raised:
            verify(record)
        assert raised.value.event == (None if wrong == "result" else wrong)


OUTSIDE: dict[tuple[Any, ...], list[Any]] = {
    ("format",): [REMOVED, None, 1, "", "spite-and-malice-record/2", "spite-and-malice-record", [FORMAT]],
    ("rules",): [REMOVED, None, [], {}, "mini"],
    ("rules", "ranks"): [REMOVED, 0, 13, 3.0, "3", None, True, 4, [3], {}],
    ("rules", "copies"): [REMOVED, -1, 3, 5, 255, "8"],
    ("rules", "wilds"): [1, 3, -1, 250],
    ("rules", "payoff_size"): [0, 1, 3, 6, 200, None],
    ("rules", "hand_size"): [0, 1, 3, 6],
    ("rules", "refill_mid_turn"): [0, 1, None, "false"],
    ("rules", "recycle"): [REMOVED, "Shuffle", "", None, 0, ["shuffle"]],
    ("rules", "stock_end"): ["never", None],
    ("rules", "first_player"): [1, 2, -1, 0.0, False, "0", "second", [0], {}],
    ("rules", "match_points"): [5, 0, "5", 2.5],
    ("rules", "max_games"): [0, 2**40],
    ("rules", "max_steps"): [0, 1, 3, 1e9, 2**31],
    ("rules", "suits"): [4],
    ("seed",): [REMOVED, None, -1, 2**64, 1.0, "7", True, [7]],
    ("episode",): [0, -1, 2**64, None, "1", 1.0],
    ("players",): [REMOVED, None, "ab", [], ["a"], ["a", "b", "c"], ["a", 1], [["a"], ["b"]], {"0": "a", "1": "b"}],
    ("first_player",): [REMOVED, 1, 2, -1, None, "0", 0.0, False],
    ("deal",): [REMOVED, None, [], {}],
    ("deal", "payoff"): [REMOVED, None, [], [["A", "A"]], [["A", "A"], ["A", "A"], ["A", "A"]], ["AA", "AA"], {}, 3],
    ("deal", "payoff", 0): [[], ["A"], ["A"] * 3, ["A", "Q"], ["A", "a"], ["A", None], ["A", 2], "AA", ["A", "A2"]],
    ("deal", "hands", 1): [[], ["A"], ["A"] * 3, ["K", "K"], ["A", "Q"], [["A"], ["2"]]],
    ("deal", "stock"): [REMOVED, None, [], ["A"] * 6, "AAAAAA"],
    ("deal", "stock", 0): [REMOVED, "Q", "K", None, 2],
    ("deal", "turn"): [0],
    ("position",): [{}, None],
    ("match",): [{"id": "7:0", "game": 0, "scores": [0, 0]}, None],
    ("events",): [REMOVED, None, {}, "events", 5, []],
    ("result",): [REMOVED, None, [], {}, "win"],
    ("by",): [0],
    ("comment",): ["what a game"],
}


def a_game() -> Record:
    """Return a game of a mini variant in which player 0 starts and both play kings; all cards of a kind are dealt."""
    for record in small_records("mini"):
        tops = [pile[-1] for pile in record["deal"]["payoff"]]
        if record["deal"]["hands"][1].count("K") == 0 and record["deal"]["stock"][0] in "A23" and "K" not in tops:
            return record
    raise AssertionError("there is no such game")


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, values in OUTSIDE.items() for value in values])
def test_a_false_outside_is_refused(path: tuple[Any, ...], value: Any, tmp_path: Path) -> None:
    record = changed(a_game(), path, value)
    with pytest.raises(RecordError) as raised:
        verify(record)
    problems = judge_file(tmp_path / "outside.jsonl", [a_game(), record, a_game()])
    assert list(problems) == [1]
    assert str(problems[1]).startswith("record 1")
    assert str(raised.value) in str(problems[1]) or path == ("format",)


@pytest.mark.parametrize("garbage", [None, 1, "x", [], {}, True, 2.5, [{}], {"format": FORMAT}, {5: 6}, float("nan")])
def test_garbage_is_refused(garbage: Any) -> None:
    with pytest.raises(RecordError):
        verify(garbage)


def test_deep_garbage_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    paths = (
        ["rules"],
        ["rules", "copies"],
        ["seed"],
        ["players", 0],
        ["deal", "payoff", 0],
        ["events", 0],
        ["result", "by"],
    )
    for path in paths:
        with pytest.raises(RecordError):
            verify(changed(a_game(), tuple(path), [deep]))
    for name in ("type", "player", "source", "card", "center", "stock", "cards"):
        for index in range(len(a_game()["events"])):
            record = a_game()
            record["events"][index][name] = [deep]
            with pytest.raises(RecordError, match=f"^event {index}: "):
                verify(record)
    while deep:  # piece by piece: at once would be too deep for the interpreter
        (deep,) = deep


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (("position", "turn"), [2, True, 0.0, None, REMOVED]),
        (("position", "stock"), [REMOVED, None, ["A"] * 9]),
        (("position", "payoff", 0), [[], ["9"], None]),
        (("position", "centers", 0), [["2"], ["A", "2", "3"], ["A", "3"]]),
        (("position", "set_aside"), [["A"], None]),
        (("position", "scores"), [[1, 0], [0], [0, False], None]),
        (("position", "extra"), [0]),
        (("first_player",), [0]),
        (("deal",), [{}]),
    ],
)
def test_a_false_position_is_refused(path: tuple[Any, ...], values: list[Any]) -> None:
    rules = Rules.mini()
    (record,) = recorded(Game.from_positions(rules, [lay(rules, payoff="3", hand="A2", opponent_payoff="2")], seed=1))
    verify(record)
    for value in values:
        with pytest.raises(RecordError):
            verify(changed(record, path, value))


def test_a_match_can_start_from_a_position() -> None:
    rules = SMALL["match"]
    position = lay(rules, payoff="3", hand="A2", opponent_payoff="2", scores=(3, 1))
    records = recorded(Game.from_positions(rules, [position], seed=2))
    assert records[0]["match"] == {"id": "2:0", "game": 0, "scores": [3, 1]}
    assert_right(records)
    match = records[0]["match"]
    for change, message in (
        ({"scores": [1, 3]}, "position: scores=[3, 1], expected [1, 3]"),
        ({"scores": [0, 0]}, "position: scores=[3, 1], expected [0, 0]"),
        ({"game": 1}, "match: game=1 starts from a position, which only game 0 can"),
    ):
        with pytest.raises(RecordError) as raised:
            verify(records[0] | {"match": match | change})
        assert str(raised.value) == message


def test_who_starts_by_the_higher_pay_off_card() -> None:
    rules = Rules.mini().replace(first_player="higher_payoff")
    for record in recorded(Game(rules, 8, seed=1)):
        with pytest.raises(RecordError, match=r"first_player=\d, but"):
            verify(record | {"first_player": 1 - record["first_player"]})
        deal = copy.deepcopy(record["deal"])
        top = deal["payoff"][0][-1]
        for pile in (deal["payoff"][1], deal["hands"][0], deal["stock"]):
            if top in pile:
                place = pile.index(top)
                pile[place], deal["payoff"][1][-1] = deal["payoff"][1][-1], top
                with pytest.raises(RecordError, match="dealt anew"):
                    verify(record | {"deal": deal})
                break


def test_an_early_truncation_is_refused() -> None:
    record = a_game()
    record["events"] = record["events"][:2]
    record["result"] = {"outcome": "truncated", "winner": None, "points": [0, 0]}
    while not _is_decision(a_game()["events"][len(record["events"])]):
        record["events"].append(a_game()["events"][len(record["events"])])
    with pytest.raises(RecordError, match=f"^event {len(record['events'])}: is missing: the game is not over"):
        verify(record)


def test_the_seed_is_checked_if_asked_for() -> None:
    record = next(record for record in small_records("mini") if "recycle" in kinds([record]))
    verify(record, check_seed=True)
    for change in ({"seed": record["seed"] + 1}, {"episode": 1}):
        verify(record | change)
        with pytest.raises(RecordError, match="the deal is not that of the seed"):
            verify(record | change, check_seed=True)
    game = Game.from_positions(
        Rules.mini(), [lay(Rules.mini(), payoff="3", hand="3", centers=["A2"], stock="A2KK")], seed=3
    )
    records: list[Record] = []
    with Recorder(game, PAIR, records.append):
        game.step([game.actions.parse("hand>center0")])
        game.forfeit([0])
    verify(records[0], check_seed=True)
    records[0]["events"][1]["stock"].sort(reverse=True)
    verify(records[0])
    with pytest.raises(RecordError, match=r"^event 1: 'stock'"):
        verify(records[0], check_seed=True)


@pytest.mark.parametrize(
    ("place", "change", "message"),
    [
        (1, {"match": {"id": "3:0", "game": 2}}, "does not stand right after game 1"),
        (1, {"match": {"id": "3:1", "game": 1}}, "does not stand right after game 0"),
        (1, {"match": {"id": "3:0", "game": 1, "scores": [0, 3]}}, "'scores'"),
        (1, {"players": ["greedy", "greedy"]}, "'players' is"),
        (1, {"seed": 4}, "'seed' is"),
        (1, {"episode": 1}, "'episode' is"),
        (1, {"match": {"id": "3:0", "game": 7}}, "match: game=7 is not allowed"),
        (1, {"match": {"id": None}}, "match: id=None is not allowed"),
        (0, {"match": {"scores": [1, 0]}}, "expected [0, 0] before game 0"),
        (1, {"match": {"scores": [4, 0]}}, "scores=[4, 0] is not allowed"),
        (1, {"match": {"scores": [-1, 0]}}, "scores=[-1, 0] is not allowed"),
        (1, {"match": {"scores": [True, False]}}, "match: scores is [True, False]"),
        (1, {"match": {"scores": [0]}}, "match: scores is [0]"),
        (1, {"match": {"extra": 0}}, "unknown key 'extra'"),
    ],
)
def test_a_false_match_is_refused(place: int, change: Record, message: str, tmp_path: Path) -> None:
    records = recorded(Game(SMALL["match"], 2, seed=3))
    assert [record["match"]["game"] for record in records[:2]] == [0, 1]
    assert not judge_file(tmp_path / "match.jsonl", records)
    match = records[place]["match"] | change.get("match", {})
    records[place] = records[place] | change | {"match": match}
    problems = judge_file(tmp_path / "match.jsonl", records)
    assert place in problems
    assert message in str(problems[place])


def test_games_of_a_match_have_to_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "match.jsonl"
    records = recorded(Game(SMALL["match"], 3, seed=3))
    ends = [number for number, record in enumerate(records) if record["match"]["game"] == 0][1:]
    assert ends[0] >= 3
    for number in range(ends[0] - 1):
        assert list(judge_file(path, records[:number] + records[number + 1 :])) == [number]
    assert not judge_file(path, records[: ends[0] - 1] + records[ends[0] :])  # broken off, which may happen
    assert list(judge_file(path, [records[1], records[0], *records[2:]])) == [0, 2]
    late = records[1] | {"match": records[1]["match"] | {"game": 1 + records[ends[0] - 1]["match"]["game"]}}
    assert list(judge_file(path, [*records[: ends[0]], late, *records[ends[0] :]])) == [ends[0]]
    forged = _started_by_the_other(records[1])
    verify(forged)
    assert "'first_player'" in str(judge_file(path, [records[0], forged])[1])
    game = Game(SMALL["match"], 1, seed=3)
    forfeited: list[Record] = []
    with Recorder(game, PAIR, forfeited.append):
        game.forfeit([0])
    after = records[1] | {"match": records[1]["match"] | {"scores": forfeited[0]["result"]["points"]}}
    assert "forfeit" in str(judge_file(path, [forfeited[0], after])[1])


def _started_by_the_other(record: Record) -> Record:
    """Return a right record of another game with the same deal."""
    rules = Rules.from_dict(record["rules"] | {"match_points": None})
    position = Game(rules).position(0) | record["deal"] | {"turn": 1 - record["first_player"]}
    (played,) = recorded(Game.from_positions(rules, [position]))
    return record | {"first_player": position["turn"], "events": played["events"], "result": played["result"]}


def test_a_wrong_game_does_not_make_the_rest_of_its_match_wrong(tmp_path: Path) -> None:
    records = recorded(Game(SMALL["match"], 1, seed=3))
    records[1] = changed(records[1], ("result", "points"), None)
    assert list(judge_file(tmp_path / "match.jsonl", records)) == [1]


# -- files -------------------------------------------------------------------------------------------------------------


def test_files_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    records = [record for name in SMALL for record in small_records(name)]
    assert write_records(path, iter(records)) == len(records)
    assert [json.dumps(record) for record in read_records(path)] == [json.dumps(record) for record in records]
    assert path.read_bytes().count(b"\n") == len(records)
    assert verify_file(path) == ([], len(records))
    assert verify_file(str(path), check_seed=True) == ([], len(records))
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert verify_file(path) == ([], len(records))
    path.write_bytes(b"")
    assert verify_file(path) == ([], 0)
    with pytest.raises(FileNotFoundError):
        verify_file(tmp_path / "missing.jsonl")


def test_files_of_several_rules_are_judged_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        record
        for group in zip(*(small_records(name) for name in SMALL if name != "match"), strict=False)
        for record in group
    ]
    records += recorded(Game(SMALL["match"], 3, seed=3))
    wrong = [5, 6, 20, len(records) - 1]
    for number in wrong:
        records[number] = changed(records[number], ("events", 1, "player"), 2)
    for size in (1, 3, 1000):
        monkeypatch.setattr("spite_env.verify.BATCH", size)
        assert list(judge_file(tmp_path / "records.jsonl", records)) == wrong


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "invalid JSON: Expecting value at character"),
        (b"{", "invalid JSON"),
        (b'{"format": NaN}', "NaN is no JSON"),
        (b'{"format": 1, "format": 2}', "the key 'format' stands there twice"),
        (b'{"a": {"b": 1, "c": 2, "b": 1}}', "the key 'b' stands there twice"),
        (b"\xff\xfe", "invalid JSON: 'utf-8' codec"),
        (b"\xef\xbb\xbf{}", "invalid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 5000, "is no record|invalid JSON"),
        (b"[]", r"\[\] is no record"),
        (b'"text"', "'text' is no record"),
        (b"null", "None is no record"),
        (b"{}", "format None is unknown; expected 'spite-and-malice-record/1'"),
        (b'{"format": "spite-and-malice-record/2"}', "format 'spite-and-malice-record/2' is unknown"),
        (b'{"format": ["spite-and-malice-record/1"]}', "is unknown"),
    ],
)
def test_unreadable_lines_are_named(line: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    good = json.dumps(a_game()).encode()
    path.write_bytes(b"\n".join([good, good, line, good, b""]))
    reader = read_records(path)
    assert [next(reader), next(reader)] == [a_game()] * 2
    with pytest.raises(RecordError, match=f"^line 3: .*{message}") as raised:
        next(reader)
    assert raised.value.record == 2
    (problem,), count = verify_file(path)
    assert count == 4
    assert (problem.record, problem.event) == (2, None)
    assert str(problem) == f"record 2: {raised.value}"


def test_a_cut_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    line = json.dumps(a_game()).encode()
    for length in (1, 10, len(line) // 2, len(line) - 1):
        path.write_bytes(line + b"\n" + line[:length])
        (problem,), count = verify_file(path)
        assert count == 2
        assert str(problem).startswith("record 1: line 2: the file is cut, its last line is not whole")


def test_an_old_file_is_lost_with_the_first_record_only(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("old\n")
    record = {"format": FORMAT}
    for wrong, error in (({"text": object()}, TypeError), ({"text": float("nan")}, ValueError)):
        with pytest.raises(error, match="JSON"):
            write_records(path, [wrong])
        assert path.read_text() == "old\n"
        with pytest.raises(error, match="JSON"):
            write_records(tmp_path / "other.jsonl", [record, wrong])
        assert list(read_records(tmp_path / "other.jsonl")) == [record]
    assert write_records(path, [record, record]) == 2
    assert list(read_records(path)) == [record, record]
    assert write_records(path, []) == 0
    assert path.read_bytes() == b""


def test_links_are_followed_and_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    record = {"format": FORMAT}
    (tmp_path / "target").write_text("old\n")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_records(tmp_path / "link", [record])
    assert (tmp_path / "link").is_symlink()
    assert list(read_records(tmp_path / "target")) == [record]
    write_records(os.devnull, [record])
    for wrong in (tmp_path, tmp_path / "missing" / "records.jsonl", ""):
        with pytest.raises(OSError, match="directory"), record_writer(wrong):
            pytest.fail("opened")


# -- the core's tools --------------------------------------------------------------------------------------------------


def test_a_stock_can_be_put_into_any_order_of_its_cards() -> None:
    game = Game(Rules.mini(), 2, seed=1)
    untouched, cards = game.position(0), game.position(1)["stock"]
    arrange_stock(game.state, 1, cards[::-1])
    assert game.position(1)["stock"] == cards[::-1]
    assert game.position(0) == untouched
    for wrong in (cards[1:], [*cards, "A"], ["A"] * len(cards)):
        with pytest.raises(ValueError, match="are not the cards of the stock"):
            arrange_stock(game.state, 1, wrong)


@pytest.mark.parametrize("first_player", [0, "random", "higher_payoff"])
def test_deals_can_be_revisited(first_player: int | str) -> None:
    rules = SHORT_MATCH.replace(first_player=first_player, payoff_size=2)
    game = Game(rules, 4, seed=6, autoreset=True)
    records: list[Record] = []
    with Recorder(game, PAIR, records.append):
        play(game, 1, most=300)
    numbers = [record["match"]["game"] for record in records]
    assert max(numbers) > 1
    again = Game(rules, len(records), [record["seed"] for record in records])
    again._revisit(
        [record.get("episode", 0) for record in records], numbers, [record["first_player"] for record in records]
    )
    for index, record in enumerate(records):
        position = again.position(index)
        assert {name: position[name] for name in record["deal"]} == record["deal"]
        assert position["turn"] == record["first_player"]


# -- golden games ------------------------------------------------------------------------------------------------------

GOLDEN_GAMES: list[tuple[Rules, list[int]]] = [
    (Rules.mini(), [0, 6, 8]),
    (SMALL["bottom"], [0, 2**64 - 1]),
    (SMALL["short"], [2]),
    (SMALL["match"], [0]),
    (Rules.g4a(), [1, 2]),
    (Rules.classic(), [0, 1]),
    (Rules.skip_bo(), [6]),
]


def golden_records(write: Callable[[Record], Any]) -> None:
    for rules, seeds in GOLDEN_GAMES:
        game = Game(rules, len(seeds), seeds)
        policies = [make_policy(name) for name in PAIR]
        for policy in policies:
            policy.reset(rules, len(seeds), seed=0)
        with Recorder(game, PAIR, write):
            while (live := np.flatnonzero(~over(game))).size:
                movers = game.current_player[live]
                for seat, policy in enumerate(policies):
                    if (games := live[movers == seat]).size:
                        actions = policy.act(game.observe()[games], game.legal_actions()[games], None, games)
                        game.step(actions, games)


def test_golden_records_are_right() -> None:
    records = list(read_records(GOLDEN))
    assert_right(records)
    assert verify_file(GOLDEN, check_seed=True) == ([], len(records))
    assert kinds(records) >= {*EVENT_KEYS, "outcome win", "outcome draw", "outcome truncated"}
    assert GOLDEN.stat().st_size < 200_000


def test_golden_records_are_reproduced_to_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with record_writer(path) as write:
        golden_records(write)
    assert path.read_bytes() == GOLDEN.read_bytes()


if __name__ == "__main__":
    with record_writer(GOLDEN) as write_golden:
        golden_records(write_golden)
