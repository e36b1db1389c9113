"""Families over counts of levels, with pseudo-counts: columns of zeros and ones (Bernoulli), or of levels (categorical)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calibayes.core import verify
from calibayes.core.abilities import GradientStep, LeftOut, PassInputs, PassResult
from calibayes.core.protocols import Array, Arrays, Generator, Layout, ValidStatistics
from calibayes.families.density import UNBOUND
from calibayes.families.priors import Dirichlet
from calibayes.kernels import event_counts, level_counts, moments
from calibayes.kernels.posterior import fused_pass, log_project

# -- Base of families over counts: pseudo-counts of a Dirichlet prior, and counts that stay nonnegative ------

LEAST_SHARE = 1e-12
"""Smallest share of a cell in its column, so that the log probability of an empty cell is finite."""


def floored(count: Array, total: Array, pseudo_count: Array | float = 0.0) -> Array:
    """Counts raised to the least share of their column's total; all equal where the total is 0.

    The floor is never above a pseudo-count that is part of the count.
    """
    least = LEAST_SHARE * np.where(total > 0, total, 1.0)
    if np.any((pseudo_count > 0) & (pseudo_count < least)):
        least = np.where(pseudo_count > 0, np.minimum(pseudo_count, least), least)
    return np.maximum(count, least)


def keep_nonnegative(current: Arrays, proposed: Arrays, positive: str = "") -> ValidStatistics:
    """The proposed counts; a count that would be negative keeps its current value. No class is frozen as a whole.

    Counts of the name ``positive`` keep it too if they would be 0.
    """
    invalid = {name: ~(count > 0 if name == positive else count >= 0) for name, count in proposed.items()}
    counts = {name: np.where(invalid[name], current[name], count) for name, count in proposed.items()}
    frozen = sum(int(mask.sum()) for mask in invalid.values())
    k = len(next(iter(counts.values())))
    return ValidStatistics(counts, frozen, np.zeros(k, dtype=bool))


class SkipsMissing:
    """A family whose statistics leave out missing values, so that they do not depend on the parameters."""

    def has_hidden(self, columns: Array) -> bool:
        return False


@dataclass(frozen=True)
class PseudoCounts:
    """
    Parameters
    ----------
    alpha : float or (d,) array, default=0
        Pseudo-count per level, for all columns or column by column; 0 is maximum likelihood.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    """

    alpha: float | Array = 0.0
    prior: Dirichlet | None = None
    layout: Layout = field(default=UNBOUND, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.prior is not None and not isinstance(self.prior, Dirichlet):
            raise ValueError(f"the prior of counts must be a Dirichlet() or None, got {self.prior!r}")
        if self.prior is not None and np.any(self.alpha):
            raise ValueError("give alpha or prior, not both")
        if not (np.isfinite(self.alpha).all() and np.all(np.asarray(self.alpha) >= 0)):
            raise ValueError(f"alpha must be finite and must not be negative, got {self.alpha}")

    def pseudo_counts(self, levels: Sequence[int]) -> Array:
        """Rows added to each level of each column, (d,)."""
        if self.prior is not None:
            return np.array([self.prior.pseudo_count(count) for count in levels])
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim and alpha.shape != (len(levels),):
            raise ValueError(f"alpha has shape {alpha.shape}, but there are {len(levels)} columns")
        return np.array(np.broadcast_to(alpha, len(levels)))

    def verify(self) -> None:
        self.layout.verify()
        if self.layout.classes and np.ndim(self.alpha):
            verify.require_finite("alpha", np.asarray(self.alpha), (len(self.layout.columns),), 0.0, "fiu")

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        return self

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        return keep_nonnegative(current, proposed)

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])

    def exact(self) -> Self:
        return self

    def conjugate(self) -> Self:
        return self if np.any(self.alpha) or self.prior else replace(self, prior=Dirichlet())


def smoothing_of(alpha: Any, prior: Dirichlet | None) -> dict[str, Any]:
    """``alpha`` or ``prior`` as families over counts take them. Raises ValueError if both are given."""
    if prior is None:
        try:
            values = np.asarray(alpha, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"alpha must be a number or an array of numbers, got {alpha!r}") from None
        return {"alpha": float(values) if values.ndim == 0 else values}
    if np.any(np.asarray(alpha) != 1.0):
        raise ValueError("give alpha or prior, not both")
    return {"prior": prior}


class LogProbabilities(ABC):
    """Families whose parameter "log_probability" follows from the statistic "count" plus pseudo-counts."""

    @property
    @abstractmethod
    def _pseudo(self) -> Array:
        """Pseudo-count of each cell, (cells,) or (k, cells)."""

    @abstractmethod
    def _projected(self, log_probability: Array) -> Array:
        """Log probabilities (k, cells) of which each distribution is projected to a sum of 1."""

    @property
    def row_copies(self) -> int:
        """How often the statistics count each row."""
        return 1

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Gradient step on the log probabilities; of a row with missing values, tables of known cells contribute."""
        moved = parameters["log_probability"] + rate / self.row_copies * direction["count"]
        return GradientStep({**parameters, "log_probability": self._projected(moved)}, None)

    def log_prior(self, parameters: Arrays) -> float:
        return float(np.sum(self._pseudo * parameters["log_probability"])) / self.row_copies


