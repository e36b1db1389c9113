"""Averaged one-dependence estimators (AODE) over columns of levels: an average of stars, one for each super-parent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Self

import numpy as np

from calibayes.core.abilities import GradientStep
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.core.verify import (
    probabilities_of,
    require,
    require_arrays,
    require_columns,
    require_finite,
    require_length,
    require_positions,
    require_sums_of_one,
)
from calibayes.families.counts.pseudo_counts import floored, keep_nonnegative
from calibayes.families.kernel.bandwidths import Bandwidth, InCells, check_bandwidth
from calibayes.families.priors import Dirichlet
from calibayes.families.tree.stars import Stars, log_sum_over_center
from calibayes.families.tree.structures import LARGEST_TABLES, PairCounts, cells_of_pairs
from calibayes.families.tree.tables import (
    bandwidths_in_cells,
    log_volume,
    pseudo_counts,
    smooth,
    smoothing_matrices,
    verify_widths,
)
from calibayes.kernels.levels import counts, pairs
from calibayes.kernels.levels.counts import draw
from calibayes.kernels.levels.trees import beliefs, draw_missing

COPIES = 7
"""Tables of all pairs that are in memory: counts of the data, and in both directions counts, pseudo-counts and probabilities."""
SHARES_AT_A_TIME = 2**22
"""Posteriors of super-parents, over rows and classes, that are in memory at a time."""


@dataclass(frozen=True)
class AveragedOneDependence(PairCounts):
    """p(x | class) is the mean, over super-parents, of densities in which all columns depend on the super-parent.

    Each of these is p(super-parent | class) times the product of p(column | super-parent, class) over the other columns
    (Webb, Boughton and Wang 2005). The statistics are counts of pairs, for each super-parent: those of all rows, or of rows
    that are divided among the super-parents. Of a row with missing values each density is that of the known cells: a missing
    super-parent is summed out.

    Parameters
    ----------
    alpha : float or (d,) array, default=0
        Pseudo-count per level, divided evenly among the levels of the super-parent.
    prior : Dirichlet, optional
        Prior by equivalent sample size, the same for each column's table, instead of ``alpha``.
    max_cells : int, default=10000
        Pairs of columns with more combinations of levels are not counted: these columns do not depend on each other.
    divides_rows : bool, default=False
        Whether the weight of a row is divided among the super-parents by their posterior, as among the components of a
        mixture. This is what rules with steps need: statistics with the weights Y - P are then the gradient of the
        conditional likelihood. If not, a row counts in full for each super-parent: the closed form of the paper.
    least_rows : float, default=0
        Rows per level that a column must have on average to be a super-parent; if no column has as many, those with the
        most are super-parents.
    back_off : float, default=0
        Pseudo-rows added to each conditional distribution of a column, distributed as the column is in the class.
    bandwidth : Bandwidth, default=InCells(0)
        Rule for the width of a Gaussian kernel that smooths the tables along columns with ordered cells.
    """

    divides_rows: bool = False
    least_rows: float = 0.0
    back_off: float = 0.0
    bandwidth: Bandwidth = field(default_factory=lambda: InCells(0.0))
    super_parents: tuple[int, ...] | None = field(default=None, repr=False, compare=False)
    """The columns that others depend on, set by `prepare`."""
    prepared_pseudo_counts: Array | None = field(default=None, repr=False, compare=False)
    """Pseudo-counts of all cells (k, cells), set by `prepare`."""
    widths: Array | None = field(default=None, repr=False, compare=False)
    """Bandwidths in cells (k, d), set by `prepare`."""

    reads = "levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("least_rows", "back_off"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be finite and must not be negative, got {getattr(self, name)}")
        check_bandwidth(self.bandwidth)

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout, super_parents=None, prepared_pseudo_counts=None, widths=None)

    def conjugate(self) -> Self:
        has_prior = np.any(self.alpha) or self.prior or self.back_off
        return self if has_prior else replace(self, prior=Dirichlet())

    # -- structure -----------------------------------------------------------------------------------------------

    @property
    def structure(self) -> tuple[int, ...] | None:
        """The super-parents."""
        return self.super_parents

    @cached_property
    def stars(self) -> Stars:
        """The tables of all stars; every column is a super-parent before `prepare`."""
        every = tuple(range(len(self.layout.columns)))
        chosen = every if self.super_parents is None else self.super_parents
        return Stars(chosen, self.layout.levels, self.max_cells)

    @property
    def pairs(self) -> pairs.Pairs:
        """The pairs of columns that are counted. Raises ValueError if their tables do not fit into memory."""
        d, levels = len(self.layout.columns), self.layout.levels
        cells = COPIES * len(self.layout.classes) * cells_of_pairs(levels, self.max_cells)
        if cells > LARGEST_TABLES:
            raise ValueError(
                f"the tables of all pairs of {d} columns, in both directions, have {cells:.3g} cells over all classes, more "
                f"than {LARGEST_TABLES:.3g}: fewer columns or bins, pooled levels or a smaller max_cells help"
            )
        return pairs.column_pairs(levels, self.max_cells)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        """This family with the super-parents and pseudo-counts that follow from the counts."""
        column_counts = self.column_counts(start)
        prepared = replace(self, super_parents=self._chosen(column_counts))
        return replace(
            prepared,
            prepared_pseudo_counts=prepared._count_prior(column_counts),
            widths=bandwidths_in_cells(self.bandwidth, self.layout, column_counts),
        )

    def _chosen(self, column_counts: Sequence[Array]) -> tuple[int, ...]:
        """The columns with several levels, enough rows per level and pairs that are counted; one column if none has."""
        levels, counted = self.layout.levels, self.pairs
        paired = set(counted.left.tolist()) | set(counted.right.tolist())
        several = [j for j in sorted(paired) if levels[j] > 1] or [0]
        rows = {j: float(column_counts[j].sum()) / levels[j] for j in several}
        least = min(self.least_rows, max(rows.values()))
        return tuple(j for j in several if rows[j] >= least)

    def statistics_of(self, structure_statistics: Arrays) -> Arrays:
        """The counts of all stars, in which each row counts in full."""
        count = np.concatenate([structure_statistics["single"], structure_statistics["pair"]], axis=1)
        return {"count": count[:, self.stars.sources(self.pairs)]}

    # -- verification --------------------------------------------------------------------------------------------

    def verify(self) -> None:
        super().verify()
        k, d = len(self.layout.classes), len(self.layout.columns)
        require_length("levels", self.layout.levels, d)
        prepared = (self.super_parents, self.prepared_pseudo_counts, self.widths)
        if not k or all(part is None for part in prepared):
            return
        require(bool(self.super_parents), "super_parents is missing")
        require_columns("super_parents", self.super_parents or ())
        require_positions("super_parents", self.super_parents or (), d)
        cells = int(self.stars.first[-1])
        require_finite("prepared_pseudo_counts", self.prepared_pseudo_counts, (k, cells), 0.0)
        verify_widths(self.widths, self.layout)

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), int(self.stars.first[-1])
        require_arrays("parameters", parameters, {"log_probability": shape})
        probability = probabilities_of("log_probability", parameters["log_probability"])
        require_sums_of_one("log_probability", self.stars.distribution_sums(probability))

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), int(self.stars.first[-1])
        require_arrays("statistics", statistics, {"count": shape}, least=0.0)

    # -- statistics and parameters -------------------------------------------------------------------------------

    def has_hidden(self, columns: Array) -> bool:
        return self.divides_rows and len(self.stars.tables) > 1

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        """Counts of the cells of all stars, (k, cells), in which a row counts once for each star on average."""
        if parameters is None or not self.has_hidden(columns):
            return self.statistics_of(self.structure_statistics(columns, weights))
        rows = max(SHARES_AT_A_TIME // (len(self.stars.tables) * weights.shape[1]), 1)
        parts = [
            self._divided(columns[start : start + rows], weights[start : start + rows], parameters)
            for start in range(0, max(len(columns), 1), rows)
        ]
        return {"count": reduce(np.add, parts)}

    def _divided(self, columns: Array, weights: Array, parameters: Arrays) -> Array:
        """Counts of all stars, for rows that are divided among them by their posterior."""
        stars = zip(self.stars.tables, self._shares(columns, parameters), strict=True)
        parts = [
            counts.weighted_counts(tables.cell_codes(columns), weights * share, tables.first)
            for tables, share in stars
        ]
        return len(parts) * np.concatenate(parts, axis=1)

    def parameters(self, statistics: Arrays) -> Arrays:
        pseudo = self._pseudo_counts
        count = self._smoothed(statistics["count"]) + pseudo
        count = floored(count, self.stars.distribution_sums(count), pseudo)
        return {"log_probability": np.log(count) - np.log(self.stars.distribution_sums(count))}

    def _smoothed(self, count: Array) -> Array:
        """Counts (k, cells), smoothed along the columns with ordered cells."""
        if self.widths is None or not self.widths.any():
            return count
        stars = zip(self.stars.tables, self.stars.split(count), strict=True)
        return np.concatenate([smooth(part, tables, self._smoothing) for tables, part in stars], axis=1)

    @cached_property
    def _smoothing(self) -> list[Array | None]:
        """The smoothing matrix of each column."""
        widths = np.zeros((0, 0)) if self.widths is None else self.widths
        return smoothing_matrices(self.layout.levels, widths, self.layout.ordered)

    def _count_prior(self, column_counts: Sequence[Array] | None) -> Array:
        """Pseudo-counts of all cells; back-off is to equal shares where no counts of columns are given."""
        equal = [np.ones((len(self.layout.classes), size)) for size in self.layout.levels]
        per_level = self.pseudo_counts(self.layout.levels)
        parts = [
            pseudo_counts(tables, per_level, column_counts or equal, self.back_off)
            for tables in self.stars.tables
        ]
        return np.concatenate(parts, axis=1)

    @cached_property
    def _pseudo_counts(self) -> Array:
        prepared = self.prepared_pseudo_counts
        return self._count_prior(None) if prepared is None else prepared

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        return keep_nonnegative(current, proposed)

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Gradient step on the log probabilities; of a row with missing values, pairs that are known contribute."""
        stars = self.stars.tables
        moved = parameters["log_probability"] + rate / len(stars) * direction["count"]
        parts = [tables.projected(part) for tables, part in zip(stars, self.stars.split(moved), strict=True)]
        return GradientStep({"log_probability": np.concatenate(parts, axis=1)}, None)

    def log_prior(self, parameters: Arrays) -> float:
        # The counts are those of as many rows as there are stars, for each row.
        return float(np.sum(self._pseudo_counts * parameters["log_probability"])) / len(self.stars.tables)

    # -- rows ----------------------------------------------------------------------------------------------------

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        total = reduce(np.logaddexp, self._log_parts(columns, parameters))
        return np.asarray(total - np.log(len(self.stars.tables)) - log_volume(columns, self.layout))

    def _log_parts(self, columns: Array, parameters: Arrays) -> Iterator[Array]:
        """Log probability of the known cells of each row in each star, (n, k)."""
        by_star = zip(
            self.stars.super_parents,
            self.stars.tables,
            self.stars.split(parameters["log_probability"]),
            strict=True,
        )
        for center, tables, table in by_star:
            # Given the super-parent the other columns are independent, so that missing ones are skipped.
            part = counts.look_up(tables.cell_codes(columns), table, tables.first)
            missing = np.flatnonzero(columns[:, center] < 0)
            if len(missing):
                part[missing] = log_sum_over_center(columns[missing], tables, center, table)
            yield part

    def _shares(self, columns: Array, parameters: Arrays) -> Array:
        """Posterior of the super-parents given the known cells and the class, (super-parents, n, k)."""
        parts = np.array(list(self._log_parts(columns, parameters)))
        shares = np.exp(parts - parts.max(axis=0))
        return np.asarray(shares / shares.sum(axis=0))

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        """Sample a super-parent by its posterior given the known cells, then a row from its star."""
        rows = np.full((len(classes), len(self.layout.columns)), -1) if given is None else given.copy()
        shares = self._shares(rows, parameters)[:, np.arange(len(rows)), classes]
        drawn = draw(shares.T, rng)
        for number, tree in enumerate(self.stars.with_probabilities(parameters)):
            chosen = drawn == number
            rows[chosen] = draw_missing(rows[chosen], classes[chosen], tree, rng)
        return rows

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Missing values replaced by the most probable level, averaged over classes and super-parents."""
        filled, incomplete = columns.copy(), np.flatnonzero((columns < 0).any(axis=1))
        rows, probabilities = columns[incomplete], [np.zeros((1, 1))] * columns.shape[1]
        shares = self._shares(rows, parameters) * posterior[incomplete]
        for share, tree in zip(shares, self.stars.with_probabilities(parameters), strict=True):
            for j, (missing_rows, levels) in enumerate(zip(*beliefs(rows, tree), strict=True)):
                weighted = np.einsum("nk,knl->nl", share[missing_rows], levels)
                probabilities[j] = probabilities[j] + weighted
        for j, levels in enumerate(probabilities):
            filled[columns[:, j] < 0, j] = np.argmax(levels, axis=1)
        return filled
