"""What measures the speed: the protocol, the players, the table; no figure is judged here."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import benchmark, compare_revisions, measuring, peers, players
from experiments.measuring import ROOT, Remote, Subject, UnavailableError
from spite_env import Rules, spite_and_malice_v0

FAKE = """
import os, sys
from experiments.measuring import Subject, serve

def tens():
    print("a library says hello")
    return lambda decisions: -(-decisions // 10) * 10

def dies():
    return lambda decisions: 1 if decisions == 1 else os._exit(3)

def missing():
    import no_such_library

serve(Subject(globals()[sys.argv[1]], "numpy"))
"""

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    (tmp_path / "fake.py").write_text(FAKE)
    return tmp_path


def test_players_take_turns_for_as_long_each(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    turns: list[tuple[str, int]] = []

    def player(name: str, cost: float) -> measuring.TimedPlayer:
        def play(decisions: int) -> int:
            nonlocal now
            made = -(-decisions // 4) * 4
            now += made * cost
            turns.append((name, made))
            return made

        return measuring.timed(play)

    monkeypatch.setattr(measuring, "time", SimpleNamespace(process_time=lambda: now))
    rates = measuring.measure({"slow": player("slow", 0.25), "fast": player("fast", 0.001)}, repeats=3, seconds=8)
    assert rates["slow"] == pytest.approx([4] * 3)
    assert rates["fast"] == pytest.approx([1000] * 3)
    measured = [("slow", 32), ("fast", 8000)]
    assert turns[-6:] == [*measured, *measured[::-1], *measured]


def test_choices_are_uniform() -> None:
    choose = measuring.chooser()
    counts = np.bincount([choose(range(5)) for _ in range(5000)], minlength=5)
    assert ((counts > 900) & (counts < 1100)).all()


def test_a_player_in_another_process(fake: Path) -> None:
    with Remote(sys.executable, "fake", "tens", fake) as remote:
        assert remote.version == np.__version__
        assert [remote(decisions)[0] for decisions in (1, 25)] == [10, 30]


def test_players_that_are_missing_or_die_say_why(fake: Path) -> None:
    with pytest.raises(UnavailableError, match="ModuleNotFoundError: No module named 'no_such_library'"):
        Remote(sys.executable, "fake", "missing", fake)
    with pytest.raises(UnavailableError, match="the process of 'tens' ended with status 1"):
        Remote(sys.executable, "no_such_module", "tens", fake)
    with pytest.raises(UnavailableError, match=r"/no/python does not run"):
        Remote("/no/python", "fake", "tens", fake)
    with (
        Remote(sys.executable, "fake", "dies", fake) as remote,
        pytest.raises(UnavailableError, match="'dies' ended with status 3"),
    ):
        remote(2)


@pytest.mark.parametrize("length", [1, 8, 32])
def test_the_same_share_of_games_ends_in_each_step(length: int) -> None:
    player = players.CorePlayer(128, None, length)
    for _ in range(length + 1):
        assert player(1) == 128
        assert player.ended * length == player.made


def test_staggered_games_are_in_every_stage() -> None:
    steps = players.staggered(Rules().max_steps).state.steps
    assert np.unique(steps // 8).tolist() == list(range(8))


@pytest.mark.parametrize(
    "make",
    [
        lambda: players.CorePlayer(3, "onehot"),
        lambda: measuring.aec_player(spite_and_malice_v0.raw_env(rules=Rules.mini())),
        players.single_seat,
        players.vector,
    ],
    ids=["core", "AEC", "Gymnasium", "Gymnasium, batch"],
)
def test_players_make_as_many_decisions_as_asked_for(make: Callable[[], measuring.Player]) -> None:
    play = make()
    assert 100 <= play(100) <= 100 + 1024


def test_both_seats_make_about_twice_as_many_decisions_as_the_learner() -> None:
    learner, both = players.single_seat()(1), players.single_seat(both=True)(1)  # the same game
    assert 1.5 * learner < both < 2.5 * learner


def test_the_table_keeps_its_order_and_says_what_is_missing() -> None:
    subjects = {
        name: Subject(lambda: len, "x", makes, listed)
        for name, makes, listed in [
            ("ours", "mask", True),
            ("curve", "mask", False),
            ("b", "a text", True),
            ("a", "", True),
        ]
    }
    rates = {"a": [1000.0, 3000.0, 1500.0], "ours": [5.0], "curve": [1.0]}
    assert [list(row.values()) for row in benchmark.table(subjects, rates, {"a": "1.2"}, {"b": "no wheel"})] == [
        ["ours", "", "mask", "5", "5 to 5"],
        ["b", "", "a text", "not measured: no wheel", ""],
        ["a", "1.2", "", "1,500", "1,000 to 3,000"],
    ]


def test_the_benchmark_writes_a_table_and_two_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(benchmark, "pin_to_one_core", lambda: None)
    out = tmp_path / "new" / "bench"
    words = ["--seconds", "0.0001", "--repeats", "1", "--peers", "/no/python", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["benchmark.py", *words])
    monkeypatch.delitem(players.SUBJECTS, "Stable-Baselines3, batch 1024")  # importing torch takes long
    benchmark.main()
    rows = [line.split(" | ") for line in out.with_suffix(".md").read_text().splitlines() if line.startswith("| ")][2:]
    listed = [name for name, subject in players.SUBJECTS.items() if subject.listed]
    assert [row[0].removeprefix("| ") for row in rows] == [*listed, *peers.SUBJECTS]
    assert all(row[3].startswith("not measured: /no/python") for row in rows[len(listed) :])
    details = json.loads(out.with_suffix(".json").read_text())
    assert set(details["rates"]) | set(details["missing"]) == {*players.SUBJECTS, *peers.SUBJECTS}
    for picture in (out.with_suffix(".png"), tmp_path / "new" / "bench_core.png"):
        assert picture.stat().st_size < 150_000


def test_peers_are_pinned_and_installed() -> None:
    pins = re.findall(r"^(\S+)==", peers.CONSTRAINTS.read_text(), flags=re.MULTILINE)
    pinned = {name.lower().replace("-", "_") for name in pins}
    required = {requirement.partition("[")[0] for requirement in peers.REQUIREMENTS}
    assert required == {subject.package for subject in peers.SUBJECTS.values()}
    assert required <= pinned


def test_a_peer_that_could_not_be_installed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> SimpleNamespace:
        fails = command[-1] == "pettingzoo[classic]"
        return SimpleNamespace(returncode=int(fails), stderr="WARNING: old\nERROR: no wheel\nERROR: really" * fails)

    monkeypatch.setattr(peers, "FAILURES", tmp_path / "failures.json")
    monkeypatch.setattr(subprocess, "run", run)
    peers.install()
    with pytest.raises(ImportError, match=r"^ERROR: no wheel$"):
        peers.subject("PettingZoo, connect_four_v3.env").make()
    assert peers.subject("RLCard, uno") is peers.SUBJECTS["RLCard, uno"]


def test_a_ratio_is_the_median_over_pairs() -> None:
    row = compare_revisions.row("core", [100.0, 200.0, 400.0], [150.0, 220.0, 400.0])
    assert list(row.values()) == ["core", "200", "220", "1.100", "1.000 to 1.500"]


def test_what_one_revision_lacks_is_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(ROOT / "spite_env", tmp_path / "spite_env")
    (tmp_path / "spite_env" / "envs" / "gym.py").write_text("raise ImportError('not yet')")
    subjects = ["core, batch 4", "Gymnasium, batch 1024"]
    rows = compare_revisions.compare(tmp_path, ROOT, subjects, pairs=1, seconds=0.001)
    assert [row["subject"] for row in rows] == ["core, batch 4"]
    assert "Gymnasium, batch 1024, which the base lacks: ImportError: not yet" in capfd.readouterr().err


@needs_git
def test_export_of_a_revision(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / "spite_env").mkdir(parents=True)
    git = ["git", "-C", str(repository), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    for text in ("old", "new"):
        (repository / "spite_env" / "a.py").write_text(text)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "--quiet", "--message", text], check=True)
    folder = compare_revisions.export("HEAD~1", tmp_path / "old", repository)
    assert (folder / "spite_env" / "a.py").read_text() == "old"
    for revision in ("HEAD~2", "--output=/tmp/x"):
        with pytest.raises(ValueError, match=f"'{revision}' is no revision with a spite_env"):
            compare_revisions.export(revision, tmp_path / "x", repository)
    assert not (tmp_path / "x").exists()


@needs_git
@pytest.mark.parametrize(
    ("words", "message"), [([], "make bench-compare BASE="), (["no-such"], "'no-such' is no revision")]
)
def test_a_missing_or_unknown_base(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(compare_revisions, "pin_to_one_core", lambda: None)
    monkeypatch.setattr("sys.argv", ["compare_revisions.py", *words])
    with pytest.raises(SystemExit):
        compare_revisions.main()
    assert message in capsys.readouterr().err


LEAST = {"benchmark": "--seconds", "ladder": "--pairs", "parts": "--repeats", "solved": "--copies"}


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        *(
            (name, f"{option} {wrong}", f"{option}: '{wrong}' is not allowed; it is ")
            for name, option in LEAST.items()
            for wrong in ("0", "-3", "nan", "some")
        ),
        ("parts", "--seconds inf", "--seconds: 'inf' is not allowed; it is 1e-06 or more"),
        ("parts", "--out {file}/x", "can't be written"),
        ("solved", "--out {folder}", "is a folder; a file is asked for"),
        ("solved", "--agents random nobody", "unknown policy 'nobody'"),
        ("solved", "--seed -1", "--seed: '-1' is not allowed; it is 0 or more"),
        ("solved", f"--seed {2**63}", "is not allowed; it is less than"),
        ("ladder", "greedy nobody --results {file}", "unknown policy 'nobody'"),
        ("ladder", "greedy greedy --results {file}", "greedy greedy can't play one another"),
        ("ladder", "greedy random --seed -1 --results {file}", "--seed: '-1' is not allowed"),
        ("ablation_start", "--games 3", "--games: '3' is not allowed; it is an even number"),
        ("ablation_start", "--short 99", "payoff_size=99"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_played(
    name: str,
    words: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for needed in {"ladder": ["choix"], "ablation_start": ["sb3_contrib"]}.get(name, []):
        pytest.importorskip(needed)
    script = import_module(f"experiments.{name}")
    file = tmp_path / "file"
    file.write_text("hours of play")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["script", *words.format(file=file, folder=tmp_path).split()])
    with pytest.raises(SystemExit, match="2"):
        script.main()
    assert message in capsys.readouterr().err
    assert file.read_text() == "hours of play"