# -- Exact leave-one-out probabilities of counts: a row subtracted from the counts of its class --------------

MOST_WEIGHTS = 64
"""Number of distinct row weights up to which a table is made for each of them."""


def log_share(count: Array, total: Array, empty: Array, pseudo: Array, weight: Array | float) -> Array:
    """log probability of a cell without a row of this weight in it, from counts that include pseudo-counts.

    ``total`` is that of the cell's column and ``empty`` the number of its other cells with a count of 0, which are raised to
    the least share, as `floored` does.
    """
    left = np.maximum(total - weight, 0.0)
    cell = floored(np.maximum(count - weight, 0.0), left, pseudo)
    others = np.maximum(total - count, 0.0) + LEAST_SHARE * empty * np.where(left > 0, left, 1.0)
    return np.asarray(np.log(cell) - np.log(cell + others))


def replace_own_class(
    density: Array, columns: Array, left_out: LeftOut, scores: Callable[[Array, float], Array]
) -> Array | None:
    """Log densities (n, k) with those of each row's own class replaced by scores without the row.

    ``scores`` are (n, k) sums of a table's entries, from rows and their weight. None if there are too many weights.
    """
    weights = np.unique(left_out.weight)
    if len(weights) > MOST_WEIGHTS:
        return None
    for weight in weights:
        rows = np.flatnonzero(left_out.weight == weight)
        part, own = columns if len(rows) == len(density) else columns[rows], left_out.codes[rows]
        density[rows, own] = scores(part, float(weight))[np.arange(len(rows)), own]
    return density


# -- Columns of zeros and ones with independent Bernoulli densities given the class --------------------------


