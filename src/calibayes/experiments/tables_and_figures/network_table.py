"""Table of errors of several models on simulated networks (slb-2020, Tables 1 to 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.experiments.paper_claims import Claim
from calibayes.experiments.picture_numbers import BoxNumbers
from calibayes.experiments.procedures.random_networks import GraphSampler, NetworkTrials
from calibayes.experiments.published_tables import published_table
from calibayes.experiments.report import Figure, NumberPair, Report, TableRow
from calibayes.experiments.settings import Settings
from calibayes.experiments.signed_ranks import can_be_significant, not_significantly_worse
from calibayes.experiments.task import task_key
from calibayes.experiments.task_runner import Results

PERCENT = 0.01
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
                float(np.mean(values)) / PERCENT,
                published.get(name),
                spread=self.spread,
                digits=1,
                unit=PERCENT,
                bold=name in best,
            )
            for name, values in errors.items()
        }
