"""The generative-discriminative trade-off, with lambda chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from calibayes.core.notices import PlainText, counted, warn
from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_finite, require_instance, require_names, require_number
from calibayes.engines import computing
from calibayes.estimators.naive_bayes import GaussianNB
from calibayes.kernels.dispatch import numbers_given
from calibayes.learn import Run, learn, problem_of, stop_named
from calibayes.learn.train import prepare_folds
from calibayes.model import delegates, parameters, pickles
from calibayes.model.checked_rows import Reading, Rows, require_labels
from calibayes.model.estimator import GenerativeEstimator, recipe_of
from calibayes.model.parameters import adopt, estimator, number, open_fraction, seed_of, unfitted_copy
from calibayes.model.recipe import Recipe, shared_folds
from calibayes.model.splits import held_out_masks, hold_out
from calibayes.model.table_inputs import open_rows
from calibayes.model.verification import OPTIONAL_COLUMNS, is_fitted_with, require_score, verify_parameters
from calibayes.rules import GDT

FITTED_OF_ESTIMATOR = ("n_features_in_", "feature_names_in_", "training_table_")


@estimator
class TradeOffCV(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A generative estimator under ``GDT(lam)``, with lam chosen by cross-validation (gdt-2004, section 3).

    The path goes from lam = 1, maximum likelihood, to 0, the discriminative optimum; each value starts from the result of
    the one before. All folds follow it together, so that a pass over the data serves them all. Encoders are fitted fold by
    fold, to training rows alone.

    Parameters
    ----------
    estimator : generative estimator of this package, optional
        By default `GaussianNB`. Its rule is replaced.
    lams : sequence of floats
        Values to try, each between 0 and 1.
    cv : int, float, splitter or list of splits, default=5
        A number of stratified, shuffled folds; a share of each class's rows, held out once, so that there is one path; or
        what scikit-learn accepts.
    scoring : {"log_loss", "error"}, default="log_loss"
        The held-out score, averaged over the folds, that the best value minimizes.
    unlabeled, prior_weight : float
        Weights of rows without a label and of the log prior, as in `GDT`. Rows without a label are never held out by folds
        that are given as a number or a share.
    random_state : int, optional
        Seed of the folds.

    Attributes
    ----------
    lam_ : float
        The value chosen.
    estimator_ : estimator
        Trained with it on all rows.
    cv_results_ : mapping
        "lam", "log_loss", "error" -> arrays; the latter two of shape (values, folds).
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import LinearDiscriminantAnalysis, TradeOffCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TradeOffCV(LinearDiscriminantAnalysis(), random_state=0).fit(X, y)
    >>> bool(0 <= model.lam_ <= 1)
    True
    """

    estimator: GenerativeEstimator | None = field(default=None, kw_only=False)
    lams: Sequence[float] = (1.0, 0.75, 0.5, 0.25, 0.1, 0.03, 0.0)
    cv: Any = 5
    scoring: str = "log_loss"
    unlabeled: float = 0.0
    prior_weight: float | None = None
    random_state: int | None = None

    get_params = parameters.get_params
    set_params = parameters.set_params
    __getstate__ = pickles.get_state
    __setstate__ = pickles.set_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose lam, then train with it on all rows."""
        require_labels(self, y)
        given = open_rows(X, y, sample_weight)
        base = clone(GaussianNB() if self.estimator is None else self.estimator)
        if not isinstance(base, GenerativeEstimator):
            raise ValueError(f"estimator must be a generative estimator of this package, got {base!r}")
        lams, rule = self._candidates(), self._rule()
        with computing(base.engine, base.n_jobs) as engine:
            read = given.in_memory()
            classes, rows = read.rows(base, engine, Reading(base.class_weight, rule.uses_unlabeled))
            masks = self._masks(rows, len(np.asarray(read.y)))
            recipe = recipe_of(base.set_params(rule=rule), engine)
            results = _path_scores(recipe, rows, classes, masks, lams)
            lam = lams[int(np.argmin(results[self.scoring].mean(axis=1)))]
            trained = (
                clone(base).set_params(rule=replace(rule, lam=lam)).fit(read.X, read.y, read.sample_weight)
            )
        names = {name: getattr(trained, name) for name in FITTED_OF_ESTIMATOR if hasattr(trained, name)}
        results = {"lam": np.array(lams), **results}
        state = {"cv_results_": results, "lam_": lam, "estimator_": trained, **names}
        return adopt(self, {**vars(unfitted_copy(self)), **state, **given.kept(rows)})

    def _candidates(self) -> list[float]:
        """The values of lam, descending. Raises ValueError if one of them or the score is invalid."""
        values = numbers_given("lams", self.lams).ravel().tolist()
        lams = sorted({number("lam", lam, 0.0, 1.0) for lam in values}, reverse=True)
        if not lams or self.scoring not in ("log_loss", "error"):
            raise ValueError("give at least one lam, and scoring='log_loss' or 'error'")
        return lams

    def _rule(self) -> GDT:
        """The rule but for lam. Raises ValueError if a weight is invalid."""
        return GDT(unlabeled=self.unlabeled, prior_weight=self.prior_weight)

    def _masks(self, rows: Rows, n: int) -> list[Array]:
        """The rows that each fold holds out, of n rows that were passed."""
        seed = seed_of(self.random_state)
        if isinstance(self.cv, float | np.floating):
            share = open_fraction("cv", self.cv)
            return [hold_out(rows.codes, share, np.random.default_rng(seed), name="cv")]
        return held_out_masks(self.cv, rows, n, seed)

    def verify(self) -> None:
        """Raises ValueError unless the fitted attributes agree; see `calibayes.core.verify`."""
        required = ("n_features_in_", "training_table_", "cv_results_", "lam_", "estimator_")
        if not is_fitted_with(self, required, OPTIONAL_COLUMNS):
            return
        trained = self.estimator_
        is_fitted = isinstance(trained, GenerativeEstimator) and hasattr(trained, "fitted_")
        require(is_fitted, "estimator_ must be a fitted generative estimator")
        verify_parameters(self)
        self._candidates()
        self._rule()
        for name in FITTED_OF_ESTIMATOR:
            ours, theirs = (np.asarray(getattr(model, name, None)) for model in (self, trained))
            require(bool(np.array_equal(ours, theirs)), f"{name} is not that of estimator_")
        require_number("lam_", self.lam_, 0.0, 1.0)
        _verify_results(self.cv_results_, self.lam_)

    @property
    def classes_(self) -> Array:
        return self.estimator_.classes_

    @property
    def n_iter_(self) -> int:
        return int(self.estimator_.n_iter_)

    def summary(self) -> PlainText:
        """Plain text: the chosen lam, and the summary of the estimator trained with it."""
        check_is_fitted(self)
        k = counted(len(self.classes_), "class", "classes")
        chosen = f"{type(self).__name__}: {k}, lam {self.lam_:g} of {len(self.cv_results_['lam'])} values"
        return PlainText(f"{chosen}\n{self.estimator_.summary()}")

    def predict(self, X: Any) -> Array:
        """The class of each row, (n,)."""
        return self._chosen().predict(X)

    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (n, k)."""
        return self._chosen().predict_proba(X)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        return self._chosen().predict_log_proba(X)

    def decision_function(self, X: Any) -> Array:
        """Log odds for two classes, otherwise log p(x, class)."""
        return self._chosen().decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows, by weight, whose class is predicted; ``y`` and ``sample_weight`` may name columns of X."""
        return self._chosen().score(X, y, sample_weight)

    def _chosen(self) -> GenerativeEstimator:
        check_is_fitted(self)
        chosen: GenerativeEstimator = self.estimator_
        return chosen

    to_sql = delegates.to_sql
    to_onnx = delegates.to_onnx

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner: Any = GaussianNB() if self.estimator is None else self.estimator
        tags.input_tags = inner.__sklearn_tags__().input_tags
        return tags


def _verify_results(results: Mapping[str, Array], lam: float) -> None:
    """Raise ValueError unless there are scores for each value and fold, and the chosen value is one of them."""
    require_instance("cv_results_", results, Mapping)
    require_names("cv_results_", results, ("lam", "log_loss", "error"))
    lams = require_finite("lam of cv_results_", results["lam"], (None,), least=0.0)
    require(lam in lams.tolist(), f"lam_ is {lam:g}, which is not among the values of cv_results_")
    for name in ("log_loss", "error"):
        require_score(f"{name} of cv_results_", results[name], (len(lams), None))


def _path_scores(
    recipe: Recipe, rows: Rows, classes: Array, masks: Sequence[Array], lams: Sequence[float]
) -> dict[str, Array]:
    """Held-out log loss and error of each value and fold, (values, folds) each."""
    source, folds = shared_folds(recipe, rows, classes, masks)
    plan = recipe.plan()
    has_unlabeled = bool((rows.codes < 0).any())
    models, starts = prepare_folds(folds, source, recipe.engine, len(classes), unlabeled=has_unlabeled)
    results: dict[str, list[list[float]]] = {"log_loss": [], "error": []}
    for lam in lams:
        rule: Any = replace(recipe.rule, lam=lam)  # type: ignore[type-var]
        runs = []
        for model, statistics, fold in zip(models, starts, folds, strict=True):
            start, stop = rule.begin(model, statistics), stop_named(plan.stop, plan.rule)
            runs.append(Run(model, rule, start, stop, plan.max_iter, view=fold.view))
        learn(runs, source, recipe.engine, plan.callbacks)
        for problem in filter(None, map(problem_of, runs)):
            warn(problem, ConvergenceWarning)
        starts = [run.best.state.value for run in runs]
        entries = [run.history[run.best_iter] for run in runs]
        results["log_loss"].append([entry.validation_log_loss for entry in entries])
        results["error"].append([entry.validation_error for entry in entries])
    return {name: np.array(values) for name, values in results.items()}
