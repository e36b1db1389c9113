"""Whether new rows come from another distribution than the training rows: p(x), p(class) or p(x | class)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from calibayes.analysis import two_sample_tests as tests
from calibayes.analysis.cell_scores import DIGITS, densities
from calibayes.analysis.column_cells import DriftReference, compared_columns
from calibayes.analysis.held_out import drift_reference, kept_reference
from calibayes.analysis.two_sample_tests import SampleCounts
from calibayes.core.notices import printable
from calibayes.core.protocols import Array
from calibayes.model.attributes import numpy_classes
from calibayes.model.checked_rows import new_table
from calibayes.model.parameters import number
from calibayes.model.table_inputs import on_numpy
from calibayes.model.training_rows import DRIFT
from calibayes.tables.table import Table

# -- The result of `drift` -----------------------------------------------------------------------------------

LISTED = 8
"""Most columns that the text names."""


@dataclass(frozen=True)
class ColumnDrift:
    """How one column differs between training rows and new rows.

    Attributes
    ----------
    name : str
    p_value : float
        Of equal distributions, adjusted for the number of columns (Holm).
    p_value_given_class : float
        Of equal distributions within every class, adjusted likewise.
    change : str
        The size of the difference, in words.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianNB(rule="ml").fit(X, y).drift(X[:60] + [0, 0, 0, 3]).columns[0].name
    'x3'
    """

    name: str
    p_value: float
    p_value_given_class: float
    change: str


@dataclass(frozen=True)
class Drift:
    """Whether new rows come from another distribution than the training rows, and in what they differ.

    The three p-values are adjusted for one another: without drift, one of them or more is at most ``alpha`` with probability
    at most about ``alpha``. The last two are no smaller than the first, as p(x) is unchanged if both of these are.

    Attributes
    ----------
    x : float
        p-value of an unchanged p(x): of all columns, of the predicted probabilities and of the log density.
    classes : float
        p-value of unchanged class frequencies, by the mean predicted probabilities.
    x_given_class : float
        p-value of an unchanged p(x | class), whatever the class frequencies.
    alpha : float
        The false-alarm rate.
    columns : tuple of ColumnDrift
        Smallest p-value first.
    class_names : tuple of str
    class_frequencies : (2, k) array
        Of the held-out rows and estimated for the new rows, if p(x | class) is unchanged.
    rows : tuple of int
        Number of held-out rows and of new rows.
    has_density : bool
        Whether log densities were compared; otherwise only single columns were.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianNB(rule="ml").fit(X, y).drift(X[:60] + 3.0).x < 0.05  # p-value of "p(x) has not moved"
    True
    """

    x: float
    classes: float
    x_given_class: float
    alpha: float
    columns: tuple[ColumnDrift, ...]
    class_names: tuple[str, ...]
    class_frequencies: Array
    rows: tuple[int, int]
    has_density: bool

    @property
    def moved(self) -> tuple[str, ...]:
        """Which of "p(x)", "p(class)" and "p(x | class)" have moved, at the false-alarm rate."""
        return tuple(name for name, p in self._p_values.items() if p <= self.alpha)

    @property
    def _p_values(self) -> dict[str, float]:
        return {"p(x)": self.x, "p(class)": self.classes, "p(x | class)": self.x_given_class}

    @property
    def is_detected(self) -> bool:
        """Whether anything has moved."""
        return bool(self.moved)

    @property
    def moved_columns(self) -> tuple[str, ...]:
        """Names of the columns that have moved, at the false-alarm rate for all columns together."""
        return tuple(column.name for column in self.columns if column.p_value <= self.alpha)

    def __str__(self) -> str:
        old, new = self.rows
        lines = [f"drift of {new} new rows against {old} held-out rows, false-alarm rate {self.alpha:g}"]
        for name, p in self._p_values.items():
            lines.append(f"  {name:<13}{'moved' if p <= self.alpha else 'no change found':<16} p = {p:.3g}")
        moved = [column for column in self.columns if column.p_value <= self.alpha]
        named = [(printable(c.name), printable(c.change), c.p_value) for c in moved[:LISTED]]
        lines += [f"  column {name}: {change} (p = {p:.3g})" for name, change, p in named]
        lines += [f"  and {len(moved) - LISTED} more columns"] * (len(moved) > LISTED)
        return "\n".join([*lines, *self._class_lines()])

    def _class_lines(self) -> list[str]:
        """The class that moved most, unless p(class) has not moved, or cannot be told from p(x | class)."""
        if self.classes > self.alpha:
            return []
        if self.x_given_class <= self.alpha:
            return ["  the predicted classes moved, which the change of p(x | class) may explain"]
        before, after = self.class_frequencies
        most = int(np.argmax(np.abs(after - before)))
        return [f"  class {printable(self.class_names[most])}: {before[most]:.0%} -> about {after[most]:.0%}"]


# -- Whether new rows come from another distribution than the training rows: p(x), p(class) or p(x | class)

FEWEST_ROWS = 10
DRAWS = 30
"""Draws of the class frequencies of the new rows from their sampling distribution."""
CLEAR = 0.2
"""p-value that is no evidence of a change."""
DENSITY_CELLS = 32
LEAST_COUNT = 1e-3
"""Rows that are added to each cell of a class, so that a new row may be in any cell."""
STEPS = 100
"""Steps of expectation maximization for class frequencies."""


def drift(self: Any, X_new: Any, *, alpha: float = 0.05) -> Drift:
    """Whether p(x), p(class) or p(x | class) of new rows differ from those of the training rows.

    p(x) is tested in each column (chi-square test over cells and, for numbers, rank test), by the mean predicted probabilities
    and, if the model has densities, by the log density of the rows, which also moves when the dependence between columns
    changes. p(class) is tested by the mean predicted probabilities alone. p(x | class) is tested by columns and density,
    against the training rows weighted to the class frequencies of the new rows, which are estimated from the predicted
    classes. As p(x) is unchanged if both of these are, they are only reported if p(x) has moved (a closed test), which keeps
    the false-alarm rate of the three together.

    Held-out rows and new rows are compared under one model: at the first call, one is trained without three tenths of the
    training rows. With rows of `with_held_out` it is this model.

    Parameters
    ----------
    X_new : array or data frame of shape (n, d)
        At least 10 rows, without labels.
    alpha : float, default=0.05
        The false-alarm rate: the probability that any of the three is reported for rows of the training distribution.

    Returns
    -------
    Drift
        p-values, the columns that moved and by how much; print it.
    """
    level = number("alpha", alpha, 0.0, 1.0)
    table = new_table(self, X_new)
    if table.n < FEWEST_ROWS:
        raise ValueError(f"drift needs at least {FEWEST_ROWS} new rows, got {table.n}")
    reference: DriftReference = kept_reference(self, DRIFT, "drift", drift_reference)
    model = self if reference.model is None else reference.model
    posterior = np.exp(np.asarray(on_numpy(model.predict_log_proba(table))))
    predicted = predicted_classes(reference, posterior)
    pairs = zip(reference.columns, compared_columns(table), strict=True)
    columns = [cells.compared(table, j) for cells, j in pairs]
    density = _density_counts(model, reference, table)
    plain = np.array([tests.homogeneity(counts) for counts in [*columns, *density]])
    given = np.array([mixture_p_value(counts, predicted) for counts in [*columns, *density]])
    classes = tests.equal_means(np.exp(reference.log_posterior), posterior)
    x, x_given_class = _combined(plain, len(columns), classes), _combined(given, len(columns))
    p_values = x, max(x, classes), max(x, x_given_class)
    drifts = _column_drifts(reference, columns, plain, given)
    frequencies = np.stack([predicted.start, class_frequencies(predicted)[0]])
    names, sizes = tuple(map(str, numpy_classes(self))), (len(reference.codes), table.n)
    return Drift(*p_values, level, drifts, names, frequencies, sizes, bool(density))


def _combined(p_values: Array, d: int, *others: float) -> float:
    """One p-value of d columns and of other tests, the density's among them; each gets an equal share of the error rate."""
    parts = [float(p_values[:d].min(initial=1.0)) * d, *p_values[d:].tolist(), *others]
    return float(min(1.0, len(parts) * min(parts)))


