"""Which data sets to run and how many repetitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from calibayes.datasets import is_local
from calibayes.datasets.sources import SOURCES
from calibayes.experiments.procedures.data_entry import DataEntry

QUICK_ROWS = 2000
"""A quick run omits data sets with more rows."""


@dataclass(frozen=True)
class Settings:
    """The extent of a run.

    Parameters
    ----------
    datasets : names, optional
        Run only these data sets, by their names in `calibayes.datasets`.
    trials : int, optional
        Number of repetitions; by default as in the paper.
    quick : bool
        Run only small data sets and few repetitions.
    download : bool
        Download data sets that are not on this computer; by default they are omitted.

    Examples
    --------
    >>> Settings(trials=3).repetitions(100, 2)
    3
    """

    datasets: tuple[str, ...] | None = None
    trials: int | None = None
    quick: bool = False
    download: bool = False

    def select(self, entries: Iterable[DataEntry], rows: dict[str, float]) -> list[DataEntry]:
        """The entries to run; ``rows`` are the published numbers of rows by label."""
        return [
            entry
            for entry in entries
            if (self.datasets is None or entry.name in self.datasets)
            and (not self.quick or rows[entry.label] <= QUICK_ROWS)
            and self.is_available(entry.name)
        ]

    def is_available(self, name: str) -> bool:
        """Whether a data set is on this computer or may be downloaded."""
        return is_local(name) or (self.download and name in SOURCES)

    def repetitions(self, published: int, quick: int) -> int:
        """Number of repetitions, given that of the paper and that of a quick run."""
        return self.trials or (quick if self.quick else published)
