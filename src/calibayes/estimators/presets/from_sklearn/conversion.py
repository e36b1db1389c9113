"""`from_sklearn`: a classifier of scikit-learn as it was fitted, as the estimator of the same name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sklearn import discriminant_analysis as sklearn_discriminant_analysis
from sklearn import naive_bayes as sklearn_naive_bayes
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from calibayes.estimators.presets.from_sklearn import discriminant_analysis, naive_bayes

COUNTED: Mapping[type, Callable[[Any], Any]] = {
    sklearn_naive_bayes.GaussianNB: naive_bayes.gaussian,
    sklearn_naive_bayes.BernoulliNB: naive_bayes.bernoulli,
    sklearn_naive_bayes.MultinomialNB: naive_bayes.multinomial,
    sklearn_naive_bayes.ComplementNB: naive_bayes.complement,
    sklearn_naive_bayes.CategoricalNB: naive_bayes.categorical,
}
"""Classes of scikit-learn that keep the number of training rows."""
UNCOUNTED: Mapping[type, Callable[[Any, Any], Any]] = {
    sklearn_discriminant_analysis.LinearDiscriminantAnalysis: discriminant_analysis.linear,
    sklearn_discriminant_analysis.QuadraticDiscriminantAnalysis: discriminant_analysis.quadratic,
}
"""Classes of scikit-learn that do not."""


def from_sklearn(fitted: Any, *, rows: Any = None) -> Any:
    """A fitted classifier of scikit-learn as the estimator of calibayes of the same name, with the same predictions.

    Nothing is trained: the sums over the training rows are rebuilt from the fitted attributes. The estimator can then be
    calibrated on labeled rows (`calibrate`), updated (`partial_fit`), merged, explained, saved and exported
    (docs/scikit-learn.md says what is exact).

    Parameters
    ----------
    fitted : GaussianNB, BernoulliNB, MultinomialNB, ComplementNB, CategoricalNB, LinearDiscriminantAnalysis or \
            QuadraticDiscriminantAnalysis
        Of scikit-learn. Linear discriminant analysis with ``solver="svd"`` needs ``store_covariance=True``.
    rows : int or (k,) array, optional
        For discriminant analysis, which does not keep it: the number of training rows, or that of each class (needed if
        it was fitted with ``priors``). Predictions and explanations do not need it; calibration, `partial_fit`, `merge` and
        `forget` do.

    Returns
    -------
    estimator
        With scikit-learn's parameters and ``rule="ml"``.

    Raises
    ------
    TypeError
        If it is of another class, such as a pipeline.
    ValueError
        If the attributes do not determine the model: no covariance was stored, it is singular, or an attribute was changed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> import calibayes
    >>> X, y = load_iris(return_X_y=True)
    >>> model = calibayes.from_sklearn(GaussianNB().fit(X, y))
    >>> bool(abs(model.predict_proba(X) - GaussianNB().fit(X, y).predict_proba(X)).max() < 1e-12)
    True
    >>> bool(model.calibrate(X, y).score(X, y) > model.score(X, y))
    True
    """
    for kind, rebuild in COUNTED.items():
        if isinstance(fitted, kind):
            check_is_fitted(fitted)
            if rows is not None:
                raise ValueError(
                    f"rows is for discriminant analysis alone: {kind.__name__} keeps class_count_"
                )
            return rebuild(fitted)
    for kind, rebuild_with_rows in UNCOUNTED.items():
        if isinstance(fitted, kind):
            check_is_fitted(fitted)
            return rebuild_with_rows(fitted, rows)
    raise TypeError(_refusal(fitted))


def _refusal(given: Any) -> str:
    """Why an object is not taken, and what is."""
    names = ", ".join(kind.__name__ for kind in (*COUNTED, *UNCOUNTED))
    advice = ""
    if isinstance(given, Pipeline):
        advice = ". Of a pipeline, give the classifier, pipeline[-1], and put the result in its place"
    elif isinstance(given, type):
        return f"from_sklearn needs a fitted classifier of scikit-learn, got the class {given.__name__}"
    return f"from_sklearn takes scikit-learn's {names}, got {type(given).__module__}.{type(given).__name__}{advice}"
