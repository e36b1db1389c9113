"""What a paper's entry is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from calibayes.experiments.comparison import Report
from calibayes.experiments.results.cells import Cell
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings


class Experiment(Protocol):
    """A table or figure: which cells it needs, and what it makes of their results."""

    @property
    def name(self) -> str:
        """As the paper numbers it."""

    def cells(self, settings: Settings) -> Sequence[Cell]:
        """What to compute."""

    def report(self, results: Results, settings: Settings) -> Report:
        """The table, ours beside the published one."""


@dataclass(frozen=True)
class Paper:
    """A paper and its experiments."""

    name: str
    title: str
    experiments: tuple[Experiment, ...]
    preface: str = ""
    """What a reader must know before its tables."""
