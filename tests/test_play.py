"""A person at a table: what a session allows and keeps, and the terminal around it."""

from __future__ import annotations

import io
import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import ALL_PRESETS, SHORT_MATCH, Position, heap, lay, legal_texts, played_games, rehidden, snapshot
from spite_env import Game, Rules
from spite_env.cli import main
from spite_env.play import session as session_module
from spite_env.play.session import Session, parse_seed
from spite_env.play.terminal import find_action, short
from spite_env.policies import GreedyPolicy, RandomPolicy
from spite_env.record import Record, Recorder, read_records, record_writer, write_records
from spite_env.rules import PRESETS
from spite_env.verify import verify_file

G4A, MINI = Rules.g4a(), Rules.mini()
VARIANTS = {**dict(zip(PRESETS, ALL_PRESETS, strict=True)), "match": SHORT_MATCH}

A_GREEDY = GreedyPolicy()  # one object, for a name that stands for no class


def sit(rules: Rules, position: Position, opponent: Any = "random", seat: int | None = None) -> Session:
    """Return a session that starts from a position."""
    session = Session(opponent, rules, seat=position["turn"] if seat is None else seat, seed=1)
    session._game = Game.from_positions(rules, [position], seed=1)
    session._recorder = Recorder(session._game, session.names, session._ended)
    session._log, session.records = [], []
    session._settle()
    return session


def act(session: Session, text: str) -> None:
    session.play(session.game.actions.parse(text))


def play_on(session: Session, seed: int, undo: float = 0.0, each: Callable[[], object] = lambda: None) -> list[int]:
    """Play at random until the end, also taking decisions back, and return the decisions that stood."""
    rng, stood = random.Random(seed), []
    while not session.over:
        each()
        if session.can_undo and rng.random() < undo:
            session.undo()
            stood.pop()
        else:
            stood.append(rng.choice(session.legal_actions()))
            session.play(stood[-1])
    return stood


def verified(records: Sequence[Record], path: Path) -> bool:
    write_records(path, records)
    problems, count = verify_file(path, check_seed=True)
    return not problems and count == len(records) > 0


# -- games ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("name", VARIANTS)
def test_whole_games_are_played_as_the_core_plays_them_and_recorded(name: str, seat: int, tmp_path: Path) -> None:
    written: list[Record] = []
    session = Session("greedy", VARIANTS[name], seat=seat, seed=5, write=written.append)
    stood = play_on(session, seed=1, undo=0.5)
    assert verified(session.records, tmp_path / "records.jsonl")
    assert written == session.records
    assert session.records[0]["players"][seat] == "human"
    assert session.seed == 5
    assert not session.legal_actions()

    plain = Session("greedy", VARIANTS[name], seat=seat, seed=5)
    for action in stood:
        plain.play(action)
    assert plain.records == session.records  # what has been taken back left no trace


def test_a_seed_deals_what_it_deals_everywhere_and_is_told_when_it_can_do_no_harm() -> None:
    session = Session("greedy", seed=7)
    assert session.game.position(0) == Game(seed=7).position(0)
    assert session.seed is None
    first, second = Session("greedy"), Session("greedy")
    assert first.game.position(0) != second.game.position(0)
    first.play(first.legal_actions()[0])
    first.close()
    assert first.seed is not None
    assert first.seed < 2**53
    first.new(first.seed)
    assert first.seed is None
    session.new(first._seed)
    assert session.game.position(0) == first.game.position(0)


def test_in_a_match_the_seed_is_told_after_the_last_game() -> None:
    session = Session("greedy", SHORT_MATCH, seed=8)
    told = []
    play_on(session, seed=1, each=lambda: told.append((len(session.records), session.seed)))
    assert max(games for games, _ in told) > 0
    assert {seed for _, seed in told} == {None}
    assert session.seed == 8


