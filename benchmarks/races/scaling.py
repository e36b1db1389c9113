"""How the time of one calibration pass scales with rows, columns and classes."""

from __future__ import annotations

import csv
from dataclasses import dataclass

import numpy as np

import calibayes as cb
from calibayes.rules import RC
from races import data
from races.timing import one_pass

NAMES = {"n": "rows", "d": "columns", "k": "classes"}


@dataclass(frozen=True)
class Curve:
    """Processor seconds of one pass at several sizes."""

    model: str
    grows: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Slope of the regression line of log time on log size."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


@dataclass(frozen=True)
class ScalingRun:
    """A model, its simulated data, and the sizes, one of which is multiplied by factors."""

    model: type
    recipe: object
    n: int
    d: int
    k: int
    factors: tuple[int, ...] = (1, 2, 4, 8)

    def curves(self, scale, repeats):
        """One curve for each varied size; ``scale`` is the share of the rows to use."""
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


SCALING_RUNS = (
    ScalingRun(cb.CategoricalNB, data.codes, 20_000, 64, 8),
    ScalingRun(cb.GaussianNB, data.numbers, 20_000, 32, 8),
    ScalingRun(cb.LinearDiscriminantAnalysis, data.numbers, 20_000, 64, 8),
    ScalingRun(cb.QuadraticDiscriminantAnalysis, data.ellipses, 8_000, 96, 2),
)
"""Sizes at which a pass takes long compared with its overhead."""


def measure_all(scale=1.0, repeats=3):
    """All curves."""
    return [curve for run in SCALING_RUNS for curve in run.curves(scale, repeats)]


def write_curves(curves, path):
    """Write the curves as CSV, a line for each size."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["model", "grows", "size", "seconds"])
        for curve in curves:
            for size, seconds in zip(curve.sizes, curve.seconds, strict=True):
                writer.writerow([curve.model, curve.grows, size, f"{seconds:.4g}"])


def read_curves(path):
    """The curves that `write_curves` has written."""
    points = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            points.setdefault((line["model"], line["grows"]), []).append(
                (int(line["size"]), float(line["seconds"]))
            )
    return [Curve(*key, *zip(*values, strict=True)) for key, values in points.items()]
