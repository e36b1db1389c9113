"""Run experiments: collect their tasks, compute each distinct task once, and make the reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from calibayes.datasets import is_local, load
from calibayes.datasets.sources import SOURCES
from calibayes.reproduction.experiment import Experiment, Paper, ResultCache, Settings, run_tasks, task_key
from calibayes.reproduction.result_tables import Report


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
) -> list[Report]:
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
    _download({name for task in tasks for name in task.inputs()})
    on_total(len({task_key(task) for task in tasks}))
    results = run_tasks(tasks, cache, jobs, on_finished)
    return [
        experiment.report(results, settings) if group else _not_run(paper, experiment)
        for (paper, experiment), group in zip(experiments, tasks_by_experiment, strict=True)
    ]


def _not_run(paper: Paper, experiment: Experiment) -> Report:
    note = "Its data sets are not available or were not selected."
    return Report(paper.name, experiment.name, "not run", notes=(note,))


def _download(names: set[str]) -> None:
    """Download missing data sets once, before several processes need them."""
    for name in sorted(names):
        if name in SOURCES and not is_local(name):
            load(name)
