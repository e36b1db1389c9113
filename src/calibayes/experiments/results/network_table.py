"""Errors of several models on simulated networks (slb-2020, Tables 1 to 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.experiments.claims import Claim
from calibayes.experiments.comparison import Figure, Pair, Report, Row
from calibayes.experiments.protocols.networks import NetworkTrials, World
from calibayes.experiments.published import published
from calibayes.experiments.results.cells import key
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings
from calibayes.experiments.signed_ranks import can_tell, not_worse
from calibayes.plots.boxes import boxes

PERCENT = 0.01
BLOCK = 5
"""Trials of a cell."""
QUICK_TRIALS = 2
SHARES = {"balanced": 0.5, "imbalanced": 0.75}


@dataclass(frozen=True)
class NetworkTable:
    """Rows are worlds, shares of the classes and numbers of training rows, columns models.

    Parameters
    ----------
    worlds : label -> world
    models : column -> estimator
    training_rows : numbers of rows; a quick run takes the first alone
    spread : float
        Points of a percent that ours may be off.
    """

    paper: str
    name: str
    title: str
    worlds: Mapping[str, World]
    models: Mapping[str, Any]
    training_rows: tuple[int, ...] = (200, 400, 600, 800, 1000)
    trials: int = 100
    spread: float = 3.0
    reason: str = ""
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()

    def cells(self, settings: Settings) -> list[NetworkTrials]:
        if settings.datasets is not None:  # of a person who asked for data sets alone
            return []
        return [cell for label in self._settings(settings) for cell in self._blocks(*label, settings)]

    def report(self, results: Results, settings: Settings) -> Report:
        if not self.cells(settings):
            return Report(self.paper, self.name, self.title)
        found = {
            " ".join(map(str, label)): self._errors(
                [results[key(cell)] for cell in self._blocks(*label, settings)]
            )
            for label in self._settings(settings)
        }
        rows = tuple(Row(label, self._pairs(label, errors)) for label, errors in found.items())
        trials = settings.repetitions(self.trials, QUICK_TRIALS)
        said = (f"{trials} trials of each setting (the paper: {self.trials}).", *self._said(found, trials))
        figure = Figure(f"{self.paper}-{self.name}", lambda: boxes(found, y="error", columns=5))
        return Report(self.paper, self.name, self.title, rows, (*self.notes, *said), self.reason, (figure,))

    def _said(self, found: Mapping[str, Mapping[str, Sequence[float]]], trials: int) -> list[str]:
        if not can_tell(trials, len(self.models)):
            return ["So few trials tell no models apart: nothing is bold, and no claim is tested."]
        good = {label: not_worse(errors) for label, errors in found.items()}
        best = [f"{name} {sum(name in names for names in good.values())}" for name in self.models]
        return [
            f"Bold: best or not told from the best; of {len(good)} settings: {'; '.join(best)}.",
            *(claim.told(found) for claim in self.claims),
        ]

    def _settings(self, settings: Settings) -> list[tuple[str, str, int]]:
        sizes = self.training_rows[:1] if settings.quick else self.training_rows
        return [(world, share, rows) for world in self.worlds for share in SHARES for rows in sizes]

    def _blocks(self, world: str, share: str, rows: int, settings: Settings) -> list[NetworkTrials]:
        numbers = range(settings.repetitions(self.trials, QUICK_TRIALS))
        models = tuple(self.models.items())
        return [
            NetworkTrials(
                self.worlds[world], models, rows, SHARES[share], tuple(numbers[first : first + BLOCK])
            )
            for first in numbers[::BLOCK]
        ]

    def _errors(self, found: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
        return {name: [error for one in found for error in one["error"][name]] for name in self.models}

    def _pairs(self, label: str, errors: Mapping[str, Sequence[float]]) -> dict[str, Pair]:
        printed = published(self.paper, self.name)[label]
        told = can_tell(min(map(len, errors.values())), len(errors))
        good = not_worse(errors) if told else []
        return {
            name: Pair(
                float(np.mean(values)) / PERCENT,
                printed.get(name),
                spread=self.spread,
                digits=1,
                unit=PERCENT,
                bold=name in good,
            )
            for name, values in errors.items()
        }
