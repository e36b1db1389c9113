"""Parameters of log densities, and the features of training rows: common to the transformer and the classifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibayes.core.notices import warn
from calibayes.core.protocols import Array
from calibayes.core.resolve import resolve
from calibayes.core.verify import require, require_instance, require_positions
from calibayes.dependence import BestFraction, Dependence, Selection, SignificantPairs, TopFraction
from calibayes.engines import one_thread
from calibayes.estimators.interface.fitted_state import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    is_fitted_with,
    require_same_classes,
    verify_columns,
)
from calibayes.estimators.interface.input import new_table
from calibayes.estimators.interface.parameters import estimator, number, whole_number
from calibayes.estimators.log_density.densities import (
    LabeledNumbers,
    LogDensities,
    class_dependence,
    learn_log_densities,
)
from calibayes.estimators.log_density.dependence import measure_named
from calibayes.estimators.log_density.numeric_rows import complete_matrix
from calibayes.estimators.log_density.report import Report, progress_reports

FITTED = ("classes_", "densities_", "feature_names_")


@estimator
class LogDensityRecipe(BaseEstimator):  # type: ignore[misc]
    """Parameters of the density estimates."""

    leave_one_out: bool = True
    original_columns: bool = True
    normal_scores: bool = True
    floor: float = 1e-4
    kept_rows: int | None = 2000
    random_state: int | np.random.RandomState | None = None
    verbose: bool | None = None

    always_fitted: ClassVar[tuple[str, ...]] = ()
    further_fitted: ClassVar[tuple[str, ...]] = ()
    """Fitted attributes besides classes, densities and names of features: those that every fit sets, and further ones."""

    def verify(self) -> None:
        """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
        optional = ("dependence_", *OPTIONAL_COLUMNS, *self.further_fitted)
        if not is_fitted_with(self, (*FITTED, *COLUMNS, *self.always_fitted), optional):
            return
        fitted, names = cast(Any, self), verify_columns(self).converted_names
        densities, classes = fitted.densities_, fitted.classes_
        require_instance("densities_", densities, LogDensities)
        require_instance("feature_names_", fitted.feature_names_, list)
        require_same_classes(classes, len(densities.kernels))
        require_positions("the columns of densities_", densities.varying.tolist(), len(names))
        expected = densities.feature_names(names, classes.tolist())
        require(fitted.feature_names_ == expected, "feature_names_ are not those of densities_")
        if hasattr(self, "dependence_"):
            require_instance("dependence_", fitted.dependence_, Dependence)
            varying = tuple(names[j] for j in densities.varying)
            require(fitted.dependence_.names == varying, "dependence_ has other columns than densities_")
            require(fitted.dependence_.classes == tuple(range(len(classes))), "dependence_ has other classes")

    @property
    def kept_rows_(self) -> int:
        """Number of training rows in the fitted model."""
        check_is_fitted(self)
        return int(cast(Any, self).densities_.n_rows)

    def candidate_pairs(
        self, rows: LabeledNumbers, names: Sequence[str], report: Report
    ) -> tuple[list[Array], Dependence | None]:
        """Candidate selections of (class, pair), each as positions in the flat (k, pairs) table; here one without pairs."""
        return [np.zeros(0, dtype=np.int64)], None


SELECTIONS: dict[str | None, Callable[[], Selection]] = {
    "cv": BestFraction,
    "significant": SignificantPairs,
    None: TopFraction,
}
"""Short names of selections; None keeps all pairs."""


@estimator
class WithPairs(LogDensityRecipe):
    """Parameters of the choice of pairs of columns."""

    measure: Any = "hsic"
    selection: Any = "cv"
    max_pairs: int | None = 10_000

    def candidate_pairs(
        self, rows: LabeledNumbers, names: Sequence[str], report: Report
    ) -> tuple[list[Array], Dependence | None]:
        """Candidate selections of (class, pair), each as positions in the flat (k, pairs) table, and the dependence."""
        most = None if self.max_pairs is None else whole_number("max_pairs", self.max_pairs, 0)
        measure = measure_named(self.measure)
        selection = resolve(
            "selection", self.selection, SELECTIONS, ability="candidates", example="TopFraction(0.1)"
        )
        dependence = class_dependence(measure, rows, names, range(rows.k), report)
        candidates = [np.asarray(candidate) for candidate in selection.candidates(dependence)]
        largest = max(len(candidate) for candidate in candidates)
        if most is not None and largest > most:
            warn(
                f"of {largest} densities of pairs only the {most} most dependent ones are used: see max_pairs"
            )
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
    most = None if recipe.kept_rows is None else whole_number("kept_rows", recipe.kept_rows, 2)
    densities, kept_positions = learn_log_densities(
        rows,
        floor=floor,
        kept_rows=most,
        seed=seed,
        normal_scores=recipe.normal_scores,
        original_columns=recipe.original_columns,
    )
    standardized = rows._replace(columns=densities.standardize(rows.columns))
    varying_names = [names[j] for j in densities.varying]
    candidates, dependence = recipe.candidate_pairs(standardized, varying_names, report)
    largest = max(candidates, key=len)
    densities = densities.with_pairs(*_pairs_at(largest, len(densities.varying)))
    features = densities.features(rows.columns, kept_positions if recipe.leave_one_out else None, report)
    begin = densities.n_without_pairs
    place = {int(pair): begin + position for position, pair in enumerate(largest)}
    positions = [
        np.array([*range(begin), *(place[int(pair)] for pair in candidate)]) for candidate in candidates
    ]
    return TrainingFeatures(densities, features, positions, dependence)


def new_features(model: Any, X: Any) -> Array:
    """Features of new rows, (n, features), by the densities of a fitted estimator."""
    matrix = complete_matrix(new_table(model, X))
    with one_thread(), progress_reports(type(model).__name__, model.verbose) as report:
        features: Array = model.densities_.features(matrix, None, report)
    return features


def _pairs_at(positions: Array, d: int) -> tuple[Array, Array]:
    """Class codes and columns of positions in the flat (k, pairs) table of d columns."""
    all_pairs = np.stack(np.triu_indices(d, 1))
    codes, pair = np.divmod(positions, max(all_pairs.shape[1], 1))
    return codes, all_pairs[:, pair]
