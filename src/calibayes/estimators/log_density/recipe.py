"""What the transformer and the classifiers over log densities share: from rows to features."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from calibayes.core.protocols import Array
from calibayes.dependence import BestFraction, Dependence, Selection, SignificantPairs, TopFraction
from calibayes.estimators.announcing import Reportr
from calibayes.estimators.interface.checks import number, whole_number
from calibayes.estimators.log_density.densities import (
    LabeledNumbers,
    LogDensities,
    Report,
    class_dependence,
    learn_log_densities,
)
from calibayes.estimators.log_density.dependence import measure_named
from calibayes.estimators.numeric_rows import NumericRows

SMALLEST = 1e-8
"""A feature whose standard deviation is below this is constant."""


class Learned(NamedTuple):
    """Densities of training rows with all pairs that some candidate keeps, and what they say of those rows."""

    densities: LogDensities
    features: Array
    candidates: list[Array]
    """Which features each answer of the selection uses."""
    dependence: Dependence | None


@dataclass(eq=False, repr=False, kw_only=True)
class LogDensityRecipe(NumericRows):
    """Parameters that say how densities are estimated."""

    leave_one_out: bool = True
    original_columns: bool = True
    normal_scores: bool = True
    floor: float = 1e-4
    kept_rows: int | None = 2000
    random_state: int | np.random.RandomState | None = None
    verbose: bool | None = None

    def _reportr(self) -> Reportr:
        return Reportr(type(self).__name__, self.verbose)

    def _seed(self) -> int:
        """The same for equal numbers; 0 for none."""
        return (
            0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        )

    def _answers(
        self, rows: LabeledNumbers, names: Sequence[str], report: Report
    ) -> tuple[list[Array], Dependence | None]:
        """(class, pair) to keep, positions in the flat (k, pairs) table, one array for each answer; here none."""
        return [np.zeros(0, dtype=np.int64)], None

    def _learn(self, rows: LabeledNumbers, names: Sequence[str], seed: int, report: Report) -> Learned:
        floor = number("floor", self.floor, 1e-300, 1.0)
        kept = None if self.kept_rows is None else whole_number("kept_rows", self.kept_rows, 2)
        densities, own = learn_log_densities(
            rows, floor=floor, kept_rows=kept, seed=seed, normal_scores=self.normal_scores
        )
        used = rows._replace(columns=densities.standardize(rows.columns))
        answers, dependence = self._answers(used, [names[j] for j in densities.varying], report)
        most = max(answers, key=len)
        densities = densities.with_pairs(*_pairs(most, len(densities.varying)))
        features = self._map(densities, rows.columns, own if self.leave_one_out else None, report)
        always = features.shape[1] - len(most)
        place = {int(pair): always + position for position, pair in enumerate(most)}
        candidates = [np.array([*range(always), *(place[int(pair)] for pair in one)]) for one in answers]
        return Learned(densities, features, candidates, dependence)

    def _map(
        self, densities: LogDensities, columns: Array, own: Sequence[Array] | None, report: Report
    ) -> Array:
        """Features of rows: the columns themselves where they are asked for, densities of columns, of pairs."""
        logs = densities.evaluate(columns, own, report)
        return (
            np.concatenate([densities.standardize(columns), logs], axis=1) if self.original_columns else logs
        )

    def _only(self, densities: LogDensities, features: Array) -> LogDensities:
        """The densities that some of the features need."""
        before = densities.singles + (len(densities.varying) if self.original_columns else 0)
        pairs = features[features >= before] - before
        return densities.with_pairs(densities.labels[pairs], densities.pairs[:, pairs])

    def _names_of(self, densities: LogDensities, names: Sequence[str], classes: Array) -> list[str]:
        own = [str(names[j]) for j in densities.varying] if self.original_columns else []
        return own + densities.names(names, classes.tolist())


@dataclass(eq=False, repr=False, kw_only=True)
class WithPairs(LogDensityRecipe):
    """Parameters that say which pairs of columns are kept."""

    measure: Any = "hsic"
    selection: Any = "cv"
    max_pairs: int | None = 10_000

    def _answers(
        self, rows: LabeledNumbers, names: Sequence[str], report: Report
    ) -> tuple[list[Array], Dependence | None]:
        most = None if self.max_pairs is None else whole_number("max_pairs", self.max_pairs, 0)
        table = class_dependence(measure_named(self.measure), rows, names, range(rows.k), report)
        answers = [np.asarray(one) for one in selection_named(self.selection).candidates(table)]
        longest = max(len(one) for one in answers)
        if most is not None and longest > most:
            warnings.warn(
                f"of {longest} densities of pairs the {most} of the most dependent ones are kept: see max_pairs",
                stacklevel=2,
            )
        cut = {one[:most].tobytes(): one[:most] for one in answers}
        return list(cut.values()), table


SELECTIONS: dict[str | None, Selection] = {
    "cv": BestFraction(),
    "significant": SignificantPairs(),
    None: TopFraction(1.0),
}
"""The short names; None keeps all pairs."""


def selection_named(selection: Any) -> Selection:
    """A selection by its short name, or the one given."""
    if (selection is None or isinstance(selection, str)) and selection in SELECTIONS:
        return SELECTIONS[selection]
    if not hasattr(selection, "candidates"):
        raise ValueError(
            f"selection must be 'cv', 'significant', None or an object of calibayes.dependence, got {selection!r}"
        )
    return selection  # type: ignore[no-any-return]


def moments(features: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each feature, 1 for constant ones."""
    center = weights @ features / weights.sum()
    deviation = np.sqrt(weights @ (features - center) ** 2 / weights.sum())
    return center, np.where(deviation > SMALLEST, deviation, 1.0)


def _pairs(flat: Array, d: int) -> tuple[Array, Array]:
    """Class and columns of positions in the flat (k, pairs) table."""
    every = np.stack(np.triu_indices(d, 1))
    labels, pair = np.divmod(flat, max(every.shape[1], 1))
    return labels, every[:, pair]
