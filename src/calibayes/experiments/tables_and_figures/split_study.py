"""Models on the same random splits of the same data sets, and means over the splits (rc-generative-2025)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.experiments.procedures.data_entry import Cleaning, DataEntry
from calibayes.experiments.procedures.held_out import HeldOutSplit
from calibayes.experiments.published_tables import published_table
from calibayes.experiments.settings import Settings
from calibayes.experiments.task import task_key
from calibayes.experiments.task_runner import Results

PARTS = ("training", "test")
"""Parts of a split."""
QUICK_SPLITS = 2


@dataclass(frozen=True)
class SplitStudy:
    """Data sets, models and splits that several tables share.

    Parameters
    ----------
    entries : tuple of DataEntry
    models : name -> estimator
    standardize : bool
        Whether columns are standardized by the training rows.
    splits : int
        Number of random splits.
    """

    paper: str
    entries: tuple[DataEntry, ...]
    models: Mapping[str, Any]
    standardize: bool
    splits: int

    def entries_to_run(self, settings: Settings) -> list[DataEntry]:
        """The data sets that the settings select."""
        sizes = {label: row["rows"] for label, row in published_table(self.paper, "2").items()}
        return settings.select(self.entries, sizes)

    def tasks(self, settings: Settings, models: Sequence[str]) -> list[HeldOutSplit]:
        """The tasks of these models on all selected data sets."""
        return [
            task
            for entry in self.entries_to_run(settings)
            for model in models
            for task in self._model_tasks(entry, model, settings)
        ]

    def model_results(
        self, results: Results, entry: DataEntry, model: str, settings: Settings
    ) -> list[dict[str, Any]]:
        """Results of one model on one data set, one for each split."""
        return [results[task_key(task)] for task in self._model_tasks(entry, model, settings)]

    def errors(self, results: Results, models: Sequence[str], part: str, settings: Settings) -> Array:
        """Mean errors of these models over the splits, (data sets, models)."""
        return np.array(
            [
                [mean(self.model_results(results, entry, model, settings), part) for model in models]
                for entry in self.entries_to_run(settings)
            ]
        )

    def _model_tasks(self, entry: DataEntry, model: str, settings: Settings) -> list[HeldOutSplit]:
        count = settings.repetitions(self.splits, QUICK_SPLITS)
        return [
            HeldOutSplit(entry, Cleaning(), self.models[model], split, self.standardize)
            for split in range(count)
        ]


def mean(results: Sequence[Mapping[str, Any]], name: str) -> float:
    """Mean of an entry over the splits; NaN if a fit failed."""
    return float(np.mean([result.get(name, np.nan) for result in results]))


def mean_reach(calibrated: Sequence[Mapping[str, Any]], rival: Sequence[Mapping[str, Any]]) -> float | None:
    """Mean over the splits of the first iteration, from 1, with a soft error not above the rival's lowest.

    None if there is no such iteration in some split.
    """
    iterations = []
    for calibrated_result, rival_result in zip(calibrated, rival, strict=True):
        below = np.asarray(calibrated_result["soft_error"]) <= min(rival_result["soft_error"])
        if not below.any():
            return None
        iterations.append(int(np.argmax(below)) + 1)
    return float(np.mean(iterations))
