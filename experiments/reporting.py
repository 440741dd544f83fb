"""What every measuring script writes beside its figures."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("spite_env", "numpy", "gymnasium", "pettingzoo", "torch", "stable_baselines3", "sb3_contrib", "ray")


def machine() -> dict[str, Any]:
    """Return what the figures depend on: the command, the processor, and the versions."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
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


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
