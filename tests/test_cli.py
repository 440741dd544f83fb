"""The command line, called in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spite_env import Rules, __version__
from spite_env.cli import main, parse_rules


def test_duel_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["duel", "greedy", "random", "--rules", "mini", "--games", "20", "--seed", "3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["players"] == ["greedy", "random"]
    assert result["games"] == 20
    assert result["seed"] == 3
    assert result["rules"] == Rules.mini().to_dict()


def test_duel_prints_a_table_with_draws_apart_from_losses(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    assert main(["duel", "greedy", "hoarder", "--games", "20"]) == 0
    out = capsys.readouterr().out
    for word in ("wins", "draws", "losses", "decisions a second"):
        assert word in out


def test_duel_without_rich_names_the_install_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    assert main(["duel", "random", "random", "--rules", "mini", "--games", "2"]) == 2
    assert "pip install 'spite_env[arena]'" in capsys.readouterr().err


def test_a_duel_until_it_is_decided_says_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["duel", "greedy", "hoarder", "--until-decided", "--margin", "0.2", "--rules", "mini"]
    assert main([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["test"] == {"margin": 0.2, "alpha": 0.05, "beta": 0.05}
    assert result["verdict"] == "first"
    assert result["games"] < 1000
    pytest.importorskip("rich")
    assert main(words) == 0
    assert "greedy is better" in capsys.readouterr().out


def test_records_that_duel_writes_are_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "games.jsonl"
    assert (
        main(["duel", "greedy", "random", "--rules", "classic", "--games", "6", "--json", "--records", str(file)]) == 0
    )
    assert len(file.read_text().splitlines()) == 6
    capsys.readouterr()
    assert main(["verify", str(file)]) == 0
    assert "6 records" in capsys.readouterr().out

    lines = file.read_text().splitlines()
    record = json.loads(lines[4])
    del record["events"][3]
    lines[4] = json.dumps(record)
    file.write_text("\n".join(lines) + "\n")
    assert main(["verify", str(file)]) == 1
    out = capsys.readouterr().out
    assert "record 4" in out
    assert "event" in out


def test_a_failed_duel_leaves_an_existing_record_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "games.jsonl"
    file.write_text("precious\n")
    assert main(["duel", "greedy", "nobody", "--json", "--records", str(file)]) == 2
    assert file.read_text() == "precious\n"
    assert list(tmp_path.iterdir()) == [file]


def test_rules_are_changed_field_by_field() -> None:
    changes = ["match_points=50", "refill_mid_turn=true", "recycle=bottom", "first_player=random"]
    expected = Rules(match_points=50, refill_mid_turn=True, recycle="bottom", first_player="random")
    assert parse_rules("g4a", changes) == expected
    assert parse_rules("g4a", ["match_points=50", "match_points=null"]) == Rules()
    assert parse_rules("mini", ["refill_mid_turn=False"]) == Rules.mini()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["duel", "greedy", "nobody", "--json"], "nobody"),
        (["duel", "greedy", "random", "--games", "5", "--json"], "even"),
        (["duel", "greedy", "random", "--set", "ranks=13", "--json"], "ranks=13"),
        (["duel", "greedy", "random", "--set", "rank=3", "--json"], "'rank'"),
        (["duel", "greedy", "random", "--set", "ranks", "--json"], "field=value"),
        (["duel", "greedy", "random", "--alpha", "0.1", "--json"], "--alpha: only with --until-decided"),
        (["duel", "greedy", "random", "--until-decided", "--margin", "2", "--json"], "margin=2.0"),
        (["duel", "greedy", "random", "--time-limit", "0", "--json"], "time_limit=0.0"),
        (["duel", "greedy", "random", "--seed", "-1", "--json"], "seed"),
        (["duel", "no.module:thing", "random", "--json"], "no.module:thing"),
        (["verify", "no-such-file.jsonl"], "no-such-file.jsonl"),
    ],
)
def test_wrong_usage_is_explained_and_exits_with_2(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_preset_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["duel", "greedy", "random", "--rules", "mine"])
    assert "skip_bo" in capsys.readouterr().err


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert __version__ in capsys.readouterr().out


def test_a_policy_in_the_current_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own_policy.py").write_text(
        "from spite_env.policies import GreedyPolicy\n\n\nclass Own(GreedyPolicy): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    assert main(["duel", "own_policy:Own", "random", "--rules", "mini", "--games", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["players"] == ["own_policy:Own", "random"]
