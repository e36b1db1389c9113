"""Gaussian kernel densities of the classes over all columns of a table jointly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_finite, require_number
from calibayes.encoders.dense import Dense
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.splits import expand_counts, unit_weight
from calibayes.kernels.density import joint_kernel
from calibayes.kernels.density.joint_kernel import ClassSums, KernelRows, posteriors, relevance, steps_up_to
from calibayes.tables.table import Table

PRIOR_ROWS = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
"""Numbers of pseudo-rows to choose from."""
LEAST_GAIN = 1e-3
"""Relative difference below which two log losses count as equal."""
LEAST_RELEVANCE = 0.02
"""Least squared weight of a column, relative to the most relevant one: it may matter together with others."""
LEAST_OF_CLASS = 50
"""Least number of rows of a class that are kept, if it has that many."""
MOST_SUMS = 2**22
"""Sums of kernels in memory at a time: 32 megabytes."""
MOST_ROWS, LEAST_ROWS, MOST_CELLS = 20_000, 10_000, 1e6
"""Rows kept by default: at most the first, fewer if their encoded cells exceed the third, but not below the second."""


class Smoothing(NamedTuple):
    """Bandwidth and smoothing towards wider bandwidths."""

    bandwidth_step: int
    """The bandwidth is the widest one divided by sqrt(2) to this power."""
    prior_rows: float
    """Pseudo-rows with the posterior of twice the bandwidth."""


@dataclass(frozen=True)
class JointDensity:
    """Kept rows, in encoded columns that are scaled by their relevance.

    Attributes
    ----------
    encoder : Dense
        Of new rows, in which missing values are NaN and integrated out: distances are over the known columns.
    scale : (d,) array
        Factors of the encoded columns.
    centers : KernelRows
        The rows with their weights: 1 for a row that occurred once, times class weights, more for a row that represents
        others.
    square : float
        The square of the widest bandwidth: the sum of the variances of the scaled columns.
    """

    encoder: Dense
    scale: Array
    centers: KernelRows
    square: float

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        d = len(self.encoder.names)
        require(d > 0 and self.encoder.leaves_missing, "the encoder must be fitted, and one for new rows")
        require_finite("scale", self.scale, (d,))
        require(bool(((self.scale > 0) & (self.scale <= 1)).all()), "scale must be positive and at most 1")
        require(self.centers.rows.shape[1] == d, f"the rows have {self.centers.rows.shape[1]} of {d} columns")
        require_number("square", self.square, np.finfo(np.float64).tiny)
        total = float(np.sum(self.scale**2))
        require(
            bool(np.isclose(self.square, total, rtol=1e-6)), f"square must be {total:g}, got {self.square:g}"
        )

    @property
    def codes(self) -> Array:
        """The class of each kept row."""
        return np.repeat(np.arange(len(self.centers.ends) - 1), np.diff(self.centers.ends))

    @property
    def prior(self) -> Array:
        """Class frequencies, (k,)."""
        sums = np.bincount(self.codes, self.centers.weight, minlength=len(self.centers.ends) - 1)
        return np.asarray(sums / sums.sum())

    def encode(self, table: Table) -> Array:
        return self.encoder.encode(table) * self.scale

    def votes(self, table: Table, positions: Array) -> ClassSums:
        """Kernel sums by class at some rows of a table, for every bandwidth."""
        return joint_kernel.class_sums(
            self.encoder.encode(table)[positions] * self.scale, self.centers, self.square
        )

    def log_posterior(self, table: Table, smoothing: Smoothing) -> Array:
        """log p(class | x), (n, k)."""
        return self.log_posterior_at(self.encode(table), smoothing)

    def log_posterior_at(self, x: Array, smoothing: Smoothing) -> Array:
        """log p(class | known cells) of encoded rows (n, d), (n, k)."""
        steps = steps_up_to(smoothing.bandwidth_step)

        def of_part(part: slice) -> Array:
            votes = joint_kernel.class_sums(x[part], self.centers, self.square, steps)
            return log_posterior(votes, self.prior, smoothing)

        return np.concatenate([of_part(part) for part in self._parts(len(x), len(steps))])

    def _parts(self, n: int, sums: int) -> Iterator[slice]:
        """Ranges of rows whose sums, so many per row and class, fit into memory."""
        rows = max(int(MOST_SUMS / (sums * len(self.prior))), 1)
        return (slice(start, start + rows) for start in range(0, max(n, 1), rows))

    def leave_one_out(self, most: int) -> tuple[ClassSums, Array]:
        """Kernel sums at some kept rows, each without its own kernel, and the positions of these rows."""
        positions = self._some_of_each_class(most)
        rows = self.centers.rows[positions]
        return joint_kernel.class_sums(rows, self.centers, self.square, left_out=positions), positions

    def _some_of_each_class(self, most: int) -> Array:
        """Positions of all kept rows, or of about ``most`` of them, evenly spaced in each class."""
        share = min(most / len(self.codes), 1.0)
        sizes = np.diff(self.centers.ends).tolist()
        parts = [evenly_spaced(size, int(np.ceil(share * size))) for size in sizes]
        return np.concatenate(
            [part + start for part, start in zip(parts, self.centers.ends[:-1], strict=True)]
        )

    def log_density(self, table: Table, smoothing: Smoothing) -> Array:
        """Log density of the scaled encoded columns, (n,), averaged over the bandwidths in use."""
        squares = [self.square / 2.0**step for step in steps_up_to(smoothing.bandwidth_step)]
        return joint_kernel.log_densities(self.encode(table), self.centers, squares)


def log_posterior(votes: ClassSums, prior: Array, smoothing: Smoothing) -> Array:
    """log p(class | x) at the chosen bandwidth, (n, k)."""
    by_step = zip(votes.steps, posteriors(votes, prior, np.array([smoothing.prior_rows])), strict=True)
    posterior = next(values for step, values in by_step if step == smoothing.bandwidth_step)
    return np.asarray(np.log(posterior[0]))


def smoothing_scores(
    votes: ClassSums, prior: Array, codes: Array, weight: Array, prior_rows: Array = PRIOR_ROWS
) -> tuple[Array, Array]:
    """Log losses and errors of rows, (prior_rows, steps) each."""
    rows, share = np.arange(len(codes)), weight / weight.sum()
    losses, errors = np.empty((2, len(prior_rows), len(votes.steps)))
    for place, posterior in enumerate(posteriors(votes, prior, prior_rows)):
        losses[:, place] = -np.log(posterior[:, rows, codes]) @ share
        errors[:, place] = (posterior.argmax(axis=2) != codes) @ share
    return losses, errors


def best_smoothing(losses: Array) -> tuple[int, int]:
    """Positions of the prior rows and the step to use.

    The most prior rows whose lowest loss is within a thousandth of the lowest of all, and the best step for them.
    """
    least = losses.min(axis=1)
    as_good = ~(least.min() < (1.0 - LEAST_GAIN) * least)
    prior_rows = int(np.flatnonzero(as_good)[-1])
    return prior_rows, int(np.argmin(losses[prior_rows]))


def evenly_spaced(n: int, most: int) -> Array:
    """Positions of all rows, or of about ``most`` of them, evenly spaced."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(int))


