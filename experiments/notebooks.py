"""Run the notebooks and keep what they show, without what differs from run to run.

    python experiments/notebooks.py                                     # all of them, some ten minutes on one core
    python experiments/notebooks.py notebooks/01_quickstart.ipynb

The first cell with code may set parameters, such as numbers of games; tests run the notebooks with smaller ones.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbclient
import nbformat

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def run(path: Path, folder: Path, parameters: Mapping[str, Any] | None = None) -> Any:
    """Run a notebook in a folder, and return it with its outputs.

    Args:
        path: The notebook, which stays as it is.
        folder: Where its code runs.
        parameters: Other values for the names that the cell with the tag ``parameters`` sets.

    Raises:
        ValueError: that cell sets no such name.
        CellExecutionError: the code failed.
    """
    notebook = nbformat.read(path, as_version=4)
    for name, value in (parameters or {}).items():
        count = 0
        for cell in notebook.cells:
            if "parameters" in cell.metadata.get("tags", []):
                cell.source, found = re.subn(rf"^{name} = .*", f"{name} = {value!r}", cell.source, flags=re.MULTILINE)
                count += found
        if not count:
            raise ValueError(f"{path.name} has no parameter {name!r}")
    client = nbclient.NotebookClient(
        notebook, timeout=None, record_timing=False, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of an earlier run
    for output in outputs(notebook):
        if "text/plain" in output.get("data", {}):
            output.data["text/plain"] = re.sub(r" at 0x[0-9a-f]+", "", output.data["text/plain"])
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def outputs(notebook: Any) -> list[Any]:
    """Return all outputs of a notebook's cells."""
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def main() -> None:
    """Run notebooks, and write their outputs into them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, default=NOTEBOOKS, help="default: all")
    for path in parser.parse_args().notebooks:
        print(path.name, flush=True)
        nbformat.write(run(path, path.parent), path)


if __name__ == "__main__":
    main()
