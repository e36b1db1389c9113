"""`from_sklearn`: a classifier of scikit-learn as it was fitted, as the estimator of the same name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn import discriminant_analysis as sklearn_discriminant_analysis
from sklearn import naive_bayes as sklearn_naive_bayes
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array, Arrays, Family, Layout
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Flags, Numbers
from calibayes.estimators import discriminant_analysis
from calibayes.estimators.count_models import ComplementNB, MultinomialNB, counts_of
from calibayes.estimators.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB
from calibayes.families import Gaussian, Product
from calibayes.families.class_centers import as_matrix, expand
from calibayes.families.covariance_shapes import FixedCovariance, WeightedTied
from calibayes.families.joint_model import PRIOR
from calibayes.model.binding import ColumnBinding
from calibayes.model.estimator import class_prior_for, families_of, traits_of
from calibayes.model.fitted import NOT_SUMS, Fitted, begin
from calibayes.model.parameters import adopt
from calibayes.model.recipe import Assembly, layouts_of
from calibayes.rules import rule_named
from calibayes.tables.conversion import ColumnConversion
from calibayes.tables.read import array_names
from calibayes.tables.table import TrainingTable

# -- A fitted estimator from a family, a fitted encoder and sums over rows that another library has kept -----

COLUMNS = "columns"
"""The name of the family over all columns."""


@dataclass(frozen=True)
class Rebuilt:
    """What a fitted classifier of scikit-learn contains, in terms of the estimator of the same name.

    Attributes
    ----------
    model : estimator
        With the parameters of scikit-learn's, not fitted.
    family : Family
    encoder : Encoder
        Fitted to the columns.
    class_count : (k,) array
        Weight of the training rows of each class.
    statistics : function of the family, bound to columns and classes
        Its sums over the training rows.
    number_type : NumPy type
        The type of the columns.
    not_sums : str
        Why the statistics are no sums over the training rows, and what to do; empty if they are.
    adjust : function of the prepared family
        The family with values that scikit-learn has computed in another way.
    """

    model: Any
    family: Family
    encoder: Encoder
    class_count: Array
    statistics: Callable[[Any], Arrays]
    number_type: Any = np.float64
    not_sums: str = ""
    adjust: Callable[[Any], Any] = lambda family: family

    def fit(self, source: Any) -> Any:
        """The estimator, fitted, with the classes and columns of scikit-learn's. Raises ValueError if it has no parameters."""
        # None of the columns is converted.
        d, classes = source.n_features_in_, np.asarray(source.classes_)
        names = tuple(map(str, getattr(source, "feature_names_in_", array_names(d))))
        columns = ColumnConversion(names, (np.dtype(self.number_type),) * d)
        if len(classes) < traits_of(self.model).fewest_classes:
            name = type(self.model).__name__
            raise ValueError(f"{name} needs at least two classes, got {classes.tolist()}")
        fitted = self._fitted(self._assembly(columns, classes))
        rows = 0 if self.not_sums else int(np.rint(self.class_count.sum()))
        state = {
            "n_features_in_": d,
            "conversion_": columns,
            "training_table_": TrainingTable(rows, rows, names, (columns.types[0].name,) * d, (0,) * d),
            "fitted_": fitted,
        }
        if hasattr(source, "feature_names_in_"):
            state["feature_names_in_"] = np.array(names, dtype=object)
        fitted.verify()
        return adopt(self.model, {**vars(self.model), **state})

    def _assembly(self, columns: ColumnConversion, classes: Array) -> Assembly:
        """The model bound to the columns, with moments about points that keep their digits."""
        names, types = columns.names, columns.types
        families, encoders = {COLUMNS: self.family}, {COLUMNS: self.encoder}
        chosen = {COLUMNS: tuple(range(len(names)))}
        binding = ColumnBinding(families, encoders, chosen, names, types, conversion=columns)
        prior = class_prior_for(self.model, len(classes))
        model = Product(prior, families).bind(*layouts_of(binding, classes))
        notes = {NOT_SUMS: self.not_sums} if self.not_sums else {}
        return Assembly(binding, model.recentered(self._sums(model)), classes, notes=notes)

    def _sums(self, model: Product) -> dict[str, Arrays]:
        family = model.families[COLUMNS]
        return {PRIOR: {"count": self.class_count}, COLUMNS: self.statistics(family)}

    def _fitted(self, assembly: Assembly) -> Fitted:
        """The closed form of the sums. Raises ValueError if there is none."""
        sums = self._sums(assembly.model)
        unfitted = begin(assembly, rule_named(self.model.rule), sums, is_additive=not self.not_sums)
        fitted = unfitted.closed_form(sums)
        if fitted.lacking:
            raise ValueError(f"these statistics have no valid parameters: {fitted.lacking}")
        families = {COLUMNS: self.adjust(fitted.model.families[COLUMNS])}
        model = replace(fitted.model, families=families)
        return replace(fitted, model=model, parameters=model.parameters(model.statistics_of(sums)))


