"""Training errors over many iterations on images (rc-probabilistic-2024, Figures 1 to 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.datasets import find
from calibayes.experiments.comparison import Figure, Pair, Report, Row
from calibayes.experiments.protocols.images import ENDING, ImageCurve
from calibayes.experiments.results.cells import key
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings
from calibayes.plots import panels

QUICK_IMAGES, QUICK_POOL = 1000, 4


@dataclass(frozen=True)
class ImageFigure:
    """Curves of several models on one set of images.

    Parameters
    ----------
    images : str
        The set to use unless others are asked for.
    rows, pool : int
        How many images, and the side of the squares over which pixels are averaged.
    models : label -> estimator
    within_classes : bool
        Whether pixels that are constant within a class are left out and the others standardized.
    """

    paper: str
    name: str
    title: str
    images: str
    rows: int
    pool: int
    models: Mapping[str, Any]
    within_classes: bool

    def cells(self, settings: Settings) -> list[ImageCurve]:
        return [cell for name in self._sets(settings) for cell in self._curves(name, settings).values()]

    def report(self, results: Results, settings: Settings) -> Report:
        found = {
            name: {label: results[key(cell)] for label, cell in self._curves(name, settings).items()}
            for name in self._sets(settings)
        }
        rows = [
            _row(f"{name}, {label}", result)
            for name, curves in found.items()
            for label, result in curves.items()
        ]
        figure = Figure(f"{self.paper}-{self.name}", lambda: _drawn(found))
        count, pool = self._size(settings)
        note = (
            f"The paper's 512 ResNet features are not public. Here are raw pixels of {count} images, averaged over "
            f"squares of {pool} x {pool}: the curves' shapes compare, their heights do not."
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
        wanted = (self.images,) if settings.datasets is None else settings.datasets
        return [name for name in wanted if find(name, ending=ENDING) is not None]

    def _size(self, settings: Settings) -> tuple[int, int]:
        return (QUICK_IMAGES, QUICK_POOL) if settings.quick else (self.rows, self.pool)

    def _curves(self, name: str, settings: Settings) -> dict[str, ImageCurve]:
        return {
            label: ImageCurve(name, model, *self._size(settings), self.within_classes)
            for label, model in self.models.items()
        }


def _row(label: str, result: dict[str, Any]) -> Row:
    if "failed" in result:
        return Row(label, {}, result["failed"])
    curve = result["error"]
    marks = {f"iteration {place}": curve[place - 1] for place in (1, 16, 64, 128) if place <= len(curve)}
    pairs = {name: Pair(value, unit=0.0) for name, value in marks.items()}
    pairs |= {
        "least": Pair(min(curve), unit=0.0),
        "at": Pair(float(np.argmin(curve)) + 1, unit=0.0, digits=0),
    }
    return Row(label, pairs, "; ".join(result["notes"]))


def _drawn(found: Mapping[str, Mapping[str, dict[str, Any]]]) -> Any:
    content = {
        name: {
            label: (np.arange(1, len(result["error"]) + 1), np.asarray(result["error"]))
            for label, result in curves.items()
            if "error" in result
        }
        for name, curves in found.items()
    }
    return panels(content, columns=1, x="iteration", y="training error")
