"""The interface of an experiment, and a paper as a list of experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from calibayes.experiments.report import Report
from calibayes.experiments.settings import Settings
from calibayes.experiments.task import Task
from calibayes.experiments.task_runner import Results


class Experiment(Protocol):
    """A table or figure of a paper: the tasks to compute, and the report made of their results.

    Examples
    --------
    >>> from calibayes.experiments import select_experiments
    >>> paper, experiment = select_experiments("gdt-2004", "1")[0]
    >>> experiment.title
    'Test error of LDA, QDA, Balls1 and Balls2 for several lam, mean over trials'
    """

    @property
    def name(self) -> str:
        """Number of the table or figure in the paper."""

    def tasks(self, settings: Settings) -> Sequence[Task]:
        """The tasks whose results the report needs; none if its data are missing or not selected."""

    def report(self, results: Results, settings: Settings) -> Report:
        """The table or figure, compared with the published one."""


@dataclass(frozen=True)
class Paper:
    """A paper and its experiments.

    Examples
    --------
    >>> from calibayes.experiments import PAPERS
    >>> "gdt-2004" in [paper.name for paper in PAPERS]
    True
    """

    name: str
    title: str
    experiments: tuple[Experiment, ...]
    preface: str = ""
    """Explanation printed before the tables of the paper."""