def parameters_of(source: Any, estimator: type) -> dict[str, Any]:
    """The parameters of a classifier of scikit-learn that the estimator of the same name has, too, and maximum likelihood."""
    known = set(estimator().get_params(deep=False))
    given = source.get_params(deep=False)
    return {"rule": "ml", **{name: value for name, value in given.items() if name in known}}


def require_equal(name: str, ours: Any, theirs: Any, terms: float = 0.0) -> None:
    """Raises ValueError unless an attribute of the rebuilt estimator has scikit-learn's value, up to rounding.

    Where scikit-learn's value is not finite (the logarithm of a count of 0), ours is that of the least probability. ``terms``
    is the size of the largest term of a sum that may cancel, such as an intercept.
    """
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs)
    kind = theirs.dtype if theirs.dtype.kind == "f" else np.dtype(np.float64)
    compared = np.isfinite(theirs)
    # A third of the digits are left for covariances that are nearly singular.
    tolerance = float(np.cbrt(np.finfo(kind).eps)) * np.abs(theirs[compared]).max(initial=terms)
    if not np.allclose(ours[compared], theirs[compared], rtol=0.0, atol=tolerance):
        raise ValueError(
            f"{name} does not follow from the other attributes of the fitted classifier: it was changed after `fit`, or a "
            "parameter was. Fit it again, or fit the estimator of calibayes"
        )


# -- Sums over rows of a Gaussian family, from the counts, means and covariances of its classes --------------


def moment_sums(family: Any, count: Array, mean: Array, covariance: Array) -> Arrays:
    """Moments about the centers of a bound family.

    Parameters
    ----------
    family : Gaussian
    count : (k,) or (k, d) array
    mean : (k, d) array
    covariance : (k, ...) array
        In the form of the family's shape.
    """
    deviation, weight = mean - family.centers, as_matrix(count)
    about = covariance + family.shape.square(deviation)
    second = family.shape.pool(expand(weight, about) * about)
    return {"count": count, "first": weight * deviation, "second": second}


def numbers_of(count: Array, mean: Array, variance: Array) -> Numbers:
    """The encoder of columns of numbers, with the mean and the variance of all rows; variances of classes are (k, d)."""
    weight = (count / count.sum())[:, None]
    center = np.sum(weight * mean, axis=0)
    total = np.sum(weight * (variance + (mean - center) ** 2), axis=0)
    return Numbers(tuple(range(mean.shape[1])), center, total)


def refuse_singular(rebuilt: Rebuilt, classes: Any) -> None:
    """Raises ValueError if a covariance is singular: scikit-learn then leaves directions out, or divides by 0."""
    encoder: Any = rebuilt.encoder
    columns = tuple(f"x{j}" for j in encoder.indices)
    layout = Layout(tuple(map(str, classes)), columns, **encoder.layout())
    strict: Any = replace(rebuilt.family, prior=None).bind(layout)  # type: ignore[type-var]
    try:
        strict.prepare(rebuilt.statistics(strict))
    except ValueError as error:
        raise ValueError(
            "a covariance of scikit-learn's model is singular, which this model cannot represent: fit the estimator of "
            f"calibayes to the rows, which gives it a prior, or leave columns out. {error}"
        ) from error


# -- scikit-learn's discriminant analysis as it was fitted: moments from means, covariances and the number of rows

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


def linear(source: Any, model: Any, rows: Any) -> discriminant_analysis.LinearDiscriminantAnalysis:
    """`LinearDiscriminantAnalysis` of scikit-learn. Raises ValueError if it has kept no covariance."""
    if not hasattr(source, "covariance_"):
        raise ValueError(NO_COVARIANCE)
    used = _used_covariance(source)
    is_fixed = discriminant_analysis.needs_rows(model)
    is_average = model.priors is not None and model.solver != "svd" and not is_fixed
    average = WeightedTied(tuple(_floats(source.priors_).tolist())) if is_average else None
    # The covariances of the classes are not known. Those of their average are the same.
    shared = np.repeat(used[None], len(source.classes_), axis=0)
    fixed = FixedCovariance(used[None]) if is_fixed else None
    by_class = shared if is_fixed else _without_sphere(shared, model.shrinkage)
    not_sums = UNKNOWN_CLASSES if is_average else ""
    family = discriminant_analysis.gaussian_of(model, average, fixed)
    fitted = _fitted(source, family, model, by_class, rows, not_sums)
    try:
        require_equal("coef_", _contrasts(fitted.coef_), _contrasts(source.coef_))
        terms = float(np.abs(_floats(source.intercept_)).max())
        require_equal("intercept_", _contrasts(_intercepts(fitted)), _contrasts(_intercepts(source)), terms)
    except ValueError as error:
        raise ValueError(OTHER_COVARIANCE) from error
    return fitted


