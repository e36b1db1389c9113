"""Averaged one-dependence estimators (AODE) over columns of levels: an average of stars, one for each super-parent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Self

import numpy as np
from scipy.special import logsumexp

from calibayes.core.protocols import Array, Arrays, Generator, Layout
from calibayes.core.verify import require, require_columns, require_positions
from calibayes.families.network_tables import ConditionalProbabilities
from calibayes.families.pair_tables import JoinedTables, TreeTables, log_volume, pseudo_counts, smooth
from calibayes.families.tree_structures import LARGEST_TABLES, cells_of_pairs
from calibayes.kernels import level_counts, level_pairs, networks
from calibayes.kernels.level_counts import draw
from calibayes.kernels.level_pairs import Pairs
from calibayes.kernels.networks import draw_missing_in_tree, tree_beliefs

# -- Conditional probability tables of stars: trees in which all columns depend on one of them, the super-parent

CELLS_AT_A_TIME = 2**22
"""Log probabilities by rows, classes and levels that are in memory at a time."""


@dataclass(frozen=True)
class Stars(JoinedTables):
    """Positions of the cells of the tables of several stars, side by side in one array.

    A column whose pair with the super-parent is not counted does not depend on it.
    """

    super_parents: tuple[int, ...]
    levels: tuple[int, ...]
    max_cells: int

    @cached_property
    def tables(self) -> tuple[TreeTables, ...]:
        """The tables of each star."""
        levels = self.levels

        def star(center: int) -> TreeTables:
            is_counted = [size * levels[center] <= self.max_cells for size in levels]
            is_counted[center] = False
            return TreeTables(tuple(center if counted else -1 for counted in is_counted), levels)

        return tuple(map(star, self.super_parents))

    @cached_property
    def first(self) -> Array:
        """Position of the first cell of each star, and the number of all cells."""
        return level_counts.offsets(tuple(sum(tables.sizes) for tables in self.tables))

    def split(self, table: Array) -> list[Array]:
        """The cells of each star, (k, cells), from those of all stars."""
        return np.split(table, self.first[1:-1], axis=1)

    def of_each(self, function: Callable[..., Array], *tables: Array, padding: float = 0.0) -> Array:
        parts = zip(self.tables, *(self.split(table) for table in tables), strict=True)
        return np.concatenate([function(*part) for part in parts], axis=1)

    @property
    def cell_count(self) -> int:
        return int(self.first[-1])

    def sources(self, pairs: Pairs) -> Array:
        """For each cell its position among the counts of all columns, followed by those of all pairs of columns."""
        singles, levels = level_counts.offsets(self.levels), self.levels
        columns = zip(pairs.left.tolist(), pairs.right.tolist(), strict=True)
        first = dict(zip(columns, singles[-1] + pairs.first[:-1], strict=True))

        def of_table(parent: int, j: int) -> Array:
            if parent < 0:
                return singles[j] + np.arange(levels[j])
            left, right = min(parent, j), max(parent, j)
            cells = first[left, right] + np.arange(levels[left] * levels[right])
            table = cells.reshape(levels[left], levels[right])
            return (table if parent == left else table.T).ravel()

        return np.concatenate([of_table(p, j) for star in self.tables for j, p in enumerate(star.parents)])

    def with_probabilities(self, parameters: Arrays) -> list[networks.TreeProbabilities]:
        """The stars with their log probabilities, as the kernels read them."""
        parts = self.split(parameters["log_probability"])
        return list(map(TreeTables.with_probabilities, self.tables, parts))


def log_sum_over_center(columns: Array, star: TreeTables, center: int, table: Array) -> Array:
    """Log probability (n, k) of the known cells of rows whose super-parent is missing, from the cells (k, cells) of its star.

    The other columns are independent given each level of the super-parent, over which the sum is.
    """
    tables, k, levels = star.split(table), len(table), star.levels[center]
    log_center, tables[center] = tables[center].reshape(k, levels), np.zeros((1, 1, levels))
    given_level = [np.broadcast_to(part, (k, levels, part.shape[2])) for part in tables]
    by_level = np.concatenate(given_level, axis=2).reshape(k * levels, -1)
    first, rows = level_counts.offsets(star.levels), max(CELLS_AT_A_TIME // (k * levels), 1)
    sums = []
    for start in range(0, len(columns), rows):
        scores = level_counts.look_up(columns[start : start + rows], by_level, first)
        sums.append(logsumexp(scores.reshape(-1, k, levels) + log_center, axis=2))
    return np.concatenate(sums)


# -- Averaged one-dependence estimators (AODE) over columns of levels: an average of stars, one for each super-parent

COPIES = 7
"""Tables of all pairs that are in memory: counts of the data, and in both directions counts, pseudo-counts and probabilities."""
SHARES_AT_A_TIME = 2**22
"""Posteriors of super-parents, over rows and classes, that are in memory at a time."""


@dataclass(frozen=True)
class AveragedOneDependence(ConditionalProbabilities):
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

    Examples
    --------
    >>> from calibayes import AODE
    >>> X, y = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "a"]] * 5, [0, 0, 1, 1] * 5
    >>> AODE().fit(X, y).score(X, y)  # its family is AveragedOneDependence
    1.0
    """

    divides_rows: bool = False
    least_rows: float = 0.0
    super_parents: tuple[int, ...] | None = field(default=None, repr=False, compare=False)
    """The columns that others depend on, set by `prepare`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.least_rows < np.inf:
            raise ValueError(f"least_rows must be finite and must not be negative, got {self.least_rows}")

    def bind(self, layout: Layout) -> Self:
        return replace(super().bind(layout), super_parents=None)

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
    def tables(self) -> Stars:
        return self.stars

    @property
    def row_copies(self) -> int:
        return len(self.stars.tables)

    @property
    def pairs(self) -> level_pairs.Pairs:
        """The pairs of columns that are counted. Raises ValueError if their tables do not fit into memory."""
        d, levels = len(self.layout.columns), self.layout.levels
        cells = COPIES * len(self.layout.classes) * cells_of_pairs(levels, self.max_cells)
        if cells > LARGEST_TABLES:
            raise ValueError(
                f"the tables of all pairs of {d} columns, in both directions, have {cells:.3g} cells over all classes, more "
                f"than {LARGEST_TABLES:.3g}: fewer columns or bins, pooled levels or a smaller max_cells help"
            )
        return level_pairs.column_pairs(levels, self.max_cells)

    def with_structure(self, structure_statistics: Arrays) -> Self:
        return replace(self, super_parents=self._chosen(self.column_counts(structure_statistics)))

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

    def verify_structure(self) -> None:
        require(bool(self.super_parents), "super_parents is missing")
        require_columns("super_parents", self.super_parents or ())
        require_positions("super_parents", self.super_parents or (), len(self.layout.columns))

    # -- statistics and parameters -------------------------------------------------------------------------------

    def has_hidden(self, columns: Array) -> bool:
        return self.divides_rows and len(self.stars.tables) > 1

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        """Counts of the cells of all stars, (k, cells), in which a row counts once for each star on average."""
        if parameters is None or not self.has_hidden(columns):
            return self.statistics_of(self.structure_statistics(columns, weights))
        rows = max(SHARES_AT_A_TIME // (len(self.stars.tables) * weights.shape[1]), 1)
        blocks = [slice(start, start + rows) for start in range(0, max(len(columns), 1), rows)]
        parts = (self._divided(columns[block], weights[block], parameters) for block in blocks)
        return {"count": reduce(np.add, parts)}

    def _divided(self, columns: Array, weights: Array, parameters: Arrays) -> Array:
        """Counts of all stars, for rows that are divided among them by their posterior."""
        parts = []
        for tables, share in zip(self.stars.tables, self._shares(columns, parameters), strict=True):
            codes = tables.cell_codes(columns)
            parts.append(level_counts.weighted_counts(codes, weights * share, tables.first))
        return len(parts) * np.concatenate(parts, axis=1)

    def smoothed(self, count: Array) -> Array:
        return self.stars.of_each(lambda tables, part: smooth(part, tables, self.smoothing), count)

    def count_prior(self, structure_statistics: Arrays | None) -> Array:
        column_counts = self.given_or_equal(structure_statistics)
        per_level = self.pseudo_counts(self.layout.levels)
        given = per_level, column_counts, self.back_off
        return self.stars.of_each(lambda tables: pseudo_counts(tables, *given))

    # -- rows ----------------------------------------------------------------------------------------------------

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        total = reduce(np.logaddexp, self._log_parts(columns, parameters))
        return np.asarray(total - np.log(len(self.stars.tables)) - log_volume(columns, self.layout))

    def _log_parts(self, columns: Array, parameters: Arrays) -> Iterator[Array]:
        """Log probability of the known cells of each row in each star, (n, k)."""
        stars, cells = self.stars, self.stars.split(parameters["log_probability"])
        for center, tables, table in zip(stars.super_parents, stars.tables, cells, strict=True):
            # Given the super-parent the other columns are independent, so that missing ones are skipped.
            part = level_counts.look_up(tables.cell_codes(columns), table, tables.first)
            missing = np.flatnonzero(columns[:, center] < 0)
            if len(missing):
                part[missing] = log_sum_over_center(columns[missing], tables, center, table)
            yield part

    def _shares(self, columns: Array, parameters: Arrays) -> Array:
        """Posterior of the super-parents given the known cells and the class, (super-parents, n, k)."""
        parts = np.array(list(self._log_parts(columns, parameters)))
        shares = np.exp(parts - parts.max(axis=0))
        return np.asarray(shares / shares.sum(axis=0))

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        """Sample a super-parent by its posterior given the known cells, then a row from its star."""
        rows = np.full((len(classes), len(self.layout.columns)), -1) if given is None else given.copy()
        shares = self._shares(rows, parameters)[:, np.arange(len(rows)), classes]
        drawn = draw(shares.T, rng)
        for number, tree in enumerate(self.stars.with_probabilities(parameters)):
            chosen = drawn == number
            rows[chosen] = draw_missing_in_tree(rows[chosen], classes[chosen], tree, rng)
        return rows

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Missing values replaced by the most probable level, averaged over classes and super-parents."""
        filled, incomplete = columns.copy(), np.flatnonzero((columns < 0).any(axis=1))
        rows, probabilities = columns[incomplete], [np.zeros((1, 1))] * columns.shape[1]
        shares = self._shares(rows, parameters) * posterior[incomplete]
        for share, tree in zip(shares, self.stars.with_probabilities(parameters), strict=True):
            for j, (missing_rows, levels) in enumerate(zip(*tree_beliefs(rows, tree), strict=True)):
                weighted = np.einsum("nk,knl->nl", share[missing_rows], levels)
                probabilities[j] = probabilities[j] + weighted
        for j, levels in enumerate(probabilities):
            filled[columns[:, j] < 0, j] = np.argmax(levels, axis=1)
        return filled
