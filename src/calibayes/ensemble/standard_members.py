"""The members of `BayesClassifier`: models that describe different aspects of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

import numpy as np

from calibayes import families
from calibayes.encoders.bins import AdaptiveBins, InformedBins
from calibayes.encoders.by_column_type import ByColumnType, MissingAsLevel
from calibayes.encoders.dense import Dense, PrincipalComponents
from calibayes.ensemble.fitted_ensemble import FREQUENCIES
from calibayes.ensemble.path_members import KernelMember, Member, PathMember, RefitMember, ShrinkageMember
from calibayes.estimators.generative import GenerativeClassifier
from calibayes.families import Gaussian, WithinClasses
from calibayes.families.covariance_shapes import TowardsSphere
from calibayes.model.binding import Columns, every, is_family
from calibayes.model.checked_rows import Rows, TrainingRows, keeps_rows
from calibayes.model.estimator import GenerativeEstimator, traits_of
from calibayes.model.recipe import TrainingOptions
from calibayes.model.splits import rows_by_weight
from calibayes.rules import rule_named
from calibayes.tables.summary import TableSummary, reaches
from calibayes.tables.table import Table

MOST_WORK = 4e9
"""Largest number of multiplications per pass for the second moments of all classes, k n d^2."""
DIRECTIONS, SLOW_WORK = 64, 2e8
"""Number of principal components that replace more columns, and the multiplications per pass for the second moments of all
classes beyond which they do."""
COSTLY = 1e8
"""Multiplications from which on a pass is slow: about a hundredth of a second."""
MOST_CELLS = 1e7
"""Largest number of cells of a covariance matrix, d^2, and of those of all classes, k d^2."""
MOST_PAIRS = 1e9
"""Largest number of pairs of cells that are counted in a pass, n d^2."""
ROWS_FOR_PAIRS = 1000
"""Rows, counted by weight, from which on the tree is a member: with fewer it hardly ever gets a weight."""
FEW_ROWS = 10_000
"""Rows up to which members with slow passes or predictions are used by default: beyond, trees find what they would."""
ROWS_FOR_MISSING = 10
"""Rows with a missing value from which on it is a level of a column: what fewer rows show about it is noise."""

MANY_COLUMNS, LEAST_VARYING = 200, 0.01
"""Of tables with more columns, those of numbers that have one value in all but this share of the rows are left out of the
members that compare or combine all columns: divided by its small standard deviation, such a column would have extreme values,
and the time of these members is quadratic in the columns, or a product of all rows and columns."""

MOST_COMPONENTS = 1024
"""Largest number of components that span the rows of a wide table."""
SPHERE_SHARES = (1.0, 0.99, 0.97, 0.9, 0.7, 0.5, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0001)
"""Shares of a sphere in the covariance of a wide table that are compared."""
THRESHOLDS = (6.0, 5.0, 4.0, 3.5, 3.0, 2.75, 2.5, 2.25, 2.0, 1.75, 1.5, 1.25, 1.0, 0.75, 0.5, 0.25, 0.0)
"""Thresholds of the means of a wide table that are compared, in standard errors."""


def varying(table: Columns) -> Sequence[int]:
    """The columns for members that combine all of them: of many columns of numbers those that are nowhere near constant.

    A missing value counts as different from all others.
    """
    if isinstance(table, Table):
        return table.used
    weights = {j: _varying_weight(table, j) for j in table.used}
    if sum(weight > 0 for weight in weights.values()) <= MANY_COLUMNS:
        return table.used
    least = LEAST_VARYING * table.total_weight
    return [j for j, weight in weights.items() if reaches(weight, least)] or table.used


def _varying_weight(summary: TableSummary, j: int) -> float:
    """The weight of the rows whose number is not the most frequent one; inf for a column of many numbers, or of levels."""
    column = summary.column(j)
    if not (summary.is_numeric(j) and column.is_exact):
        return np.inf
    return summary.total_weight - float(column.weight.max()) if len(column.weight) else 0.0


@dataclass(frozen=True)
class TableSize:
    """The size of a table."""

    n: int
    """Rows that members are trained on."""
    k: int
    d: int
    """Encoded columns: numbers and indicators."""
    columns: int
    """Columns of the table."""
    weighted: float
    """Rows that members are trained on; a row of weight 2 counts twice."""
    rows: int = 0
    """Rows of the table, if these are more."""
    selection: Callable[[Columns], Sequence[int]] = every
    """The columns of members that combine all of them."""

    @property
    def work(self) -> float:
        """Multiplications per pass for the second moments of all classes."""
        return float(self.k) * self.n * self.d**2

    @property
    def is_wide(self) -> bool:
        """Whether there are more encoded columns than rows, so that a linear decision separates almost any classes."""
        return self.d > self.weighted

    def passes(self, most: int) -> int:
        """Largest number of passes of a path, in proportion to n / d on a wide table: its rows are soon separated."""
        return max(ceil(most * self.weighted / self.d), 2) if self.is_wide else most

    @property
    def needs_components(self) -> bool:
        """Whether covariances of all columns, one per class, would take too long or too much memory.

        On a wide table also if there are more columns than components.
        """
        is_large = self.work > SLOW_WORK or float(self.k) * self.d**2 > MOST_CELLS
        return self.d > DIRECTIONS and (is_large or self.is_wide)


def _kernel(size: TableSize) -> GenerativeClassifier:
    """Kernel naive Bayes: kernel densities and levels by column, with missing values as a level."""
    family = families.KernelDensity(families.OverBins())
    encoder = MissingAsLevel(ByColumnType(AdaptiveBins()), ROWS_FOR_MISSING)
    return GenerativeClassifier(families=[("kernel", family, every, encoder)])


def _tied(size: TableSize) -> GenerativeClassifier:
    """Gaussian classes with one covariance, hardly shrunk: small differences of correlated columns may matter."""
    family = Gaussian(families.Tied(), prior=WithinClasses(rows=50.0, diagonal=0.1, floor=0.1))
    return GenerativeClassifier(families=[("tied", family, size.selection, Dense())])


def _tied_in_span(share: float, factor: float) -> Gaussian:
    """Linear discriminant analysis, with a share of a spherical covariance."""
    prior = WithinClasses(rows=1.0, diagonal=0.0, floor=1e-3)  # for classes of one row each
    return Gaussian(families.Tied(), prior=prior, regularizer=families.Inflated(factor, TowardsSphere(share)))


def _shrunken_centroids(threshold: float, factor: float) -> Gaussian:
    """Gaussian classes with one variance per column, and means that are equal in columns without clear differences."""
    prior = WithinClasses(rows=50.0, floor=0.5)
    means = families.SoftThreshold(threshold)
    return Gaussian(families.TiedDiagonal(), prior=prior, regularizer=families.Inflated(factor), means=means)


def _tied_member(size: TableSize) -> Member:
    """On a wide table, in the span of its rows: a (d, d) covariance is neither needed nor known from so few rows."""
    if not size.is_wide:
        return PathMember(_tied(size), 80)
    encoder = PrincipalComponents(MOST_COMPONENTS, whiten=False)
    return ShrinkageMember("tied", _tied_in_span, SPHERE_SHARES, encoder)


def _centroids_member(size: TableSize) -> Member:
    return ShrinkageMember("centroids", _shrunken_centroids, THRESHOLDS, Dense())


def _full(size: TableSize) -> GenerativeClassifier:
    """Gaussian classes with a covariance each, shrunk strongly towards the covariance within all classes.

    If that would be too much work, on the principal components of the table.
    """
    prior = WithinClasses(rows=0.0, rows_per_column=20.0, diagonal=0.5, floor=0.1)
    encoder = PrincipalComponents(DIRECTIONS) if size.needs_components else Dense()
    return GenerativeClassifier(
        families=[("full", Gaussian(families.Full(), prior=prior), size.selection, encoder)]
    )


def _tree(size: TableSize) -> GenerativeClassifier:
    """Tree-augmented naive Bayes on coarse bins that are cut where the class frequencies change."""
    family = families.Tree(alpha=1.0, search=families.OneTree(families.SignificantEdges()), back_off=5.0)
    encoder = MissingAsLevel(ByColumnType(InformedBins(few=16, parts=4)), ROWS_FOR_MISSING)
    return GenerativeClassifier(families=[("tree", family, every, encoder)])


@dataclass(frozen=True)
class StandardMember:
    """A default member: how it is made, when it would take too long, and when it is used."""

    member: Callable[[TableSize], Member]
    too_large: Callable[[TableSize], str] = lambda size: ""
    is_used: Callable[[TableSize], bool] = lambda size: True
    work: Callable[[TableSize], float] = lambda size: 0.0
    """Multiplications per pass, if these take most of the time."""
    keeps_rows: bool = False
    """Whether the trained member contains training rows."""


def _path_member(
    make: Callable[[TableSize], GenerativeClassifier],
    passes: int,
    work: Callable[[TableSize], float] = lambda size: 0.0,
) -> Callable[[TableSize], PathMember]:
    """How a member is made that follows a path of at most so many passes, fewer on a wide table."""
    return lambda size: PathMember(
        make(size), size.passes(passes), is_costly=work(size) > COSTLY, is_tempered=size.is_wide
    )


def _too_wide(size: TableSize) -> str:
    if size.d**2 <= MOST_CELLS or size.is_wide:
        return ""
    return f"a covariance of {size.d} columns has more than {MOST_CELLS:.0e} cells"


def _least_work(size: TableSize) -> float:
    """Multiplications per pass for the second moments of all columns, or of principal components if these are too many."""
    return float(size.k) * size.n * min(size.d, DIRECTIONS) ** 2 if size.needs_components else size.work


def _too_much_work(size: TableSize) -> str:
    few, work = min(size.d, DIRECTIONS), _least_work(size)
    if work <= MOST_WORK:
        return _too_wide(size)
    cells = f"{size.k} classes x {size.n} rows x {few}^2 components"
    return f"{cells} are {work:.1e} multiplications per pass, more than {MOST_WORK:.0e}"


def _too_many_pairs(size: TableSize) -> str:
    if float(size.n) * size.columns**2 <= MOST_PAIRS:
        return ""
    return f"{size.n} rows x {size.columns}^2 columns are too many pairs of columns to count"


def _has_few_rows(size: TableSize) -> bool:
    return max(size.n, size.rows) <= FEW_ROWS


STANDARD: Mapping[str, StandardMember] = {
    "near": StandardMember(
        lambda size: KernelMember(columns=size.selection), is_used=_has_few_rows, keeps_rows=True
    ),
    "tied": StandardMember(_tied_member, _too_wide),
    "centroids": StandardMember(_centroids_member, is_used=lambda size: size.is_wide),
    "full": StandardMember(
        _path_member(_full, 60, _least_work), _too_much_work, _has_few_rows, work=_least_work
    ),
    "kernel": StandardMember(_path_member(_kernel, 120)),
    "tree": StandardMember(
        _path_member(_tree, 60), _too_many_pairs, lambda size: size.weighted >= ROWS_FOR_PAIRS
    ),
}
"""Name -> member, those with short paths first: long paths end early if they do not improve the ensemble. One with slow
passes is evaluated last."""


def standard_members(
    names: Sequence[str] | None,
    rows: Rows,
    k: int,
    keep_rows: bool = True,
    most_rows: int | None = None,
    beyond: TrainingRows | None = None,
) -> dict[str, Member | str]:
    """The members of these names, or the default ones; for a member that is left out, the reason.

    Without ``keep_rows`` the default ones are those that keep no training rows. Members are trained on about
    ``most_rows`` if there are more. ``rows`` may be some of those ``beyond``.
    """
    size = _size(rows, k, most_rows)
    if beyond is not None:
        size = replace(size, rows=len(beyond.codes))
    if names is None:
        usable = {name: member for name, member in STANDARD.items() if keep_rows or not member.keeps_rows}
        names = [name for name, member in usable.items() if member.is_used(size)]
    costly_last = sorted(names, key=lambda name: STANDARD[name].work(size) > COSTLY)
    return {name: STANDARD[name].too_large(size) or STANDARD[name].member(size) for name in costly_last}


def _size(rows: Rows, k: int, most_rows: int | None) -> TableSize:
    """The size of a table, with the encoded columns of the rows that members are trained on."""
    n, columns = len(rows.codes), rows.table.used
    used = n if most_rows is None else min(n, most_rows)
    if used < n:
        rows = rows.only(np.linspace(0, n - 1, used).astype(np.intp))
    selection = varying if len(columns) > MANY_COLUMNS else every
    encoded = Dense().fit(rows.summary, selection(rows.summary))
    return TableSize(used, k, len(encoded.names), len(columns), rows_by_weight(rows), n, selection)


def refuse_kept_rows(name: str, given: Any = None, *rest: Any) -> None:
    """Raise ValueError if a member, given by its name or as an estimator, keeps training rows."""
    if STANDARD[name].keeps_rows if given is None else keeps_rows(given):
        advice = "leave it out of families, or set keep_rows=True"
        raise ValueError(f"member {name!r} keeps training rows, which keep_rows=False forbids: {advice}")


def member_of(name: str, given: Any, *rest: Any) -> Member:
    """The member for a family (with its encoder) or an estimator: with early stopping if it has a calibration path."""
    if is_family(given):
        return PathMember(GenerativeClassifier(families=[(name, given, every, *rest)]))
    if isinstance(given, type) or rest or not hasattr(given, "predict_log_proba"):
        raise ValueError(f"{name!r} must be a family or an estimator with predict_log_proba, got {given!r}")
    if not _is_of_this_package(given):
        raise ValueError(
            f"{name!r} is a {type(given).__name__}, but a member must be a family or an estimator of this package, such as "
            "GenerativeLogisticRegression(): average classifiers of other packages by scikit-learn's VotingClassifier"
        )
    if not isinstance(given, GenerativeEstimator):
        return RefitMember(given)
    if given.training is not None:
        given.training.refuse_checkpoint("the members of an ensemble")
    return PathMember(given) if _has_path(given) else RefitMember(given)


def _is_of_this_package(estimator: Any) -> bool:
    """Whether an estimator, or a base class of it, is defined in this package, so that it reads a `Table`."""
    package = __name__.partition(".")[0]
    return any(base.__module__.partition(".")[0] == package for base in type(estimator).__mro__)


def _has_path(estimator: GenerativeEstimator) -> bool:
    """Whether it is trained by full updates from the statistics of the data, so that a sum of steps says how far."""
    options = TrainingOptions() if estimator.training is None else estimator.training
    start = traits_of(estimator).start if options.start is None else options.start
    is_whole = options.batch_size is None and options.validation_fraction is None
    is_plain = start == "data" and is_whole and options.temperature == 1.0
    return is_plain and not rule_named(estimator.rule).is_closed_form


def named_members(given: Any) -> list[tuple[Any, ...]]:
    """Entries that begin with a name, all names different. Raises ValueError if they are not."""
    entries = list(given.items()) if isinstance(given, Mapping) else list(given)
    for entry in entries:
        if not (isinstance(entry, tuple | list) and len(entry) > 1 and isinstance(entry[0], str)):
            raise ValueError(f"give a list of (name, model), got {given!r}")
    names = [entry[0] for entry in entries]
    if not names:
        raise ValueError("there is nothing to average: give at least one member")
    if len(set(names)) < len(names) or FREQUENCIES in names:
        listed = ", ".join(names)
        raise ValueError(f"give names that differ from each other and from {FREQUENCIES!r}: {listed}")
    return [tuple(entry) for entry in entries]
