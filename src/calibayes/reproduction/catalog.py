"""The list of papers, and the selection of experiments by paper and table."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from calibayes.datasets import is_local, load
from calibayes.datasets.download import SOURCES
from calibayes.reproduction.experiment import Experiment, Paper, ResultCache, Settings, run_tasks, task_key
from calibayes.reproduction.papers import (
    gdt_2004,
    generative_models_notes,
    rc_generative_2025,
    rc_probabilistic_2024,
    slb_2020,
)
from calibayes.reproduction.result_tables import ExperimentReport

PAPERS: tuple[Paper, ...] = (
    rc_probabilistic_2024.PAPER,
    rc_generative_2025.PAPER,
    gdt_2004.PAPER,
    generative_models_notes.PAPER,
    slb_2020.PAPER,
)


def select_experiments(paper: str | None = None, table: str | None = None) -> list[tuple[Paper, Experiment]]:
    """All experiments, those of one paper, or one table or figure of it.

    Raises ValueError if there is no such paper or table.

    >>> [experiment.name for _, experiment in select_experiments("rc-probabilistic-2024", "II")]
    ['II']
    """
    papers = [entry for entry in PAPERS if paper is None or entry.name == paper]
    if not papers:
        raise ValueError(f"unknown paper {paper!r}; choose from {', '.join(entry.name for entry in PAPERS)}")
    experiments = [(entry, experiment) for entry in papers for experiment in entry.experiments]
    selected = [pair for pair in experiments if table is None or pair[1].name.lower() == table.lower()]
    if not selected:
        raise ValueError(
            f"{papers[0].name} has no table {table!r}; choose from "
            f"{', '.join(experiment.name for _, experiment in experiments)}"
        )
    return selected


def _ignore(count: int) -> None:
    """Default of the progress callbacks."""


def reproduce(
    experiments: Sequence[tuple[Paper, Experiment]],
    settings: Settings,
    cache: ResultCache,
    *,
    jobs: int = 1,
    on_total: Callable[[int], None] = _ignore,
    on_finished: Callable[[int], None] = _ignore,
) -> list[ExperimentReport]:
    """Run the tasks whose results are not cached, and report all experiments.

    Parameters
    ----------
    experiments : pairs of paper and experiment
        See `select_experiments`.
    settings : Settings
    cache : ResultCache
        Results are read from it and written to it.
    jobs : int
        Number of processes.
    on_total, on_finished : functions of int
        Progress callbacks: called with the number of tasks, and with the number of tasks finished since the last call.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from calibayes.reproduction import Settings, select_experiments
    >>> with TemporaryDirectory() as folder:
    ...     cache = ResultCache(Path(folder))
    ...     reports = reproduce(select_experiments("gdt-2004", "1"), Settings(datasets=("no-such-table",)), cache)
    >>> reports[0].title
    'not run'
    """
    tasks_by_experiment = [experiment.tasks(settings) for _, experiment in experiments]
    tasks = [task for group in tasks_by_experiment for task in group]
    for name in sorted({name for task in tasks for name in task.inputs()}):
        if name in SOURCES and not is_local(name):
            load(name)  # once, before several processes need it
    on_total(len({task_key(task) for task in tasks}))
    results = run_tasks(tasks, cache, jobs, on_finished)
    notes = ("Its data sets are not available or were not selected.",)
    return [
        experiment.report(results, settings)
        if group
        else ExperimentReport(paper.name, experiment.name, "not run", notes=notes)
        for (paper, experiment), group in zip(experiments, tasks_by_experiment, strict=True)
    ]
