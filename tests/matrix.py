"""Run the tests on every other supported Python and on the oldest supported dependencies: `make test-matrix`.

Each run has a virtual environment of its own with the extra `dev`, and `fast` but for the oldest dependencies; tests
that need more are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import metadata, requires
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
THIS = "{}.{}".format(*sys.version_info)
LANGUAGE = "Programming Language :: Python :: "
PYTHONS = [line.removeprefix(LANGUAGE) for line in metadata("spite-env").get_all("Classifier", []) if LANGUAGE in line]
OLDEST = [line.replace(">=", "==") for line in requires("spite-env") or [] if "extra ==" not in line]
RAY = ["gymnasium==1.2.2"]  # the version that Ray's RLlib insists on


def find_python(version: str) -> str | None:
    """Return a working interpreter of this version, from PATH or else from pyenv."""
    candidates = [shutil.which(f"python{version}")]
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=True).stdout.strip()
        candidates += map(str, sorted(Path(root, "versions").glob(f"{version}.*/bin/python")))
    # A shim of pyenv may be on PATH and yet refuse to run.
    probe = ["-c", "import ensurepip, venv"]
    return next((c for c in candidates if c and not subprocess.run([c, *probe], capture_output=True).returncode), None)


def constraints(overrides: list[str]) -> str:
    """Return the project's constraints with some of them replaced."""
    replaced = {line.split("==")[0] for line in overrides}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return "\n".join([line for line in lines if line.split("==")[0] not in replaced] + overrides)


def run(python: str, overrides: list[str]) -> bool:
    """Install the project into an empty environment, run its tests there and return whether all went well."""
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder, "constraints.txt")
        pins.write_text(constraints(overrides))
        inside = f"{folder}/venv/bin/python"
        extras = "dev" if overrides == OLDEST else "dev,fast"
        commands = (
            [python, "-m", "venv", f"{folder}/venv"],
            [inside, "-m", "pip", "install", "--quiet", "--constraint", str(pins), "--editable", f"{ROOT}[{extras}]"],
            [inside, "-m", "pytest", "-n", "auto", "--dist", "loadgroup"],
        )
        return all(subprocess.run(command, cwd=ROOT).returncode == 0 for command in commands)


def main() -> int:
    """Run everything, print a line a run and return the exit status."""
    found = {version: sys.executable if version == THIS else find_python(version) for version in PYTHONS}
    oldest = next(version for version in PYTHONS if found[version])
    runs = [(version, []) for version in PYTHONS if version != THIS] + [(oldest, OLDEST), (THIS, RAY)]
    outcomes = []
    for version, overrides in runs:
        title = " ".join([f"Python {version}", *overrides])
        print(f"\n==== {title}", flush=True)
        python = found[version]
        outcome = "NOT FOUND" if python is None else "passed" if run(python, overrides) else "FAILED"
        outcomes.append((title, outcome))

    print("\n==== summary")
    for title, outcome in outcomes:
        print(f"{outcome:10}{title}")
    return int(any(outcome == "FAILED" for _, outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