def test_the_log_tells_of_both_players_and_of_the_outcomes() -> None:
    session = Session("greedy", SHORT_MATCH, seed=8, seat=1)
    play_on(session, seed=1)
    assert {who for who, _ in session.log} == {0, 1, None}
    outcomes = [text for who, text in session.log if who is None]
    assert len(outcomes) == len(session.records)
    for text, record in zip(outcomes, session.records, strict=True):
        winner = record["result"]["winner"]
        assert text.startswith("a draw" if winner is None else f"{session.names[winner]} wins ")
    moves = sum(
        event["type"] in ("play", "discard", "end_turn") for record in session.records for event in record["events"]
    )
    assert len(session.log) == moves + len(outcomes)


@pytest.mark.parametrize("action", [-1, 74, 10**30, "end_turn", None, True, 1.0, [0]])
def test_an_impossible_action_is_refused_and_changes_nothing(action: Any) -> None:
    session = sit(G4A, lay(G4A, hand="A2"))
    act(session, "hand>center0")
    before, log = snapshot(session.game, 0), session.log
    with pytest.raises(ValueError, match=r"legal|integers"):
        session.play(action)
    assert snapshot(session.game, 0) == before
    assert session.log == log
    session.undo()


def test_after_the_end_nothing_can_be_done_but_to_begin_anew() -> None:
    session = sit(G4A, lay(G4A, payoff="A", opponent_payoff="23", stock="345"))
    act(session, "payoff>center0")
    assert session.over
    assert session.log[-1] == (None, "human wins 2 points")
    for deed in (lambda: session.play(0), session.undo, lambda: session.hint("greedy")):
        with pytest.raises(ValueError, match=r"over|taken back"):
            deed()
    session.close()
    assert len(session.records) == 1
    session.new()
    assert not session.over
    assert not session.records


@pytest.mark.parametrize(
    "arguments", [{"seat": 2}, {"seat": True}, {"seed": -1}, {"rules": "poker"}, {"opponent": "nobody"}]
)
def test_a_session_that_can_not_be_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"seat|seed|poker|nobody"):
        Session(**{"opponent": "greedy", **arguments})


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7"])
def test_an_impossible_seed_leaves_the_game_as_it_is(seed: Any) -> None:
    session = Session("greedy", seed=3)
    session.play(session.legal_actions()[0])
    before = snapshot(session.game, 0)
    with pytest.raises(ValueError, match="seed"):
        session.new(seed)
    assert snapshot(session.game, 0) == before
    assert not session.over


def test_typed_seeds() -> None:
    assert [parse_seed(text) for text in ("", " ", "0", " 17 ", str(2**64 - 1))] == [None, None, 0, 17, 2**64 - 1]
    for text in ("x", "-1", "1.0", str(2**64), "9" * 5000, "²"):
        with pytest.raises(ValueError, match="seed"):
            parse_seed(text)


# -- leaving -------------------------------------------------------------------------------------------------------


def test_leaving_gives_up_a_game_with_a_decision_and_no_other(tmp_path: Path) -> None:
    session = Session("greedy", seed=3, seat=1)  # the opponent has begun
    session.close()
    assert not session.records

    for taken_back in (False, True):
        position = lay(G4A, hand="A2", opponent_payoff="56", payoff="789")
        session = sit(G4A, position)
        act(session, "hand>center0")
        if taken_back:
            session.undo()
        session.close()
        assert session.over == (not taken_back)
        assert [record["result"] for record in session.records] == [
            {"outcome": "forfeit", "winner": 1, "points": [0, 3], "by": 0}
        ] * (not taken_back)
        assert taken_back or session.log[-1] == (None, "human gives up: random wins 3 points")
        assert taken_back or verified(session.records, tmp_path / "records.jsonl")


def test_leaving_in_a_match_gives_it_up_and_keeps_what_was_played(tmp_path: Path) -> None:
    session = Session("random", SHORT_MATCH, seed=8)
    rng = random.Random(1)
    while not session.records:
        session.play(rng.choice(session.legal_actions()))
    assert not session.over
    session.new()
    assert not session.records

    records: list[Record] = []
    session = Session("random", SHORT_MATCH, seed=8, write=records.append)
    rng = random.Random(1)
    while not session.records:
        session.play(rng.choice(session.legal_actions()))
    assert not records  # they tell the seed of the games to come
    session.close()
    assert verified(records, tmp_path / "records.jsonl")
    assert [record["result"]["outcome"] == "forfeit" for record in records] == [False, True]


