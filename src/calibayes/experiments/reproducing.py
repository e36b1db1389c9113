"""From what was asked for to reports: all cells in one go, since tables share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from calibayes.datasets import at_hand, load
from calibayes.datasets.sources import SOURCES
from calibayes.experiments.comparison import Report
from calibayes.experiments.experiment import Experiment, Paper
from calibayes.experiments.results.cells import key
from calibayes.experiments.running import run_cells
from calibayes.experiments.settings import Settings
from calibayes.experiments.store import Store


def _nothing(count: int) -> None:
    pass


def reproduce(
    experiments: Sequence[tuple[Paper, Experiment]],
    settings: Settings,
    store: Store,
    *,
    jobs: int = 1,
    planned: Callable[[int], None] = _nothing,
    done: Callable[[int], None] = _nothing,
) -> list[Report]:
    """Run what is not kept yet and report.

    Parameters
    ----------
    experiments : as `chosen` gives them
    settings : Settings
    store : Store
        Where finished cells are kept and found.
    jobs : int
        Processes.
    planned, done : functions
        Told how many cells there are, and how many more are finished.
    """
    needed = [experiment.cells(settings) for _, experiment in experiments]
    cells = [cell for some in needed for cell in some]
    _fetch({name for cell in cells for name in cell.inputs()})
    planned(len({key(cell) for cell in cells}))
    results = run_cells(cells, store, jobs, done)
    return [
        experiment.report(results, settings) if some else _not_run(paper, experiment)
        for (paper, experiment), some in zip(experiments, needed, strict=True)
    ]


def _not_run(paper: Paper, experiment: Experiment) -> Report:
    note = "None of the data that it needs is at hand, or was asked for."
    return Report(paper.name, experiment.name, "not run", notes=(note,))


def _fetch(names: set[str]) -> None:
    """Download what is not at hand, once, before several processes ask for it."""
    for name in sorted(names):
        if name in SOURCES and not at_hand(name):
            load(name)
