"""Tournaments: each cell a duel of its own, resumable, in parallel; ratings and their intervals."""

from __future__ import annotations

import csv
import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("choix")

from spite_env import Rules
from spite_env import tournament as module
from spite_env.arena import Tally, duel
from spite_env.cli import main
from spite_env.policies import GreedyPolicy, PolicyError
from spite_env.ratings import rate
from spite_env.tournament import TournamentResult, cell_seed, tournament

MINI = Rules.mini()
THREE = ("greedy", "random", "hoarder")


def timeless(result: TournamentResult) -> dict[Any, Tally]:
    return {cell: replace(tally, seconds=0.0) for cell, tally in result.tallies.items()}


@pytest.fixture(scope="module")
def whole() -> TournamentResult:
    return tournament(THREE, MINI, games=60, seed=3, parts=3)


class Cheat(GreedyPolicy):
    """Chooses an action that does not exist."""

    def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
        return super().act(observation, action_mask, infosets, indices) + 1000


# -- cells -----------------------------------------------------------------------------------------------------------


def test_each_cell_is_the_duel_of_its_seed(whole: TournamentResult) -> None:
    assert set(whole.tallies) == {("greedy", "hoarder"), ("greedy", "random"), ("hoarder", "random")}
    for first, second in whole.tallies:
        alone = duel(first, second, MINI, games=60, seed=cell_seed(3, first, second))
        assert replace(whole.duel(first, second), seconds=0) == replace(alone, seconds=0)
    assert len({whole.duel(*cell).seed for cell in whole.tallies}) == 3


def test_a_cell_depends_on_its_policies_and_the_seed_alone(whole: TournamentResult) -> None:
    fewer = tournament(["random", "greedy"], MINI, games=60, seed=3)
    assert timeless(fewer) == {("greedy", "random"): timeless(whole)["greedy", "random"]}
    assert timeless(tournament(THREE[::-1], MINI, games=60, seed=3, parts=5)) == timeless(whole)
    assert timeless(tournament(THREE, MINI, games=60, seed=4)) != timeless(whole)


def test_both_views_of_a_cell_agree(whole: TournamentResult) -> None:
    for first, second in itertools.permutations(THREE, 2):
        one, other = whole.duel(first, second), whole.duel(second, first)
        assert (one.players, one.wins, one.points) == ((first, second), other.losses, other.points[::-1])


def test_processes_change_nothing(whole: TournamentResult) -> None:
    assert timeless(tournament(THREE, MINI, games=60, seed=3, parts=3, workers=2)) == timeless(whole)


def test_slow_policies_may_play_fewer_games() -> None:
    result = tournament(THREE, MINI, games={"greedy": 40, "random": 40, "hoarder": 20})
    assert {cell: sum(map(sum, tally.pairs)) for cell, tally in result.tallies.items()} == {
        ("greedy", "hoarder"): 10,
        ("greedy", "random"): 20,
        ("hoarder", "random"): 10,
    }


def test_matches_are_played_to_their_points() -> None:
    result = tournament(["greedy", "random"], MINI.replace(match_points=5), games=10)
    assert sum(result.duel("greedy", "random").points) >= 50


def test_a_policy_that_misbehaves_stops_the_tournament_or_loses() -> None:
    policies = ["greedy", Cheat()]
    with pytest.raises(PolicyError, match="policy 'Cheat' chose action"):
        tournament(policies, games=4)
    result = tournament(policies, games=4, on_error="lose").duel("greedy", "Cheat")
    assert (result.wins, result.forfeits) == (4, (0, 4))
    assert "'Cheat'" in result.faults[0]


