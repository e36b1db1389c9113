"""Models by lam against data sets, averaged over many small training samples (gdt-2004, Table 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.experiments.comparison import Pair, Report, Row
from calibayes.experiments.protocols.data_entry import Cleaning, DataEntry
from calibayes.experiments.protocols.trials import Trials
from calibayes.experiments.published import published
from calibayes.experiments.results.cells import key
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings

BLOCK = 10
"""Trials of a cell."""
QUICK_TRIALS = 4
CHOSEN = "CV"


@dataclass(frozen=True)
class TrialData:
    """A data set, its training size and its costs."""

    entry: DataEntry
    training_rows: int
    costs: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True)
class TrialTable:
    """Rows are models at values of lam, columns data sets.

    Parameters
    ----------
    models : name -> labeled estimators
    rows : labels of the published rows of a model
    spread : row -> how far apart ours and the published average may be
    """

    paper: str
    name: str
    title: str
    data: tuple[TrialData, ...]
    models: Mapping[str, tuple[tuple[str, Any], ...]]
    rows: tuple[str, ...]
    spread: Callable[[str], float]
    trials: int
    directions: int

    def cells(self, settings: Settings) -> list[Trials]:
        return [
            cell
            for data in self._chosen(settings)
            for model in self.models
            for cell in self._blocks(data, model, settings)
        ]

    def report(self, results: Results, settings: Settings) -> Report:
        chosen = self._chosen(settings)
        found = {
            (data.entry.label, model): [results[key(cell)] for cell in self._blocks(data, model, settings)]
            for data in chosen
            for model in self.models
        }
        labels = [data.entry.label for data in chosen]
        rows = [
            self._row(model, label, labels, found) for model in self.models for label in (*self.rows, CHOSEN)
        ]
        return Report(self.paper, self.name, self.title, tuple(rows), self._notes(settings, labels))

    def _chosen(self, settings: Settings) -> list[TrialData]:
        return [
            data
            for data in self.data
            if (settings.datasets is None or data.entry.name in settings.datasets)
            and settings.reachable(data.entry.name)
        ]

    def _blocks(self, data: TrialData, model: str, settings: Settings) -> list[Trials]:
        numbers = range(settings.repetitions(self.trials, QUICK_TRIALS))
        blocks = [tuple(numbers[first : first + BLOCK]) for first in numbers[::BLOCK]]
        return [
            Trials(
                data.entry,
                Cleaning(),
                self.models[model],
                data.training_rows,
                self.directions,
                block,
                data.costs,
            )
            for block in blocks
        ]

    def _row(
        self,
        model: str,
        label: str,
        columns: list[str],
        found: Mapping[tuple[str, str], list[dict[str, Any]]],
    ) -> Row:
        name = f"{model} {label}"
        printed = published(self.paper, self.name).get(name, {})
        pairs = {
            column: Pair(
                float(np.mean(np.concatenate([r["loss"][label] for r in found[column, model]]))),
                printed.get(column),
                self.spread(name),
            )
            for column in columns
        }
        return Row(name, pairs)

    def _notes(self, settings: Settings, labels: list[str]) -> tuple[str, ...]:
        gone = [data.entry.label for data in self.data if data.entry.label not in labels]
        said = [f"{settings.repetitions(self.trials, QUICK_TRIALS)} trials."]
        said += [f"Not run: {', '.join(gone)}."] if gone else []
        return tuple(said)
