"""What every measuring script writes beside its figures."""

from __future__ import annotations

import csv
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from spite_env.arena import DuelResult
from spite_env.tables import COLUMNS, duel_cells

PACKAGES = (
    "spite_env",
    "numpy",
    "numba",
    "gymnasium",
    "pettingzoo",
    "torch",
    "stable_baselines3",
    "sb3_contrib",
    "ray",
)


def machine() -> dict[str, Any]:
    """Return what the figures depend on: the command, the processor, and the versions."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    if "torch" in sys.modules:  # trainings round as the processor's instructions do
        versions["torch"] += f" ({sys.modules['torch'].backends.cpu.get_cpu_capability()})"
    return {
        "command": " ".join(["python", *sys.argv]),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": versions,
    }


def write_results(path: str | Path, rows: Sequence[Mapping[str, str]], details: Mapping[str, Any]) -> str:
    """Write a table as ``path.md``, and the details behind it as ``path.json``.

    Returns:
        The Markdown text.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(rows[0])
    lines = [columns, ["---"] * len(columns), *([row[column] for column in columns] for row in rows)]
    about = details["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    text += f"\n\n`{about['command']}` on {about['cores']} x {about['processor']}, {about['system']}, "
    text += f"Python {about['python']}, {versions}\n"
    path.with_suffix(".md").write_text(text)
    path.with_suffix(".json").write_text(json.dumps({**details, "rows": list(rows)}, indent=2) + "\n")
    return text


def write_duels(path: str | Path, results: Sequence[DuelResult], details: Mapping[str, Any]) -> str:
    """Write the table of some duels, and what else there is to say, beside the machine, as `write_results` does."""
    rows = [dict(zip(COLUMNS, duel_cells(result), strict=True)) for result in results]
    duels = [result.to_dict() for result in results]
    return write_results(path, rows, {"machine": machine(), **details, "duels": duels})


def write_curve(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a learning curve as CSV, a row a line."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
