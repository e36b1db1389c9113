"""How the time of one pass of calibration grows with rows, columns and classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import calibayes as cb
from calibayes.rules import RC
from races import data
from races.timing import one_pass

NAMES = {"n": "rows", "d": "columns", "k": "classes"}


@dataclass(frozen=True)
class Curve:
    """Seconds of the processor for one pass at several sizes."""

    model: str
    grows: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The slope of the line through logarithms of sizes and times."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


@dataclass(frozen=True)
class Growth:
    """A model, its recipe, and what its sizes are while one of them grows by factors."""

    model: type
    recipe: object
    n: int
    d: int
    k: int
    factors: tuple[int, ...] = (1, 2, 4, 8)

    def curves(self, scale, repeats):
        """One curve for each size; ``scale`` is the share of the rows to take."""
        return [self._curve(name, scale, repeats) for name in NAMES]

    def _curve(self, grows, scale, repeats):
        sizes, seconds = [], []
        for factor in self.factors:
            size = {"n": int(self.n * scale), "d": self.d, "k": self.k}
            size[grows] *= factor
            sizes.append(size[grows])
            seconds.append(self._seconds(size, repeats))
        return Curve(self.model.__name__, grows, tuple(sizes), tuple(seconds))

    def _seconds(self, size, repeats):
        X, y = self.recipe(size["n"], size["d"], size["k"])
        model = self.model(rule=RC(step=0.1), stop=None, max_iter=3)
        return min(one_pass(model, X, y).processor for _ in range(repeats))


GROWTHS = (
    Growth(cb.CategoricalNB, data.codes, 20_000, 64, 8),
    Growth(cb.GaussianNB, data.numbers, 20_000, 32, 8),
    Growth(cb.LinearDiscriminantAnalysis, data.numbers, 20_000, 64, 8),
    Growth(cb.QuadraticDiscriminantAnalysis, data.ellipses, 8_000, 96, 2),
)
"""Sizes at which a pass is long against what it takes to begin one."""


def measured(scale=1.0, repeats=3):
    return [curve for growth in GROWTHS for curve in growth.curves(scale, repeats)]
