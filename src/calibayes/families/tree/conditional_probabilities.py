"""Base of families whose columns depend on other columns: probabilities from counts, pseudo-counts and smoothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from calibayes.core.abilities import GradientStep
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.core.verify import (
    probabilities_of,
    require_arrays,
    require_finite,
    require_length,
    require_sums_of_one,
)
from calibayes.families.counts.pseudo_counts import keep_nonnegative
from calibayes.families.kernel.bandwidths import Bandwidth, InCells, check_bandwidth
from calibayes.families.tree.structures import PairCounts
from calibayes.families.tree.tables import bandwidths_in_cells, smoothing_matrices, verify_widths


class CellTables(Protocol):
    """Conditional probability tables of all columns, whose cells are side by side in one array (k, cells)."""

    @property
    def cell_count(self) -> int:
        """Number of cells of a class."""

    def distribution_sums(self, table: Array) -> Array:
        """The sum over each conditional distribution, repeated for each of its cells, (k, cells)."""

    def log_probabilities(self, count: Array, pseudo_count: Array) -> Array:
        """Log of each conditional distribution: counts plus pseudo-counts, divided by their sum, (k, cells)."""

    def projected(self, log_probability: Array) -> Array:
        """Log probabilities (k, cells) of which each conditional distribution is projected to a sum of 1."""


@dataclass(frozen=True)
class ConditionalProbabilities(PairCounts, ABC):
    """The probability of each level of a column given the class and the levels of the columns that it depends on.

    A subclass has a structure, which `prepare` learns from counts of pairs of columns, and its tables.

    Parameters
    ----------
    back_off : float, default=0
        Pseudo-rows added to each conditional distribution of a column.
    bandwidth : Bandwidth, default=InCells(0)
        Rule for the width of a Gaussian kernel that smooths the tables along columns with ordered cells.
    """

    back_off: float = 0.0
    bandwidth: Bandwidth = field(default_factory=lambda: InCells(0.0))
    prepared_pseudo_counts: Array | None = field(default=None, repr=False, compare=False)
    """Pseudo-counts of all cells (k, cells), set by `prepare`."""
    widths: Array | None = field(default=None, repr=False, compare=False)
    """Bandwidths in cells (k, d), set by `prepare`."""

    reads = "levels"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.back_off < np.inf:
            raise ValueError(f"back_off must be finite and must not be negative, got {self.back_off}")
        check_bandwidth(self.bandwidth)

    def conjugate(self) -> Self:
        return self if self.back_off else super().conjugate()

    # -- structure -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def structure(self) -> Any:
        """Which columns depend on which; None before `prepare`."""

    @property
    @abstractmethod
    def tables(self) -> CellTables:
        """The tables of this structure."""

    @property
    def table_columns(self) -> int:
        """Number of columns of the largest table."""
        return 2

    @property
    def row_copies(self) -> int:
        """How often the statistics count each row."""
        return 1

    @abstractmethod
    def with_structure(self, structure_statistics: Arrays) -> Self:
        """This family with the structure that these counts show."""

    def bind(self, layout: Layout) -> Self:
        return replace(self, layout=layout, prepared_pseudo_counts=None, widths=None)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        """This family with the structure, pseudo-counts and bandwidths learned from structure statistics."""
        structured, column_counts = self.with_structure(start), self.column_counts(start)
        return replace(
            structured,
            prepared_pseudo_counts=structured.count_prior(start),
            widths=bandwidths_in_cells(self.bandwidth, self.layout, column_counts, self.table_columns),
        )

    # -- verification --------------------------------------------------------------------------------------------

    def verify(self) -> None:
        super().verify()
        layout, k = self.layout, len(self.layout.classes)
        require_length("levels", layout.levels, len(layout.columns))
        prepared = (self.structure, self.prepared_pseudo_counts, self.widths)
        if not k or all(part is None for part in prepared):
            return
        self.verify_structure()
        shape = k, self.tables.cell_count
        require_finite("prepared_pseudo_counts", self.prepared_pseudo_counts, shape, 0.0)
        verify_widths(self.widths, layout)

    @abstractmethod
    def verify_structure(self) -> None:
        """Raises ValueError unless the structure is one of these columns and classes."""

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), self.tables.cell_count
        require_arrays("parameters", parameters, {"log_probability": shape})
        probability = probabilities_of("log_probability", parameters["log_probability"])
        require_sums_of_one("log_probability", self.tables.distribution_sums(probability))

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), self.tables.cell_count
        require_arrays("statistics", statistics, {"count": shape}, least=0.0)

    # -- statistics and parameters -------------------------------------------------------------------------------

    def has_hidden(self, columns: Array) -> bool:
        # A combination with a missing value is not counted, so the statistics do not depend on the parameters.
        return False

    def parameters(self, statistics: Arrays) -> Arrays:
        count = statistics["count"]
        if self.widths is not None and self.widths.any():
            count = self.smoothed(count)
        return {"log_probability": self.tables.log_probabilities(count, self._pseudo_counts)}

    @abstractmethod
    def smoothed(self, count: Array) -> Array:
        """Counts (k, cells), smoothed along the columns with ordered cells."""

    @cached_property
    def smoothing(self) -> list[Array | None]:
        """The smoothing matrix of each column, (k, levels, levels); None without smoothing."""
        widths = np.zeros((len(self.layout.classes), len(self.layout.columns)))
        given = widths if self.widths is None else self.widths
        return smoothing_matrices(self.layout.levels, given, self.layout.ordered)

    @abstractmethod
    def count_prior(self, structure_statistics: Arrays | None) -> Array:
        """Pseudo-counts of all cells; back-off is to equal shares where no structure statistics are given."""

    @cached_property
    def _pseudo_counts(self) -> Array:
        prepared = self.prepared_pseudo_counts
        return self.count_prior(None) if prepared is None else prepared

    def given_or_equal(self, structure_statistics: Arrays | None) -> list[Array]:
        """The counts of each column, (k, levels), all 1 where no structure statistics are given."""
        if structure_statistics is None:
            return [np.ones((len(self.layout.classes), size)) for size in self.layout.levels]
        return self.column_counts(structure_statistics)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        return keep_nonnegative(current, proposed)

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Gradient step on the log probabilities; of a row with missing values, tables of known cells contribute."""
        moved = parameters["log_probability"] + rate / self.row_copies * direction["count"]
        return GradientStep({"log_probability": self.tables.projected(moved)}, None)

    def log_prior(self, parameters: Arrays) -> float:
        return float(np.sum(self._pseudo_counts * parameters["log_probability"])) / self.row_copies
