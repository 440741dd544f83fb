"""The command ``spite-env watch``: what it prints, what its keys do, and the page that it writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from helpers import CHROMIUM, CHROMIUM_OPTIONS
from spite_env import Rules, terminal
from spite_env.arena import duel
from spite_env.cli import main
from spite_env.policies import POLICIES, RandomPolicy
from spite_env.record import Record, write_records
from spite_env.render import svg
from spite_env.render.page import page
from spite_env.replay import of_policies, of_record

ROOT = Path(__file__).resolve().parent.parent

#: That of a game of more than a few decisions.
SEED = 7

EVIL = "<script>x</script>\x1b"


@pytest.fixture(scope="module")
def records() -> list[Record]:
    kept: list[Record] = []
    duel("greedy", "random", Rules.mini(), games=6, seed=SEED, record=kept.append)
    return kept


@pytest.fixture
def file(tmp_path: Path, records: list[Record]) -> Path:
    path = tmp_path / "games.jsonl"
    write_records(path, records)
    return path


def decisions(record: Record) -> int:
    return sum(event["type"] in ("play", "discard", "end_turn") for event in record["events"])


# -- without a terminal ------------------------------------------------------------------------------------------------


def test_without_a_terminal_every_position_is_printed(
    file: Path, records: list[Record], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", str(file), "--game", "2", "--evaluator", "none"]) == 0
    recorded = capsys.readouterr().out
    assert recorded.count("Spite & Malice") == decisions(records[2]) + 1
    assert "win chance" not in recorded.split("wins")[0]
    assert main(["watch", "greedy", "random", "--rules", "mini", "--seed", str(SEED)]) == 0
    live = capsys.readouterr().out
    assert live.count("Spite & Malice") == decisions(records[0]) + 1
    assert "evaluator: greedy wins with" in live
    assert main(["watch", str(file)]) == 0
    assert "".join(capsys.readouterr().out.split("evaluator")[0]) == live.split("evaluator")[0]


def test_a_perspective_is_kept(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backs = {}
    for perspective in ("0", "1", "mover", "all"):
        assert main(["watch", str(file), "--perspective", perspective, "--evaluator", "none"]) == 0
        backs[perspective] = capsys.readouterr().out.count("##")
    assert backs["all"] == 0
    assert min(backs["0"], backs["1"], backs["mover"]) > 0


def test_rules_and_seed_are_those_of_the_policies(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["watch", "greedy", "greedy", "--rules", "mini", "--set", "payoff_size=1", "--evaluator", "none"]
    outs = []
    for seed in ("1", "1", "2"):
        assert main([*words, "--seed", seed]) == 0
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1] != outs[2]
    assert "and 0 more" in outs[0]


def test_what_a_policy_thinks_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "network", "random", "--set", "payoff_size=1", "--evaluator", "none"]) == 0
    out = capsys.readouterr().out
    assert re.search(r"^network\n> \S+.* \d+% =", out, re.MULTILINE)


def test_the_help_tells_of_both_kinds_of_games(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["watch", "--help"])
    assert "two policies, or instead one file of records" in " ".join(capsys.readouterr().out.split())


# -- what can go wrong -------------------------------------------------------------------------------------------------


class Untouchable(RandomPolicy):
    """Must not be asked."""

    def act(self, *arguments: Any) -> Any:
        raise AssertionError("it was asked for a decision")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["greedy", "nobody"], "unknown policy 'nobody'"),
        (["greedy"], "there is no file 'greedy'; watch takes a file of records, or two policies"),
        (["a", "b", "c"], "two policies or one file of records, not 3 names"),
        (["FILE", "--game", "6"], "there is no game 6"),
        (["FILE", "--game", "-1"], "there is no game -1"),
        (["FILE", "--seed", "3"], "a file of records has its own"),
        (["FILE", "--rules", "mini"], "a file of records has its own"),
        (["FILE", "--evaluator", "greedy"], "'greedy' doesn't tell what it thinks"),
        (["greedy", "random", "--game", "1"], "two policies play the game of a seed"),
        (["greedy", "random", "--seed", "-1"], "seed=-1 is not allowed"),
        (["greedy", "random", "--set", "payoff_size=0"], "payoff_size=0"),
        (["greedy", "random", "--speed", "0"], "speed=0.0 is not allowed; it is from 0.125 to 64"),
        (["greedy", "random", "--speed", "nan"], "speed=nan is not allowed"),
    ],
)
def test_a_wrong_command_says_why_and_writes_nothing(
    words: list[str], message: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.html"
    out.write_text("precious")
    words = [str(file) if word == "FILE" else word for word in words]
    for more in ([], ["--html", str(out)]):
        assert main(["watch", *words, *more]) == 2
        assert message in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert sorted(tmp_path.iterdir()) == [file, out]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda line: line[: len(line) // 2], "the file is cut, its last line is not whole"),
        (lambda line: line.replace("record/1", "record/2"), "expected 'spite-and-malice-record/1'"),
        (lambda line: line.replace('"play"', '"plan"', 1), "event"),
        (lambda line: line.replace('"ranks":3', '"ranks":4', 1), "deal"),
        (lambda line: "[]\n", "is no record"),
        (lambda line: "\x00\n", "invalid JSON"),
    ],
)
def test_a_damaged_record_says_what_is_wrong(
    damage: Any, message: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = file.read_text().splitlines(keepends=True)[0]
    damaged, out = tmp_path / "damaged.jsonl", tmp_path / "out.html"
    damaged.write_text(damage(first))
    for more in ([], ["--html", str(out)]):
        assert main(["watch", str(damaged), *more]) == 2
        assert message in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == [damaged, file]


def test_a_page_does_not_replace_its_records(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = file.read_bytes()
    assert main(["watch", str(file), "--html", str(file)]) == 2
    assert "that is the file of records itself" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_a_page_that_cannot_be_written_is_known_before_the_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(POLICIES, "untouchable", Untouchable)
    for out, message in ((tmp_path, "is a folder"), (tmp_path / "none" / "out.html", "is no folder")):
        assert main(["watch", "untouchable", "random", "--html", str(out)]) == 2
        assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


# -- the keys ----------------------------------------------------------------------------------------------------------


class Session:
    """A terminal whose keys are known beforehand; it keeps what the screen showed before each of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, columns: int = 80, lines: int = 24) -> None:
        self.pressed: list[str] = []
        self.screens: list[list[str]] = []
        self.waits: list[float] = []

        @contextmanager
        def keys() -> Iterator[Session]:
            yield self

        @contextmanager
        def screen() -> Iterator[None]:
            yield

        for name, value in {
            "keys": keys,
            "screen": screen,
            "draw": self.draw,
            "is_terminal": lambda: True,
            "size": lambda: (columns, lines),
        }.items():
            monkeypatch.setattr(terminal, name, value)

    def draw(self, lines: Sequence[str]) -> None:
        self.screens.append(list(lines))

    def read(self, seconds: float) -> str:
        self.waits.append(seconds)
        return self.pressed.pop(0) if self.pressed else "q"

    def watch(self, words: list[str], pressed: list[str]) -> list[str]:
        """Run the command with these keys, and return the last lines of its screens."""
        self.pressed, self.screens, self.waits = list(pressed), [], []
        assert main(["watch", *words]) == 0
        return [lines[-1] for lines in self.screens]


