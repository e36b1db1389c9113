"""All papers, and finding what a person asked for."""

from __future__ import annotations

from calibayes.experiments.experiment import Experiment, Paper
from calibayes.experiments.papers import (
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


def chosen(paper: str | None = None, table: str | None = None) -> list[tuple[Paper, Experiment]]:
    """The experiments of a paper, or one of them, or all of all papers.

    >>> [experiment.name for _, experiment in chosen("rc-probabilistic-2024", "II")]
    ['II']
    """
    papers = [one for one in PAPERS if paper is None or one.name == paper]
    if not papers:
        raise ValueError(f"unknown paper {paper!r}; there are {', '.join(one.name for one in PAPERS)}")
    every = [(one, experiment) for one in papers for experiment in one.experiments]
    found = [pair for pair in every if table is None or pair[1].name.lower() == table.lower()]
    if not found:
        raise ValueError(
            f"{papers[0].name} has no table {table!r} here; there are {', '.join(e.name for _, e in every)}"
        )
    return found