@dataclass(frozen=True)
class Bernoulli(SkipsMissing, PseudoCounts):
    """The probability of a one for each class and column. A missing value (NaN) is skipped.

    ``alpha`` is a pseudo-count of zeros and of ones; ``prior``, a `Dirichlet`, may be given instead of it.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> X, y = [[0, 1], [0, 1], [1, 0], [1, 1]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("flags", Bernoulli(alpha=1.0), every)]).fit(X, y).predict([[1, 0]])
    array([1])
    """

    reads = "flags"

    @property
    def _pseudo(self) -> Array:
        return self.pseudo_counts([2] * len(self.layout.columns))

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        zeros, ones = level_counts.flag_counts(columns, weights)
        return {"zeros": zeros, "ones": ones}

    def parameters(self, statistics: Arrays) -> Arrays:
        pseudo = self._pseudo
        ones, zeros = statistics["ones"] + pseudo, statistics["zeros"] + pseudo
        ones, zeros = floored(ones, ones + zeros, pseudo), floored(zeros, ones + zeros, pseudo)
        log_total = np.log(ones + zeros)
        return {"log_one": np.log(ones) - log_total, "log_zero": np.log(zeros) - log_total}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return level_counts.flag_scores(columns, parameters["log_zero"], parameters["log_one"])

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        verify.require_arrays("parameters", parameters, {"log_one": shape, "log_zero": shape})
        one, zero = (verify.probabilities_of(name, parameters[name]) for name in ("log_one", "log_zero"))
        verify.require_sums_of_one("log_one and log_zero", one + zero)

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), len(self.layout.columns)
        verify.require_arrays("statistics", statistics, {"zeros": shape, "ones": shape}, least=0.0)

    def cells(self, statistics: Arrays) -> Array:
        return np.concatenate([statistics["zeros"], statistics["ones"]], axis=1)

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        zero = parameters["log_zero"] + rate * direction["zeros"]
        one = parameters["log_one"] + rate * direction["ones"]
        moved = log_project(np.stack([zero.ravel(), one.ravel()], axis=1))
        zero, one = (part.reshape(one.shape) for part in moved.T)
        return GradientStep({"log_one": one, "log_zero": zero}, None)

    def log_prior(self, parameters: Arrays) -> float:
        return float(np.sum(self._pseudo * (parameters["log_one"] + parameters["log_zero"])))

    def prior_direction(self, parameters: Arrays) -> Arrays:
        pseudo = self._pseudo
        shares = {"zeros": np.exp(parameters["log_zero"]), "ones": np.exp(parameters["log_one"])}
        return {name: pseudo * (1.0 - 2.0 * share) for name, share in shares.items()}

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        probability = np.exp(parameters["log_one"])[classes]
        drawn = (rng.random(probability.shape) < probability).astype(np.float64)
        return drawn if given is None else np.where(np.isnan(given), drawn, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        dense = event_counts.as_dense(columns)
        most_probable = (posterior @ np.exp(parameters["log_one"]) > 0.5).astype(np.float64)
        return np.where(np.isnan(dense), most_probable, dense)

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        known, ones = moments.known_and_filled(event_counts.as_dense(columns, len(self.layout.classes)))
        log_one, log_zero = parameters["log_one"], parameters["log_zero"]
        return ones[:, None, :] * (log_one - log_zero) + known[:, None, :] * log_zero

    def leave_one_out(self, columns: Array, left_out: LeftOut) -> Array | None:
        pseudo = self._pseudo
        zeros, ones = left_out.statistics["zeros"] + pseudo, left_out.statistics["ones"] + pseudo
        total, even = zeros + ones, np.broadcast_to(pseudo, zeros.shape)

        def scores(rows: Array, weight: float) -> Array:
            zero = log_share(zeros, total, (ones == 0).astype(np.float64), even, weight)
            one = log_share(ones, total, (zeros == 0).astype(np.float64), even, weight)
            return level_counts.flag_scores(rows, zero, one)

        density = np.array(self.log_density(columns, left_out.parameters))
        return replace_own_class(density, columns, left_out, scores)


# -- Columns of levels with independent categorical densities given the class: discrete naive Bayes ----------


@dataclass(frozen=True)
class Categorical(SkipsMissing, LogProbabilities, PseudoCounts):
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
    def _pseudo(self) -> Array:
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
        pseudo = self._pseudo
        count = statistics["count"] + pseudo
        count = floored(count, level_counts.sums_by_column(count, self._first), pseudo)
        return {"log_probability": np.log(count) - np.log(level_counts.sums_by_column(count, self._first))}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return level_counts.look_up(columns, parameters["log_probability"], self._first)

    def fused_pass(self, columns: Array, parameters: Arrays, inputs: PassInputs) -> PassResult:
        sums = fused_pass(columns, parameters["log_probability"], self._first, *inputs)
        return PassResult(sums.assessment, {"count": sums.counts}, sums.classes)

    def verify(self) -> None:
        super().verify()
        verify.require_length("levels", self.layout.levels, len(self.layout.columns))

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), self.layout.cells
        verify.require_arrays("parameters", parameters, {"log_probability": shape})
        probability = verify.probabilities_of("log_probability", parameters["log_probability"])
        verify.require_sums_of_one("log_probability", level_counts.sums_by_column(probability, self._first))

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), self.layout.cells
        verify.require_arrays("statistics", statistics, {"count": shape}, least=0.0)

    def _projected(self, log_probability: Array) -> Array:
        tables = np.split(log_probability, self._first[1:-1], axis=1)
        return np.concatenate([log_project(table) for table in tables], axis=1)

    def prior_direction(self, parameters: Arrays) -> Arrays:
        pseudo, probability = self._pseudo, np.exp(parameters["log_probability"])
        rows = level_counts.sums_by_column(np.broadcast_to(pseudo, probability.shape), self._first)
        return {"count": pseudo - rows * probability}

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        columns = [level_counts.draw(table[classes], rng) for table in self._tables(parameters)]
        drawn = np.stack(columns, axis=1)
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
        first, pseudo = self._first, self._pseudo
        count = left_out.statistics["count"] + pseudo
        empty = count == 0
        tables = (
            count,
            level_counts.sums_by_column(count, first),
            level_counts.sums_by_column(empty.astype(np.float64), first) - empty,
            np.broadcast_to(pseudo, count.shape),
        )
        density = np.array(self.log_density(columns, left_out.parameters))

        def scores(rows: Array, weight: float) -> Array:
            return level_counts.look_up(rows, log_share(*tables, weight=weight), first)

        replaced = replace_own_class(density, columns, left_out, scores)
        if replaced is not None:
            return replaced
        cells, own = level_counts.cells(columns, first), left_out.codes[:, None]
        is_level = cells < first[-1]
        places = np.where(is_level, cells, 0)
        count, total, empty, pseudo = (table[own, places] for table in tables)
        shares = log_share(count, total, empty, pseudo, left_out.weight[:, None])
        density[np.arange(len(columns)), left_out.codes] = np.where(is_level, shares, 0.0).sum(axis=1)
        return density
