"""The base of the linear classifiers on log densities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import sklearn
from scipy.linalg import solve_triangular
from scipy.special import log_expit, logsumexp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from calibayes.core import verify
from calibayes.core.notices import PlainText, counted, listed
from calibayes.core.protocols import Array, Engine
from calibayes.core.verify import require_array, require_finite, require_instance, require_names
from calibayes.estimators import log_kernel_densities as log_densities
from calibayes.estimators.density_columns import LabeledNumbers, Report, labeled_numbers
from calibayes.estimators.log_kernel_densities import LogDensityRecipe, TrainingFeatures
from calibayes.estimators.logistic_path import (
    ITERATIONS,
    RIDGE,
    TOLERANCE,
    TOLERANCE_OF_CHOICE,
    LinearModel,
    Problem,
    logistic_path,
    multinomial,
)
from calibayes.kernels.dispatch import numbers_given
from calibayes.kernels.posterior import log_normalize
from calibayes.model.attributes import delegate, on_one_state
from calibayes.model.checked_rows import Rows, class_factors, kept_rows_line
from calibayes.model.classifier import Classifier
from calibayes.model.parameters import WHOLE, adopt, estimator, seed_of, unfitted_copy, whole_number
from calibayes.model.splits import held_out_masks, stratified_subset
from calibayes.model.table_inputs import open_rows
from calibayes.model.verification import require_score
from calibayes.tables.table import Table

# -- Linear classifiers on features: scikit-learn's solvers, each as coefficients and intercepts -------------

SVC_ITERATIONS = 1_000_000
"""Limit for the support vector machine, which may not converge on features that are not standardized; it then warns."""
L1 = {"l1_ratio": 1.0} if tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8) else {"penalty": "l1"}
"""The L1 penalty of logistic regression, whose parameter scikit-learn 1.8 renamed."""


@dataclass(frozen=True)
class Loss:
    """How a linear model is fitted and judged.

    Parameters
    ----------
    path : function of a problem, its ascending costs and a tolerance
        A model for each cost.
    rotation_invariant : bool
        Whether a rotation of the features does not change the scores, as with an L2 penalty.
    log_probability : function of scores, optional
        log p(class | x), (n, k), if the model has probabilities.
    is_linear : bool
        Whether log odds of more than two classes are linear in the scores.
    """

    path: Callable[[Problem, Sequence[float], float], list[LinearModel]]
    rotation_invariant: bool
    log_probability: Callable[[Array], Array] | None = None
    is_linear: bool = True

    def class_scores(self, scores: Array) -> Array:
        """log p(class | x), (n, k), up to a term of the row, and linear in the scores if this is possible."""
        if scores.shape[1] == 1:
            return np.concatenate([np.zeros_like(scores), scores], axis=1)
        return scores if self.is_linear else np.asarray(log_expit(scores))

    def solve(self, problem: Problem, cost: float) -> LinearModel:
        """The model for one cost."""
        return self.path(problem, [cost], TOLERANCE)[0]

    def row_losses(self, scores: Array, codes: Array) -> Array:
        """Loss of each row, (n,): -log p(class | x), or 1 for a wrong class if there are no probabilities."""
        if self.log_probability is None:
            return wrong_classes(scores, codes)
        return -self.log_probability(scores)[np.arange(len(codes)), codes]


def predicted_codes(scores: Array) -> Array:
    """The code of the class of highest score, (n,)."""
    return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)


def wrong_classes(scores: Array, codes: Array) -> Array:
    """1 for each row whose predicted class is wrong, else 0, (n,)."""
    return (predicted_codes(scores) != codes).astype(np.float64)


def one_against_others(scores: Array) -> Array:
    """log p(class | x), (n, k), of one binary logistic regression for each class, normalized."""
    return multinomial(scores) if scores.shape[1] == 1 else np.asarray(log_normalize(log_expit(scores))[0])


def _sparse_logistic(problem: Problem, costs: Sequence[float], tolerance: float) -> list[LinearModel]:
    model = LogisticRegression(solver="liblinear", max_iter=ITERATIONS, random_state=0, **L1)
    return [_each_class(model.set_params(C=cost), problem) for cost in costs]


def _hinge(problem: Problem, costs: Sequence[float], tolerance: float) -> list[LinearModel]:
    model = SVC(kernel="linear", max_iter=SVC_ITERATIONS)
    return [_each_class(model.set_params(C=cost), problem) for cost in costs]


def _sparse_hinge(problem: Problem, costs: Sequence[float], tolerance: float) -> list[LinearModel]:
    model = LinearSVC(penalty="l1", dual=False, max_iter=ITERATIONS, random_state=0)
    return [_each_class(model.set_params(C=cost), problem) for cost in costs]


def _each_class(model: Any, problem: Problem) -> LinearModel:
    """The second class against the first, or each class against the others, by copies of a classifier."""
    features, codes, k, weights = problem
    targets = [codes == 1] if k == 2 else [codes == c for c in range(k)]
    models = [clone(model).fit(features, target, sample_weight=weights) for target in targets]
    intercepts = [float(np.ravel(model.intercept_)[0]) for model in models]
    return LinearModel(np.concatenate([model.coef_ for model in models]), np.array(intercepts))


LOSSES: dict[tuple[str, str], Loss] = {
    ("log", "l2"): Loss(logistic_path, rotation_invariant=True, log_probability=multinomial),
    ("log", "l1"): Loss(
        _sparse_logistic, rotation_invariant=False, log_probability=one_against_others, is_linear=False
    ),
    ("hinge", "l2"): Loss(_hinge, rotation_invariant=True),
    ("hinge", "l1"): Loss(_sparse_hinge, rotation_invariant=False),
}
"""(loss, penalty) -> how to fit. With L1 the hinge loss is squared: scikit-learn has no other one with this penalty."""


# -- Reduction of features to as many as there are rows, with the same inner products ------------------------


def reduce_features(features: Array, loss: Loss) -> tuple[Array, Callable[[LinearModel], LinearModel]]:
    """At most n features (n, min(n, p)), and a function from a model fitted to them to one for the features given.

    With an L2 penalty the scores depend on the features through inner products of rows alone. If there are more features
    than rows, the Cholesky factor of these products has the same products and fewer columns.
    """
    n, p = features.shape
    if not loss.rotation_invariant or p <= n:
        return features, lambda model: model
    products = features @ features.T
    products[np.diag_indices(n)] += RIDGE * max(np.trace(products) / n, 1.0)
    factor = np.linalg.cholesky(products)

    def restore(model: LinearModel) -> LinearModel:
        dual = solve_triangular(factor, model.coefficients.T, lower=True, trans="T")
        return LinearModel((features.T @ dual).T, model.intercepts)

    return factor, restore


# -- Choice of the pairs of columns and of the cost by the loss of held-out rows -----------------------------

Split = tuple[Array, Array]
"""Positions of training rows and of held-out rows."""


SCORINGS = ("loss", "error", "balanced_error")
"""Mean losses of held-out rows, to be minimized: "loss" is the log loss if there are probabilities, else the error; in the
balanced error all classes have the same weight."""


def mean_loss(loss: Loss, scoring: str, scores: Array, codes: Array, weights: Array) -> float:
    """The mean loss of held-out rows by one of `SCORINGS`."""
    losses = loss.row_losses(scores, codes) if scoring == "loss" else wrong_classes(scores, codes)
    if scoring == "balanced_error":
        weights = weights / np.bincount(codes, weights)[codes]
    return float(weights @ losses / weights.sum())


Criterion = tuple[Loss, str]
"""A loss, and one of `SCORINGS`."""


class SelectionData(NamedTuple):
    """Rows that candidates are compared on."""

    features: Array
    """Standardized features of all candidates, (n, p)."""
    codes: Array
    weights: Array
    candidates: Sequence[Array]
    """Positions of the features of each candidate."""
    splits: Sequence[Split]


def cross_validation_splits(cv: Any, rows: Rows, n: int, seed: int) -> list[Split]:
    """Training and held-out positions among the rows; splitters split the n rows that were passed.

    Raises ValueError if a class has one row only, or if a split has no training row of some class or no held-out row.
    """
    counts = np.bincount(rows.codes)
    if isinstance(cv, WHOLE) and counts.min() < 2:
        problem = "a class has one row only (n_samples = 1)"
        advice = "give a selection with one candidate and one C"
        raise ValueError(f"{problem}, so pairs and cost cannot be chosen by cross-validation: {advice}")
    masks = held_out_masks(cv, rows, n, seed)
    for mask in masks:
        if not np.bincount(rows.codes[~mask], minlength=len(counts)).all() or not mask.any():
            lacking = "without training rows of some class or without held-out rows"
            raise ValueError(f"cv={cv!r} has a split {lacking}")
    return [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in masks]


def held_out_losses(
    data_sets: Sequence[SelectionData], costs: Sequence[float], k: int, criterion: Criterion, report: Report
) -> Array:
    """Mean loss of held-out rows for each candidate and cost, (candidates, costs)."""
    total = np.zeros((len(data_sets[0].candidates), len(costs)))
    steps = [(data, number) for data in data_sets for number in range(len(total))]
    for step, (data, number) in enumerate(steps):
        candidate = data.candidates[
            min(number, len(data.candidates) - 1)
        ]  # a split may have fewer distinct ones
        total[number] += _candidate_losses(data, candidate, costs, k, criterion)
        report("held-out losses of selections of pairs", step + 1, len(steps))
    return total / sum(len(data.splits) for data in data_sets)


def _candidate_losses(
    data: SelectionData, positions: Array, costs: Sequence[float], k: int, criterion: Criterion
) -> Array:
    """Mean held-out losses of one candidate, summed over the splits, (costs,)."""
    loss, scoring = criterion
    features = data.features[:, positions]
    total = np.zeros(len(costs))
    for train, test in data.splits:
        reduced, restore = reduce_features(features[train], loss)
        problem = (reduced, data.codes[train], k, data.weights[train])
        for place, model in enumerate(loss.path(problem, costs, TOLERANCE_OF_CHOICE)):
            scores = restore(model).scores(features[test])
            total[place] += mean_loss(loss, scoring, scores, data.codes[test], data.weights[test])
    return total


# -- The base of the linear classifiers on log densities -----------------------------------------------------

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
    if model._linear_loss().log_probability is None:
        advice = "use loss='log', or wrap the classifier in CalibratedClassifierCV"
        raise AttributeError(f"loss='hinge' has no probabilities: {advice}")
    return True


@estimator
class LogDensityClassifier(Classifier, LogDensityRecipe):
    """A linear classifier on log densities. The parameters are described in `SparseLogBivariateClassifier`."""

    loss: str = "log"
    penalty: str = "l2"
    C: float | Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    class_weight: Mapping[Any, float] | str | None = None
    standardize: bool = True
    cv: Any = 3
    scoring: str = "loss"
    choice_rows: int | None = 2000
    nested: bool = False

    _always_fitted: ClassVar[tuple[str, ...]] = ("coef_", "intercept_", "C_")
    _further_fitted: ClassVar[tuple[str, ...]] = ("cv_results_",)

    def verify(self) -> None:
        """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
        super().verify()
        if not hasattr(self, "densities_"):
            return
        self._check_choices()
        k = len(self.classes_)
        scores = 1 if k == 2 else k
        require_finite("coef_", self.coef_, (scores, len(self.feature_names_)))
        require_finite("intercept_", self.intercept_, (scores,))
        verify.require_number("C_", self.C_, np.finfo(np.float64).tiny)
        if hasattr(self, "cv_results_"):
            _verify_results(self.cv_results_)

    def _check_choices(self) -> None:
        """Raises ValueError if the loss, the score of the choice or a cost is invalid."""
        for check in (self._linear_loss, self._scoring, self._costs):
            check()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate densities, choose pairs and cost, and fit the linear classifier.

        A row of weight w counts as w copies of it. A fit that fails leaves the estimator as it was.
        """
        reader, seed = unfitted_copy(self), seed_of(self.random_state)
        self._check_choices()  # before any long computation
        given = open_rows(X, y, sample_weight)
        with given.engine(self), log_densities.progress_reports(type(self).__name__, self.verbose) as report:
            read = given.in_memory()
            classes, rows, table_rows = labeled_numbers(reader, read)
            weights = rows.weights
            if self.class_weight is not None:
                weights = weights * class_factors(self.class_weight, classes, rows.codes, rows.weights)
            training = Training(rows, weights, table_rows, len(np.asarray(read.y)), seed, report)
            state = self._train(training, classes)
        return adopt(self, {**vars(reader), **state, **given.kept(table_rows)})

    @on_one_state
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
        estimates = log_densities.training_features(self, rows, names, training.seed, training.report)
        choice = self._best_choice(estimates, training)
        model = self._linear_model(estimates.features[:, choice.features], training, choice.cost)
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

    def _best_choice(self, estimates: TrainingFeatures, training: Training) -> Choice:
        """The candidate and the cost of least held-out loss; without cross-validation if there is only one of each."""
        candidates, costs = estimates.candidates, self._costs()
        if len(candidates) * len(costs) == 1:
            return Choice(candidates[0], costs[0])
        data_sets = self._selection_data(estimates, training)
        criterion = self._linear_loss(), self._scoring()
        losses = held_out_losses(data_sets, costs, training.rows.k, criterion, training.report)
        best, place = divmod(int(np.argmin(losses)), len(costs))
        sizes = np.array([len(candidate) for candidate in candidates])
        results = {"features": sizes, "C": np.array(costs), "loss": losses}
        return Choice(candidates[best], costs[place], results)

    def _linear_model(self, features: Array, training: Training, cost: float) -> LinearModel:
        """Fitted to standardized features, with coefficients for the features before standardization."""
        loss, rows = self._linear_loss(), training.rows
        center, scale = self._center_and_scale(features, rows.weights)
        reduced, restore = reduce_features((features - center) / scale, loss)
        model = restore(loss.solve((reduced, rows.codes, rows.k, training.weights), cost))
        coefficients = model.coefficients / scale
        return LinearModel(coefficients, model.intercepts - coefficients @ center)

    def _center_and_scale(self, features: Array, weights: Array) -> tuple[Array, Array]:
        """Mean of each feature, and its standard deviation if features are standardized, otherwise 1."""
        center, scale = _mean_and_deviation(features, weights)
        return center, scale if self.standardize else np.ones_like(scale)

    def _selection_data(self, estimates: TrainingFeatures, training: Training) -> list[SelectionData]:
        """Data that pairs and cost are chosen on.

        Training rows that are left out of their own densities have densities like new rows, so that all splits may use the
        same features. Otherwise, and if ``nested`` is set, each split estimates densities on its training rows.
        """
        rows, weights, table_rows, n, seed, _ = training
        most = None if self.choice_rows is None else whole_number("choice_rows", self.choice_rows, 10)
        few = self.leave_one_out and isinstance(self.cv, WHOLE)
        subset = stratified_subset(rows.codes, most if few else None, seed)
        splits = cross_validation_splits(self.cv, table_rows.only(subset), n, seed)
        if self.nested or not self.leave_one_out:
            return [self._split_data(training, (subset[train], subset[test])) for train, test in splits]
        features, codes = estimates.features[subset], rows.codes[subset]
        center, scale = self._center_and_scale(features, rows.weights[subset])
        standardized = (features - center) / scale
        return [SelectionData(standardized, codes, weights[subset], estimates.candidates, splits)]

    def _split_data(self, training: Training, split: Split) -> SelectionData:
        """Training and held-out rows of one split, with densities of its training rows."""
        train, test = split
        rows, names = training.rows.only(train), training.table_rows.table.names
        estimates = log_densities.training_features(self, rows, names, training.seed, training.report)
        new = estimates.densities.features(training.rows.columns[test], None, training.report)
        center, scale = self._center_and_scale(estimates.features, rows.weights)
        features, order = np.concatenate([estimates.features, new]), np.concatenate([train, test])
        positions = (np.arange(len(train)), np.arange(len(train), len(order)))
        standardized, codes = (features - center) / scale, training.rows.codes[order]
        return SelectionData(standardized, codes, training.weights[order], estimates.candidates, [positions])

    def _linear_loss(self) -> Loss:
        """The loss that ``loss`` and ``penalty`` name. Raises ValueError if they are unknown."""
        given: list[Any] = [self.loss, self.penalty]
        if not all(isinstance(name, str) for name in given) or tuple(given) not in LOSSES:
            loss, penalty = map(repr, given)
            raise ValueError(
                f"loss must be 'log' or 'hinge' and penalty 'l2' or 'l1', got {loss} and {penalty}"
            )
        return LOSSES[self.loss, self.penalty]

    def _scoring(self) -> str:
        scoring: Any = self.scoring
        if not isinstance(scoring, str) or scoring not in SCORINGS:
            raise ValueError(f"scoring must be one of {', '.join(SCORINGS)}, got {scoring!r}")
        return scoring

    def _costs(self) -> list[float]:
        """The values of C, ascending."""
        costs = numbers_given("C", self.C).ravel().tolist()
        if not costs or not all(0 < cost < np.inf for cost in costs):
            raise ValueError(f"C must be a positive number or a sequence of them, got {self.C!r}")
        return sorted(costs)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @on_one_state
    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        return open_rows(X).map(self, "predict_log_proba", self._log_posterior)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @on_one_state
    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (n, k)."""
        return np.exp(self.predict_log_proba(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    @on_one_state
    def predict_joint_log_proba(self, X: Any) -> Array:
        """log p(x, class), (n, k): that of the class given x, and of x (`score_samples`)."""
        return open_rows(X).map(self, "predict_joint_log_proba", self._log_joint)

    @on_one_state
    def score_samples(self, X: Any) -> Array:
        """log p(x), (n,), of the columns as they are modeled: standardized, and by default as normal scores.

        The density of a class is that of a forest, the maximum spanning one of the pairs in use (slb-2020, Eq. 3; Chow and
        Liu 1968): densities of columns times p(a, b) / (p(a) p(b)) along its edges. Missing values are left out.
        """
        return open_rows(X).map(self, "score_samples", self._log_density)

    marginals = delegate("analysis.pair_marginals", "marginals_of")

    def _linear_scores(self, table: Table) -> Array:
        return LinearModel(self.coef_, self.intercept_).scores(log_densities.new_features(self, table))

    def _log_density(self, table: Table, engine: Engine) -> Array:
        shares = np.log(self.densities_.shares)
        return np.asarray(logsumexp(log_densities.new_class_log_densities(self, table) + shares, axis=1))

    def _log_joint(self, table: Table, engine: Engine) -> Array:
        return self._log_posterior(table, engine) + self._log_density(table, engine)[:, None]

    def _scores(self, table: Table, engine: Engine) -> Array:
        scores = self._linear_scores(table)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _labels(self, table: Table, engine: Engine) -> Array:
        codes = predicted_codes(self._linear_scores(table))
        return np.asarray(self.classes_[codes])

    def _log_posterior(self, table: Table, engine: Engine) -> Array:
        log_probability = self._linear_loss().log_probability
        assert log_probability is not None
        return log_probability(self._linear_scores(table))


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
