"""Balanced errors of several models on data sets (slb-2020, Table 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from calibayes.experiments.claims import Claim
from calibayes.experiments.comparison import Figure, Pair, Report, Row
from calibayes.experiments.protocols.balanced_folds import BalancedFolds
from calibayes.experiments.protocols.data_entry import Cleaning, DataEntry
from calibayes.experiments.published import published
from calibayes.experiments.results.cells import key
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings
from calibayes.experiments.signed_ranks import can_tell, not_worse
from calibayes.plots.boxes import boxes

PERCENT = 0.01
CLOSE = 2.5
"""Points of a percent that the mean over fold seeds may be off: one run moves by two to six with the split."""


@dataclass(frozen=True)
class FoldTable:
    """Rows are data sets, columns models; all models see the same folds.

    Parameters
    ----------
    models : column -> estimator
    seeds : int
        How many seeds of folds.
    against : str
        The published table.
    reasons : label -> why this row differs
    """

    paper: str
    name: str
    title: str
    entries: tuple[DataEntry, ...]
    models: Mapping[str, Any]
    against: str = "4"
    seeds: int = 3
    reasons: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    notes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()

    def cells(self, settings: Settings) -> list[BalancedFolds]:
        return [
            cell
            for entry in self._chosen(settings)
            for cells in self._of(entry, settings).values()
            for cell in cells
        ]

    def report(self, results: Results, settings: Settings) -> Report:
        found = {
            entry.label: {
                name: [error for cell in cells for error in results[key(cell)].get("balanced", [])]
                for name, cells in self._of(entry, settings).items()
            }
            for entry in self._chosen(settings)
        }
        rows = [
            Row(label, self._pairs(label, errors), self.reasons.get(label, ""))
            for label, errors in found.items()
        ]
        notes = (*self.notes, *self._agreement(rows), *self._said(found))
        figure = Figure(f"{self.paper}-{self.name}", lambda: boxes(found, y="balanced error"))
        lines = (*rows, *([_average(rows)] if rows else []))
        return Report(self.paper, self.name, self.title, lines, notes, self.reason, (figure,) if rows else ())

    def _chosen(self, settings: Settings) -> list[DataEntry]:
        sizes = {label: row["rows"] for label, row in published(self.paper, self.against).items()}
        return settings.choose(self.entries, sizes)

    def _of(self, entry: DataEntry, settings: Settings) -> dict[str, list[BalancedFolds]]:
        seeds = range(settings.repetitions(self.seeds, 1))
        return {
            name: [BalancedFolds(entry, Cleaning(), model, seed) for seed in seeds]
            for name, model in self.models.items()
        }

    def _pairs(self, label: str, errors: Mapping[str, Sequence[float]]) -> dict[str, Pair]:
        printed = published(self.paper, self.against)[label]
        good = not_worse(errors) if can_tell(min(map(len, errors.values())), len(errors)) else []
        return {
            name: Pair(
                float(np.mean(values)) / PERCENT if values else None,
                printed.get(name),
                spread=CLOSE,
                digits=1,
                unit=PERCENT,
                bold=name in good,
            )
            for name, values in errors.items()
        }

    def _agreement(self, rows: Sequence[Row]) -> list[str]:
        told = []
        for name in self.models:
            pairs = [row.pairs[name] for row in rows if row.pairs[name].compared]
            if pairs:
                told.append(f"{name} on {sum(not pair.differs for pair in pairs)} of {len(pairs)}")
        return [f"Within {CLOSE} points of the printed error: {'; '.join(told)}."] if told else []

    def _said(self, found: Mapping[str, Mapping[str, Sequence[float]]]) -> list[str]:
        whole = {label: errors for label, errors in found.items() if all(errors.values())}
        good = {label: not_worse(errors) for label, errors in whole.items()}
        counts = [f"{name} {sum(name in names for names in good.values())}" for name in self.models]
        told = "signed ranks over all folds of all seeds, two-sided, Bonferroni"
        return [
            f"Bold: best or not told from the best ({told}); of {len(good)} data sets: {'; '.join(counts)}.",
            *(claim.told(whole) for claim in self.claims),
        ]


def _average(rows: Sequence[Row]) -> Row:
    """Over the data sets."""

    def mean(name: str, side: str) -> float | None:
        values = [getattr(row.pairs[name], side) for row in rows]
        return None if any(value is None for value in values) else float(np.mean(values))

    pairs = {
        name: Pair(mean(name, "ours"), mean(name, "published"), spread=float("inf"), digits=1, unit=0.0)
        for name in rows[0].pairs
    }
    return Row("mean", pairs)
