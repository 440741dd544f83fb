"""The README does what it says: its Python blocks and its short commands run, its tables are the generated ones."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from spite_env import Rules
from spite_env.cli import main

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.splitlines()[0][:60])
def test_python_block_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "sb3_contrib" in code:
        pytest.importorskip("sb3_contrib")
    if "envs.rllib" in code:
        pytest.skip("tests/test_rllib.py runs it")
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})


def test_short_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line, comments=True) for block in blocks("bash") for line in block.splitlines()]
    own = [words[1:] for words in commands if words and Path(words[0]).name == "spite-env"]
    assert own
    for words in own:
        assert main(words) == 0, words
    capsys.readouterr()


def test_the_table_of_rules_is_generated() -> None:
    assert Rules.describe() in README


def test_tested_versions_are_the_pinned_ones() -> None:
    pins = dict(re.findall(r"^(\S+)==([^;\s]+)", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE))
    packages = {
        "PettingZoo": ["pettingzoo"],
        "Gymnasium": ["gymnasium"],
        "Stable-Baselines3": ["stable-baselines3", "sb3-contrib"],
        "RLlib": ["ray"],
    }
    table = README.partition("tested version |\n")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([\w-]+).* (\d\S+) \|$", table, flags=re.MULTILINE)
    assert {name for name, _ in rows} == set(packages)
    for name, version in rows:
        assert {pins[package] for package in packages[name]} == {version}, name


def test_result_tables_are_those_that_the_scripts_wrote() -> None:
    results = re.findall(r"<!-- (experiments/results/\S+\.md) -->\n(.*?)<!-- end -->", README, flags=re.DOTALL)
    assert results
    for path, table in results:
        assert table.strip() == (ROOT / path).read_text().strip(), path
