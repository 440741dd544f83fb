"""Measure decisions a second with random legal play: the core, the doors into it, and other libraries.

Everything is measured in one run by one protocol, see `experiments.measuring`: on one core, in processor time, after a
warm-up, in turns. Figures are medians of the repeats, the spread is from the slowest to the fastest. What counts as a
decision is said in `experiments.players` and, for the other libraries, in `experiments.peers`. A library that is not
there, or does not run, keeps its row, with the reason.

    python experiments/benchmark.py
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments import peers, players
from experiments.measuring import Player, Remote, Subject, UnavailableError, measure, pin_to_one_core, timed
from experiments.options import destination, from_on
from experiments.reporting import machine, write_results
from spite_env.heatmap import check_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rates = Mapping[str, list[float]]

OURS, THEIRS = "#2166ac", "#b35806"


def table(
    subjects: Mapping[str, Subject], rates: Rates, versions: Mapping[str, str], missing: Mapping[str, str]
) -> list[dict[str, str]]:
    """Return a row for each subject that stands in the table.

    Args:
        subjects: By name, in the order of the rows.
        rates: The decisions a second of those that were measured.
        versions: The versions of other libraries' subjects.
        missing: Why the others were not measured.
    """
    rows = []
    for name, subject in subjects.items():
        if subject.listed:
            rate = rates.get(name)
            rows.append(
                {
                    "subject": name,
                    "version": versions.get(name, ""),
                    "made at each decision": subject.makes,
                    "decisions a second": f"{np.median(rate):,.0f}" if rate else f"not measured: {missing[name]}",
                    "spread": f"{min(rate):,.0f} to {max(rate):,.0f}" if rate else "",
                }
            )
    return rows


def draw_core(path: Path, rates: Rates, ended: Mapping[str, float]) -> None:
    """Draw how the core's speed depends on the batch size, and its cost on the share of games that end in each step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    curves = (
        (None, "mask, choice, step", OURS),
        ("compact", "+ compact observation", "#4d4d4d"),
        ("onehot", "+ one-hot observation", THEIRS),
    )
    for encoding, label, color in curves:
        names = list(players.curve(encoding).values())
        band(left, players.BATCHES, [np.array(rates[name]) for name in names], label, color)
    left.set_xscale("log")
    left.set_xticks(players.BATCHES, [f"{batch:,}" for batch in players.BATCHES], rotation=30)
    left.minorticks_off()
    left.set_xlabel("batch size")
    left.set_yscale("log")
    left.set_ylabel("decisions a second")

    names = [*players.by_length().values(), players.curve(None)[4096]]
    shares = [ended[name] for name in names]
    band(right, shares, [1e9 / np.array(rates[name]) for name in names], "games cut after 1 to 32 decisions", OURS)
    right.axvline(shares[-1], color="gray", linestyle=":", label="whole games of random play")
    right.set_xscale("log")
    right.set_xlabel("share of the games that end in each step (batch 4,096)")
    right.set_ylim(bottom=0)
    right.set_ylabel("nanoseconds a decision")
    for axes in (left, right):
        axes.legend()
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=100)


def band(axes: Axes, places: Any, values: Any, label: str, color: str) -> None:
    """Draw medians as a line, and the spread around it."""
    axes.plot(places, [np.median(value) for value in values], "o-", markersize=4, label=label, color=color)
    lowest, highest = [value.min() for value in values], [value.max() for value in values]
    axes.fill_between(places, lowest, highest, alpha=0.2, color=color, linewidth=0)


def draw_subjects(path: Path, rows: list[dict[str, str]], rates: Rates) -> None:
    """Draw the rates of the table, ours and others', as bars."""
    from matplotlib.figure import Figure

    names = [row["subject"] for row in rows if row["subject"] in rates][::-1]
    medians = np.array([np.median(rates[name]) for name in names])
    spread = [medians - [min(rates[name]) for name in names], [max(rates[name]) for name in names] - medians]
    figure = Figure(figsize=(10, 1 + 0.28 * len(names)), layout="constrained")
    axes = figure.subplots()
    colors = [OURS if name in players.SUBJECTS else THEIRS for name in names]
    axes.barh(names, medians, xerr=spread, color=colors, ecolor="black")
    for place, name in enumerate(names):
        text = f"{medians[place]:,.0f}"
        axes.annotate(text, (max(rates[name]), place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(medians.min() / 3, medians.max() * 8)
    axes.set_xlabel("decisions a second on one core (blue: this library; orange: others)")
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=100)


def main() -> None:
    """Measure every subject, and write the table and the plots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=from_on(1), default=5)
    parser.add_argument(
        "--seconds", type=from_on(1e-6), default=1.0, help="about how long each subject plays in each repeat"
    )
    parser.add_argument("--peers", default=".venv-peers/bin/python", help="a Python that has the other libraries")
    parser.add_argument(
        "--out", type=destination, default="runs/benchmark", help="where the files go, without an ending"
    )
    options = parser.parse_args()
    check_matplotlib()
    pin_to_one_core()

    ours: dict[str, Player] = {}
    theirs: dict[str, Remote] = {}
    missing: dict[str, str] = {}
    for name, subject in players.SUBJECTS.items():
        try:
            ours[name] = subject.make()
        except ImportError as error:
            missing[name] = str(error)
    with ExitStack() as stack:
        for name in peers.SUBJECTS:
            try:
                theirs[name] = stack.enter_context(Remote(options.peers, peers.__name__, name))
            except UnavailableError as error:
                missing[name] = str(error)
        rates = measure({name: timed(play) for name, play in ours.items()} | theirs, options.repeats, options.seconds)

    versions = {name: remote.version for name, remote in theirs.items()}
    cores = {name: play for name, play in ours.items() if isinstance(play, players.CorePlayer)}
    ended = {name: play.ended / play.made for name, play in cores.items()}
    rows = table({**players.SUBJECTS, **peers.SUBJECTS}, rates, versions, missing)
    details = {"machine": machine(), "rates": rates, "ended": ended, "versions": versions, "missing": missing}
    print(write_results(options.out, rows, details))
    draw_core(options.out.with_name(options.out.name + "_core.png"), rates, ended)
    draw_subjects(options.out.with_suffix(".png"), rows, rates)


if __name__ == "__main__":
    main()
