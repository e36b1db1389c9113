"""Columns of levels with independent categorical densities given the class: discrete naive Bayes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.core.abilities import GradientStep, LeftOut, PassInputs, PassResult
from calibayes.core.protocols import Array, Arrays, ValidStatistics
from calibayes.core.verify import probabilities_of, require_arrays, require_length, require_sums_of_one
from calibayes.families.counts import PseudoCounts, floored, keep_nonnegative, log_share, replace_own_class
from calibayes.kernels import level_counts
from calibayes.kernels import posterior as fused
from calibayes.kernels import posterior as simplex


@dataclass(frozen=True)
class Categorical(PseudoCounts):
    """The probability of each level for each class and column.

    A negative code (a missing value, or a level that did not occur in training) is skipped. ``alpha`` is a pseudo-count
    per level; ``prior``, a `Dirichlet`, may be given instead of it.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [["red"], ["red"], ["blue"], ["green"]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("colors", Categorical(alpha=1.0), every)]).fit(X, y).predict([["green"]])
    array([1])
    """

    reads = "levels"

    @property
    def _first(self) -> Array:
        return level_counts.offsets(self.layout.levels)

    @property
    def _pseudo_counts(self) -> Array:
        return np.repeat(self.pseudo_counts(self.layout.levels), self.layout.levels)

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": level_counts.weighted_counts(columns, weights, self._first)}

    def statistics_by_column(self, columns: Sequence[tuple[Array, Array]]) -> Arrays:
        tables = [
            level_counts.weighted_counts(codes[:, None], weights, level_counts.offsets((size,)))
            for (codes, weights), size in zip(columns, self.layout.levels, strict=True)
        ]
        return {"count": np.concatenate(tables, axis=1)}

    def parameters(self, statistics: Arrays) -> Arrays:
        pseudo_counts = self._pseudo_counts
        count = statistics["count"] + pseudo_counts
        count = floored(count, level_counts.sums_by_column(count, self._first), pseudo_counts)
        return {"log_probability": np.log(count) - np.log(level_counts.sums_by_column(count, self._first))}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return level_counts.look_up(columns, parameters["log_probability"], self._first)

    def fused_pass(self, columns: Array, parameters: Arrays, inputs: PassInputs) -> PassResult:
        sums = fused.fused_pass(columns, parameters["log_probability"], self._first, *inputs)
        return PassResult(sums.assessment, {"count": sums.counts}, sums.classes)

    def verify(self) -> None:
        super().verify()
        require_length("levels", self.layout.levels, len(self.layout.columns))

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), self.layout.cells
        require_arrays("parameters", parameters, {"log_probability": shape})
        probability = probabilities_of("log_probability", parameters["log_probability"])
        require_sums_of_one("log_probability", level_counts.sums_by_column(probability, self._first))

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), self.layout.cells
        require_arrays("statistics", statistics, {"count": shape}, least=0.0)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        return keep_nonnegative(current, proposed)

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        moved = parameters["log_probability"] + rate * direction["count"]
        tables = np.split(moved, self._first[1:-1], axis=1)
        return GradientStep(
            {"log_probability": np.concatenate([simplex.log_project(t) for t in tables], axis=1)}, None
        )

    def has_hidden(self, columns: Array) -> bool:
        return False  # missing values are not counted, so the statistics do not depend on the parameters

    def log_prior(self, parameters: Arrays) -> float:
        return float(np.sum(self._pseudo_counts * parameters["log_probability"]))

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        drawn = np.stack(
            [level_counts.draw(table[classes], rng) for table in self._tables(parameters)], axis=1
        )
        return drawn if given is None else np.where(given < 0, drawn, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        most_probable = [np.argmax(posterior @ table, axis=1) for table in self._tables(parameters)]
        return np.where(columns < 0, np.stack(most_probable, axis=1), columns)

    def _tables(self, parameters: Arrays) -> list[Array]:
        """Probabilities of the levels of each column, (k, levels)."""
        return np.split(np.exp(parameters["log_probability"]), self._first[1:-1], axis=1)

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        return level_counts.look_up_each(columns, parameters["log_probability"], self._first)

    def occurrences(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"].sum(axis=0))

    def recode(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        return {"count": level_counts.recode_counts(statistics["count"], codes, levels)}

    def leave_one_out(self, columns: Array, left_out: LeftOut) -> Array | None:
        first, pseudo = self._first, self._pseudo_counts
        count = left_out.statistics["count"] + pseudo
        empty = count == 0
        tables = (
            count,
            level_counts.sums_by_column(count, first),
            level_counts.sums_by_column(empty.astype(np.float64), first) - empty,
            np.broadcast_to(pseudo, count.shape),
        )
        density = np.array(self.log_density(columns, left_out.parameters))
        replaced = replace_own_class(
            density,
            columns,
            left_out,
            lambda rows, w: level_counts.look_up(rows, log_share(*tables, weight=w), first),
        )
        if replaced is not None:
            return replaced
        cells, own, rows = (
            level_counts.cells(columns, first),
            left_out.codes[:, None],
            np.arange(len(columns)),
        )
        is_level = cells < first[-1]
        places = np.where(is_level, cells, 0)
        count, total, empty, pseudo = (table[own, places] for table in tables)
        shares = log_share(count, total, empty, pseudo, left_out.weight[:, None])
        density[rows, left_out.codes] = np.where(is_level, shares, 0.0).sum(axis=1)
        return density
