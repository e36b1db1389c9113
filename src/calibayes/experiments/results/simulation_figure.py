"""Loss against lam on simulated data, a panel for each world and training size (gdt-2004, Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.experiments.comparison import Figure, Pair, Report, Row
from calibayes.experiments.protocols.simulation import Simulated, SimulatedTrials
from calibayes.experiments.results.cells import key
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings
from calibayes.plots.curves import panels
from calibayes.rules import GDT

BLOCK = 10
"""Runs of a cell."""
QUICK_RUNS = 5


@dataclass(frozen=True)
class SimulationFigure:
    """Medians over many runs."""

    paper: str
    name: str
    title: str
    worlds: tuple[tuple[str, Simulated], ...]
    model: Any
    lams: tuple[float, ...]
    training_rows: tuple[int, ...]
    test_rows: int
    runs: int
    notes: tuple[str, ...] = ()

    def cells(self, settings: Settings) -> list[SimulatedTrials]:
        if settings.datasets is not None:  # of a person who asked for data sets alone
            return []
        return [
            cell
            for _, world in self.worlds
            for rows in self.training_rows
            for cell in self._blocks(world, rows, settings)
        ]

    def report(self, results: Results, settings: Settings) -> Report:
        medians = {
            (label, rows): self._medians(results, world, rows, settings)
            for label, world in self.worlds
            for rows in self.training_rows
        }
        lines = [
            Row(f"{label}, {rows} rows", self._pairs(values)) for (label, rows), values in medians.items()
        ]
        said = f"Medians of {settings.repetitions(self.runs, QUICK_RUNS)} runs, test samples of {self.test_rows} rows."
        figure = Figure(f"{self.paper}-{self.name}", lambda: self._draw(medians))
        return Report(self.paper, self.name, self.title, tuple(lines), (*self.notes, said), figures=(figure,))

    def _blocks(self, world: Simulated, rows: int, settings: Settings) -> list[SimulatedTrials]:
        numbers = range(settings.repetitions(self.runs, QUICK_RUNS))
        models = tuple((str(lam), self._at(lam)) for lam in self.lams)
        return [
            SimulatedTrials(world, models, rows, self.test_rows, tuple(numbers[first : first + BLOCK]))
            for first in numbers[::BLOCK]
        ]

    def _at(self, lam: float) -> Any:
        return type(self.model)(**(self.model.get_params(deep=False) | {"rule": GDT(lam=lam)}))

    def _medians(self, results: Results, world: Simulated, rows: int, settings: Settings) -> Array:
        found = [results[key(cell)]["loss"] for cell in self._blocks(world, rows, settings)]
        return np.array(
            [np.median(np.concatenate([losses[str(lam)] for losses in found])) for lam in self.lams]
        )

    def _pairs(self, values: Array) -> dict[str, Pair]:
        pairs = {
            f"lam {lam:g}": Pair(float(value), unit=0.0, digits=4)
            for lam, value in zip(self.lams, values, strict=True)
        }
        best = self.lams[int(np.argmin(values))]
        return {**pairs, "best lam": Pair(best, unit=0.0, digits=2)}

    def _draw(self, medians: Mapping[tuple[str, int], Array]) -> Any:
        curves = {
            f"{label}, {rows} rows": {"": (np.array(self.lams), values)}
            for (label, rows), values in medians.items()
        }
        return panels(
            curves, columns=len(self.training_rows), x="lam (1: generative, 0: discriminative)", y="log loss"
        )
