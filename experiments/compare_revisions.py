"""Compare the speed of two revisions of this library: the median of the ratios of interleaved pairs, and their spread.

Both revisions are played by the players of this checkout, each in a process of its own, in turns on one core. What else
the machine does strikes both alike, so ratios hold where rates don't; where it does much, a few percent are noise all
the same. A subject that a revision lacks is left out, with a note.

    python experiments/compare_revisions.py main            # against what lies in the working tree
    python experiments/compare_revisions.py v0.1.0 main
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from experiments import players
from experiments.measuring import ROOT, Remote, UnavailableError, measure, pin_to_one_core
from experiments.options import destination, from_on
from experiments.reporting import machine, write_results

SUBJECTS = ("core, batch 1", "core, batch 256", "core, batch 4096", "AEC raw_env", "Gymnasium, batch 1024")


def export(revision: str, folder: Path, repository: Path = ROOT) -> Path:
    """Write the library as it is in a revision into a new folder, and return that.

    Raises:
        ValueError: there is no such revision, or no library in it.
    """
    command = ["git", "-C", str(repository), "archive", "--format=zip", "--end-of-options", revision, "spite_env"]
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        raise ValueError(f"{revision!r} is no revision with a spite_env: {done.stderr.decode().strip()}")
    zipfile.ZipFile(io.BytesIO(done.stdout)).extractall(folder)
    return folder


def row(subject: str, base: Sequence[float], head: Sequence[float]) -> dict[str, str]:
    """Return a subject as a row of the table, from the rates of its pairs."""
    ratios = np.array(head) / np.array(base)
    return {
        "subject": subject,
        "base, decisions a second": f"{np.median(base):,.0f}",
        "head, decisions a second": f"{np.median(head):,.0f}",
        "head / base": f"{np.median(ratios):.3f}",
        "spread": f"{ratios.min():.3f} to {ratios.max():.3f}",
    }


def compare(base: Path, head: Path, subjects: Sequence[str], pairs: int, seconds: float) -> list[dict[str, str]]:
    """Measure the libraries in two folders, and return the rows of the table."""
    ready: dict[tuple[str, str], Remote] = {}
    with ExitStack() as stack:
        for subject in subjects:
            both: dict[tuple[str, str], Remote] = {}
            for side, folder in {"base": base, "head": head}.items():
                try:
                    remote = Remote(sys.executable, players.__name__, subject, folder)
                except UnavailableError as error:
                    print(f"left out: {subject}, which the {side} lacks: {error}", file=sys.stderr)
                else:
                    both[subject, side] = stack.enter_context(remote)
            if len(both) == 2:
                ready |= both
        rates = measure(ready, pairs, seconds)
    return [row(subject, rates[subject, "base"], rates[subject, "head"]) for subject, side in ready if side == "base"]


def main() -> None:
    """Compare the two revisions that the command line names, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", help="a revision, as git names it")
    parser.add_argument("head", nargs="?", help="another; default: the working tree")
    parser.add_argument("--pairs", type=from_on(1), default=11)
    parser.add_argument(
        "--seconds", type=from_on(1e-6), default=0.5, help="about how long each subject plays in each turn"
    )
    parser.add_argument(
        "--out", type=destination, default="runs/compare_revisions", help="where the .json and .md files go"
    )
    options = parser.parse_args()
    if not options.base:
        parser.error("which revision to compare with? make bench-compare BASE=main, or BASE=v0.1.0 HEAD=main")
    pin_to_one_core()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            base = export(options.base, Path(scratch, "base"))
            head = export(options.head, Path(scratch, "head")) if options.head else ROOT
        except ValueError as error:
            parser.error(str(error))
        rows = compare(base, head, SUBJECTS, options.pairs, options.seconds)
    if not rows:
        parser.error("the two have no subject in common")
    print(write_results(options.out, rows, {"machine": machine()}))


if __name__ == "__main__":
    main()
