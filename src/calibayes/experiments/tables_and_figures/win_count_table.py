"""Table of how often one method is better than, equal to, worse than others (rc-generative-2025, Tables 4, 6, ... 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibayes.experiments.procedures.held_out import HeldOutSplit
from calibayes.experiments.published_tables import published_table
from calibayes.experiments.report import NumberPair, Report, TableRow
from calibayes.experiments.settings import Settings
from calibayes.experiments.tables_and_figures.split_study import PARTS, SplitStudy
from calibayes.experiments.task_runner import Results
from calibayes.experiments.win_counts import count_better_equal_worse


@dataclass(frozen=True)
class WinCountTable:
    """Number of data sets on which calibration has a lower, equal or higher mean error than its rivals.

    Parameters
    ----------
    study : SplitStudy
    calibrated : name of a model
    rivals : column -> name of a model
    """

    name: str
    title: str
    study: SplitStudy
    calibrated: str
    rivals: Mapping[str, str]

    def tasks(self, settings: Settings) -> list[HeldOutSplit]:
        return self.study.tasks(settings, [self.calibrated, *self.rivals.values()])

    def report(self, results: Results, settings: Settings) -> Report:
        count = len(self.study.entries_to_run(settings))
        rows = [self._row(part, results, settings) for part in PARTS]
        note = f"Ours: {count} data sets; published: {len(published_table(self.study.paper, '2'))}."
        return Report(self.study.paper, self.name, self.title, tuple(rows), (note,))

    def _row(self, part: str, results: Results, settings: Settings) -> TableRow:
        published = published_table(self.study.paper, self.name)[part]
        pairs = {}
        for rival, model in self.rivals.items():
            errors = self.study.errors(results, [self.calibrated, model], part, settings).round(12)
            names = (f"better than {rival}", f"equal to {rival}", f"worse than {rival}")
            for name, count in zip(names, count_better_equal_worse(map(tuple, errors.tolist())), strict=True):
                pairs[name] = NumberPair(count, published.get(name), spread=float("inf"), digits=0, unit=0.0)
        return TableRow(part, pairs)
