"""Sparse log-bivariate densities: a linear classifier on log densities of columns and of dependent pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.dependence import BestFraction
from calibayes.engines import one_thread
from calibayes.estimators.announcing import Announcer
from calibayes.estimators.inner_splits import inner_splits, some_rows
from calibayes.estimators.interface.checks import REAL, whole_number
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.targets import class_factors
from calibayes.estimators.log_density.losses import LOSSES, Loss, Plane, decided
from calibayes.estimators.log_density.recipe import Learned, LogDensityRecipe, WithPairs, moments
from calibayes.estimators.log_density.reduction import narrowed
from calibayes.estimators.log_density.selection import SCORINGS, Scoring, Sheet, Splits, held_out_losses


def _has_probabilities(model: Any) -> bool:
    if model._loss().log_probability is None:
        raise AttributeError(
            "loss='hinge' has no probabilities: take loss='log', or CalibratedClassifierCV around this"
        )
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class LogDensityClassifier(ClassifierMixin, LogDensityRecipe):  # type: ignore[misc]
    """A linear classifier on log densities."""

    loss: str = "log"
    penalty: str = "l2"
    C: float | Sequence[float] = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    class_weight: Mapping[Any, float] | str | None = None
    standardize: bool = True
    cv: Any = 3
    scoring: str = "loss"
    choice_rows: int | None = 2000

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate densities, choose pairs and cost, and fit the linear classifier.

        ``sample_weight`` counts as that many copies of a row.
        """
        with one_thread():
            return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Self:
        loss, scoring, costs = self._loss(), self._scoring(), self._costs()
        classes, rows, read = self._labeled(X, y, sample_weight)
        weights = rows.weights
        if self.class_weight is not None:
            weights = weights * class_factors(self.class_weight, classes, rows.codes, rows.weights)
        seed, announce = self._seed(), self._announcer()
        learned = self._learn(rows, read.table.names, seed, announce)
        features, cost = learned.candidates[0], costs[0]
        if len(learned.candidates) * len(costs) > 1:
            sheets = self._sheets(learned, rows, weights, (read, y, seed), announce)
            losses = held_out_losses(sheets, costs, rows.k, (loss, scoring), announce)
            chosen, place = divmod(int(np.argmin(losses)), len(costs))
            features, cost = learned.candidates[chosen], costs[place]
            sizes = np.array([len(one) for one in learned.candidates])
            self.cv_results_ = {"features": sizes, "C": np.array(costs), "loss": losses}
        plane = self._plane(learned.features[:, features], rows, weights, cost)
        self.coef_, self.intercept_, self.C_, self.classes_ = *plane, cost, classes
        self.densities_ = self._only(learned.densities, features)
        self.feature_names_ = self._names_of(self.densities_, read.table.names, classes)
        if learned.dependence is not None:
            self.dependence_ = learned.dependence
        return self

    def _plane(self, features: Array, rows: Labeled, weights: Array, cost: float) -> Plane:
        """Fitted to standardized features, in terms of the features as they are."""
        center, scale = self._moments(features, rows.weights)
        loss = self._loss()
        turned, back = narrowed((features - center) / scale, loss)
        found = back(loss.solve((turned, rows.codes, rows.k, weights), cost))
        coefficients = found.coefficients / scale
        return Plane(coefficients, found.intercepts - coefficients @ center)

    def _moments(self, features: Array, weights: Array) -> tuple[Array, Array]:
        center, scale = moments(features, weights)
        return center, scale if self.standardize else np.ones_like(scale)

    def _sheets(
        self,
        learned: Learned,
        rows: Labeled,
        weights: Array,
        given: tuple[Rows, Any, int],
        announce: Announcer,
    ) -> list[Sheet]:
        """What pairs and cost are chosen on.

        Rows that are left out of their own densities are like new ones, so one sheet serves all splits. Otherwise each
        split estimates its own densities on its training rows.
        """
        read, y, seed = given
        if not self.leave_one_out:
            return [
                self._own_sheet(rows, weights, split, (read.table.names, seed), announce)
                for split in inner_splits(self.cv, read, y, seed)
            ]
        most = None if self.choice_rows is None else whole_number("choice_rows", self.choice_rows, 10)
        some = some_rows(rows.codes, most if isinstance(self.cv, int) else None, seed)
        splits: Splits = inner_splits(self.cv, read.only(some), y, seed)
        features = learned.features[some]
        center, scale = self._moments(features, rows.weights[some])
        return [
            Sheet((features - center) / scale, rows.codes[some], weights[some], learned.candidates, splits)
        ]

    def _own_sheet(
        self,
        rows: Labeled,
        weights: Array,
        split: tuple[Array, Array],
        told: tuple[Sequence[str], int],
        announce: Announcer,
    ) -> Sheet:
        (train, test), (names, seed) = split, told
        part = rows.only(train)
        learned = self._learn(part, names, seed, announce)
        new = self._map(learned.densities, rows.columns[test], None, announce)
        center, scale = self._moments(learned.features, part.weights)
        features, order = np.concatenate([learned.features, new]), np.concatenate([train, test])
        places = (np.arange(len(train)), np.arange(len(train), len(order)))
        return Sheet(
            (features - center) / scale, rows.codes[order], weights[order], learned.candidates, [places]
        )

    def _loss(self) -> Loss:
        if (self.loss, self.penalty) not in LOSSES:
            raise ValueError(
                f"loss must be 'log' or 'hinge' and penalty 'l2' or 'l1', got {self.loss!r}, {self.penalty!r}"
            )
        return LOSSES[self.loss, self.penalty]

    def _scoring(self) -> Scoring:
        if self.scoring not in SCORINGS:
            raise ValueError(f"scoring must be one of {', '.join(SCORINGS)}, got {self.scoring!r}")
        return SCORINGS[self.scoring]

    def _costs(self) -> list[float]:
        costs = [self.C] if isinstance(self.C, REAL) else list(self.C)
        if not costs or not all(0 < cost < np.inf for cost in costs):
            raise ValueError(f"C must be a positive number or several, got {self.C!r}")
        return sorted(float(cost) for cost in costs)

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        with one_thread():
            features = self._map(self.densities_, self._numbers(X, reset=False), None, self._announcer())
        return Plane(self.coef_, self.intercept_).scores(features)

    def decision_function(self, X: Any) -> Array:
        """Score of the second class, (n,), for two classes, else of each class, (n, k)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The class of each row, (n,)."""
        codes = decided(self._scores(X))
        return self.classes_[codes]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        to_log_probability = self._loss().log_probability
        assert to_log_probability is not None
        return to_log_probability(self._scores(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (n, k)."""
        return np.exp(self.predict_log_proba(X))


@dataclass(eq=False, repr=False, kw_only=True)
class SparseLogBivariateClassifier(WithPairs, LogDensityClassifier):
    """SLB: a linear classifier on log densities of columns and of dependent pairs of columns, class by class (slb-2020).

    By default densities of training rows leave each row out of its own, the linear classifier is logistic regression,
    and held-out rows choose the share of pairs and the cost. `paper` is the recipe of the paper instead.

    Parameters
    ----------
    measure : {"hsic", "pearson", "spearman", "mutual_information"} or measure, default="hsic"
        How dependent a pair is within a class; see `calibayes.dependence`.
    selection : "cv", selection or None, default="cv"
        Which pairs are kept: "cv" is `BestFraction`, a share chosen by cross-validation; `TopFraction`, `SignificantPairs`;
        None keeps all pairs (the paper's SLB-).
    max_pairs : int or None, default=10000
        Most densities of pairs over all classes, the most dependent ones; a warning says when it cuts.
    loss : {"log", "hinge"}, default="log"
        Logistic regression, which has probabilities, or a linear support vector machine, one class against the others
        where there are several.
    penalty : {"l2", "l1"}, default="l2"
        "l1" makes coefficients sparse; the hinge is squared then.
    C : float or several, default=(1e-4, ..., 1)
        Cost as in scikit-learn; of several values one is chosen by cross-validation.
    class_weight : dict or "balanced", optional
        Weights of classes in the linear classifier; densities do not depend on them.
    leave_one_out : bool, default=True
        Whether training rows are left out of their own densities. Without it (as in the paper) they look more probable
        than new rows, and each split of the cross-validation must estimate its own densities.
    original_columns : bool, default=True
        Whether the columns, as densities see them, are features, too.
    normal_scores : bool, default=True
        Whether columns are made about normal by their ranks first. Ratios of densities do not change with such a map, but
        kernels of one width fit skewed and heavy-tailed columns badly without it.
    standardize : bool, default=True
        Whether features are standardized before the linear classifier sees them.
    floor : float, default=1e-4
        Least density, in units of one standard deviation of each column: that of a normal one four of them out.
    kept_rows : int or None, default=2000
        Most rows of a class that densities are estimated from, a random draw, so that the model does not grow with the
        training rows; None keeps all of them.
    cv : int, splitter or list of splits, default=3
        A number of stratified folds, at most as many as the rarest class has rows.
    scoring : {"loss", "error", "balanced_error"}, default="loss"
        What is least for the best choice; "loss" is the log loss, for "hinge" the error. Rows count by their weights.
    choice_rows : int or None, default=2000
        Most rows, a random draw, that the choice is made on where ``leave_one_out`` is set and ``cv`` is a number.
    random_state : int or RandomState, optional
        Seed of draws and folds.
    verbose : bool, optional
        Whether to print progress after the first second; by default where a person watches.

    Attributes
    ----------
    classes_ : (k,) array
    coef_, intercept_ : (1 or k, features) and (1 or k,) arrays
        Of the features as they are: Lemma 1 of the paper says what they would be for trees.
    feature_names_ : list of str
    C_ : float
        The cost used.
    cv_results_ : mapping
        "features", "C" and "loss" (selections, costs), where something was chosen.
    dependence_ : Dependence
        The measure of every pair and class (classes by their position).
    densities_ : LogDensities
        The densities that the decision needs.

    Notes
    -----
    Columns must be numbers without missing cells; constant ones are left out. Fitting takes time and memory in
    proportion to the pairs of columns: at 500 columns ``max_pairs`` cuts. A class may have as few as two rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import SparseLogBivariateClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SparseLogBivariateClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The recipe of slb-2020, as near as its text and its Table 4 tell.

        Densities are evaluated on their own training rows; a linear support vector machine with C = 1 sees the log
        densities as they are; the share of pairs is chosen by the balanced error of three folds.
        """
        recipe: dict[str, Any] = {
            "measure": "hsic",
            "selection": BestFraction((0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)),
            "loss": "hinge",
            "penalty": "l2",
            "C": 1.0,
            "leave_one_out": False,
            "original_columns": False,
            "normal_scores": False,
            "standardize": False,
            "floor": 1e-10,
            "kept_rows": 2000,
            "cv": 3,
            "scoring": "balanced_error",
        }
        return cls(**{**recipe, **changes})


@dataclass(eq=False, repr=False, kw_only=True)
class LogUnivariateClassifier(LogDensityClassifier):
    """LU: a linear classifier on log densities of columns, class by class (slb-2020, section 5; Fan et al. 2016).

    Parameters
    ----------
    loss, penalty, C, class_weight, leave_one_out, original_columns, normal_scores, standardize, floor, kept_rows, cv, scoring, \
choice_rows, random_state, verbose
        See `SparseLogBivariateClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import LogUnivariateClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> LogUnivariateClassifier().fit(X, y).coef_.shape
    (3, 16)
    """
