"""The trade-off between generative and discriminative, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.estimators.checks import WHOLE, number
from calibayes.estimators.folds import begun, shared
from calibayes.estimators.generative import Generative
from calibayes.estimators.naive_bayes import GaussianNB
from calibayes.estimators.reading import Rows
from calibayes.learn import Lane, learn, stop_named
from calibayes.rules import GDT


@dataclass(eq=False, repr=False, kw_only=True)
class TradeOffCV(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any estimator of this package under ``GDT(lam)``, with lam chosen by cross-validation (gdt-2004, section 3).

    The path goes from lam = 1, maximum likelihood, to 0, each value started from the one before. All folds walk it
    together: a pass over the data serves them all. Encoders are fitted fold by fold, on training rows alone.

    Parameters
    ----------
    estimator : estimator, optional
        By default `GaussianNB`. Its rule is replaced.
    lams : sequence of floats
        Values to try, each between 0 and 1.
    cv : int, splitter or list of splits, default=5
        A number of stratified folds, at most as many as the rarest class has rows.
    scoring : {"log_loss", "error"}, default="log_loss"
        What is least for the best value, averaged over the folds.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import LinearDiscriminantAnalysis, TradeOffCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TradeOffCV(estimator=LinearDiscriminantAnalysis(), random_state=0).fit(X, y)
    >>> bool(0 <= model.lam_ <= 1)
    True
    """

    estimator: Generative | None = None
    lams: Sequence[float] = (1.0, 0.75, 0.5, 0.25, 0.1, 0.03, 0.0)
    cv: Any = 5
    scoring: str = "log_loss"
    random_state: int | None = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose lam, then train with it on all rows."""
        base = clone(GaussianNB() if self.estimator is None else self.estimator)
        lams = sorted({number("lam", lam, 0.0, 1.0) for lam in self.lams}, reverse=True)
        if not lams or self.scoring not in ("log_loss", "error"):
            raise ValueError("give at least one lam, and scoring='log_loss' or 'error'")
        base.classes_, rows = base._training_rows((X, y, sample_weight), base.class_weight, unlabeled=False)
        results = self._walk(base, rows, self._splits(rows, len(np.asarray(y))), lams)
        lam = lams[int(np.argmin(results[self.scoring].mean(axis=1)))]
        trained = clone(base).set_params(rule=GDT(lam=lam)).fit(X, y, sample_weight)
        self.cv_results_, self.lam_, self.estimator_ = {"lam": np.array(lams), **results}, lam, trained
        for name in ("classes_", "n_features_in_", "feature_names_in_", "n_iter_"):
            if hasattr(trained, name):
                setattr(self, name, getattr(trained, name))
        return self

    def _walk(
        self, base: Generative, rows: Rows, splits: Sequence[Array], lams: Sequence[float]
    ) -> dict[str, Array]:
        """Held-out log loss and error of each value and fold."""
        source, folds = shared(base, GDT(), rows, splits)
        engine = base._engine()
        models, states = begun(folds, source, engine, len(base.classes_))
        found: dict[str, list[list[float]]] = {"log_loss": [], "error": []}
        for lam in lams:
            lanes = [
                Lane(
                    model,
                    GDT(lam=lam),
                    state,
                    stop=stop_named(base.stop),
                    limit=base.max_iter,
                    view=fold.view,
                )
                for model, state, fold in zip(models, states, folds, strict=True)
            ]
            learn(lanes, source, engine, base._callbacks())
            states = [lane.best.state for lane in lanes]
            ends = [lane.history[lane.best_iter] for lane in lanes]
            found["log_loss"].append([entry.validation_log_loss for entry in ends])
            found["error"].append([entry.validation_error for entry in ends])
        return {name: np.array(values) for name, values in found.items()}

    def _splits(self, rows: Rows, n: int) -> list[Array]:
        """Which rows each fold holds out, booleans each; splitters count all rows that were passed, n of them."""
        if isinstance(self.cv, WHOLE):
            rarest = int(np.bincount(rows.codes).min())
            if rarest < 2:
                raise ValueError(
                    "a class has one row only (n_samples = 1): lam cannot be chosen by cross-validation"
                )
            splitter = StratifiedKFold(
                min(self.cv, rarest), shuffle=True, random_state=self.random_state or 0
            )
            tests = [test for _, test in splitter.split(rows.codes, rows.codes)]
            return [np.isin(np.arange(len(rows.codes)), test) for test in tests]
        codes = np.zeros(n, dtype=int)
        codes[rows.where] = rows.codes
        tests = [test for _, test in check_cv(self.cv, codes, classifier=True).split(codes, codes)]
        return [np.isin(rows.where, test) for test in tests]

    def predict(self, X: Any) -> Array:
        """The class of each row, (n,)."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (n, k)."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        check_is_fitted(self)
        return self.estimator_.predict_log_proba(X)

    def decision_function(self, X: Any) -> Array:
        """Log odds for two classes, else log p(x, class)."""
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner: Any = GaussianNB() if self.estimator is None else self.estimator
        tags.input_tags = inner.__sklearn_tags__().input_tags
        return tags
