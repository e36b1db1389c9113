"""What models did on the splits of data sets: averages, spreads, ranks (rc-generative-2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.experiments.protocols.data_entry import Cleaning, DataEntry
from calibayes.experiments.protocols.held_out import HeldOut
from calibayes.experiments.published import published
from calibayes.experiments.results.cells import key
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings

QUICK_SPLITS = 2


@dataclass(frozen=True)
class Splits:
    """Models on the same splits of the same data sets.

    Parameters
    ----------
    entries : data sets
    models : name -> estimator
    standardize : bool
        Columns, by the training rows.
    splits : int
        How many there are.
    """

    paper: str
    entries: tuple[DataEntry, ...]
    models: Mapping[str, Any]
    standardize: bool
    splits: int

    def chosen(self, settings: Settings) -> list[DataEntry]:
        """The data sets to run."""
        sizes = {label: row["rows"] for label, row in published(self.paper, "2").items()}
        return settings.choose(self.entries, sizes)

    def cells(self, settings: Settings, models: Sequence[str]) -> list[HeldOut]:
        """The cells of some models."""
        return [
            cell
            for entry in self.chosen(settings)
            for model in models
            for cell in self.of(entry, model, settings)
        ]

    def of(self, entry: DataEntry, model: str, settings: Settings) -> list[HeldOut]:
        """The cells of one model on one data set, a split each."""
        count = settings.repetitions(self.splits, QUICK_SPLITS)
        return [
            HeldOut(entry, Cleaning(), self.models[model], split, self.standardize) for split in range(count)
        ]

    def found(
        self, results: Results, entry: DataEntry, model: str, settings: Settings
    ) -> list[dict[str, Any]]:
        """Results of one model on one data set."""
        return [results[key(cell)] for cell in self.of(entry, model, settings)]

    def errors(self, results: Results, models: Sequence[str], part: str, settings: Settings) -> Array:
        """Mean errors of some models, (data sets, models)."""
        return np.array(
            [
                [mean(self.found(results, entry, model, settings), part) for model in models]
                for entry in self.chosen(settings)
            ]
        )


def mean(found: Sequence[Mapping[str, Any]], name: str) -> float:
    """Over the splits; NaN where a model refused one of them."""
    return float(np.mean([result.get(name, np.nan) for result in found]))


def mean_reach(calibrated: Sequence[Mapping[str, Any]], rival: Sequence[Mapping[str, Any]]) -> float | None:
    """Iterations, from 1, until the soft error is no higher than the rival's least; where that is so in all splits."""
    reached = []
    for ours, theirs in zip(calibrated, rival, strict=True):
        below = np.asarray(ours["soft_error"]) <= min(theirs["soft_error"])
        if not below.any():
            return None
        reached.append(int(np.argmax(below)) + 1)
    return float(np.mean(reached))