class Interrupted(RandomPolicy):
    """The person loses patience at this policy's third decision."""

    calls = 0

    def act(self, *arguments: Any) -> Any:
        self.calls += 1
        if self.calls == 3:
            raise KeyboardInterrupt
        return super().act(*arguments)


def test_an_interrupt_while_the_opponent_thinks_loses_no_record(tmp_path: Path) -> None:
    session = Session(Interrupted(), seed=2)
    with pytest.raises(KeyboardInterrupt):
        play_on(session, seed=1)
    session.close()
    assert session.records[-1]["result"]["by"] == 0
    assert verified(session.records, tmp_path / "records.jsonl")


# -- the opponent --------------------------------------------------------------------------------------------------


class Broken(RandomPolicy):
    """Does something impossible at its fourth decision."""

    def __init__(self, how: Any) -> None:
        self.how = how
        self.calls = 0

    def act(self, *arguments: Any) -> Any:
        self.calls += 1
        if self.calls < 4:
            return super().act(*arguments)
        if isinstance(self.how, Exception):
            raise self.how
        return np.array([self.how])


@pytest.mark.parametrize("how", [RuntimeError("out of ideas"), -1, 1.5])
def test_an_opponent_that_fails_loses_the_game_and_nothing_else(how: Any, tmp_path: Path) -> None:
    session = Session(Broken(how), seed=2)
    play_on(session, seed=1)
    assert session.records[-1]["result"]["by"] == 1
    assert session.fault is not None
    assert not isinstance(how, Exception) or session.fault == "out of ideas"
    assert verified(session.records, tmp_path / "records.jsonl")
    session.new(4)
    assert session.fault is None


def test_sessions_never_share_a_policy() -> None:
    def records(*seeds: int) -> list[Record]:
        sessions = [Session(f"{__name__}:A_GREEDY", MINI, seed=seed) for seed in seeds]
        rngs = [random.Random(seed) for seed in seeds]
        while not all(session.over for session in sessions):
            for session, rng in zip(sessions, rngs, strict=True):
                if not session.over:
                    session.hint(f"{__name__}:A_GREEDY")
                    session.play(rng.choice(session.legal_actions()))
        return [session.records[0] for session in sessions]

    assert records(1, 2, 3) == [*records(1), *records(2), *records(3)]


# -- taking back ---------------------------------------------------------------------------------------------------

CLASSIC = G4A.replace(refill_mid_turn=True)


@pytest.mark.parametrize(
    ("rules", "layout", "action", "can_undo"),
    [
        (G4A, {"hand": "A2"}, "hand>center0", True),
        (G4A, {"hand": "2K"}, "wild>center1", True),
        (G4A, {"sides": ["9A"], "hand": "2"}, "side0>center0", True),
        (G4A, {"sides": ["K"], "hand": "2"}, "side0>center2", True),
        (G4A, {"hand": "Q2", "centers": [heap(G4A, 11)]}, "hand>center0", True),  # a recycled pile shows nothing
        (G4A, {"hand": "A"}, "hand>center0", True),  # an empty hand stays empty
        (CLASSIC, {"hand": "A"}, "hand>center0", False),  # here it is filled
        (CLASSIC, {"hand": "A2"}, "hand>center0", True),
        (G4A, {"payoff": "9A", "hand": "2"}, "payoff>center0", False),  # uncovers the nine
        (G4A, {"payoff": "9K", "hand": "2"}, "payoff>center0", False),
        (G4A, {"hand": "2"}, "discard 2>side0", False),
        (G4A, {}, "end_turn", False),
        (G4A.replace(max_steps=1), {"hand": "A2"}, "hand>center0", False),  # ends the game
        (SHORT_MATCH, {"hand": "2", "payoff": "A", "scores": (0, 0)}, "payoff>center0", False),  # deals the next one
    ],
)
def test_what_can_be_taken_back(rules: Rules, layout: dict[str, Any], action: str, can_undo: bool) -> None:
    for mover in (0, 1):
        session = sit(rules, lay(rules, mover=mover, **layout))
        before = snapshot(session.game, 0)
        act(session, action)
        assert session.can_undo == can_undo
        after = snapshot(session.game, 0)
        if can_undo:
            session.undo()
            assert snapshot(session.game, 0) == before
            assert session.log == []
        assert not session.can_undo
        now, log = snapshot(session.game, 0), session.log
        with pytest.raises(ValueError, match="taken back"):
            session.undo()
        assert snapshot(session.game, 0) == now == (before if can_undo else after)
        assert session.log == log


