"""The list of papers, and the selection of experiments by paper and table."""

from __future__ import annotations

from calibayes.reproduction.experiment import Experiment, Paper
from calibayes.reproduction.papers import (
    gdt_2004,
    generative_models_notes,
    rc_generative_2025,
    rc_probabilistic_2024,
    slb_2020,
)

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
    selected = [
        (entry, experiment)
        for entry, experiment in experiments
        if table is None or experiment.name.lower() == table.lower()
    ]
    if not selected:
        raise ValueError(
            f"{papers[0].name} has no table {table!r}; choose from "
            f"{', '.join(experiment.name for _, experiment in experiments)}"
        )
    return selected
