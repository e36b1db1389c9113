"""Tables of least training errors over a number of updates (rc-probabilistic-2024, Tables II to IX)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.experiments.comparison import Pair, Report, Row
from calibayes.experiments.counting import better_equal_worse
from calibayes.experiments.protocols.data_entry import Cleaning, DataEntry
from calibayes.experiments.protocols.training_curve import TrainingCurve
from calibayes.experiments.published import known_reasons, published
from calibayes.experiments.results.cells import key
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings

UNEXPLAINED = "not explained"


@dataclass(frozen=True)
class ErrorTable:
    """A start, calibration and a rival from it, over all data sets.

    Parameters
    ----------
    start : str
        Column of the error before the first update.
    rival : str
        Column of the other rule.
    calibrated, other : estimators
    reason : why rows differ that have no reason of their own
    rival_reason : why the rival's errors may differ
    """

    paper: str
    name: str
    title: str
    entries: tuple[DataEntry, ...]
    cleaning: Cleaning
    start: str
    rival: str
    calibrated: Any
    other: Any
    reason: str = ""
    rival_reason: str = ""
    notes: tuple[str, ...] = ()

    def cells(self, settings: Settings) -> list[TrainingCurve]:
        return [cell for entry in self._chosen(settings) for cell in self._pair(entry)]

    def report(self, results: Results, settings: Settings) -> Report:
        chosen = self._chosen(settings)
        rows = [self._row(entry, [results[key(cell)] for cell in self._pair(entry)]) for entry in chosen]
        notes = (*self.notes, self._agreement(rows), self._order(rows), self._absent(chosen))
        return Report(
            self.paper,
            self.name,
            self.title,
            (*rows, _average(rows)),
            tuple(note for note in notes if note),
            self.rival_reason or self.reason,
        )

    def _chosen(self, settings: Settings) -> list[DataEntry]:
        sizes = {label: row["rows"] for label, row in published(self.paper, "I").items()}
        return settings.choose(self.entries, sizes)

    def _pair(self, entry: DataEntry) -> tuple[TrainingCurve, TrainingCurve]:
        return (
            TrainingCurve(entry, self.cleaning, self.calibrated),
            TrainingCurve(entry, self.cleaning, self.other),
        )

    def _row(self, entry: DataEntry, found: Sequence[dict[str, Any]]) -> Row:
        printed = published(self.paper, self.name)[entry.label]
        ours = self._numbers(*(result.get("error") for result in found))
        pairs = {name: _pair_of(name, ours[name], printed.get(name)) for name in ours}
        return Row(entry.label, pairs, self._why(entry.label, pairs, found))

    def _numbers(self, calibrated: list[float] | None, other: list[float] | None) -> dict[str, float | None]:
        ours: dict[str, float | None] = dict.fromkeys(
            (self.start, "RC", "RC iter", self.rival, f"{self.rival} iter", "reach")
        )
        if calibrated is not None:
            ours |= {self.start: calibrated[0], "RC": min(calibrated), "RC iter": _first_least(calibrated)}
        if other is not None:
            ours |= {self.rival: min(other), f"{self.rival} iter": _first_least(other)}
        if calibrated is not None and other is not None:
            ours["reach"] = reach(calibrated, min(other))
        return ours

    def _why(self, label: str, pairs: Mapping[str, Pair], found: Sequence[dict[str, Any]]) -> str:
        """What the fits said, what is known of the row, or that nothing is, where calibration's cells differ."""
        said = [note for result in found for note in (*result.get("notes", []), result.get("failed", ""))]
        reasons = [known_reasons(self.paper, self.name).get(label, ""), *dict.fromkeys(said)]
        known = "; ".join(reason for reason in reasons if reason)
        if self._agrees(pairs):
            return ""
        return known or self.reason or UNEXPLAINED

    def _agrees(self, pairs: Mapping[str, Pair]) -> bool:
        return not any(
            pairs[name].differs or not pairs[name].compared for name in (self.start, "RC", "RC iter")
        )

    def _agreement(self, rows: Sequence[Row]) -> str:
        count = sum(self._agrees(row.pairs) for row in rows)
        return (
            f"{count} of {len(rows)} data sets agree in the start's error and RC's least error to 0.001 and in RC's "
            "iteration to one."
        )

    def _order(self, rows: Sequence[Row]) -> str:
        whole = [row for row in rows if row.pairs["RC"].compared and row.pairs[self.rival].compared]

        def counts(side: str) -> str:
            errors = [tuple(getattr(row.pairs[name], side) for name in ("RC", self.rival)) for row in whole]
            better, equal, worse = better_equal_worse([(round(a, 3), round(b, 3)) for a, b in errors])
            return f"better in {better}, equal in {equal}, worse in {worse}"

        return f"RC against {self.rival} over {len(whole)} data sets: {counts('ours')}; published for the same sets: {counts('published')}."

    def _absent(self, chosen: Sequence[DataEntry]) -> str:
        here = {entry.label for entry in chosen}
        gone = [
            label for label in published(self.paper, self.name) if label not in here and label != "average"
        ]
        return f"Not run: {', '.join(gone)}." if gone else ""


def reach(curve: Sequence[float], level: float) -> float | None:
    """The iteration, from 1, at which a curve is first no higher than a level."""
    below = np.asarray(curve) <= level
    return float(np.argmax(below)) + 1.0 if below.any() else None


def _first_least(curve: Sequence[float]) -> float:
    """The iteration, from 1, of the least value."""
    return float(np.argmin(curve)) + 1.0


def _pair_of(name: str, ours: float | None, printed: float | None) -> Pair:
    if name == "reach" or name.endswith(" iter"):
        return Pair(ours, printed, spread=1.0, digits=0, unit=0.0)
    return Pair(ours, printed, spread=0.001)


def _average(rows: Sequence[Row]) -> Row:
    """Averages of ours and of the published ones over the same rows."""

    def mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    def pair(name: str) -> Pair:
        both = [row.pairs[name] for row in rows if name == "reach" or row.pairs[name].compared]
        digits = 3 if both and both[0].unit else 0
        printed = mean([cell.published for cell in both])
        return Pair(
            mean([cell.ours for cell in both]),
            None if printed is None else round(printed, digits),
            spread=float("inf"),
            digits=digits,
            unit=0.0,
        )

    return Row("average of these", {name: pair(name) for name in rows[0].pairs})
