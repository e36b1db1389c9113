"""The base of the linear classifiers on log densities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from calibayes.core.notices import collected_warnings
from calibayes.core.protocols import Array
from calibayes.core.verify import (
    require_array,
    require_finite,
    require_instance,
    require_names,
    require_number,
)
from calibayes.engines import one_thread
from calibayes.estimators.interface.fitted_state import require_score
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.kept_rows import kept_rows_line
from calibayes.estimators.interface.labels import class_factors
from calibayes.estimators.interface.notebook import html_method, mime_bundle
from calibayes.estimators.interface.parameters import (
    REAL,
    WHOLE,
    adopt,
    estimator,
    seed_of,
    unfitted_copy,
    whole_number,
)
from calibayes.estimators.interface.splits import stratified_subset
from calibayes.estimators.interface.streams.lazy_predictions import by_partition
from calibayes.estimators.interface.streams.streaming import in_memory
from calibayes.estimators.log_density.densities import LabeledNumbers
from calibayes.estimators.log_density.losses import LOSSES, LinearModel, Loss, predicted_codes
from calibayes.estimators.log_density.numeric_rows import labeled_numbers
from calibayes.estimators.log_density.recipe import (
    LogDensityRecipe,
    TrainingFeatures,
    new_features,
    training_features,
)
from calibayes.estimators.log_density.reduction import reduce_features
from calibayes.estimators.log_density.report import Report, progress_reports
from calibayes.estimators.log_density.selection import (
    SCORINGS,
    Scoring,
    SelectionData,
    Split,
    cross_validation_splits,
    held_out_losses,
)
from calibayes.tables.text import PlainText, counted, listed

LEAST_DEVIATION = 1e-8
"""A feature whose standard deviation is below this is treated as constant."""


class Training(NamedTuple):
    """The rows of a fit, and what each of its steps needs."""

    rows: LabeledNumbers
    weights: Array
    """Sample weights times class weights, for the linear classifier, (n,)."""
    table_rows: Rows
    """The same rows as they were read."""
    n: int
    """Number of rows that were passed."""
    seed: int
    report: Report


class Choice(NamedTuple):
    """The features and the cost to use, and the held-out losses that they were chosen by."""

    features: Array
    cost: float
    cv_results: dict[str, Array] | None = None


def _has_probabilities(model: Any) -> bool:
    if model.linear_loss().log_probability is None:
        raise AttributeError(
            "loss='hinge' has no probabilities: use loss='log', or wrap the classifier in CalibratedClassifierCV"
        )
    return True


@estimator
class LogDensityClassifier(ClassifierMixin, LogDensityRecipe):  # type: ignore[misc]
    """A linear classifier on log densities. The parameters are described in `SparseLogBivariateClassifier`."""

    loss: str = "log"
    penalty: str = "l2"
    C: float | Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    class_weight: Mapping[Any, float] | str | None = None
    standardize: bool = True
    cv: Any = 3
    scoring: str = "loss"
    choice_rows: int | None = 2000

    always_fitted: ClassVar[tuple[str, ...]] = ("coef_", "intercept_", "C_")
    further_fitted: ClassVar[tuple[str, ...]] = ("cv_results_",)

    def verify(self) -> None:
        """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
        super().verify()
        if not hasattr(self, "densities_"):
            return
        k = len(self.classes_)
        scores = 1 if k == 2 else k
        require_finite("coef_", self.coef_, (scores, len(self.feature_names_)))
        require_finite("intercept_", self.intercept_, (scores,))
        require_number("C_", self.C_, np.finfo(np.float64).tiny)
        if hasattr(self, "cv_results_"):
            _verify_results(self.cv_results_)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate densities, choose pairs and cost, and fit the linear classifier.

        A row of weight w counts as w copies of it. A fit that fails leaves the estimator as it was.
        """
        reader, seed = unfitted_copy(self), seed_of(self.random_state)
        for check in (self.linear_loss, self._scoring, self._costs):  # before any long computation
            check()
        with (
            collected_warnings(),
            one_thread(),
            progress_reports(type(self).__name__, self.verbose) as report,
        ):
            X, y, sample_weight = in_memory(X, y, sample_weight)
            classes, rows, table_rows = labeled_numbers(reader, X, y, sample_weight)
            weights = rows.weights
            if self.class_weight is not None:
                weights = weights * class_factors(self.class_weight, classes, rows.codes, rows.weights)
            training = Training(rows, weights, table_rows, len(np.asarray(y)), seed, report)
            state = self._train(training, classes)
        return adopt(self, {**vars(reader), **state})

    _repr_html_ = property(html_method)
    _repr_mimebundle_ = mime_bundle

    def summary(self) -> PlainText:
        """Plain text: size of the model, the cost used and the number of training rows kept."""
        check_is_fitted(self)
        k = counted(len(self.classes_), "class", "classes")
        size = f"{counted(self.n_features_in_, 'column')}, {counted(len(self.feature_names_), 'feature')}"
        lines = [
            f"{type(self).__name__}: {k}, {size}, C {self.C_:g}",
            f"features: {listed(self.feature_names_)}",
            f"training table: {self.training_table_}",
        ]
        return PlainText("\n".join([*lines, kept_rows_line({"": self.kept_rows_})]))

    def _train(self, training: Training, classes: Array) -> dict[str, Any]:
        """The fitted attributes."""
        rows, names = training.rows, training.table_rows.table.names
        estimates = training_features(self, rows, names, training.seed, training.report)
        choice = self._choose(estimates, training)
        model = self._linear_model(
            estimates.features[:, choice.features], rows, training.weights, choice.cost
        )
        densities = estimates.densities.restrict_to(choice.features)
        state: dict[str, Any] = {
            "classes_": classes,
            "coef_": model.coefficients,
            "intercept_": model.intercepts,
            "C_": choice.cost,
            "densities_": densities,
            "feature_names_": densities.feature_names(names, classes.tolist()),
        }
        optional = {"cv_results_": choice.cv_results, "dependence_": estimates.dependence}
        return state | {name: value for name, value in optional.items() if value is not None}

    def _choose(self, estimates: TrainingFeatures, training: Training) -> Choice:
        """The candidate and the cost of least held-out loss; without cross-validation if there is only one of each."""
        candidates, costs = estimates.candidates, self._costs()
        if len(candidates) * len(costs) == 1:
            return Choice(candidates[0], costs[0])
        data_sets = self._selection_data(estimates, training)
        criterion = self.linear_loss(), self._scoring()
        losses = held_out_losses(data_sets, costs, training.rows.k, criterion, training.report)
        best, place = divmod(int(np.argmin(losses)), len(costs))
        sizes = np.array([len(candidate) for candidate in candidates])
        return Choice(
            candidates[best], costs[place], {"features": sizes, "C": np.array(costs), "loss": losses}
        )

    def _linear_model(
        self, features: Array, rows: LabeledNumbers, weights: Array, cost: float
    ) -> LinearModel:
        """Fitted to standardized features, with coefficients for the features before standardization."""
        center, scale = self._center_and_scale(features, rows.weights)
        loss = self.linear_loss()
        reduced, restore = reduce_features((features - center) / scale, loss)
        model = restore(loss.solve((reduced, rows.codes, rows.k, weights), cost))
        coefficients = model.coefficients / scale
        return LinearModel(coefficients, model.intercepts - coefficients @ center)

    def _center_and_scale(self, features: Array, weights: Array) -> tuple[Array, Array]:
        """Mean of each feature, and its standard deviation if features are standardized, otherwise 1."""
        center, scale = _mean_and_deviation(features, weights)
        return center, scale if self.standardize else np.ones_like(scale)

    def _selection_data(self, estimates: TrainingFeatures, training: Training) -> list[SelectionData]:
        """Data that pairs and cost are chosen on.

        Training rows that are left out of their own densities have densities like new rows, so that all splits use the
        same features. Otherwise each split estimates densities on its training rows.
        """
        rows, weights, table_rows, n, seed, _ = training
        if not self.leave_one_out:
            splits = cross_validation_splits(self.cv, table_rows, n, seed)
            return [self._split_data(training, split) for split in splits]
        most = None if self.choice_rows is None else whole_number("choice_rows", self.choice_rows, 10)
        subset = stratified_subset(rows.codes, most if isinstance(self.cv, WHOLE) else None, seed)
        splits = cross_validation_splits(self.cv, table_rows.only(subset), n, seed)
        features = estimates.features[subset]
        center, scale = self._center_and_scale(features, rows.weights[subset])
        standardized = (features - center) / scale
        return [
            SelectionData(standardized, rows.codes[subset], weights[subset], estimates.candidates, splits)
        ]

    def _split_data(self, training: Training, split: Split) -> SelectionData:
        """Training and held-out rows of one split, with densities of its training rows."""
        train, test = split
        rows, names = training.rows.only(train), training.table_rows.table.names
        estimates = training_features(self, rows, names, training.seed, training.report)
        new = estimates.densities.features(training.rows.columns[test], None, training.report)
        center, scale = self._center_and_scale(estimates.features, rows.weights)
        features, order = np.concatenate([estimates.features, new]), np.concatenate([train, test])
        positions = (np.arange(len(train)), np.arange(len(train), len(order)))
        return SelectionData(
            (features - center) / scale,
            training.rows.codes[order],
            training.weights[order],
            estimates.candidates,
            [positions],
        )

    def linear_loss(self) -> Loss:
        """The loss that ``loss`` and ``penalty`` name. Raises ValueError if they are unknown."""
        if (self.loss, self.penalty) not in LOSSES:
            raise ValueError(
                f"loss must be 'log' or 'hinge' and penalty 'l2' or 'l1', got {self.loss!r} and {self.penalty!r}"
            )
        return LOSSES[self.loss, self.penalty]

    def _scoring(self) -> Scoring:
        if self.scoring not in SCORINGS:
            raise ValueError(f"scoring must be one of {', '.join(SCORINGS)}, got {self.scoring!r}")
        return SCORINGS[self.scoring]

    def _costs(self) -> list[float]:
        """The values of C, ascending."""
        costs = [self.C] if isinstance(self.C, REAL) else list(self.C)
        if not costs or not all(0 < cost < np.inf for cost in costs):
            raise ValueError(f"C must be a positive number or a sequence of them, got {self.C!r}")
        return sorted(float(cost) for cost in costs)

    def _scores(self, X: Any) -> Array:
        features = new_features(self, X)
        return LinearModel(self.coef_, self.intercept_).scores(features)

    def decision_function(self, X: Any) -> Array:
        """Score of the second class, (n,), for two classes, otherwise of each class, (n, k)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The class of each row, (n,)."""
        codes = predicted_codes(self._scores(X))
        return self.classes_[codes]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @by_partition
    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        log_probability = self.linear_loss().log_probability
        assert log_probability is not None
        return log_probability(self._scores(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @by_partition
    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (n, k)."""
        return np.exp(self.predict_log_proba(X))


def _verify_results(results: Mapping[str, Array]) -> None:
    """Raise ValueError unless there is a held-out loss for each candidate and cost."""
    require_instance("cv_results_", results, Mapping)
    require_names("cv_results_", results, ("features", "C", "loss"))
    features = require_array("the features of cv_results_", results["features"], (None,), "iu")
    costs = require_finite("C of cv_results_", results["C"], (None,), least=0.0)
    require_score("the loss of cv_results_", results["loss"], (len(features), len(costs)))


def _mean_and_deviation(features: Array, weights: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each feature; the deviation of constant ones is 1."""
    center = weights @ features / weights.sum()
    deviation = np.sqrt(weights @ (features - center) ** 2 / weights.sum())
    return center, np.where(deviation > LEAST_DEVIATION, deviation, 1.0)
