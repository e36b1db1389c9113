"""How much of a paper to reproduce."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from calibayes.datasets import at_hand
from calibayes.datasets.sources import SOURCES
from calibayes.experiments.protocols.data_entry import DataEntry

QUICK_ROWS = 2000
"""Data sets with more rows are left out of a quick run."""


@dataclass(frozen=True)
class Settings:
    """What the person asked for.

    Parameters
    ----------
    datasets : names, optional
        Only these, by their names in `calibayes.datasets`.
    trials : int, optional
        Repetitions of each experiment that has any, instead of the paper's number.
    quick : bool
        Small data sets and few repetitions only.
    download : bool
        Whether data sets that are not at hand are fetched.
    """

    datasets: tuple[str, ...] | None = None
    trials: int | None = None
    quick: bool = False
    download: bool = False

    def choose(self, entries: Iterable[DataEntry], rows: dict[str, float]) -> list[DataEntry]:
        """The entries to run; ``rows`` are the published sizes by label."""
        return [
            entry
            for entry in entries
            if (self.datasets is None or entry.name in self.datasets)
            and (not self.quick or rows[entry.label] <= QUICK_ROWS)
            and self.reachable(entry.name)
        ]

    def reachable(self, name: str) -> bool:
        """Whether a data set is at hand, or may be fetched and can be."""
        return at_hand(name) or (self.download and name in SOURCES)

    def repetitions(self, of_the_paper: int, quickly: int) -> int:
        """How many trials to run."""
        return self.trials or (quickly if self.quick else of_the_paper)
