"""scikit-learn's discriminant analysis as it was fitted: moments from means, covariances and the number of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.presets.class_covariances import needs_rows
from calibayes.estimators.presets.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from calibayes.estimators.presets.from_sklearn.gaussian_sums import moment_sums, numbers_of, refuse_singular
from calibayes.estimators.presets.from_sklearn.rebuilt import Rebuilt, parameters_of, require_equal
from calibayes.families import Gaussian
from calibayes.families.gaussian.shape import Shape
from calibayes.families.gaussian.shared_covariance import FixedCovariance, WeightedTied

UNKNOWN_ROWS = (
    "this model was made of scikit-learn's, which does not keep the number of training rows, and without it no rows can be "
    "added or removed: give it, calibayes.from_sklearn(fitted, rows=...)"
)
UNKNOWN_CLASSES = (
    "this model was made of scikit-learn's with priors and solver='lsqr' or 'eigen', which keeps an average of the covariances "
    "of the classes alone: no rows can be added or removed. Fit the estimator of calibayes to all rows"
)
NOTHING_LEFT = (
    "this model was made of scikit-learn's with a share of 1 for the regularization (shrinkage or reg_param), which leaves "
    "nothing of the covariance of the rows: no rows can be added or removed. Fit the estimator of calibayes to all rows"
)
NO_COVARIANCE = (
    "solver='svd' of scikit-learn's LinearDiscriminantAnalysis does not keep the covariance: fit it with "
    "store_covariance=True, or with solver='lsqr' or 'eigen'"
)
OTHER_COVARIANCE = (
    "coef_ does not follow from covariance_: with priors and solver='svd', scikit-learn stores another covariance than it uses. "
    "Fit it with solver='lsqr' or 'eigen', or fit the estimator of calibayes"
)


def linear(source: Any, rows: Any = None) -> LinearDiscriminantAnalysis:
    """`LinearDiscriminantAnalysis` of scikit-learn. Raises ValueError if it has kept no covariance."""
    if not hasattr(source, "covariance_"):
        raise ValueError(NO_COVARIANCE)
    model = LinearDiscriminantAnalysis(**_with_priors(source, LinearDiscriminantAnalysis))
    used = _used_covariance(source)
    is_fixed = needs_rows(model.shrinkage, model.covariance_estimator)
    is_average = model.priors is not None and model.solver != "svd" and not is_fixed
    shape: Shape = WeightedTied(tuple(_floats(source.priors_).tolist())) if is_average else model.shape
    # The covariances of the classes are not known. Those of their average are the same.
    shared = np.repeat(used[None], len(source.classes_), axis=0)
    fixed = FixedCovariance(used[None]) if is_fixed else None
    by_class = shared if is_fixed else _without_sphere(shared, model.shrinkage)
    fitted: LinearDiscriminantAnalysis = _fitted(
        source, model, shape, by_class, rows, fixed, UNKNOWN_CLASSES if is_average else ""
    )
    try:
        require_equal("coef_", _contrasts(fitted.coef_), _contrasts(source.coef_))
        require_equal("intercept_", _contrasts(_intercepts(fitted)), _contrasts(_intercepts(source)))
    except ValueError as error:
        raise ValueError(OTHER_COVARIANCE) from error
    return fitted


def quadratic(source: Any, rows: Any = None) -> QuadraticDiscriminantAnalysis:
    """`QuadraticDiscriminantAnalysis` of scikit-learn: covariances from ``rotations_`` and ``scalings_``."""
    parameters = _with_priors(source, QuadraticDiscriminantAnalysis)
    if parameters.get("solver") == "eigen":
        parameters["reg_param"] = 0.0  # scikit-learn has this parameter for "svd" alone
    model = QuadraticDiscriminantAnalysis(**parameters)
    pairs = zip(source.rotations_, source.scalings_, strict=True)
    used = np.stack([(_floats(axes) * _floats(variances)) @ _floats(axes).T for axes, variances in pairs])
    is_fixed = needs_rows(model.shrinkage, model.covariance_estimator)
    by_class = (
        used if is_fixed else _without_identity(_without_sphere(used, model.shrinkage), model.reg_param)
    )
    fixed = FixedCovariance(used) if is_fixed else None
    fitted: QuadraticDiscriminantAnalysis = _fitted(source, model, model.shape, by_class, rows, fixed)
    require_equal("rotations_ and scalings_", np.stack(fitted.covariance_), used)
    require_equal("means_", fitted.means_, source.means_)
    return fitted


def _fitted(
    source: Any,
    model: Any,
    shape: Shape,
    covariances: Array,
    rows: Any,
    fixed: FixedCovariance | None,
    not_sums: str = "",
) -> Any:
    """The estimator from the covariances of the classes, (k, d, d); ``fixed`` are those that no row changes."""
    regularizer = model.regularizer() if fixed is None else fixed
    count, mean = _class_counts(source, rows), _floats(source.means_)
    if getattr(regularizer, "share", 0.0) == 1.0:
        not_sums = NOTHING_LEFT
    family = Gaussian(shape, prior=model.prior, regularizer=regularizer)
    rebuilt = Rebuilt(
        model,
        family,
        numbers_of(count, mean, np.diagonal(covariances, axis1=1, axis2=2)),
        count,
        lambda bound: moment_sums(bound, count, mean, covariances),
        number_type=np.asarray(source.means_).dtype,
        not_sums=UNKNOWN_ROWS if rows is None else not_sums,
    )
    refuse_singular(rebuilt, source.classes_)
    return rebuilt.fit(source)


def _with_priors(source: Any, estimator: type) -> dict[str, Any]:
    """The parameters, with class probabilities as scikit-learn has normalized them."""
    parameters = parameters_of(source, estimator)
    if parameters.get("priors") is not None:
        priors = _floats(source.priors_)
        parameters["priors"] = priors / priors.sum()
    return parameters


def _class_counts(source: Any, rows: Any) -> Array:
    """Number of rows of each class, (k,); without ``rows``, that of one row in all."""
    priors, k = _floats(source.priors_), len(source.classes_)
    if rows is None:
        return priors if source.priors is None else np.full(k, 1.0 / k)
    given = np.asarray(rows, dtype=np.float64)
    if given.shape not in ((), (k,)) or not (np.isfinite(given).all() and (given > 0).all()):
        raise ValueError(
            f"rows must be the number of training rows, or {k} numbers, one for each class; got {rows!r}"
        )
    if given.ndim:
        if source.priors is None and not np.allclose(given / given.sum(), priors, rtol=0.0, atol=1e-6):
            raise ValueError(
                f"rows={given.tolist()} are not in the ratio of the class frequencies, {priors.tolist()}"
            )
        return given
    if source.priors is not None:
        raise ValueError(
            f"this classifier was fitted with priors, which say nothing about the training rows: give rows as {k} numbers, "
            f"those of the classes {source.classes_.tolist()}"
        )
    counts = given * priors
    whole = np.rint(counts)
    return np.asarray(np.where(np.abs(counts - whole) < 1e-6 * np.maximum(counts, 1.0), whole, counts))


def _used_covariance(source: Any) -> Array:
    """The covariance that the coefficients were computed from, (d, d).

    Versions of scikit-learn before 1.9 divide by n - k for the coefficients of the solver "svd", and by n for ``covariance_``.
    """
    covariance = _symmetric(_floats(source.covariance_))
    mean, coefficients = _floats(source.means_), _contrasts(source.coef_)
    differences = mean[1:] - mean[:1] if len(coefficients) == 1 else mean - mean.mean(axis=0)
    expected = np.linalg.lstsq(covariance, differences.T, rcond=None)[0].T
    norm = float(np.sum(coefficients**2))
    factor = float(np.sum(expected * coefficients)) / norm if norm > 0 else 1.0
    is_one = abs(factor - 1.0) < np.sqrt(np.finfo(np.asarray(source.coef_).dtype).eps)
    return covariance if is_one or source.solver != "svd" else covariance * factor


def _contrasts(scores: Any) -> Array:
    """Coefficients or intercepts of classes without a term that all classes share; those of two classes are a difference."""
    values = _floats(scores)
    return values if len(values) == 1 else values - values.mean(axis=0)


def _intercepts(model: Any) -> Array:
    """Intercepts of linear scores about the average of the classes' means, which no shared term of coefficients changes."""
    priors, means = _floats(model.priors_), _floats(model.means_)
    center = means.mean(axis=0)
    with np.errstate(divide="ignore"):
        is_finite = np.isfinite(np.log(priors)).all()
    return _floats(model.intercept_) + _floats(model.coef_) @ center if is_finite else np.zeros(1)


def _without_sphere(covariances: Array, share: Any) -> Array:
    """Covariances before a share of the sphere with the same trace was added; unchanged for a share of 1."""
    if share in (None, 0, 1):
        return covariances
    d = covariances.shape[-1]
    average = np.trace(covariances, axis1=1, axis2=2) / d
    return _symmetric((covariances - share * average[:, None, None] * np.eye(d)) / (1.0 - share))


def _without_identity(covariances: Array, share: float) -> Array:
    """Covariances before a share of the identity was added; unchanged for a share of 1."""
    if share in (0, 1):
        return _symmetric(covariances)
    return _symmetric((covariances - share * np.eye(covariances.shape[-1])) / (1.0 - share))


def _symmetric(matrices: Array) -> Array:
    return np.asarray((matrices + np.swapaxes(matrices, -1, -2)) / 2)


def _floats(values: Any) -> Array:
    return np.array(values, dtype=np.float64)
