"""Table of balanced errors by cross-validation: data sets in rows, models in columns (slb-2020, Table 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibayes.reproduction.claims import Claim, can_be_significant, not_significantly_worse
from calibayes.reproduction.experiment import Results, Settings, task_key
from calibayes.reproduction.picture_numbers import BoxNumbers
from calibayes.reproduction.procedures import BalancedFolds, Cleaning, DataEntry
from calibayes.reproduction.result_tables import Figure, NumberPair, Report, TableRow, published_table
from calibayes.reproduction.simulations import GraphSampler, NetworkTrials

PERCENT = 0.01
CLOSE = 2.5
"""Tolerated difference in percentage points; errors of a single seed vary by two to six between splits."""


@dataclass(frozen=True)
class FoldTable:
    """Balanced errors of models (columns) on data sets (rows); all models use the same folds.

    Parameters
    ----------
    models : column -> estimator
    seeds : int
        Number of seeds of the folds.
    published_name : str
        Number of the published table.
    reasons : label -> why the row differs from the published one
    reason : str
        The same for rows without a reason of their own.
    claims : tuple of Claim
        Claims of the paper to check.
    """

    paper: str
    name: str
    title: str
    entries: tuple[DataEntry, ...]
    models: Mapping[str, Any]
    published_name: str = "4"
    seeds: int = 3
    reasons: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()

    def tasks(self, settings: Settings) -> list[BalancedFolds]:
        return [
            task
            for entry in self._entries(settings)
            for tasks in self._tasks(entry, settings).values()
            for task in tasks
        ]

    def report(self, results: Results, settings: Settings) -> Report:
        errors_by_row = {
            entry.label: {
                name: [error for task in tasks for error in results[task_key(task)].get("balanced", [])]
                for name, tasks in self._tasks(entry, settings).items()
            }
            for entry in self._entries(settings)
        }
        rows = [
            TableRow(label, self._pairs(label, errors), self.reasons.get(label, ""))
            for label, errors in errors_by_row.items()
        ]
        notes = (*self.notes, *self._agreement(rows), *self._significance(errors_by_row))
        figure = Figure.of(f"{self.paper}-{self.name}", BoxNumbers(errors_by_row, y="balanced error"))
        all_rows = (*rows, *([_mean_row(rows)] if rows else []))
        return Report(
            self.paper, self.name, self.title, all_rows, notes, self.reason, (figure,) if rows else ()
        )

    def _entries(self, settings: Settings) -> list[DataEntry]:
        sizes = {
            label: row["rows"] for label, row in published_table(self.paper, self.published_name).items()
        }
        return settings.select(self.entries, sizes)

    def _tasks(self, entry: DataEntry, settings: Settings) -> dict[str, list[BalancedFolds]]:
        seeds = range(settings.repetitions(self.seeds, 1))
        return {
            name: [BalancedFolds(entry, Cleaning(), model, seed) for seed in seeds]
            for name, model in self.models.items()
        }

    def _pairs(self, label: str, errors: Mapping[str, Sequence[float]]) -> dict[str, NumberPair]:
        published = published_table(self.paper, self.published_name)[label]
        best = (
            not_significantly_worse(errors)
            if can_be_significant(min(map(len, errors.values())), len(errors))
            else []
        )
        return {
            name: NumberPair(
                float(np.mean(values)) / PERCENT if values else None,
                published.get(name),
                spread=CLOSE,
                digits=1,
                unit=PERCENT,
                bold=name in best,
            )
            for name, values in errors.items()
        }

    def _agreement(self, rows: Sequence[TableRow]) -> list[str]:
        counts = []
        for name in self.models:
            pairs = [row.pairs[name] for row in rows if row.pairs[name].compared]
            if pairs:
                counts.append(f"{name} on {sum(not pair.differs for pair in pairs)} of {len(pairs)}")
        if not counts:
            return []
        return [f"Within {CLOSE} percentage points of the published error: {'; '.join(counts)}."]

    def _significance(self, errors_by_row: Mapping[str, Mapping[str, Sequence[float]]]) -> list[str]:
        complete = {label: errors for label, errors in errors_by_row.items() if all(errors.values())}
        best = {label: not_significantly_worse(errors) for label, errors in complete.items()}
        counts = [f"{name} {sum(name in names for names in best.values())}" for name in self.models]
        bold = (
            "Bold: lowest mean error, or not significantly different from it (two-sided signed-rank tests over all folds "
            f"of all seeds, Bonferroni). Bold on how many of {len(best)} data sets: {'; '.join(counts)}."
        )
        return [
            bold,
            *(claim.check(complete) for claim in self.claims),
        ]


def _mean_row(rows: Sequence[TableRow]) -> TableRow:
    """Means over the data sets."""

    def mean(name: str, side: str) -> float | None:
        values = [getattr(row.pairs[name], side) for row in rows]
        return None if any(value is None for value in values) else float(np.mean(values))

    pairs = {
        name: NumberPair(mean(name, "ours"), mean(name, "published"), spread=float("inf"), digits=1, unit=0.0)
        for name in rows[0].pairs
    }
    return TableRow("mean", pairs)


# -- Table of errors of several models on simulated networks (slb-2020, Tables 1 to 3) -----------------------

PERCENT_OF_ERRORS = 0.01
BLOCK = 5
"""Number of trials in a task."""
QUICK_TRIALS = 2
SHARES = {"balanced": 0.5, "imbalanced": 0.75}
"""Share of the first class among the training rows."""


@dataclass(frozen=True)
class NetworkTable:
    """Errors of models (columns) for each combination of graphs, class balance and number of training rows (rows).

    Parameters
    ----------
    samplers : label -> sampler of graphs
    models : column -> estimator
    training_rows : tuple of int
        Numbers of training rows; a quick run uses only the first.
    spread : float
        Tolerated difference in percentage points.
    reason : str
        Why numbers may differ from the published ones.
    claims : tuple of Claim
        Claims of the paper to check.
    """

    paper: str
    name: str
    title: str
    samplers: Mapping[str, GraphSampler]
    models: Mapping[str, Any]
    training_rows: tuple[int, ...] = (200, 400, 600, 800, 1000)
    trials: int = 100
    spread: float = 3.0
    reason: str = ""
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()

    def tasks(self, settings: Settings) -> list[NetworkTrials]:
        if settings.datasets is not None:  # simulations use no data set
            return []
        return [task for label in self._conditions(settings) for task in self._blocks(*label, settings)]

    def report(self, results: Results, settings: Settings) -> Report:
        if not self.tasks(settings):
            return Report(self.paper, self.name, self.title)
        errors_by_row = {
            " ".join(map(str, label)): self._errors(
                [results[task_key(task)] for task in self._blocks(*label, settings)]
            )
            for label in self._conditions(settings)
        }
        rows = tuple(TableRow(label, self._pairs(label, errors)) for label, errors in errors_by_row.items())
        trials = settings.repetitions(self.trials, QUICK_TRIALS)
        notes = (
            *self.notes,
            f"{trials} trials of each condition (the paper: {self.trials}).",
            *self._significance(errors_by_row, trials),
        )
        figure = Figure.of(f"{self.paper}-{self.name}", BoxNumbers(errors_by_row, y="error", columns=5))
        return Report(self.paper, self.name, self.title, rows, notes, self.reason, (figure,))

    def _significance(
        self, errors_by_row: Mapping[str, Mapping[str, Sequence[float]]], trials: int
    ) -> list[str]:
        if not can_be_significant(trials, len(self.models)):
            return [
                "With so few trials no difference can be significant: nothing is bold, and no claim is checked."
            ]
        best = {label: not_significantly_worse(errors) for label, errors in errors_by_row.items()}
        counts = [f"{name} {sum(name in names for names in best.values())}" for name in self.models]
        bold = (
            "Bold: lowest mean error, or not significantly different from it (two-sided signed-rank tests, Bonferroni). "
            f"Bold in how many of {len(best)} conditions: {'; '.join(counts)}."
        )
        return [
            bold,
            *(claim.check(errors_by_row) for claim in self.claims),
        ]

    def _conditions(self, settings: Settings) -> list[tuple[str, str, int]]:
        sizes = self.training_rows[:1] if settings.quick else self.training_rows
        return [(sampler, balance, rows) for sampler in self.samplers for balance in SHARES for rows in sizes]

    def _blocks(self, sampler: str, balance: str, rows: int, settings: Settings) -> list[NetworkTrials]:
        numbers = range(settings.repetitions(self.trials, QUICK_TRIALS))
        models = tuple(self.models.items())
        return [
            NetworkTrials(
                self.samplers[sampler], models, rows, SHARES[balance], tuple(numbers[first : first + BLOCK])
            )
            for first in numbers[::BLOCK]
        ]

    def _errors(self, results: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
        return {
            name: [error for result in results for error in result["error"][name]] for name in self.models
        }

    def _pairs(self, label: str, errors: Mapping[str, Sequence[float]]) -> dict[str, NumberPair]:
        published = published_table(self.paper, self.name)[label]
        testable = can_be_significant(min(map(len, errors.values())), len(errors))
        best = not_significantly_worse(errors) if testable else []
        return {
            name: NumberPair(
                float(np.mean(values)) / PERCENT_OF_ERRORS,
                published.get(name),
                spread=self.spread,
                digits=1,
                unit=PERCENT_OF_ERRORS,
                bold=name in best,
            )
            for name, values in errors.items()
        }