def test_all_decisions_since_the_last_revealed_card_can_be_taken_back_one_by_one() -> None:
    session = sit(G4A, lay(G4A, hand="A23K", payoff="74", sides=["5"]))
    stops = []
    for text in ("hand>center0", "hand>center0", "wild>center0", "payoff>center0", "side0>center0"):
        act(session, text)
        stops.append(snapshot(session.game, 0))
    session.undo()
    assert snapshot(session.game, 0) == stops[3]
    assert not session.can_undo  # the seven has been seen
    act(session, "side0>center0")
    assert snapshot(session.game, 0) == stops[4]


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_that_can_be_taken_back_has_taught_anything(name: str) -> None:
    """In two worlds that look the same, they look the same as long as all can be taken back, and after it has been."""
    rules, rng = VARIANTS[name], random.Random(1)
    games = played_games(rules, 16, seed=4, most=60)
    undone = different = 0
    for index in range(games.num_games):
        position = games.position(index)
        other = rehidden(position, position["turn"], rng)
        different += other != position
        twins = [sit(rules, position), sit(rules, other)]
        looks = [look(*twins)]
        for _ in range(12):
            plays = [action for action in twins[0].legal_actions() if action < twins[0].game.actions.num_plays]
            if twins[0].can_undo and (not plays or rng.random() < 0.4):
                undone += 1
                for twin in twins:
                    twin.undo()
                looks.pop()
                assert look(*twins) == looks[-1]
            elif plays:
                action = rng.choice(plays)
                for twin in twins:
                    twin.play(action)
                assert twins[0].can_undo == twins[1].can_undo
                if not twins[0].can_undo:
                    break
                looks.append(look(*twins))
    assert different > 8
    assert undone > (0 if name == "mini" else 4)


def look(first: Session, second: Session) -> tuple[Any, ...]:
    """Return what the person sees, which must be the same in both worlds."""
    looks = [
        (session.game.observe(session.seat).tobytes(), session.table(), session.legal_actions(), session.log)
        for session in (first, second)
    ]
    assert looks[0] == looks[1]
    return looks[0]


# -- hints ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["random", "greedy", "hoarder", "expert", "playout", "network"])
def test_a_hint_is_legal_and_rests_on_what_the_person_sees(agent: str) -> None:
    rng = random.Random(2)
    games = played_games(G4A, 8, seed=4, most=60)
    for index in range(games.num_games):
        position = games.position(index)
        other = rehidden(position, position["turn"], rng)
        hints = [sit(G4A, world).hint(agent) for world in (position, position, other)]
        assert len(set(hints)) == 1
        assert games.legal_actions()[index, hints[0]]


def test_hints_change_nothing() -> None:
    with_hints, without = Session("random", seed=6), Session("random", seed=6)
    play_on(with_hints, seed=1, undo=0.3, each=lambda: with_hints.hint("random"))
    play_on(without, seed=1, undo=0.3)
    assert with_hints.records == without.records


def test_a_hint_comes_after_plays_that_can_still_be_taken_back() -> None:
    session = sit(G4A, lay(G4A, hand="A2", payoff="93"))
    act(session, "hand>center0")
    assert session.hint("greedy") == session.game.actions.parse("hand>center0")
    session.play(session.hint("greedy"))
    assert session.hint("greedy") == session.game.actions.parse("payoff>center0")


@pytest.mark.parametrize("agent", ["nobody", "os:sep", "no.such:thing", Broken(-1)])
def test_an_agent_without_a_hint_is_named(agent: Any) -> None:
    session = Session("greedy", seed=1)
    if isinstance(agent, Broken):
        agent.calls = 9
    with pytest.raises(ValueError, match=r"nobody|os:sep|no\.such:thing|Broken"):
        session.hint(agent)