def _density_counts(model: Any, reference: DriftReference, table: Table) -> list[SampleCounts]:
    """Held-out and new rows by log density; nothing for a model without densities."""
    if reference.log_density is None:
        return []
    both = np.nan_to_num(np.concatenate([np.round(reference.log_density, DIGITS), densities(model, table)]))
    cuts = np.unique(np.quantile(both, np.arange(1, DENSITY_CELLS) / DENSITY_CELLS, method="inverted_cdf"))
    cells = np.searchsorted(cuts, both, side="right")
    m, size, k = len(reference.log_density), len(cuts) + 2, len(numpy_classes(model))
    old = np.bincount(reference.codes * size + cells[:m], minlength=k * size).reshape(k, size)
    return [SampleCounts(old, np.bincount(cells[m:], minlength=size), True)]


class PredictedClasses(NamedTuple):
    """Most probable classes of held-out rows and of new rows, and draws from their sampling distribution."""

    confusions: Array
    """Held-out rows by class and predicted class, (1 + draws, k, k)."""
    counts: Array
    """New rows by predicted class, (1 + draws, k)."""
    start: Array
    """Class frequencies of the held-out rows, (k,)."""


def predicted_classes(reference: DriftReference, posterior: Array) -> PredictedClasses:
    """Counts of predicted classes."""
    rng, k = np.random.default_rng(0), posterior.shape[1]
    codes, guessed = reference.codes, reference.log_posterior.argmax(axis=1)
    confusion = np.bincount(codes * k + guessed, minlength=k * k).reshape(k, k)
    counts = np.bincount(posterior.argmax(axis=1), minlength=k)
    drawn = [rng.multinomial(row.sum(), _shares(row), size=DRAWS) for row in confusion]
    all_counts = [counts[None], rng.multinomial(len(posterior), _shares(counts), size=DRAWS)]
    confusions = np.concatenate([confusion[None], np.stack(drawn, axis=1)])
    return PredictedClasses(confusions, np.concatenate(all_counts), _shares(np.bincount(codes, minlength=k)))


