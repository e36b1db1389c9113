"""Tables of better, equal, worse (rc-generative-2025, Tables 4, 6, 8, 10, 12)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibayes.experiments.comparison import Pair, Report, Row
from calibayes.experiments.counting import better_equal_worse
from calibayes.experiments.protocols.held_out import HeldOut
from calibayes.experiments.published import published
from calibayes.experiments.results.split_results import Splits
from calibayes.experiments.results.split_table import PARTS
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings


@dataclass(frozen=True)
class SplitCounts:
    """How often calibration does better than its rivals in the mean over splits."""

    name: str
    title: str
    splits: Splits
    calibrated: str
    rivals: Mapping[str, str]

    def cells(self, settings: Settings) -> list[HeldOut]:
        return self.splits.cells(settings, [self.calibrated, *self.rivals.values()])

    def report(self, results: Results, settings: Settings) -> Report:
        count = len(self.splits.chosen(settings))
        rows = [self._row(part, results, settings) for part in PARTS]
        note = f"Ours over {count} data sets, published over {len(published(self.splits.paper, '2'))}."
        return Report(self.splits.paper, self.name, self.title, tuple(rows), (note,))

    def _row(self, part: str, results: Results, settings: Settings) -> Row:
        printed = published(self.splits.paper, self.name)[part]
        pairs = {}
        for rival, model in self.rivals.items():
            errors = self.splits.errors(results, [self.calibrated, model], part, settings).round(12)
            names = (f"better than {rival}", f"equal to {rival}", f"worse than {rival}")
            for name, count in zip(names, better_equal_worse(map(tuple, errors.tolist())), strict=True):
                pairs[name] = Pair(count, printed.get(name), spread=float("inf"), digits=0, unit=0.0)
        return Row(part, pairs)
