"""Tables of training and test errors over random splits (rc-generative-2025, Tables 3, 5, 7, 9, 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.experiments.comparison import Figure, Pair, Report, Row
from calibayes.experiments.protocols.data_entry import DataEntry
from calibayes.experiments.protocols.held_out import HeldOut
from calibayes.experiments.published import published
from calibayes.experiments.results.split_results import Splits, mean, mean_reach
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings
from calibayes.plots import plot_ranks
from calibayes.ranks import average_ranks, rank_summary

PARTS = ("training", "test")

AT_ONCE = 2.5
"""Iterations, the start included, below which calibration has ended at once."""
SINGULAR = "a covariance is singular: ours has a prior on that class"
GOES_ON = "the published RC ends at once; ours holds back what would become invalid and goes on"


@dataclass(frozen=True)
class SplitTable:
    """Methods as the paper has them, and what else the library offers.

    Parameters
    ----------
    methods : column -> name of a model
        Those of the paper; the last one is what calibration is to reach.
    further : column -> name of a model
        Shown with their test errors alone.
    counted : methods that have a column of iterations
    """

    name: str
    title: str
    splits: Splits
    methods: Mapping[str, str]
    further: Mapping[str, str]
    counted: tuple[str, ...]
    notes: tuple[str, ...] = ()
    reason: str = ""

    def cells(self, settings: Settings) -> list[HeldOut]:
        return self.splits.cells(settings, [*self.methods.values(), *self.further.values()])

    def report(self, results: Results, settings: Settings) -> Report:
        chosen = self.splits.chosen(settings)
        rows = [self._row(entry, results, settings) for entry in chosen]
        rows.append(self._ranks(results, settings))
        told, figures = self._tests(results, settings)
        return Report(
            self.splits.paper,
            self.name,
            self.title,
            tuple(rows),
            (*self.notes, *told),
            self.reason,
            figures,
        )

    def _row(self, entry: DataEntry, results: Results, settings: Settings) -> Row:
        printed = published(self.splits.paper, self.name)[entry.label]
        found = {
            method: self.splits.found(results, entry, model, settings)
            for method, model in {**self.methods, **self.further}.items()
        }
        pairs: dict[str, Pair] = {}
        for method in self.methods:
            for part in PARTS:
                name = f"{method} {part}"
                pairs[name] = _percent(mean(found[method], part), printed, name)
            if method in self.counted:
                pairs[f"{method} iter"] = _iterations(mean(found[method], "iter"), printed, f"{method} iter")
        failed = [result["failed"] for runs in found.values() for result in runs if "failed" in result]
        if not failed:
            pairs["reach"] = _iterations(
                mean_reach(found["RC"], found[list(self.methods)[-1]]), printed, "reach"
            )
        pairs |= {f"{method} test": _percent(mean(found[method], "test"), {}, "") for method in self.further}
        return Row(entry.label, pairs, "; ".join(_reasons(found, pairs["RC iter"], failed)))

    def _ranks(self, results: Results, settings: Settings) -> Row:
        """Average ranks over these data sets; the published ones are over all of the paper's."""
        printed = published(self.splits.paper, self.name).get("average", {})
        pairs = {}
        for part in PARTS:
            ranks = average_ranks(
                np.round(self.splits.errors(results, list(self.methods.values()), part, settings), 12)
            )
            for method, rank in zip(self.methods, ranks, strict=True):
                name = f"{method} {part}"
                pairs[name] = Pair(float(rank), printed.get(name), spread=float("inf"), digits=2, unit=0.0)
        return Row("average rank", pairs)

    def _tests(self, results: Results, settings: Settings) -> tuple[list[str], tuple[Figure, ...]]:
        """Friedman's and Wilcoxon's tests of the test errors of all methods."""
        every = {**self.methods, **self.further}
        if len(every) < 3 or len(self.splits.chosen(settings)) < 3:
            return [], ()
        errors = self.splits.errors(results, list(every.values()), "test", settings)
        found = rank_summary(np.round(errors, 12), list(every))
        pairs = [
            f"{b if a == 'RC' else a} p = {p:.3f}"
            for (a, b), p in zip(found.pairs, found.pair_p, strict=True)
            if "RC" in (a, b)
        ]
        said = (
            f"Test errors over {found.rows} data sets: Friedman p = {found.friedman_p:.4f}; "
            f"Wilcoxon with Holm's correction, RC against {', '.join(pairs)}; "
            f"critical difference of average ranks {found.critical_difference:.2f}."
        )
        figure = Figure(f"{self.splits.paper}-{self.name}-ranks", lambda: plot_ranks(found).figure)
        return [said], (figure,)


def _percent(error: float, printed: Mapping[str, float], name: str) -> Pair:
    spread = printed.get(f"{name} ±", 0.0)
    return Pair(100 * error, printed.get(name), spread=spread, digits=0, unit=0.01, further=1, cut=True)


def _iterations(ours: float | None, printed: Mapping[str, float], name: str) -> Pair:
    return Pair(ours, printed.get(name), spread=1.0, digits=1, unit=0.0)


def _reasons(found: Mapping[str, Any], iterations: Pair, failed: list[str]) -> list[str]:
    """What models said, and that the published calibration ended at once where ours did not."""
    if failed:
        return failed[:1]
    said = {note for runs in found.values() for result in runs for note in result["notes"]}
    singular = any("singular" in note for note in said)
    ended = iterations.differs and (iterations.published or 0.0) < AT_ONCE < (iterations.ours or 0.0)
    return [SINGULAR] * singular + [GOES_ON] * ended
