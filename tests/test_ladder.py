"""The ladder's script, with a few games."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("choix")

from experiments import ladder


def test_the_quick_ladder_of_some_agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "SLOW", ("hoarder",))
    words = ["--quick", "--workers", "1", "--results", str(tmp_path / "runs" / "a.jsonl"), "--out", str(tmp_path / "a")]
    monkeypatch.setattr("sys.argv", ["ladder.py", "greedy", "random", "hoarder", *words])
    ladder.main()
    header, rule, *rows = (tmp_path / "a.md").read_text().splitlines()[:5]
    assert header.startswith("| agent | rating | against ")
    assert rule == "| --- | --- | --- | --- | --- |"
    assert sorted(row.split(" | ")[0] for row in rows) == ["| greedy", "| hoarder", "| random"]
    assert sum(row.count("drawn") for row in rows) == 6
    played = json.loads((tmp_path / "a.json").read_text())["tournament"]["duels"]
    assert {"hoarder" in duel["players"]: duel["games"] for duel in played} == {True: 4, False: 40}

    written = (tmp_path / "runs" / "a.jsonl").read_text()
    monkeypatch.setattr("sys.argv", [*sys.argv, "--resume"])
    ladder.main()
    assert (tmp_path / "runs" / "a.jsonl").read_text() == written


def test_all_built_in_agents_are_on_the_ladder() -> None:
    assert {"random", "greedy", "hoarder"} <= set(ladder.BUILT_IN)
