"""Figure of training errors over the iterations on images (rc-probabilistic-2024, Figures 1 to 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.datasets import find_file
from calibayes.experiments.procedures.image_curve import ENDING, ImageCurve
from calibayes.experiments.report import Figure, NumberPair, Report, TableRow
from calibayes.experiments.settings import Settings
from calibayes.experiments.task import task_key
from calibayes.experiments.task_runner import Results
from calibayes.plots import panels

QUICK_IMAGES, QUICK_POOL = 1000, 4


@dataclass(frozen=True)
class ImageFigure:
    """Training errors of several models on one set of images.

    Parameters
    ----------
    images : str
        Name of the set of images; `Settings.datasets` overrides it.
    rows, pool : int
        Number of images, and side of the squares over which pixels are averaged.
    models : label -> estimator
    within_classes : bool
        Whether pixels that are constant within a class are dropped and the others standardized.
    """

    paper: str
    name: str
    title: str
    images: str
    rows: int
    pool: int
    models: Mapping[str, Any]
    within_classes: bool

    def tasks(self, settings: Settings) -> list[ImageCurve]:
        return [task for name in self._sets(settings) for task in self._curves(name, settings).values()]

    def report(self, results: Results, settings: Settings) -> Report:
        results_by_set = {
            name: {label: results[task_key(task)] for label, task in self._curves(name, settings).items()}
            for name in self._sets(settings)
        }
        rows = [
            _row(f"{name}, {label}", result)
            for name, curves in results_by_set.items()
            for label, result in curves.items()
        ]
        figure = Figure(f"{self.paper}-{self.name}", lambda: _draw(results_by_set))
        count, pool = self._size(settings)
        note = (
            f"The 512 ResNet features of the paper are not public. These are raw pixels of {count} images, averaged over "
            f"squares of {pool} x {pool}: the shapes of the curves can be compared, the error levels cannot."
        )
        return Report(
            self.paper,
            self.name,
            self.title,
            tuple(rows),
            (note,),
            figures=(figure,),
        )

    def _sets(self, settings: Settings) -> list[str]:
        names = (self.images,) if settings.datasets is None else settings.datasets
        return [name for name in names if find_file(name, ending=ENDING) is not None]

    def _size(self, settings: Settings) -> tuple[int, int]:
        return (QUICK_IMAGES, QUICK_POOL) if settings.quick else (self.rows, self.pool)

    def _curves(self, name: str, settings: Settings) -> dict[str, ImageCurve]:
        return {
            label: ImageCurve(name, model, *self._size(settings), self.within_classes)
            for label, model in self.models.items()
        }


def _row(label: str, result: dict[str, Any]) -> TableRow:
    if "failed" in result:
        return TableRow(label, {}, result["failed"])
    curve = result["error"]
    errors = {f"iteration {i}": curve[i - 1] for i in (1, 16, 64, 128) if i <= len(curve)}
    pairs = {name: NumberPair(error, unit=0.0) for name, error in errors.items()}
    pairs |= {
        "lowest": NumberPair(min(curve), unit=0.0),
        "at iteration": NumberPair(float(np.argmin(curve)) + 1, unit=0.0, digits=0),
    }
    return TableRow(label, pairs, "; ".join(result["notes"]))


def _draw(results_by_set: Mapping[str, Mapping[str, dict[str, Any]]]) -> Any:
    content = {
        name: {
            label: (np.arange(1, len(result["error"]) + 1), np.asarray(result["error"]))
            for label, result in curves.items()
            if "error" in result
        }
        for name, curves in results_by_set.items()
    }
    return panels(content, columns=1, x="iteration", y="training error")
