"""Table of lowest training errors over the iterations (rc-probabilistic-2024, Tables II to IX)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.reproduction.claims import count_better_equal_worse
from calibayes.reproduction.experiment import Results, Settings, task_key
from calibayes.reproduction.procedures import Cleaning, DataEntry, TrainingCurve
from calibayes.reproduction.result_tables import NumberPair, Report, TableRow, known_reasons, published_table

UNEXPLAINED = "not explained"


@dataclass(frozen=True)
class TrainingErrorTable:
    """Training errors of calibration (RC) and of a rival rule with the same start, on all data sets.

    Parameters
    ----------
    start : str
        Name of the column with the error before the first update.
    rival : str
        Name of the column of the rival rule.
    calibrated, other : estimators
        Trained by calibration and by the rival rule.
    reason : str
        Why rows may differ from the published ones; for rows without a reason of their own.
    rival_reason : str
        Why the errors of the rival may differ.
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

    def tasks(self, settings: Settings) -> list[TrainingCurve]:
        return [task for entry in self._entries(settings) for task in self._curves(entry)]

    def report(self, results: Results, settings: Settings) -> Report:
        entries = self._entries(settings)
        rows = [
            self._row(entry, [results[task_key(task)] for task in self._curves(entry)]) for entry in entries
        ]
        notes = (*self.notes, self._agreement(rows), self._win_counts(rows), self._not_run(entries))
        return Report(
            self.paper,
            self.name,
            self.title,
            (*rows, _average_row(rows)),
            tuple(note for note in notes if note),
            self.rival_reason or self.reason,
        )

    def _entries(self, settings: Settings) -> list[DataEntry]:
        sizes = {label: row["rows"] for label, row in published_table(self.paper, "I").items()}
        return settings.select(self.entries, sizes)

    def _curves(self, entry: DataEntry) -> tuple[TrainingCurve, TrainingCurve]:
        return (
            TrainingCurve(entry, self.cleaning, self.calibrated),
            TrainingCurve(entry, self.cleaning, self.other),
        )

    def _row(self, entry: DataEntry, results: Sequence[dict[str, Any]]) -> TableRow:
        published = published_table(self.paper, self.name)[entry.label]
        ours = self._numbers(*(result.get("error") for result in results))
        pairs = {name: _number_pair(name, ours[name], published.get(name)) for name in ours}
        return TableRow(entry.label, pairs, self._explanation(entry.label, pairs, results))

    def _numbers(self, calibrated: list[float] | None, other: list[float] | None) -> dict[str, float | None]:
        ours: dict[str, float | None] = dict.fromkeys(
            (self.start, "RC", "RC iter", self.rival, f"{self.rival} iter", "reach")
        )
        if calibrated is not None:
            ours |= {self.start: calibrated[0], "RC": min(calibrated), "RC iter": _best_iteration(calibrated)}
        if other is not None:
            ours |= {self.rival: min(other), f"{self.rival} iter": _best_iteration(other)}
        if calibrated is not None and other is not None:
            ours["reach"] = reach(calibrated, min(other))
        return ours

    def _explanation(
        self, label: str, pairs: Mapping[str, NumberPair], results: Sequence[dict[str, Any]]
    ) -> str:
        """Why calibration differs from the published numbers: known reasons and warnings of the fits; else empty."""
        if self._agrees(pairs):
            return ""
        notes = [note for result in results for note in (*result.get("notes", []), result.get("failed", ""))]
        reasons = [known_reasons(self.paper, self.name).get(label, ""), *dict.fromkeys(notes)]
        return "; ".join(reason for reason in reasons if reason) or self.reason or UNEXPLAINED

    def _agrees(self, pairs: Mapping[str, NumberPair]) -> bool:
        return not any(
            pairs[name].differs or not pairs[name].compared for name in (self.start, "RC", "RC iter")
        )

    def _agreement(self, rows: Sequence[TableRow]) -> str:
        count = sum(self._agrees(row.pairs) for row in rows)
        return (
            f"{count} of {len(rows)} data sets agree: the initial error and the lowest error of RC within 0.001, the "
            "iteration of RC within one."
        )

    def _win_counts(self, rows: Sequence[TableRow]) -> str:
        compared = [row for row in rows if row.pairs["RC"].compared and row.pairs[self.rival].compared]

        def counts(side: str) -> str:
            errors = [
                tuple(getattr(row.pairs[name], side) for name in ("RC", self.rival)) for row in compared
            ]
            better, equal, worse = count_better_equal_worse([(round(a, 3), round(b, 3)) for a, b in errors])
            return f"better on {better}, equal on {equal}, worse on {worse}"

        return (
            f"RC compared with {self.rival} on {len(compared)} data sets: {counts('ours')}; "
            f"published, on the same data sets: {counts('published')}."
        )

    def _not_run(self, entries: Sequence[DataEntry]) -> str:
        labels = {entry.label for entry in entries}
        missing = [
            label for label in published_table(self.paper, self.name) if label not in {*labels, "average"}
        ]
        return f"Data sets not run: {', '.join(missing)}." if missing else ""


def reach(curve: Sequence[float], level: float) -> float | None:
    """The first iteration, from 1, at which the curve is not above the level; None if there is none."""
    below = np.asarray(curve) <= level
    return float(np.argmax(below)) + 1.0 if below.any() else None


def _best_iteration(curve: Sequence[float]) -> float:
    """The first iteration, from 1, with the lowest value."""
    return float(np.argmin(curve)) + 1.0


def _number_pair(name: str, ours: float | None, published: float | None) -> NumberPair:
    if name == "reach" or name.endswith(" iter"):
        return NumberPair(ours, published, spread=1.0, digits=0, unit=0.0)
    return NumberPair(ours, published, spread=0.001)


def _average_row(rows: Sequence[TableRow]) -> TableRow:
    """Means of ours and of the published numbers over the same rows."""

    def mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    def mean_pair(name: str) -> NumberPair:
        pairs = [row.pairs[name] for row in rows if name == "reach" or row.pairs[name].compared]
        digits = 3 if pairs and pairs[0].unit else 0
        published = mean([pair.published for pair in pairs])
        return NumberPair(
            mean([pair.ours for pair in pairs]),
            None if published is None else round(published, digits),
            spread=float("inf"),
            digits=digits,
            unit=0.0,
        )

    return TableRow("average of these rows", {name: mean_pair(name) for name in rows[0].pairs})