@pytest.mark.parametrize(
    ("policies", "options", "message"),
    [
        (["greedy"], {}, "two or more"),
        (["greedy", "greedy"], {}, "all different"),
        (["greedy", "random"], {"names": ["a"]}, "one for each policy"),
        (["greedy", "nobody"], {}, "'nobody'"),
        (["greedy", "random"], {"games": 3}, "games=3"),
        (["greedy", "random"], {"games": {"greedy": 2}}, "games=None"),
        (["greedy", "random"], {"workers": 0}, "workers=0"),
        (["greedy", "random"], {"parts": 0}, "parts=0"),
        (["greedy", "random"], {"seed": -1}, "seed=-1"),
    ],
)
def test_impossible_arguments_are_named(
    policies: list[str], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        tournament(policies, MINI, file=tmp_path / "results.jsonl", **options)
    assert not list(tmp_path.iterdir())


# -- going on --------------------------------------------------------------------------------------------------------


def interrupt_after(parts: int) -> Any:
    done = []

    def progress(played: int, total: int) -> None:
        done.append(played)
        if len(done) == parts:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_tournament_goes_on(
    whole: TournamentResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "results.jsonl"
    options: dict[str, Any] = {"games": 60, "seed": 3, "parts": 3, "file": file}
    with pytest.raises(KeyboardInterrupt):
        tournament(THREE, MINI, progress=interrupt_after(4), **options)
    assert len(file.read_text().splitlines()) == 1 + 4
    file.write_bytes(file.read_bytes()[:-30])  # the last line is cut

    played = []
    play = module._play
    monkeypatch.setattr(module, "_play", lambda part: played.append(part.key) or play(part))
    seen: list[tuple[int, int]] = []
    result = tournament(THREE, MINI, progress=lambda *numbers: seen.append(numbers), **options)
    assert timeless(result) == timeless(whole)
    assert len(played) == 9 - 3
    assert seen == [(count, 90) for count in range(40, 91, 10)]
    again = tournament(THREE, MINI, **options)
    assert replace(again, seconds=0.0) == replace(result, seconds=0.0)
    assert len(played) == 9 - 3


def test_policies_may_join_later(whole: TournamentResult, tmp_path: Path) -> None:
    options: dict[str, Any] = {"games": 60, "seed": 3, "parts": 3, "file": tmp_path / "results.jsonl"}
    tournament(["greedy", "random"], MINI, **options)
    assert timeless(tournament(THREE, MINI, **options)) == timeless(whole)
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 1 + 9


def test_one_name_is_no_list_of_policies() -> None:
    with pytest.raises(ValueError, match="policies='greedy' is not allowed; it is a list of two or more"):
        tournament("greedy")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("precious\n", "no file of a tournament's results"),
        ("precious", "no file of a tournament's results"),
        ('{"format": "other"}\n', "no file of a tournament's results: format 'other'"),
        ("[1]\n", "no file of a tournament's results"),
    ],
)
def test_another_file_is_left_as_it_is(content: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(content)
    with pytest.raises(ValueError, match=message):
        tournament(THREE, MINI, games=2, file=file)
    assert file.read_text() == content


@pytest.mark.parametrize(
    "change",
    [None, 5, {"pairs": 5}, {"pairs": [[1, 2], [3, 4]]}, {"pairs": [[9, 9, 9]] * 3}, {"seconds": "a"}, {"faults": 5}],
)
def test_a_damaged_line_is_refused_before_anything_is_played(change: Any, tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    tournament(THREE, MINI, games=4, file=file)
    header, first, *others = file.read_text().splitlines()
    line = {**json.loads(first), **change} if isinstance(change, dict) else change
    content = "\n".join([header, json.dumps(line), *others[:1]]) + "\n"
    file.write_text(content)
    with pytest.raises(ValueError, match="no file of a tournament's results"):
        tournament(THREE, MINI, games=4, file=file)
    assert file.read_text() == content


@pytest.mark.parametrize("change", [{"seed": 1}, {"rules": Rules.mini().replace(hand_size=3)}, {"on_error": "lose"}])
def test_a_file_of_another_tournament_is_refused(change: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    options: dict[str, Any] = {"rules": MINI, "games": 2, "file": file}
    tournament(THREE, **options)
    before = file.read_text()
    with pytest.raises(ValueError, match=f"another {next(iter(change))}"):
        tournament(THREE, **{**options, **change})
    assert file.read_text() == before


# -- a cluster -------------------------------------------------------------------------------------------------------


def test_a_cluster_changes_nothing(whole: TournamentResult, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for Ray: its calls, in their order, and the last ones done first."""
    calls: list[Any] = []
    fake = SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda address: calls.append(address),
        remote=lambda function: SimpleNamespace(remote=lambda part: (function, part)),
        wait=lambda waiting: (waiting[-1:], waiting[:-1]),
        get=lambda job: job[0](job[1]),
        shutdown=lambda: calls.append("shutdown"),
    )
    monkeypatch.setitem(sys.modules, "ray", fake)
    assert timeless(tournament(THREE, MINI, games=60, seed=3, parts=3, ray="auto")) == timeless(whole)
    assert calls == ["auto", "shutdown"]


def test_without_ray_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'spite_env\[rllib\]'"):
        tournament(THREE, MINI, games=2, ray="auto")


# -- ratings ---------------------------------------------------------------------------------------------------------


def test_the_rating_of_two_is_that_of_their_score() -> None:
    """30 wins, 45 draws and 25 losses are a score of 52.5 of 100; the shared pair on top makes it 53.5 of 102."""
    tally = Tally(((5, 5, 0), (5, 10, 5), (5, 10, 5)))
    first, second = rate(["b", "a"], {("a", "b"): tally}, resamples=20)
    score = 53.5 / 102
    assert [first.name, second.name] == ["a", "b"]
    assert first.rating - second.rating == pytest.approx(400 * np.log10(score / (1 - score)), abs=0.01)
    assert first.rating + second.rating == pytest.approx(0, abs=0.01)


def test_ratings_are_finite_where_one_side_won_everything() -> None:
    sweep = Tally(((0, 0, 0), (0, 0, 0), (0, 0, 100)))
    ratings = rate(["a", "b", "c"], {("a", "b"): sweep, ("a", "c"): sweep, ("b", "c"): sweep}, resamples=20)
    assert [rating.name for rating in ratings] == ["a", "b", "c"]
    assert np.isfinite([rating.rating for rating in ratings]).all()


def test_rating_intervals_stay_open_where_nothing_varied() -> None:
    [first, second] = rate(["a", "b"], {("a", "b"): Tally(((0, 0, 0), (0, 50, 0), (0, 0, 0)))})
    assert first.interval[0] < -3 < first.rating < 3 < second.interval[1]


def test_rating_intervals_cover_the_truth_in_19_of_20_tournaments() -> None:
    strengths = np.array([150.0, 0.0, -150.0])
    rng = np.random.default_rng(5)
    trials, covered = 100, np.zeros(3, int)
    for trial in range(trials):
        tallies = {}
        for first, second in itertools.combinations(range(3), 2):
            wins = 1 / (1 + 10 ** ((strengths[second] - strengths[first]) / 400))
            outcomes = np.array([(1 - wins) - 0.1, 0.2, wins - 0.1])  # a fifth drawn
            counts = rng.multinomial(400, np.outer(outcomes, outcomes).ravel()).reshape(3, 3)
            tallies[f"{first}", f"{second}"] = Tally(tuple(map(tuple, counts.tolist())))
        ratings = {rating.name: rating for rating in rate("012", tallies, seed=trial, resamples=30)}
        for player, strength in enumerate(strengths):
            low, high = ratings[f"{player}"].interval
            covered[player] += low <= strength <= high
    assert 0.9 <= covered.sum() / (3 * trials) <= 0.98, covered


# -- the command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_what_it_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("rich")
    words = ["tournament", *THREE, "--rules", "mini", "--games", "20", "--seed", "3"]
    files = ["--csv", str(tmp_path / "a.csv"), "--heatmap", str(tmp_path / "a.png"), "--results", str(tmp_path / "a")]
    assert main([*words, *files]) == 0
    printed = capsys.readouterr().out
    for name in THREE:
        assert name in printed
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3
    assert {int(row["wins"]) + int(row["draws"]) + int(row["losses"]) for row in rows} == {20}
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")

    assert main([*words, "--json", "--results", str(tmp_path / "a")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["names"] == [rating["name"] for rating in result["ratings"]]
    cells = [list(cell) for cell in itertools.combinations(result["names"], 2)]
    assert [cell["players"] for cell in result["duels"]] == cells


@pytest.mark.parametrize("option", ["--csv", "--heatmap"])
def test_a_folder_that_is_missing_is_named_before_anything_is_played(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    words = ["tournament", *THREE, "--rules", "mini", "--json", "--results", str(tmp_path / "a")]
    assert main([*words, option, str(tmp_path / "none" / "x.png")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("missing", "extra"), [("matplotlib.figure", "render"), ("rich.console", "arena")])
def test_what_is_missing_is_named_before_anything_is_played(
    missing: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    words = ["tournament", *THREE, "--rules", "mini", "--results", str(tmp_path / "a"), "--heatmap", "x.png"]
    assert main(words) == 2
    assert f"pip install 'spite_env[{extra}]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
