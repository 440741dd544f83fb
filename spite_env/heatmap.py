"""A tournament as a picture."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spite_env.tournament import TournamentResult


def check_matplotlib() -> None:
    """Raise ImportError where matplotlib is not installed; the message says how to install it."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'spite_env[render]'") from error


def save_heatmap(path: str | os.PathLike[str], result: TournamentResult) -> None:
    """Draw each policy's margin against each other one, the best policy first; below it the share of draws.

    The colours go from orange (-1) over white to blue (+1), which colour-blind readers tell apart. The ending of
    ``path``, such as ``.png`` or ``.svg``, says what kind of file it is.

    Raises:
        ImportError: matplotlib is not installed; the message says how to install it.
    """
    check_matplotlib()
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    names = result.names
    margins = np.full((len(names), len(names)), np.nan)
    figure = Figure(figsize=(2.5 + 1.1 * len(names), 1.5 + 0.8 * len(names)), layout="constrained")
    axes = figure.subplots()
    axes.set_facecolor("lightgray")
    for row, name in enumerate(names):
        for column, other in enumerate(names):
            if name != other:
                duel = result.duel(name, other)
                margins[row, column] = duel.margin
                text = f"{duel.margin:+.2f}\n{(duel.draws + duel.truncated) / duel.games:.0%} drawn"
                color = "white" if abs(duel.margin) > 0.7 else "black"
                axes.text(column, row, text, ha="center", va="center", fontsize=8, color=color)
    colors = LinearSegmentedColormap.from_list("margin", ["#b35806", "#ffffff", "#2166ac"])
    image = axes.imshow(margins, cmap=colors, vmin=-1, vmax=1, aspect="auto")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), [f"{item.name} ({item.rating:+.0f})" for item in result.ratings])
    axes.set_xlabel("against")
    figure.colorbar(image, label="(wins - losses) / games")
    figure.savefig(path, dpi=150)