def quadratic(source: Any, model: Any, rows: Any) -> discriminant_analysis.QuadraticDiscriminantAnalysis:
    """`QuadraticDiscriminantAnalysis` of scikit-learn: covariances from ``rotations_`` and ``scalings_``."""
    if model.solver == "eigen":
        model.reg_param = 0.0  # scikit-learn has this parameter for "svd" alone
    pairs = zip(source.rotations_, source.scalings_, strict=True)
    used = np.stack([(_floats(axes) * _floats(variances)) @ _floats(axes).T for axes, variances in pairs])
    is_fixed = discriminant_analysis.needs_rows(model)
    if is_fixed:
        by_class, fixed = used, FixedCovariance(used)
    else:
        by_class, fixed = _without_identity(_without_sphere(used, model.shrinkage), model.reg_param), None
    family = discriminant_analysis.gaussian_of(model, regularizer=fixed)
    fitted = _fitted(source, family, model, by_class, rows)
    require_equal("rotations_ and scalings_", np.stack(fitted.covariance_), used)
    require_equal("means_", fitted.means_, source.means_)
    return fitted


def _fitted(source: Any, family: Gaussian, model: Any, by_class: Array, rows: Any, not_sums: str = "") -> Any:
    """The estimator from the covariances of the classes, (k, d, d)."""
    count, mean = _class_counts(source, rows), _floats(source.means_)
    if getattr(family.regularizer, "share", 0.0) == 1.0:
        not_sums = NOTHING_LEFT
    numbers = numbers_of(count, mean, np.diagonal(by_class, axis1=1, axis2=2))
    not_sums, kind = UNKNOWN_ROWS if rows is None else not_sums, np.asarray(source.means_).dtype

    def sums(bound: Any) -> Arrays:
        return moment_sums(bound, count, mean, by_class)

    rebuilt = Rebuilt(model, family, numbers, count, sums, number_type=kind, not_sums=not_sums)
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
        expected = f"the number of training rows, or {k} numbers, one for each class"
        raise ValueError(f"rows must be {expected}; got {rows!r}")
    if given.ndim:
        if source.priors is None and not np.allclose(given / given.sum(), priors, rtol=0.0, atol=1e-6):
            ratio = f"the ratio of the class frequencies, {priors.tolist()}"
            raise ValueError(f"rows={given.tolist()} are not in {ratio}")
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


# -- scikit-learn's naive Bayes as it was fitted: sums over rows from class counts, feature counts, means and variances


def gaussian(source: Any, model: Any) -> GaussianNB:
    """`GaussianNB` of scikit-learn: moments from ``class_count_``, ``theta_`` and ``var_`` less ``epsilon_``."""
    count, mean = _floats(source.class_count_), _floats(source.theta_)
    epsilon = float(source.epsilon_)
    variance = np.maximum(_floats(source.var_) - epsilon, 0.0)
    numbers = numbers_of(count, mean, variance)
    family = families_of(model)[0][1]

    def sums(bound: Any) -> Arrays:
        return moment_sums(bound, np.repeat(count[:, None], mean.shape[1], axis=1), mean, variance)

    def adjust(prepared: Any) -> Any:
        # scikit-learn's is that of the rows of the last call, without weights.
        return replace(prepared, regularizer=replace(prepared.regularizer, epsilon=epsilon))

    kind = np.asarray(source.theta_).dtype
    rebuilt = Rebuilt(model, family, numbers, count, sums, number_type=kind, adjust=adjust)
    refuse_singular(rebuilt, source.classes_)
    fitted: GaussianNB = rebuilt.fit(source)
    has_rows = count > 0
    require_equal("theta_", fitted.theta_[has_rows], np.asarray(source.theta_)[has_rows])
    require_equal("var_", fitted.var_[has_rows], np.asarray(source.var_)[has_rows])
    require_equal("class_prior_", fitted.class_prior_, source.class_prior_)
    return fitted


