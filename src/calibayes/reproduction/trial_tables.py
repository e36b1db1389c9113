"""Table of test errors along lam, averaged over many small training samples (gdt-2004, Table 1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.reproduction.experiment import Results, Settings, task_key
from calibayes.reproduction.procedures import Cleaning, DataEntry
from calibayes.reproduction.result_tables import NumberPair, Report, TableRow, published_table
from calibayes.reproduction.simulations import SubsampleTrials

BLOCK = 10
"""Number of trials in a task."""
QUICK_TRIALS = 4
CROSS_VALIDATED = "CV"
"""Label of the rows in which lam is chosen by cross-validation; they are not in the paper."""


@dataclass(frozen=True)
class TrialData:
    """A data set with its number of training rows and its costs of decisions."""

    entry: DataEntry
    training_rows: int
    costs: tuple[tuple[float, ...], ...] | None = None


@dataclass(frozen=True)
class TrialTable:
    """Test errors of models at several values of lam (rows) on data sets (columns).

    Parameters
    ----------
    models : name -> pairs of label and estimator
    rows : tuple of str
        Labels of the published rows of a model.
    spread : row label -> tolerated difference from the published mean
    trials : int
    directions : int
        Number of directions to which the columns are reduced.
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

    def tasks(self, settings: Settings) -> list[SubsampleTrials]:
        return [
            task
            for data in self._selected(settings)
            for model in self.models
            for task in self._blocks(data, model, settings)
        ]

    def report(self, results: Results, settings: Settings) -> Report:
        data_sets = self._selected(settings)
        by_column = {
            (data.entry.label, model): [
                results[task_key(task)] for task in self._blocks(data, model, settings)
            ]
            for data in data_sets
            for model in self.models
        }
        labels = [data.entry.label for data in data_sets]
        rows = [
            self._row(model, label, labels, by_column)
            for model in self.models
            for label in (*self.rows, CROSS_VALIDATED)
        ]
        return Report(self.paper, self.name, self.title, tuple(rows), self._notes(settings, labels))

    def _selected(self, settings: Settings) -> list[TrialData]:
        return [
            data
            for data in self.data
            if (settings.datasets is None or data.entry.name in settings.datasets)
            and settings.is_available(data.entry.name)
        ]

    def _blocks(self, data: TrialData, model: str, settings: Settings) -> list[SubsampleTrials]:
        numbers = range(settings.repetitions(self.trials, QUICK_TRIALS))
        blocks = [tuple(numbers[first : first + BLOCK]) for first in numbers[::BLOCK]]
        return [
            SubsampleTrials(
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
        by_column: Mapping[tuple[str, str], list[dict[str, Any]]],
    ) -> TableRow:
        name = f"{model} {label}"
        published = published_table(self.paper, self.name).get(name, {})
        pairs = {
            column: NumberPair(
                float(np.mean(np.concatenate([r["loss"][label] for r in by_column[column, model]]))),
                published.get(column),
                self.spread(name),
            )
            for column in columns
        }
        return TableRow(name, pairs)

    def _notes(self, settings: Settings, labels: list[str]) -> tuple[str, ...]:
        missing = [data.entry.label for data in self.data if data.entry.label not in labels]
        notes = [f"{settings.repetitions(self.trials, QUICK_TRIALS)} trials."]
        notes += [f"Data sets not run: {', '.join(missing)}."] if missing else []
        return tuple(notes)
