"""Figure of training errors over the iterations on images (rc-probabilistic-2024, Figures 1 to 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.datasets import find_file
from calibayes.plots import panels
from calibayes.reproduction.experiment import Results, Settings, task_key
from calibayes.reproduction.picture_numbers import CurveNumbers
from calibayes.reproduction.result_tables import Figure, NumberPair, Report, TableRow
from calibayes.reproduction.simulations import ENDING, ImageCurve, SimulatedTrials, Simulation
from calibayes.rules import GDT

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


# -- Figure of log loss against lam on simulated data (gdt-2004, Figure 1) -----------------------------------

BLOCK = 10
"""Number of runs in a task."""
QUICK_RUNS = 5


@dataclass(frozen=True)
class SimulationFigure:
    """Median log loss over many runs; a panel for each simulation and number of training rows."""

    paper: str
    name: str
    title: str
    simulations: tuple[tuple[str, Simulation], ...]
    model: Any
    lams: tuple[float, ...]
    training_rows: tuple[int, ...]
    test_rows: int
    runs: int
    notes: tuple[str, ...] = ()

    def tasks(self, settings: Settings) -> list[SimulatedTrials]:
        if settings.datasets is not None:  # simulations use no data set
            return []
        return [
            task
            for _, simulation in self.simulations
            for rows in self.training_rows
            for task in self._blocks(simulation, rows, settings)
        ]

    def report(self, results: Results, settings: Settings) -> Report:
        medians = {
            (label, rows): self._medians(results, simulation, rows, settings)
            for label, simulation in self.simulations
            for rows in self.training_rows
        }
        table_rows = [
            TableRow(f"{label}, {rows} rows", self._pairs(values))
            for (label, rows), values in medians.items()
        ]
        runs = settings.repetitions(self.runs, QUICK_RUNS)
        notes = (*self.notes, f"Medians of {runs} runs with test samples of {self.test_rows} rows.")
        figure = Figure.of(f"{self.paper}-{self.name}", self._numbers(medians))
        return Report(self.paper, self.name, self.title, tuple(table_rows), notes, figures=(figure,))

    def _blocks(self, simulation: Simulation, rows: int, settings: Settings) -> list[SimulatedTrials]:
        numbers = range(settings.repetitions(self.runs, QUICK_RUNS))
        models = tuple((str(lam), self._model_at(lam)) for lam in self.lams)
        return [
            SimulatedTrials(simulation, models, rows, self.test_rows, tuple(numbers[first : first + BLOCK]))
            for first in numbers[::BLOCK]
        ]

    def _model_at(self, lam: float) -> Any:
        return type(self.model)(**(self.model.get_params(deep=False) | {"rule": GDT(lam=lam)}))

    def _medians(self, results: Results, simulation: Simulation, rows: int, settings: Settings) -> Array:
        losses_by_block = [
            results[task_key(task)]["loss"] for task in self._blocks(simulation, rows, settings)
        ]
        return np.array(
            [np.median(np.concatenate([losses[str(lam)] for losses in losses_by_block])) for lam in self.lams]
        )

    def _pairs(self, values: Array) -> dict[str, NumberPair]:
        pairs = {
            f"lam {lam:g}": NumberPair(float(value), unit=0.0, digits=4)
            for lam, value in zip(self.lams, values, strict=True)
        }
        best = self.lams[int(np.argmin(values))]
        return {**pairs, "best lam": NumberPair(best, unit=0.0, digits=2)}

    def _numbers(self, medians: Mapping[tuple[str, int], Array]) -> CurveNumbers:
        curves = {
            f"{label}, {rows} rows": {"": (self.lams, values.tolist())}
            for (label, rows), values in medians.items()
        }
        return CurveNumbers(
            curves, x="lam (1: generative, 0: discriminative)", y="log loss", columns=len(self.training_rows)
        )