def bernoulli(source: Any, model: Any) -> BernoulliNB:
    """`BernoulliNB` of scikit-learn: counts of zeros and ones."""
    count, ones = _floats(source.class_count_), _floats(source.feature_count_)
    statistics = {"zeros": np.maximum(count[:, None] - ones, 0.0), "ones": ones}
    encoder = Flags(model.binarize, tuple(range(source.n_features_in_)))
    return _counted(source, model, encoder, statistics)


def categorical(source: Any, model: Any) -> CategoricalNB:
    """`CategoricalNB` of scikit-learn: counts of the levels 0, 1, ... of each column."""
    tables = [_floats(table) for table in source.category_count_]
    levels = tuple(np.arange(table.shape[1]) for table in tables)
    nothing = (np.arange(0),) * len(levels)
    encoder = Levels(model.min_categories, indices=tuple(range(len(levels))), unpooled=levels, pooled=nothing)
    statistics = {"count": np.concatenate(tables, axis=1)}
    return _counted(source, model, encoder, statistics, np.int64)


def events(source: Any, model: Any) -> Any:
    """`MultinomialNB` or `ComplementNB` of scikit-learn: events of each class and column."""
    encoder = replace(counts_of(model), indices=tuple(range(source.n_features_in_)))
    statistics = {"count": _floats(source.feature_count_), "rows": _floats(source.class_count_)}
    return _counted(source, model, encoder, statistics)


def _counted(source: Any, model: Any, encoder: Any, statistics: Arrays, kind: Any = np.float64) -> Any:
    """An estimator over counts, whose parameters are those of scikit-learn's."""
    family = families_of(model)[0][1]
    count = _floats(source.class_count_)
    fitted = Rebuilt(model, family, encoder, count, lambda bound: statistics, number_type=kind).fit(source)
    require_equal("class_log_prior_", fitted.class_log_prior_, source.class_log_prior_)
    require_equal("feature_log_prob_", _flat(fitted.feature_log_prob_), _flat(source.feature_log_prob_))
    return fitted


def _flat(tables: Any) -> Array:
    """A table (k, d), or several of them side by side."""
    return np.concatenate(tables, axis=1) if isinstance(tables, list) else np.asarray(tables)


# -- `from_sklearn`: a classifier of scikit-learn as it was fitted, as the estimator of the same name --------

COUNTED: Mapping[type, tuple[type, Callable[[Any, Any], Any]]] = {
    sklearn_naive_bayes.GaussianNB: (GaussianNB, gaussian),
    sklearn_naive_bayes.BernoulliNB: (BernoulliNB, bernoulli),
    sklearn_naive_bayes.MultinomialNB: (MultinomialNB, events),
    sklearn_naive_bayes.ComplementNB: (ComplementNB, events),
    sklearn_naive_bayes.CategoricalNB: (CategoricalNB, categorical),
}
"""Classes of scikit-learn that keep the number of training rows."""
UNCOUNTED: Mapping[type, Callable[[Any, Any, Any], Any]] = {
    sklearn_discriminant_analysis.LinearDiscriminantAnalysis: linear,
    sklearn_discriminant_analysis.QuadraticDiscriminantAnalysis: quadratic,
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
    for kind, (estimator, rebuild) in COUNTED.items():
        if isinstance(fitted, kind):
            check_is_fitted(fitted)
            if rows is not None:
                why = f"{kind.__name__} keeps class_count_"
                raise ValueError(f"rows is for discriminant analysis alone: {why}")
            return rebuild(fitted, estimator(**parameters_of(fitted, estimator)))
    for kind, rebuild_with_rows in UNCOUNTED.items():
        if isinstance(fitted, kind):
            check_is_fitted(fitted)
            estimator = getattr(discriminant_analysis, kind.__name__)
            return rebuild_with_rows(fitted, estimator(**_with_priors(fitted, estimator)), rows)
    raise TypeError(_refusal(fitted))


def _refusal(given: Any) -> str:
    """Why an object is not taken, and what is."""
    if isinstance(given, type):
        return f"from_sklearn needs a fitted classifier of scikit-learn, got the class {given.__name__}"
    names, advice = ", ".join(kind.__name__ for kind in (*COUNTED, *UNCOUNTED)), ""
    if isinstance(given, Pipeline):
        advice = ". Of a pipeline, give the classifier, pipeline[-1], and put the result in its place"
    return f"from_sklearn takes scikit-learn's {names}, got {type(given).__module__}.{type(given).__name__}{advice}"
