"""Parameters of log kernel densities, the features of training rows, and the dependence of the columns of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibayes import dependence as dependence_measures
from calibayes.core.notices import ProgressReporter, collected_warnings, warn
from calibayes.core.protocols import Array, resolve
from calibayes.core.verify import require, require_instance, require_positions
from calibayes.dependence import Dependence, Measure
from calibayes.engines import one_thread
from calibayes.estimators.class_densities import (
    BandwidthRule,
    LogDensities,
    learn_log_densities,
    normal_bandwidths,
    pairs_at,
)
from calibayes.estimators.density_columns import (
    LabeledNumbers,
    Report,
    class_dependence,
    labeled_numbers,
    numbers_and_codes,
    unlabeled_numbers,
)
from calibayes.kernels.grids import plug_in_bandwidths
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

RULES: dict[str, BandwidthRule] = {"plug_in": plug_in_bandwidths, "normal": normal_bandwidths}
"""Name -> rule for bandwidths of single columns."""
OF_PAIRS: dict[str, Callable[[LogDensities], LogDensities]] = {
    "product": lambda densities: densities,
    "full": LogDensities.with_full_matrices,
}
"""Name -> the bandwidths of pairs."""
Named = TypeVar("Named")


def named(name: str, given: Any, choices: Mapping[str, Named]) -> Named:
    """The choice of this name. Raises ValueError, with the parameter's name, if there is none."""
    if not isinstance(given, str) or given not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {given!r}")
    return choices[given]


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
    bandwidths: str = "plug_in"
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None
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

    def _rule(self) -> BandwidthRule:
        """The rule for bandwidths of single columns. Raises ValueError if it is unknown."""
        return named("bandwidths", self.bandwidths, RULES)

    def _with_bandwidths(self, densities: LogDensities) -> LogDensities:
        """The densities with bandwidths of pairs other than those that follow from the columns."""
        return densities

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
    pair_bandwidths: str = "product"

    def _with_bandwidths(self, densities: LogDensities) -> LogDensities:
        return named("pair_bandwidths", self.pair_bandwidths, OF_PAIRS)(densities)

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
        rows, floor, most, seed, recipe.normal_scores, recipe.original_columns, recipe._rule()
    )
    standardized = rows._replace(
        columns=densities.standardize(rows.columns), sizes=rows.sizes[densities.varying]
    )
    varying_names = [names[j] for j in densities.varying]
    candidates, dependence = recipe._candidate_pairs(standardized, varying_names, report)
    largest = max(candidates, key=len)
    densities = recipe._with_bandwidths(densities.with_pairs(*pairs_at(largest, len(densities.varying))))
    logs = densities.evaluate(rows.columns, kept_positions if recipe.leave_one_out else None, report)
    densities = densities.with_expected(logs, rows)
    columns = np.nan_to_num(densities.own_columns(rows.columns))
    features = np.concatenate([columns, densities.complete(logs)], axis=1)
    begin = densities.n_without_pairs
    place = {int(pair): position for position, pair in enumerate(largest, begin)}
    positions = [np.array([*range(begin), *(place[int(pair)] for pair in some)]) for some in candidates]
    return TrainingFeatures(densities, features, positions, dependence)


def new_logs(model: Any, table: Table) -> tuple[Array, Array]:
    """Standardized columns of new rows, if these are features, and log densities, both NaN for missing values."""
    densities: LogDensities = model.densities_
    matrix = numbers_and_codes(table, densities.varying.tolist(), densities.levels)
    with progress_reports(type(model).__name__, model.verbose) as report:
        return densities.own_columns(matrix), densities.evaluate(matrix, None, report)


def new_features(model: Any, table: Table) -> Array:
    """Features of new rows, (n, features), by the densities of a fitted estimator."""
    columns, logs = new_logs(model, table)
    return np.concatenate([np.nan_to_num(columns), model.densities_.complete(logs)], axis=1)


def new_class_log_densities(model: Any, table: Table) -> Array:
    """log p(x | class) of new rows, (n, k), by the densities of a fitted estimator."""
    densities: LogDensities = model.densities_
    matrix = numbers_and_codes(table, densities.varying.tolist(), densities.levels)
    with progress_reports(type(model).__name__, model.verbose) as report:
        return densities.class_log_densities(matrix, report)
