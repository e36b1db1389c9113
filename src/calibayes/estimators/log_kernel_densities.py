"""Log kernel densities of columns and of pairs of columns, class by class (slb-2020, Eq. 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibayes import dependence as dependence_measures
from calibayes.core import verify
from calibayes.core.notices import ProgressReporter, collected_warnings, warn
from calibayes.core.protocols import Array, resolve
from calibayes.core.verify import require, require_array, require_finite, require_instance, require_positions
from calibayes.dependence import Dependence, Measure
from calibayes.encoders import Levels
from calibayes.engines import one_thread
from calibayes.estimators import density_columns
from calibayes.estimators.density_columns import (
    LabeledNumbers,
    Report,
    class_dependence,
    each_known,
    known_means,
    labeled_numbers,
    numbers_and_codes,
    unlabeled_numbers,
    varying_columns,
)
from calibayes.kernels.grids import REFERENCE, plug_in_bandwidths
from calibayes.kernels.joint_density import OF_ANOTHER_CLASS, NormalScores, ProductKernel
from calibayes.model import parameters, pickles, verification
from calibayes.model.parameters import estimator, number, whole_number
from calibayes.model.table_inputs import open_rows
from calibayes.model.verification import COLUMNS, OPTIONAL_COLUMNS, is_fitted_with
from calibayes.tables.table import Table

# -- Progress reports of steps that may take longer than a second --------------------------------------------

SECONDS_BETWEEN_REPORTS = 1.0


@contextmanager
def progress_reports(name: str, verbose: bool | None) -> Iterator[Report]:
    """Inside, progress is reported at most once a second, not within the first one; None: only on a terminal."""
    reporter = ProgressReporter(name, verbose, interval=SECONDS_BETWEEN_REPORTS)
    try:
        yield reporter.count
    finally:
        reporter.close()


# -- Log kernel densities of columns and of pairs of columns, class by class (slb-2020, Eq. 5) ---------------

LEAST_BANDWIDTH = 1e-3
"""In standard deviations of the column: below it the density would have a spike at each repeated value."""

LEVEL_COUNT = 1.0
"""Pseudo-count of each level of a column."""

CONSTANT_DEVIATION = 0.1
"""Standard deviation, relative to that of the column, assumed for a column that is constant within a class."""


@dataclass(frozen=True)
class LogDensities:
    """The function from rows to features: standardized columns (optional), then log densities of columns and pairs.

    Parameters
    ----------
    varying : (d,) array
        Positions of the columns that are not constant.
    scores : NormalScores or None
        Transformation of these columns to normal scores, applied first.
    center, scale : (d,) arrays
        Mean and standard deviation of the transformed columns.
    kernels : one `ProductKernel` for each class
    pair_codes, pairs : (pairs,) and (2, pairs) arrays
        Class and columns of each pair.
    floor : float
        Least density, in units of one standard deviation of the columns.
    original_columns : bool
        Whether the standardized columns are features, except for columns of levels.
    levels : Levels or None
        The encoder of the columns of levels, if there are any: their densities are tables of probabilities.
    expected : (n_univariate + pairs,) array, optional
        Mean of each log density over the training rows, which replaces that of a missing value.
    excess : (2, pairs) array, optional
        Mean difference between the log density of a pair and that of its first and of its second column, which is added
        to the log density of the known column where the other one is missing.
    """

    varying: Array
    scores: NormalScores | None
    center: Array
    scale: Array
    kernels: Sequence[ProductKernel]
    pair_codes: Array
    pairs: Array
    floor: float
    original_columns: bool = False
    levels: Levels | None = None
    expected: Array | None = None
    excess: Array | None = None

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        d, k = len(require_array("varying", self.varying, (None,), "iu")), len(self.kernels)
        require(d > 0 and k > 0 and self.varying[0] >= 0, "the densities have no columns or no classes")
        verify.require_ascending("varying", self.varying)
        require_finite("center", self.center, (d,))
        require(bool((require_finite("scale", self.scale, (d,)) > 0).all()), "scale must be positive")
        if self.scores is not None:
            verify.require_length("scores", self.scores.knots, d)
        for kernel in self.kernels:
            columns = len(kernel.centers)
            require(columns == d, f"the densities of a class have {columns} of {d} columns")
        count = len(require_array("pair_codes", self.pair_codes, (None,), "iu"))
        require_array("pairs", self.pairs, (2, count), "iu")
        require_positions("pair_codes", self.pair_codes.tolist(), k)
        require_positions("pairs", self.pairs.ravel().tolist(), d)
        require(bool((self.pairs[0] < self.pairs[1]).all()), "a pair must be two columns in ascending order")
        verify.require_number("floor", self.floor, 1e-300, 1.0)
        if self.expected is not None:
            require_finite("expected", self.expected, (self.n_univariate + count,))
            require_finite("excess", self.excess, (2, count))

    @property
    def n_rows(self) -> int:
        """Number of training rows that the densities are computed from."""
        return sum(len(kernel.weights) for kernel in self.kernels)

    @property
    def n_univariate(self) -> int:
        """Number of densities of one column."""
        return len(self.kernels) * len(self.varying)

    @property
    def n_without_pairs(self) -> int:
        """Number of features that do not depend on the choice of pairs."""
        return self.n_univariate + (len(self.numeric) if self.original_columns else 0)

    @property
    def numeric(self) -> Array:
        """Positions of the columns of numbers among the varying ones."""
        coded = () if self.levels is None else self.levels.indices
        return np.flatnonzero(~np.isin(self.varying, coded))

    def with_pairs(self, pair_codes: Array, pairs: Array) -> LogDensities:
        """The same with other pairs, of which nothing is known yet."""
        return replace(self, pair_codes=pair_codes, pairs=pairs, expected=None, excess=None)

    def restrict_to(self, features: Array) -> LogDensities:
        """The same with only those pairs whose feature is at one of these positions."""
        chosen = features[features >= self.n_without_pairs] - self.n_without_pairs
        fewer = self.with_pairs(self.pair_codes[chosen], self.pairs[:, chosen])
        if self.expected is None or self.excess is None:
            return fewer
        positions = np.concatenate([np.arange(self.n_univariate), self.n_univariate + chosen])
        return replace(fewer, expected=self.expected[positions], excess=self.excess[:, chosen])

    def standardize(self, columns: Array) -> Array:
        """Varying columns, transformed and standardized, (n, d)."""
        varying = columns[:, self.varying]
        scores = varying if self.scores is None else self.scores.apply(varying)
        return (scores - self.center) / self.scale

    def features(self, columns: Array, kept_positions: Sequence[Array] | None, report: Report) -> Array:
        """Features of rows, (n, features); see `evaluate` for ``kept_positions``."""
        return self.with_columns(columns, self.complete(self.evaluate(columns, kept_positions, report)))

    def with_columns(self, columns: Array, logs: Array) -> Array:
        """Log densities without missing values, after the standardized columns if these are features; (n, features)."""
        if not self.original_columns:
            return logs
        standardized = self.standardize(columns)[:, self.numeric]
        return np.concatenate([np.nan_to_num(standardized), logs], axis=1)

    @property
    def parts(self) -> tuple[Array, Array]:
        """Positions of the log densities of the first and of the second column of each pair, (pairs,) each."""
        first, second = self.pair_codes * len(self.varying) + self.pairs
        return first, second

    def with_expected(self, logs: Array, weights: Array) -> LogDensities:
        """The same with the means over training rows, whose log densities (n, n_univariate + pairs) may be missing."""
        single, expected = logs[:, : self.n_univariate], known_means(logs, weights)
        if np.isnan(logs).any():
            pairs = logs[:, self.n_univariate :]
            excess = [known_means(pairs - single[:, part], weights) for part in self.parts]
        else:
            excess = [expected[self.n_univariate :] - expected[part] for part in self.parts]
        return replace(self, expected=expected, excess=np.array(excess))

    def complete(self, logs: Array) -> Array:
        """Log densities without missing ones.

        Of a pair of which one value is missing, the log density of the known column stays, plus the mean difference of the
        two; otherwise the mean over the training rows is neutral for a linear classifier. Raises ValueError if there are
        missing values and no means.
        """
        missing = np.isnan(logs)
        if not missing.any():
            return logs
        if self.expected is None or self.excess is None:
            problem = "missing values, and this model of an older version cannot predict such rows"
            raise ValueError(f"Input X contains NaN: {problem}. Fill them, or fit the model again")
        single = logs[:, : self.n_univariate]
        first, second = (single[:, part] + more for part, more in zip(self.parts, self.excess, strict=True))
        known_part = np.where(np.isnan(first), second, first)
        marginal = np.concatenate([np.full(single.shape, np.nan), known_part], axis=1)
        filled = np.where(missing, marginal, logs)
        return np.where(np.isnan(filled), self.expected, filled)

    def evaluate(self, columns: Array, kept_positions: Sequence[Array] | None, report: Report) -> Array:
        """Log densities, (n, n_univariate + pairs).

        ``kept_positions`` has for each class the position of each row among the kept rows, -1 for none: each row is then
        left out of its own densities. Those of missing values are NaN.
        """
        rows = self.standardize(columns)
        n, d = rows.shape
        densities = np.empty((n, self.n_univariate + len(self.pair_codes)))
        for c, kernel in enumerate(self.kernels):
            class_pairs = np.flatnonzero(self.pair_codes == c)
            left_out = np.full(n, -1) if kept_positions is None else kept_positions[c]
            for block, of_columns, of_pairs in kernel.densities(rows, self.pairs[:, class_pairs], left_out):
                densities[block, c * d : (c + 1) * d] = of_columns
                densities[block, self.n_univariate + class_pairs] = of_pairs
                report("densities of rows", c * n + block.stop, len(self.kernels) * n)
        np.maximum(densities, self.floor, out=densities)
        return np.log(densities, out=densities)

    def feature_names(self, columns: Sequence[str], classes: Sequence[Any]) -> list[str]:
        """Names of the features, from the names of all columns."""
        names = [str(columns[j]) for j in self.varying]
        univariate = [f"log p({name} | {label})" for label in classes for name in names]
        pairs = zip(self.pair_codes, *self.pairs, strict=True)
        bivariate = [f"log p({names[i]}, {names[j]} | {classes[c]})" for c, i, j in pairs]
        return ([names[j] for j in self.numeric] if self.original_columns else []) + univariate + bivariate


def learn_log_densities(
    rows: LabeledNumbers,
    floor: float,
    kept_rows: int | None,
    seed: Any,
    normal_scores: bool = False,
    original_columns: bool = False,
) -> tuple[LogDensities, list[Array]]:
    """Densities of the columns, without pairs, and for each class the position of each row among its kept rows.

    Rows that are not kept have position -1, those of other classes `OF_ANOTHER_CLASS`. Raises ValueError if all columns are constant.
    """
    varying = varying_columns(rows.columns)
    if not len(varying):
        raise ValueError("all columns are constant: at least one must have two different values")
    columns, sizes = rows.columns[:, varying], rows.sizes[varying]
    scores = density_columns.normal_scores(columns, rows.weights, sizes) if normal_scores else None
    columns = columns if scores is None else scores.apply(columns)
    center, scale = density_columns.center_and_scale(columns, rows.weights, sizes)
    rng = np.random.default_rng(seed)
    kernels, kept_positions = [], []
    for c in range(rows.k):
        class_rows = _draw(np.flatnonzero(rows.codes == c), kept_rows, rng)
        kernels.append(_kernel((columns[class_rows] - center) / scale, rows.weights[class_rows], sizes))
        positions = np.full(len(columns), -1)
        positions[class_rows] = np.arange(len(class_rows))
        kept_positions.append(positions)
    kept = np.max(kept_positions, axis=0) >= 0
    kept_positions = [np.where(kept & (p < 0), OF_ANOTHER_CLASS, p) for p in kept_positions]
    no_pairs = _pairs_at(np.zeros(0, dtype=np.int64), len(varying))
    densities = LogDensities(
        varying,
        scores,
        center,
        scale,
        kernels,
        *no_pairs,
        floor,
        original_columns,
        _encoder_of(rows.levels, varying),
    )
    return densities, kept_positions


def _encoder_of(levels: Levels | None, columns: Array) -> Levels | None:
    """The encoder of those columns of levels that are among these; None if there are none."""
    indices = () if levels is None else levels.indices
    places = [place for place, j in enumerate(indices) if j in columns]
    if levels is None or not places:
        return None
    chosen: Any = {
        name: tuple(getattr(levels, name)[place] for place in places)
        for name in ("indices", "unpooled", "pooled")
    }
    return replace(levels, **chosen)


def _draw(positions: Array, most: int | None, rng: np.random.Generator) -> Array:
    """At most so many of the positions, drawn at random, ascending."""
    if most is None or len(positions) <= most:
        return positions
    return np.sort(rng.choice(positions, most, replace=False))


def _kernel(rows: Array, weights: Array, sizes: Array) -> ProductKernel:
    """Kernels of one class: plug-in bandwidths, for pairs at the optimal rate of two dimensions, n^(-1/6).

    Kernels of levels make tables of probabilities in which each level has `LEVEL_COUNT` pseudo-counts.
    """
    n = np.maximum(weights @ ~np.isnan(rows), 1.0)
    bandwidth = each_known(plug_in_bandwidths, rows, weights)
    bandwidth = np.where(bandwidth > 0, bandwidth, CONSTANT_DEVIATION * REFERENCE * n**-0.2)
    bandwidth = np.where(sizes > 0, 1.0, np.maximum(bandwidth, LEAST_BANDWIDTH))
    double = bandwidth * n ** (1 / 5 - 1 / 6) / REFERENCE
    other = np.where(sizes > 0, LEVEL_COUNT / (n + LEVEL_COUNT * sizes), 0.0)
    levels = np.array([np.where(sizes > 0, 1.0 - (sizes - 1) * other, 0.0), other]) if sizes.any() else None
    return ProductKernel(rows.T.copy(), weights, bandwidth, double, levels)


# -- Dependence of the columns of a table, class by class ----------------------------------------------------

MEASURES: dict[str, Callable[[], Measure]] = {
    "hsic": dependence_measures.HSIC,
    "pearson": dependence_measures.Pearson,
    "spearman": dependence_measures.Spearman,
    "mutual_information": dependence_measures.MutualInformation,
}
"""Short names of measures."""


def measure_named(measure: Any) -> Measure:
    """A measure by its short name, or the one given."""
    return resolve("measure", measure, MEASURES, ability="measure", example="HSIC()")


def measure_dependence(
    X: Any,
    y: Any = None,
    *,
    measure: Any = "hsic",
    permutations: int | None = None,
    sample_weight: Any = None,
    random_state: int = 0,
    verbose: bool | None = None,
) -> Dependence:
    """Measure the dependence of each pair of columns, over all rows or within each class.

    Parameters
    ----------
    X : array or data frame of numbers, (n, d)
    y : (n,) labels, optional
        Without them all rows are one class.
    measure : {"hsic", "pearson", "spearman", "mutual_information"} or measure, default="hsic"
    permutations : int, optional
        Number of permutations for p-values. By default p-values are approximate: from a gamma distribution for HSIC,
        Student's t for correlations, chi-squared for mutual information.
    sample_weight : (n,) array, optional
        A row of weight w counts as w copies of it.
    random_state : int, default=0
        Seed of the permutations.
    verbose : bool, optional
        Whether to report progress on the standard error stream after the first second; by default on a terminal only.

    Returns
    -------
    Dependence
        ``frame()`` is a table with class, pair, statistic and p-value; `calibayes.plots.plot_dependence` plots it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import measure_dependence
    >>> iris = load_iris(as_frame=True)
    >>> dependence = measure_dependence(iris.data, iris.target, measure="spearman")
    >>> dependence.frame().iloc[0][["first", "second"]].tolist()
    ['sepal length (cm)', 'petal length (cm)']
    """
    chosen = measure_named(measure)
    if permutations is not None:
        count = whole_number("permutations", permutations, 1)
        chosen = dependence_measures.Permuted(chosen, count, random_state)
    reader, classes = BaseEstimator(), ["all"]
    if y is None:
        names, rows = unlabeled_numbers(reader, X, sample_weight)
    else:
        labels, rows, table_rows = labeled_numbers(reader, open_rows(X, y, sample_weight))
        names, classes = table_rows.table.names, labels.tolist()
    with collected_warnings(), one_thread(), progress_reports("measure_dependence", verbose) as report:
        return class_dependence(chosen, rows, names, classes, report)


# -- Parameters of log densities, and the features of training rows: common to the transformer and the classifiers

FITTED = ("classes_", "densities_", "feature_names_")
Candidates = tuple[list[Array], Dependence | None]
"""Selections of pairs, and the dependence that they were selected by."""


@estimator
class LogDensityRecipe(BaseEstimator):  # type: ignore[misc]
    """Parameters of the density estimates."""

    get_params = parameters.get_params
    set_params = parameters.set_params
    __getstate__ = pickles.get_state
    __setstate__ = pickles.set_state

    leave_one_out: bool = True
    original_columns: bool = True
    normal_scores: bool = True
    floor: float = 1e-4
    kept_rows: int | None = 2000
    random_state: int | np.random.RandomState | None = None
    verbose: bool | None = None

    _always_fitted: ClassVar[tuple[str, ...]] = ()
    _further_fitted: ClassVar[tuple[str, ...]] = ()
    """Fitted attributes besides classes, densities and names of features: those that every fit sets, and further ones."""

    def verify(self) -> None:
        """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
        optional = ("dependence_", *OPTIONAL_COLUMNS, *self._further_fitted)
        if not is_fitted_with(self, (*FITTED, *COLUMNS, *self._always_fitted), optional):
            return
        fitted, names = cast(Any, self), verification.verify_columns(self).converted_names
        self._most_rows()
        densities, classes = fitted.densities_, fitted.classes_
        require_instance("densities_", densities, LogDensities)
        require_instance("feature_names_", fitted.feature_names_, list)
        verification.require_same_classes(classes, len(densities.kernels))
        require_positions("the columns of densities_", densities.varying.tolist(), len(names))
        expected = densities.feature_names(names, classes.tolist())
        require(fitted.feature_names_ == expected, "feature_names_ are not those of densities_")
        if hasattr(self, "dependence_"):
            require_instance("dependence_", fitted.dependence_, Dependence)
            varying = tuple(names[j] for j in densities.varying)
            require(fitted.dependence_.names == varying, "dependence_ has other columns than densities_")
            require(fitted.dependence_.classes == tuple(range(len(classes))), "dependence_ has other classes")

    def _most_rows(self) -> int | None:
        """Largest number of rows of a class to keep. Raises ValueError if it is invalid."""
        return None if self.kept_rows is None else whole_number("kept_rows", self.kept_rows, 2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags

    @property
    def kept_rows_(self) -> int:
        """Number of training rows in the fitted model."""
        check_is_fitted(self)
        return int(cast(Any, self).densities_.n_rows)

    def _candidate_pairs(self, rows: LabeledNumbers, names: Sequence[str], report: Report) -> Candidates:
        """Candidate selections of (class, pair), each as positions in the flat (k, pairs) table; here one without pairs."""
        return [np.zeros(0, dtype=np.int64)], None


SELECTIONS: dict[str | None, Callable[[], dependence_measures.PairSelection]] = {
    "cv": dependence_measures.BestFraction,
    "significant": dependence_measures.SignificantPairs,
    None: dependence_measures.TopFraction,
}
"""Short names of selections; None keeps all pairs."""


@estimator
class WithPairs(LogDensityRecipe):
    """Parameters of the choice of pairs of columns."""

    measure: Any = "hsic"
    selection: Any = "cv"
    max_pairs: int | None = 10_000

    def _candidate_pairs(self, rows: LabeledNumbers, names: Sequence[str], report: Report) -> Candidates:
        """Candidate selections of (class, pair), each as positions in the flat (k, pairs) table, and the dependence."""
        most = None if self.max_pairs is None else whole_number("max_pairs", self.max_pairs, 0)
        measure = measure_named(self.measure)
        example = "TopFraction(0.1)"
        selection = resolve("selection", self.selection, SELECTIONS, ability="candidates", example=example)
        dependence = class_dependence(measure, rows, names, range(rows.k), report)
        candidates = [np.asarray(candidate) for candidate in selection.candidates(dependence)]
        largest = max(len(candidate) for candidate in candidates)
        if most is not None and largest > most:
            used = f"only the {most} most dependent ones are used: see max_pairs"
            warn(f"of {largest} densities of pairs {used}")
        distinct = {candidate[:most].tobytes(): candidate[:most] for candidate in candidates}
        return list(distinct.values()), dependence


class TrainingFeatures(NamedTuple):
    """Features of training rows, for all pairs of any candidate."""

    densities: LogDensities
    features: Array
    """(n, features)"""
    candidates: list[Array]
    """Positions of the features of each candidate."""
    dependence: Dependence | None


def training_features(
    recipe: LogDensityRecipe, rows: LabeledNumbers, names: Sequence[str], seed: int, report: Report
) -> TrainingFeatures:
    """Estimate densities, find candidate selections of pairs and evaluate the features of the training rows."""
    floor = number("floor", recipe.floor, 1e-300, 1.0)
    most = recipe._most_rows()
    densities, kept_positions = learn_log_densities(
        rows, floor, most, seed, recipe.normal_scores, recipe.original_columns
    )
    standardized = rows._replace(
        columns=densities.standardize(rows.columns), sizes=rows.sizes[densities.varying]
    )
    varying_names = [names[j] for j in densities.varying]
    candidates, dependence = recipe._candidate_pairs(standardized, varying_names, report)
    largest = max(candidates, key=len)
    densities = densities.with_pairs(*_pairs_at(largest, len(densities.varying)))
    logs = densities.evaluate(rows.columns, kept_positions if recipe.leave_one_out else None, report)
    densities = densities.with_expected(logs, rows.weights)
    features = densities.with_columns(rows.columns, densities.complete(logs))
    begin = densities.n_without_pairs
    place = {int(pair): position for position, pair in enumerate(largest, begin)}
    positions = [np.array([*range(begin), *(place[int(pair)] for pair in some)]) for some in candidates]
    return TrainingFeatures(densities, features, positions, dependence)


def new_features(model: Any, table: Table) -> Array:
    """Features of new rows, (n, features), by the densities of a fitted estimator."""
    densities: LogDensities = model.densities_
    matrix = numbers_and_codes(table, densities.varying.tolist(), densities.levels)
    with progress_reports(type(model).__name__, model.verbose) as report:
        return densities.features(matrix, None, report)


def _pairs_at(positions: Array, d: int) -> tuple[Array, Array]:
    """Class codes and columns of positions in the flat (k, pairs) table of d columns."""
    all_pairs = np.stack(np.triu_indices(d, 1))
    codes, pair = np.divmod(positions, max(all_pairs.shape[1], 1))
    return codes, all_pairs[:, pair]
