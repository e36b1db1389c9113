"""Densities of sequences of symbols: Markov chains of any order that back off to shorter contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from calibayes.core import verify
from calibayes.core.abilities import GradientStep
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.families.counts import SkipsMissing, floored, keep_nonnegative
from calibayes.families.density import UNBOUND
from calibayes.families.priors import Dirichlet
from calibayes.kernels import level_counts
from calibayes.kernels.posterior import log_project

MOST_CELLS = 2**24
"""Largest number of counts of a class: the memory of all classes is a multiple of it."""
HIGHEST_ORDER = 100
"""Beyond what any alphabet allows: sizes of tables are computed before they are refused."""
DEFAULT_BACK_OFF = 5.0
"""Pseudo-rows of the default prior (``rule="map"``)."""


@dataclass(frozen=True)
class MarkovChain(SkipsMissing):
    """Markov chain of a sequence of symbols: each depends, given the class, on the ``order`` symbols before it.

    The statistics are weighted counts of each symbol after each context, so that every rule over counts applies. The
    conditional probabilities after a context are smoothed by those after the context without its oldest symbol, and so on
    down to the frequencies of the symbols, which ``alpha`` or ``prior`` smooth. Before the first symbol lies a start symbol.
    A gap (None or NaN inside a list, or a symbol that did not occur in training) is no evidence and ends the
    context: after it, contexts are as long as the known symbols since. The density is that of the symbols given the length.

    Parameters
    ----------
    order : int, default=2
        Number of symbols that the next one depends on; 0 is a bag of symbols.
    back_off : float, default=0
        Pseudo-rows added to the distribution after each context, distributed as after the context that is shorter by one.
    alpha : float, default=0
        Pseudo-count of each symbol in the distribution without context.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    positions : int, default=0
        Number of first positions with distributions of their own, for sequences that are aligned, such as windows of DNA
        around a site; all later positions share one. With ``order=0`` and the length of the sequences this is naive Bayes
        over the positions.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.sequences import Sequences
    >>> X, y = [["abab"], ["baba"], ["aabb"], ["bbaa"]], ["in turn", "in turn", "in pairs", "in pairs"]
    >>> chain = MarkovChain(order=1, alpha=1.0)
    >>> GenerativeClassifier(families=[("text", chain, every, Sequences())]).fit(X, y).predict([["ababa"]])
    array(['in turn'], dtype='<U8')
    """

    order: int = 2
    back_off: float = 0.0
    alpha: float = 0.0
    prior: Dirichlet | None = None
    positions: int = 0
    layout: Layout = field(default=UNBOUND, repr=False, compare=False)

    reads = "sequences"

    def __post_init__(self) -> None:
        require_whole_number("order of a MarkovChain", self.order, 0, HIGHEST_ORDER)
        require_whole_number("positions of a MarkovChain", self.positions, 0)
        for name in ("back_off", "alpha"):
            require_pseudo_count(f"{name} of a MarkovChain", getattr(self, name))
        require_alpha_or_prior(self)

    # -- which count a position of a sequence belongs to ---------------------------------------------------------------

    @property
    def _symbols(self) -> int:
        return self.layout.levels[0]

    @property
    def _sizes(self) -> list[int]:
        """Number of cells of the table of each length of context, at one position."""
        return [(self._symbols + 1) ** length * self._symbols for length in range(self.order + 1)]

    @property
    def cell_count(self) -> int:
        """Number of counts of a class."""
        return (self.positions + 1) * sum(self._sizes)

    @property
    def size(self) -> int:
        return len(self.layout.classes) * self.cell_count

    def bind(self, layout: Layout) -> Self:
        require_one_column(self, layout)
        bound = replace(self, layout=layout)
        if bound.cell_count > MOST_CELLS:
            where = f" with {self.positions} positions" if self.positions else ""
            raise ValueError(
                f"a Markov chain of order {self.order} over {bound._symbols} symbols{where} has {bound.cell_count:,} counts for each "
                f"class, more than {MOST_CELLS:,}: choose a lower order, or give rare symbols one name"
            )
        return bound

    def cells(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["count"])

    def cells_of_positions(self, codes: Array) -> Array:
        """The count that each position adds to, (n, length); -1 where the symbol is not known.

        A context is a number in base symbols + 1, whose last digit is the symbol just before; the start symbol is 0.
        """
        codes = np.asarray(codes, dtype=np.int64)
        known, base = (codes >= 0) & (codes < self._symbols), self._symbols + 1
        n, length = codes.shape
        before = np.zeros((n, length + self.order), dtype=np.int64)  # digits, `order` start symbols in front
        before[:, self.order :] = np.where(known, codes + 1, -1)
        context, goes_on = np.zeros((n, length), dtype=np.int64), np.ones((n, length), dtype=bool)
        first, size = np.zeros((n, length), dtype=np.int64), self._symbols
        for lag in range(1, self.order + 1):
            digits = before[:, self.order - lag : self.order - lag + length]
            goes_on &= digits >= 0
            context += np.where(goes_on, digits * base ** (lag - 1), 0)
            first += np.where(goes_on, size, 0)
            size *= base
        place = np.minimum(np.arange(length), self.positions)
        cells = place * sum(self._sizes) + first + context * self._symbols + codes
        return np.where(known, cells, -1)

    def _indicators(self, codes: Array) -> csr_array:
        """How often each sequence adds to each count, (n, cells)."""
        cells = self.cells_of_positions(codes)
        known = cells >= 0
        starts = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        entries = cells[known]
        return csr_array((np.ones(len(entries)), entries, starts), shape=(len(codes), self.cell_count))

    # -- statistics and parameters -------------------------------------------------------------------------------------

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        return self

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        return {"count": np.ascontiguousarray((self._indicators(columns).T @ weights).T)}

    def _tables(self, cells: Array) -> list[Array]:
        """Cells (k, cells) as a table for each length of context, (k, positions, contexts, symbols)."""
        by_position = cells.reshape(len(cells), self.positions + 1, -1)
        parts = np.split(by_position, np.cumsum(self._sizes)[:-1], axis=2)
        return [part.reshape(*part.shape[:2], -1, self._symbols) for part in parts]

    def _joined(self, tables: Sequence[Array]) -> Array:
        """The inverse of `_tables`."""
        flat = [table.reshape(*table.shape[:2], -1) for table in tables]
        return np.concatenate(flat, axis=2).reshape(len(tables[0]), -1)

    def _totals(self, count: Array) -> list[Array]:
        """Counts after contexts of each length, with those after all longer contexts that end in them."""
        totals = self._tables(count)
        for length in range(self.order, 0, -1):
            totals[length - 1] = totals[length - 1] + self._by_oldest(totals[length]).sum(axis=2)
        return totals

    def _by_oldest(self, table: Array) -> Array:
        """A table with an axis for the oldest symbol, (k, positions, symbols + 1, shorter contexts, symbols)."""
        return table.reshape(*table.shape[:2], self._symbols + 1, -1, self._symbols)

    @property
    def _pseudo_count(self) -> float:
        return self.alpha if self.prior is None else self.prior.pseudo_count(self._symbols)

    def parameters(self, statistics: Arrays) -> Arrays:
        shorter: Array = np.array(self._pseudo_count)
        tables = []
        for length, count in enumerate(self._totals(statistics["count"])):
            pseudo = np.broadcast_to(shorter, count.shape) if length == 0 else self._pseudo_counts(shorter)
            raised = count + pseudo
            raised = floored(raised, raised.sum(axis=-1, keepdims=True), pseudo)
            shorter = raised / raised.sum(axis=-1, keepdims=True)
            tables.append(np.log(raised) - np.log(raised.sum(axis=-1, keepdims=True)))
        return {"log_probability": self._joined(tables)}

    def _pseudo_counts(self, shorter: Array) -> Array:
        """Pseudo-counts after contexts, from the probabilities after contexts that are shorter by one."""
        repeated = np.repeat(self.back_off * shorter[:, :, None], self._symbols + 1, axis=2)
        return repeated.reshape(*shorter.shape[:2], -1, self._symbols)

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return np.asarray(self._indicators(columns) @ parameters["log_probability"].T)

    def position_terms(self, columns: Array, parameters: Arrays) -> Array:
        """log p(symbol | symbols before it, class) of each position, (n, k, length); 0 at gaps."""
        table = parameters["log_probability"]
        padded = np.concatenate([table, np.zeros((len(table), 1))], axis=1)
        return np.swapaxes(padded[:, self.cells_of_positions(columns)], 0, 1)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """A count that would be negative keeps its value."""
        return keep_nonnegative(current, proposed)

    # -- abilities -----------------------------------------------------------------------------------------------------

    def conjugate(self) -> Self:
        has_prior = bool(self.alpha or self.prior or self.back_off)
        return self if has_prior else replace(self, prior=Dirichlet(), back_off=DEFAULT_BACK_OFF)

    def exact(self) -> Self:
        return self

    def log_prior(self, parameters: Arrays) -> float:
        """Of each distribution given the one that it backs off to."""
        tables = self._tables(parameters["log_probability"])
        total = self._pseudo_count * float(tables[0].sum())
        for shorter, longer in pairwise(tables):
            total += float(np.sum(self._pseudo_counts(np.exp(shorter)) * longer))
        return total

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Gradient step on the log probabilities after the contexts that occur, without back-off."""
        moved = parameters["log_probability"] + rate * direction["count"]
        projected = log_project(moved.reshape(-1, self._symbols)).reshape(moved.shape)
        return GradientStep({"log_probability": projected}, None)

    def occurrences(self, statistics: Arrays) -> Array:
        return np.sum([table.sum(axis=(0, 1, 2)) for table in self._tables(statistics["count"])], axis=0)

    def recode(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        symbols = np.asarray(codes[0])
        digits = np.append(0, np.where(symbols < 0, -1, symbols + 1))
        recoded, base = replace(self, layout=replace(self.layout, levels=tuple(levels))), self._symbols + 1
        tables = []
        for length, table in enumerate(self._tables(statistics["count"])):
            by_digit = table.reshape(len(table), self.positions + 1, *[base] * length, self._symbols)
            every = [np.arange(self.positions + 1), *[digits] * length, symbols]
            sizes = (self.positions + 1, *[levels[0] + 1] * length, levels[0])
            moved = level_counts.recode_table(by_digit, every, sizes)
            tables.append(moved.reshape(len(table), self.positions + 1, -1, levels[0]))
        return {"count": recoded._joined(tables)}

    def verify(self) -> None:
        self.layout.verify()
        if self.layout.classes:
            require_one_column(self, self.layout)

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = len(self.layout.classes), self.cell_count
        verify.require_arrays("parameters", parameters, {"log_probability": shape})
        probability = verify.probabilities_of("log_probability", parameters["log_probability"])
        sums = probability.reshape(len(probability), -1, self._symbols).sum(axis=2)
        verify.require_sums_of_one("log_probability", sums)

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = len(self.layout.classes), self.cell_count
        verify.require_arrays("statistics", statistics, {"count": shape}, least=0.0)


def require_one_column(family: Any, layout: Layout) -> None:
    """Raises ValueError unless the family is bound to one column of sequences."""
    name = type(family).__name__
    if len(layout.columns) != 1:
        raise ValueError(
            f"a {name} is the density of one column of sequences, got {len(layout.columns)} columns: give each a family of its own"
        )
    if len(layout.levels) != 1:
        raise ValueError(f"a {name} reads symbols of sequences: use the encoder Sequences()")


def require_whole_number(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Raises ValueError unless this is a whole number in a range."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        limits = f"from {least} on" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} must be a whole number {limits}, got {value!r}")


def require_alpha_or_prior(family: Any) -> None:
    """Raises ValueError unless counts are smoothed by pseudo-counts, by a Dirichlet prior, or not at all."""
    if family.prior is not None and not isinstance(family.prior, Dirichlet):
        name = type(family).__name__
        raise ValueError(f"the prior of a {name} must be a Dirichlet() or None, got {family.prior!r}")
    if family.prior is not None and family.alpha:
        raise ValueError("give alpha or prior, not both")


def require_pseudo_count(name: str, value: Any) -> None:
    """Raises ValueError unless this is a finite number that is not negative."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a number from 0 on, got {value!r}")
