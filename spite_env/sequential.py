"""A sequential test between two policies: it plays until one is shown better, or both equal within a margin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Pairs before the first look, and the share of further pairs before each later one.
FIRST_LOOK, GROWTH = 32, 0.25

#: Squared deviation added to that of the pairs, so that a few equal results don't pass for certainty.
PRIOR_DEVIATION = 4.0


@dataclass(frozen=True)
class SequentialTest:
    """Decides between "the first is better", "the second is better" and "both are equal within a margin".

    Three values of the true margin, which is (wins - losses) / games, are weighed against one another: ``-margin``, 0
    and ``margin``, by the likelihood ratios of 0 with each of the other two (Sobel and Wald, A sequential decision
    procedure for choosing one of three hypotheses, Annals of Mathematical Statistics 20, 1949, 502-522). A pair's
    result counts as normal, with the variance of the pairs so far. One side is better once its ratio exceeds
    ``2 / alpha``, both are equal once both ratios are below ``beta``. By Ville's inequality such bounds hold at all
    looks together, however often one looks; the approximations above are checked by simulation in the tests.

    Where the truth lies between 0 and the margin, both "better" and "equal within the margin" are right.

    Attributes:
        margin: What counts as equal.
        alpha: The largest probability of calling one side better that is not.
        beta: The largest probability of calling sides equal whose true margin is ``margin`` or more.

    Raises:
        ValueError: a number out of range.
    """

    margin: float = 0.05
    alpha: float = 0.05
    beta: float = 0.05

    def __post_init__(self) -> None:
        for name, most in (("margin", 1.0), ("alpha", 0.5), ("beta", 0.5)):
            value = getattr(self, name)
            if not 0 < value < most:
                raise ValueError(f"{name}={value!r} is not allowed; it is a number between 0 and {most:g}")

    def looks(self, most: int) -> Iterator[int]:
        """Yield the numbers of pairs after which to ask for a verdict; ``most`` is the last one."""
        pairs = FIRST_LOOK
        while pairs < most:
            yield pairs
            pairs = math.ceil(pairs * (1 + GROWTH))
        yield most

    def verdict(self, margins: NDArray[np.float64]) -> str | None:
        """Return ``"first"``, ``"second"``, ``"equal"``, or None if more pairs are needed.

        Args:
            margins: The mean result of each pair so far, from -1 to 1, float64 ``(pairs,)``.
        """
        mean, count = float(margins.mean()), margins.size
        variance = (float(((margins - mean) ** 2).sum()) + PRIOR_DEVIATION) / count
        ratios = [count * self.margin * (side * mean - self.margin / 2) / variance for side in (1, -1)]
        for name, ratio in zip(("first", "second"), ratios, strict=True):
            if ratio > math.log(2 / self.alpha):
                return name
        return "equal" if max(ratios) < math.log(self.beta) else None