def places(status: list[str]) -> list[int]:
    """Return the number of the position in each status line."""
    return [int(re.search(r"(\d+)  (?:paused|[\d.]+ a second)  \|", line)[1]) for line in status]


def test_keys_step_and_jump_and_pause(monkeypatch: pytest.MonkeyPatch, file: Path, records: list[Record]) -> None:
    session, last = Session(monkeypatch), decisions(records[0])
    pressed = ["", "", "left", "", "right", "right", " ", "", "end", "right", "", "home", "left", "unknown"]
    status = session.watch([str(file)], pressed)
    assert places(status) == [0, 1, 2, 1, 1, 2, 3, 3, 4, last, last, last, 0, 0, 0]
    paused = ["paused" in line for line in status]
    assert paused == [False] * 3 + [True] * 4 + [False] * 2 + [True] * 6
    assert session.waits[:4] == [0.5, 0.5, 0.5, 1.0]


def test_keys_change_the_speed_within_bounds(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    session = Session(monkeypatch)
    session.watch([str(file), "--speed", "4"], ["+", "-", "-", *"-" * 9, *"+" * 12])
    speeds = [1 / wait for wait in session.waits]
    assert speeds[:4] == [4, 8, 4, 2]
    assert min(speeds) == 0.125
    assert max(speeds) == 64


def test_keys_go_to_other_games_of_the_file(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    status = Session(monkeypatch).watch([str(file), "--game", "4"], ["", "n", "n", "p", "p"])
    assert [line.split("  ")[0] for line in status] == [f"game {n} of 6" for n in (4, 4, 5, 5, 4, 3)]
    assert places(status) == [0, 1, 0, 0, 0, 0]


def test_a_damaged_game_of_the_file_is_named(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    lines = file.read_text().splitlines()
    file.write_text("\n".join([*lines[:2], "{", *lines[3:]]))
    status = Session(monkeypatch).watch([str(file), "--game", "1"], ["", "n", "", "right", "p"])
    assert status[2].startswith("game 2: line 3: invalid JSON")
    assert status[3] == status[2], "it stays until the next key"
    assert places([status[4], status[5]]) == [3, 0]
    assert status[5].startswith("game 0 of 6")


def test_a_live_game_ends_paused_at_its_end(monkeypatch: pytest.MonkeyPatch, records: list[Record]) -> None:
    session = Session(monkeypatch)
    last = decisions(records[0])
    status = session.watch(["greedy", "random", "--rules", "mini", "--seed", str(SEED)], [""] * (last + 3))
    assert places(status) == [*range(last + 1), last, last, last]
    assert "paused" in status[-1]
    assert "game" not in status[0]
    assert "wins" in session.screens[-1][0]


@pytest.mark.parametrize(("columns", "lines"), [(80, 24), (160, 40), (40, 10), (80, 1)])
def test_a_screen_of_any_size_shows_the_keys(monkeypatch: pytest.MonkeyPatch, columns: int, lines: int) -> None:
    session = Session(monkeypatch, columns, lines)
    session.watch(["network", "greedy", "--set", "payoff_size=1"], ["", ""])
    for shown in session.screens:
        assert len(shown) <= lines
        assert "q quit" in shown[-1]
        if lines > 20:
            assert "win chance" in shown[-2]
    assert any("network wins with" in line[:78] for line in session.screens[0]) == (columns == 80 and lines > 24)
    assert any("network wins with" in line[78:] for line in session.screens[0]) == (columns == 160)


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is needed")
def test_a_real_terminal_is_left_as_it_was(file: Path) -> None:
    import pty
    import termios

    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    command = [sys.executable, "-m", "spite_env", "watch", str(file), "--speed", "0.125"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "90", "LINES": "30"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    seen = b""
    try:
        for key, until in ((b"\x1b[C", b"0  0.125 a second"), (b"\x1bOC", b"1  paused"), (b"q", b"2  paused")):
            end = time.monotonic() + 60
            while until not in seen:
                assert time.monotonic() < end, seen.decode()
                seen += os.read(ours, 65536)
            os.write(ours, key)
        assert process.wait(60) == 0
        seen += os.read(ours, 65536)
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        os.close(ours)
        os.close(theirs)
    assert seen.startswith(b"\x1b[?1049h")
    assert seen.rstrip().endswith(b"\x1b[?1049l")


# -- the page ----------------------------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._open = tag
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data


def data_of(text: str) -> dict[str, Any]:
    return json.loads(Outline(text).texts["script"][0])


def test_a_page_holds_every_picture() -> None:
    replay = of_policies("network", "greedy", Rules(payoff_size=2), seed=3, at_once=50)
    for perspective in ("mover", "1"):
        data = data_of(page(replay, perspective))
        assert len(data["frames"]) == len(replay.frames)
        for frame, held in zip(replay.frames, data["frames"], strict=True):
            picture = svg(frame.table(perspective, replay.players))
            drawn = "".join(data["elements"][number] for number in held["drawing"])
            assert drawn == re.sub(r">\s+<", "><", picture)
            assert held["chance"] == (None if frame.chance is None else pytest.approx(frame.chance, abs=1e-3))
    assert data["frames"][0]["last"] is None
    assert [held["last"]["text"] for held in data["frames"][1:]] == [frame.last.text for frame in replay.frames[1:]]
    own, other = data["frames"][0]["opinions"]
    assert (own["who"], other["who"]) == ("network", "evaluator")
    assert own["choices"][0][3], "the network takes what it finds most probable"
    assert 0.9 < sum(choice[1] for choice in own["choices"]) < 1.01
    assert "128 games played on by greedy" in data["sources"][other["source"]]


def test_a_page_needs_nothing_else_and_is_small() -> None:
    replay = of_policies("greedy", "random", seed=3, evaluator=None)
    text = page(replay)
    outline = Outline(text)
    assert len(text.encode()) < 1_500_000 * len(replay.frames) / 300
    assert set(re.findall(r"\w+://[^\"'\s\\]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not {name for name, _ in outline.attributes} & {"src", "href", "srcset", "action", "onclick", "onload"}
    assert not set(outline.tags) & {"link", "img", "iframe", "object", "embed", "base"}
    assert "@import" not in text
    assert "url(" not in text
    assert not re.search(r"\{\{|\}\}\s*<", text), "a place of the template was left"
    (policy,) = (value for name, value in outline.attributes if name == "content" and "default-src" in str(value))
    script = outline.texts["script"][-1]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_a_page_can_be_read_and_used_without_a_mouse() -> None:
    outline = Outline(page(of_policies("greedy", "random", Rules.mini(), evaluator=None)))
    attributes = dict.fromkeys(outline.attributes)
    for wanted in (("lang", "en"), ("aria-live", "polite"), ("type", "range"), ("aria-label", "Position")):
        assert wanted in attributes
    assert {"title", "h1", "main", "button", "select", "input", "ol", "noscript"} <= set(outline.tags)


def test_names_in_a_record_are_text_and_nothing_else(
    records: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = page(of_record({**records[0], "players": [EVIL, "</title>&amp;\u2028"]}, evaluator=None))
    outline = Outline(text)
    assert outline.tags.count("script") == 2
    assert text.count("</script>") == 2
    assert outline.tags.count("title") == 1
    shown = EVIL.replace("\x1b", "?")
    assert data_of(text)["names"] == [shown, "</title>&amp;?"]
    assert "".join(outline.texts["title"]).startswith(shown)
    drawn = "".join(data_of(text)["elements"])
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn

    write_records(tmp_path / "evil.jsonl", [{**records[0], "players": [EVIL, "\x1b]0;evil\x07"]}])
    assert main(["watch", str(tmp_path / "evil.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x07" not in out


def test_the_command_writes_the_page(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "game.html"
    assert main(["watch", str(file), "--game", "3", "--html", str(out), "--perspective", "all"]) == 0
    assert capsys.readouterr().out.startswith(f"{out}: ")
    text = out.read_text(encoding="utf-8")
    assert "every card, hidden ones too" in text
    assert "ranks=3" in text
    assert sorted(tmp_path.iterdir()) == [out, file]


def test_a_page_of_a_match_shows_all_its_games() -> None:
    rules = Rules.mini().replace(match_points=4)
    replay = of_policies("greedy", "random", rules, seed=1, evaluator=None)
    held = data_of(page(replay))["frames"]
    assert sum(frame["last"] is None for frame in held) > 1
    assert "wins the match" in held[-1]["headline"]


@pytest.mark.skipif(CHROMIUM is None, reason="a browser is needed")
def test_a_browser_steps_through_the_page(tmp_path: Path) -> None:
    replay = of_policies("greedy", "random", Rules.mini(), seed=SEED)
    last = replay.reach(10**6)
    presses = """
      const said = [];
      for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home"]) {
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        said.push(document.getElementById("said").textContent.split(" ")[0]);
      }
      document.querySelectorAll("#moves button")[2].click();
      document.title = said.join(" ");
    """
    text = re.sub(r"<meta http-equiv[^>]*>", "", page(replay))
    out = tmp_path / "page.html"
    out.write_text(text.replace("</body>", f"<script>{presses}</script></body>"), encoding="utf-8")
    options = [*CHROMIUM_OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    command = [str(CHROMIUM), *options, f"{out.as_uri()}#1"]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert f"<title>2 3 2 {last} {last} 0</title>" in dom
    assert re.search(r'<button type="button" class="player\d" aria-current="step">2 ', dom)
    assert dom.count('aria-current="step"') == 1
    assert 'class="spite-table"' in dom
