"""The notebooks run, and what is committed of their outputs is whole and small."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

import nbformat

from experiments.notebooks import NOTEBOOKS, outputs, run

#: Parameters of a short run, all that a notebook has.
QUICK: dict[str, dict[str, Any]] = {
    "01_quickstart": {},
    "02_train_and_evaluate": {"steps": 8_000, "games_of_duel": 20},
    "03_search_and_hidden_cards": {"worlds_of_search": 10, "num_positions": 80, "worlds_of_estimate": 4},
    "04_how_the_game_plays": {"num_games": 400, "num_games_of_others": 200, "num_deals": 100},
}

LARGEST = 300_000  # bytes

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def complaints(notebook: Any) -> list[Any]:
    """Return what cells wrote where warnings go, and errors."""
    return [output for output in outputs(notebook) if output.get("name") == "stderr" or "ename" in output]


def test_every_notebook_is_known() -> None:
    assert [path.stem for path in NOTEBOOKS] == list(QUICK)


@each_notebook
def test_it_runs(path: Path, tmp_path: Path) -> None:
    if path.stem.startswith("02"):
        pytest.importorskip("sb3_contrib")
    notebook = run(path, tmp_path, QUICK[path.stem])
    assert not complaints(notebook)


@each_notebook
def test_its_parameters_are_those_of_the_short_run(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    cells = [cell.source for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    assert re.findall(r"^(\w+) = ", "\n".join(cells), flags=re.MULTILINE) == list(QUICK[path.stem])


@each_notebook
def test_its_committed_outputs_are_whole_and_small(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert path.stat().st_size < LARGEST
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))  # one run from top to bottom
    assert outputs(notebook)
    assert not complaints(notebook)


@each_notebook
def test_nothing_in_it_tells_of_the_run(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert not [cell.id for cell in notebook.cells if "execution" in cell.metadata]  # times
    for output in outputs(notebook):
        for text in [output.get("text", ""), *map(str, output.get("data", {}).values())]:
            assert not re.search(r" at 0x|(^|[\s'\"(])(/|[A-Z]:\\)\w+", text), text[:200]


def test_an_unknown_parameter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"04_how_the_game_plays\.ipynb has no parameter 'games'"):
        run(NOTEBOOKS[3], tmp_path, {"games": 1})