# -- the terminal --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
def test_every_action_has_a_text_and_a_short_form_that_mean_it_alone(name: str) -> None:
    table = Game(VARIANTS[name]).actions
    actions = range(table.n)
    assert len({short(table.text(action)) for action in actions}) == table.n
    for action in actions:
        for text in (table.text(action), short(table.text(action)), f" {table.text(action).upper()} "):
            assert find_action(text.strip(), table, actions) == action


def test_moves_are_found_by_number_and_by_what_is_enough() -> None:
    table = Game().actions
    legal = [
        table.parse(text) for text in ("payoff>center1", "hand>center0", "side2>center1", "discard 7>side3", "end_turn")
    ]
    for text, found in {
        "1": "payoff>center1",
        "5": "end_turn",
        "p": "payoff>center1",
        "s2": "side2>center1",
        "side2 > center1": "side2>center1",
        "ha": "hand>center0",
        "d 7 3": "discard 7>side3",
        "discard 7": "discard 7>side3",
        "E": "end_turn",
    }.items():
        assert table.text(find_action(text, table, legal)) == found
    discards = [table.parse(f"discard {card}>side{side}") for card in "789" for side in range(4)]
    with pytest.raises(ValueError, match=r"may mean discard 8>side0, .*discard 8>side3$"):
        find_action("d8", table, discards)
    with pytest.raises(ValueError, match=r"may mean .*, \.\.\.$"):
        find_action("d", table, discards)
    for text, complaint in {
        "0": "from 1 to 5",
        "6": "from 1 to 5",
        "9" * 99: "from 1",
        "w0": "not possible",
        "x": "help",
        "²": "help",
    }.items():
        with pytest.raises(ValueError, match=complaint):
            find_action(text, table, legal)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run ``spite-env play`` with lines of input; return its status and its output, with the errors."""

    def run(lines: Sequence[str], *words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        status = main(["play", *words])
        out, err = capsys.readouterr()
        return status, out + err

    return run


def test_games_are_played_to_their_end_in_the_terminal(typed: Any, tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    words = ("--against", "greedy", "--rules", "mini", "--seed", "3", "--games", "2", "--records", str(file))
    status, out = typed(["1"] * 500, *words)
    assert status == 0
    assert out.count("The seed was") == 2
    assert "The seed was 3." in out
    assert "Spite & Malice" in out
    assert verify_file(file, check_seed=True) == ([], 2)
    assert next(read_records(file))["seed"] == 3

    assert typed(["1"] * 500, *words)[0] == 0  # comes after what is there
    assert verify_file(file) == ([], 4)


def test_a_match_is_played_to_its_end_in_the_terminal(typed: Any, tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    rules = ("--rules", "mini", "--set", "match_points=4", "--set", "max_games=6")
    status, out = typed(["1"] * 500, *rules, "--against", "greedy", "--match", "--games", "1", "--records", str(file))
    assert status == 0
    assert "of 4" in out
    records = list(read_records(file))
    assert [record["match"]["game"] for record in records] == list(range(len(records)))
    assert len(records) > 1
    assert verify_file(file) == ([], len(records))
    assert "of 50" in typed([], "--rules", "mini", "--match")[1]


def test_the_terminal_shows_no_hidden_card(typed: Any) -> None:
    _, out = typed(["hint greedy", "h", "1"] * 30, "--seed", "5", "--against", "greedy", "--seat", "1")
    boards = [part.split("└")[0] for part in out.split("┌")[1:]]
    assert len(boards) > 20
    for board in boards:
        other, own = (line for line in board.splitlines() if line.startswith("│   hand"))
        assert set(other) <= set("│ hand#-")
        assert "##" not in own


def test_commands_in_the_terminal(typed: Any) -> None:
    seed = next(seed for seed in range(50) if "hand>center0" in legal_texts(Session("greedy", seed=seed, seat=1).game))
    words = ("--seed", str(seed), "--against", "greedy", "--seat", "1", "--hint", "greedy")
    status, out = typed(
        ["help", "h0", "undo", "undo", "hint", "hint hoarder", "hint nobody", "zzz", "", "new x", "new 9", "quit", "1"],
        *words,
    )
    assert status == 0
    for part in (
        "hint [AGENT]",
        "nothing can be taken back",
        "greedy would play: ",
        "hoarder would play: ",
        "unknown policy 'nobody'",
        "'zzz' is no move and no command",
        "seed 'x' is not allowed",
    ):
        assert part in out
    assert "human gives up" not in out  # all was taken back
    hand = " ".join(Session("greedy", seed=9, seat=1).game.position(0)["hands"][1])
    assert f"hand    {hand} " in out.rsplit("centre", 1)[1]
    assert "The seed was" not in out


def test_new_in_the_middle_gives_up_and_tells_the_seed(typed: Any) -> None:
    _, out = typed(["1", "new"], "--seed", "4", "--against", "greedy")
    assert "human gives up: greedy wins" in out
    assert out.count("The seed was 4.") == 1
    _, out = typed(["1", "quit"], "--seed", "4", "--against", "greedy")
    assert "The seed was 4." in out


@pytest.mark.parametrize("moves", [0, 1])
def test_the_end_of_input_and_an_interrupt_leave_the_record(
    moves: int, typed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "games.jsonl"
    words = ("--seed", "4", "--against", "greedy", "--records", str(file))
    assert typed(["1"] * moves, *words)[0] == 0
    assert len(file.read_text().splitlines()) == moves

    answers: Iterator[str] = iter(["1"] * moves)

    def interrupted(prompt: str) -> str:
        for answer in answers:
            return answer
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", interrupted)
    before = signal.getsignal(signal.SIGTERM)
    assert typed([], *words)[0] == 130
    assert len(file.read_text().splitlines()) == 2 * moves
    assert signal.getsignal(signal.SIGTERM) == before


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_request_to_terminate_leaves_the_record(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    command = [sys.executable, "-m", "spite_env", "play", "--against", "greedy", "--seed", "4", "--records", str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("1\n")
        process.stdin.flush()
        while "last: greedy" not in process.stdout.readline():
            pass
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 130
        assert "human gives up" in process.stdout.read()
    [record] = read_records(file)
    assert record["result"]["by"] == 0


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--against", "nobody"), "unknown policy 'nobody'"),
        (("--hint", "nobody"), "unknown policy 'nobody'"),
        (("--games", "0"), "--games=0"),
        (("--port", "80"), "--web"),
        (("--web", "--games", "3"), "--games"),
        (("--web", "--port", "70000"), "65535"),
        (("--seed", "-1"), "seed -1"),
        (("--set", "ranks=0"), "ranks=0"),
        (("--records", "."), "directory"),
    ],
)
def test_wrong_words_are_refused(words: tuple[str, ...], complaint: str, typed: Any, tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    status, out = typed(["1"], *(() if "--records" in words else ("--records", str(file))), *words)
    assert status == 2
    assert complaint in out
    assert not file.exists() or not file.read_text()


def test_without_a_checkout_the_strongest_opponent_of_the_library_plays(
    typed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "expert  " in typed(["hint"])[1]
    monkeypatch.setattr("spite_env.policies._agents", dict)
    out = typed(["hint"])[1]
    assert "greedy  " in out
    assert "greedy would play" in out


def test_a_record_is_in_its_file_at_once(tmp_path: Path) -> None:
    session = Session("greedy", MINI, seed=1)
    play_on(session, seed=1)
    file = tmp_path / "games.jsonl"
    for count in (1, 2):
        with record_writer(file, append=True) as write:
            write(session.records[0])
            assert len(file.read_text().splitlines()) == count


def test_nothing_is_written_after_a_line_that_is_cut(typed: Any, tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    file.write_text('{"format": "spite-and')
    status, out = typed(["1"], "--against", "greedy", "--records", str(file))
    assert status == 2
    assert "its last line is not whole" in out
    assert file.read_text() == '{"format": "spite-and'


def test_a_seat_taken_by_a_name_of_its_own_is_in_the_record(tmp_path: Path) -> None:
    session = Session(A_GREEDY, MINI, seed=1, seat=1)
    play_on(session, seed=1)
    assert session.records[0]["players"] == ["GreedyPolicy", session_module.PERSON]
    json.dumps(session.records)
