"""Figure of log loss against lam on simulated data (gdt-2004, Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.experiments.picture_numbers import CurveNumbers
from calibayes.experiments.procedures.simulation import SimulatedTrials, Simulation
from calibayes.experiments.report import Figure, NumberPair, Report, TableRow
from calibayes.experiments.settings import Settings
from calibayes.experiments.task import task_key
from calibayes.experiments.task_runner import Results
from calibayes.rules import GDT

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