def joint_density(rows: Rows, k: int, most: int | None, seed: int) -> JointDensity:
    """The density of all rows, or of about ``most`` of them, in which classes keep their frequency."""
    encoder = Dense().fit(rows.summary, rows.table.used)
    if most is None:
        most = min(MOST_ROWS, max(int(MOST_CELLS / max(len(encoder.names), 1)), LEAST_ROWS))
    if most < len(rows.codes):
        rows = expand_counts(rows, seed)  # in random order
        positions = _first_of_each_class(rows.codes, most)
        x = encoder.encode(rows.table.rows(positions))
    else:
        positions = np.argsort(rows.codes, kind="stable")
        x = encoder.encode(rows.table)[positions]  # all rows are encoded, since other models may share them
    codes, weight = rows.codes[positions], rows.weight[positions] / unit_weight(rows)
    share = weight * _class_correction(rows, codes, weight, k)
    scale = _column_factors(relevance(x, np.eye(k)[codes] * share[:, None], float(weight.sum())))
    ends = tuple(np.searchsorted(codes, np.arange(k + 1)).tolist())
    centers = KernelRows(x * scale, share * (weight.sum() / share.sum()), ends)
    return JointDensity(encoder.for_new_rows(), scale, centers, float(np.sum(scale**2)))


def _class_correction(rows: Rows, codes: Array, weight: Array, k: int) -> Array:
    """Factors of the weights of kept rows, (n,), that restore the class frequencies of all rows."""
    total = np.bincount(rows.codes, rows.weight / rows.weight.max(), minlength=k)
    kept_weight = np.bincount(codes, weight, minlength=k)
    return np.asarray((total / np.maximum(kept_weight, np.finfo(np.float64).tiny))[codes])


def _column_factors(relevances: Array) -> Array:
    """Factors of the columns: the root of their relevance, relative to the largest."""
    top = float(relevances.max())
    return np.sqrt(np.maximum(relevances / top, LEAST_RELEVANCE)) if top > 0 else np.ones(len(relevances))


def _first_of_each_class(codes: Array, most: int) -> Array:
    """Positions of the rows to keep, class by class: the first of each."""
    share = min(most / len(codes), 1.0)
    positions = []
    for code in np.unique(codes):
        class_rows = np.flatnonzero(codes == code)
        positions.append(class_rows[: max(int(np.ceil(share * len(class_rows))), LEAST_OF_CLASS)])
    return np.concatenate(positions)