def class_frequencies(classes: PredictedClasses, column: SampleCounts | None = None) -> Array:
    """Class frequencies of new rows, estimated from each draw of predicted classes, (1 + draws, k).

    Maximum likelihood: the predicted classes have the frequencies times the confusion matrix, whether or not posteriors are
    calibrated. With the counts of a column, they are frequencies that fit this column as well.
    """
    likelihood, counts = _conditional(classes.confusions), classes.counts
    if column is not None:
        cells = np.broadcast_to(_conditional(column.old), (len(counts), *column.old.shape))
        likelihood = np.concatenate([likelihood, cells], axis=2)
        counts = np.concatenate([counts, np.broadcast_to(column.new, (len(counts), len(column.new)))], axis=1)
    return _maximum_likelihood(likelihood, counts, classes.start)


def _conditional(counts: Array) -> Array:
    """Shares within each class, none of them 0, (..., k, cells)."""
    smoothed = counts + LEAST_COUNT
    return np.asarray(smoothed / smoothed.sum(axis=-1, keepdims=True))


def _maximum_likelihood(likelihood: Array, counts: Array, start: Array) -> Array:
    """Class frequencies (draws, k) from p(cell | class) (draws, k, cells) and counts (draws, cells), by EM."""
    shares = np.broadcast_to(start, (len(counts), len(start)))
    for _ in range(STEPS):
        predicted = np.einsum("bc,bcg->bg", shares, likelihood)
        shares = shares * np.einsum("bcg,bg->bc", likelihood, counts / np.maximum(predicted, 1e-300))
        shares = shares / shares.sum(axis=1, keepdims=True)
    return np.asarray(shares)


def mixture_p_value(counts: SampleCounts, classes: PredictedClasses) -> float:
    """p-value of new rows that are a mixture of the old classes in this column, the largest over draws.

    A p-value that is large without the draws is not increased any more: this saves most of the time for many columns.
    """
    cells = tests.merged(counts)
    without_draws = PredictedClasses(classes.confusions[:1], classes.counts[:1], classes.start)
    first = tests.mixture_fit(counts, class_frequencies(without_draws, cells))
    return first if first > CLEAR else tests.mixture_fit(counts, class_frequencies(classes, cells))


def _shares(counts: Array) -> Array:
    return counts / counts.sum() if counts.sum() else np.full(len(counts), 1 / len(counts))


def _column_drifts(
    reference: DriftReference, columns: list[SampleCounts], plain: Array, given: Array
) -> tuple[ColumnDrift, ...]:
    """The columns by their p-values, plain and given the class, which are adjusted for the number of columns."""
    plain, given = (tests.holm(p_values[: len(columns)]) for p_values in (plain, given))
    drifts = [
        ColumnDrift(cells.name, float(plain[i]), float(given[i]), _change(cells.levels, columns[i]))
        for i, cells in enumerate(reference.columns)
    ]
    return tuple(drifts[i] for i in np.lexsort([given, plain]))


def _change(levels: tuple[str, ...], counts: SampleCounts) -> str:
    """The size of a difference in words: the level whose share moved most, or how often new numbers are larger."""
    old, new = _shares(counts.old.sum(axis=0)), _shares(counts.new)
    names = (*levels, "other levels", "missing")
    most = int(np.argmax(np.abs(new - old)))
    if counts.is_ordered:
        larger = tests.superiority(counts)
        if abs(new[-1] - old[-1]) <= abs(larger - 0.5):
            return f"a new value exceeds an old one in {larger:.0%} of pairs"
        return f"missing {old[-1]:.0%} -> {new[-1]:.0%}"
    return f"{names[most]} {old[most]:.0%} -> {new[most]:.0%}"
