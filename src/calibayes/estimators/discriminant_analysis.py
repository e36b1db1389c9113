"""Discriminant analysis, and logistic regression as a generative model with one variance per column."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone

from calibayes.core.notices import warn
from calibayes.core.protocols import Array, Engine, resolve
from calibayes.encoders.dense import Dense
from calibayes.encoders.encoder import Encoder
from calibayes.families import (
    ClassPrior,
    Full,
    Gaussian,
    NormalInverseWishart,
    Tied,
    TiedDiagonal,
    covariance_shapes,
)
from calibayes.families.covariance_shapes import FixedCovariance, Plain, Regularizer, TowardsSphere
from calibayes.families.joint_model import PRIOR
from calibayes.kernels.dispatch import numbers_given
from calibayes.kernels.moments import shrunk_covariance
from calibayes.model.attributes import array_of, array_property, fitted_of, on_one_state
from calibayes.model.binding import every
from calibayes.model.checked_rows import TrainingRows
from calibayes.model.estimator import GenerativeEstimator, Traits
from calibayes.model.parameters import estimator, number, one_of, whole_number
from calibayes.model.recipe import Specification
from calibayes.model.table_inputs import open_rows
from calibayes.tables.table import Table, numeric_matrix

# -- One Gaussian family over all columns: the base of discriminant analysis and its relatives ---------------

ROUNDED_SUM = 1e-5
"""A sum of priors that differs from 1 by no more is 1 up to rounding, as in scikit-learn."""


def normalized_priors(priors: Any) -> Any:
    """Class probabilities that sum to 1, with scikit-learn's warning if they did not; a `ClassPrior` or None unchanged.

    Raises ValueError if one is negative.
    """
    if priors is None or isinstance(priors, ClassPrior):
        return priors
    given = numbers_given("priors", priors)
    if not ((given >= 0) & (given < np.inf)).all():
        raise ValueError(f"priors must be non-negative and finite, got {given.tolist()}")
    if not abs(given.sum() - 1.0) > ROUNDED_SUM or not given.sum() > 0:
        return given
    warn(f"The priors do not sum to 1. Renormalizing: their sum is {given.sum():g}")
    return given / given.sum()


@estimator
class GaussianPreset(GenerativeEstimator):
    """One Gaussian family over all columns."""

    prior: NormalInverseWishart | Literal["auto"] | None = "auto"
    class_weight: Mapping[Any, float] | str | None = None

    _shape: ClassVar[Full]
    _dense: ClassVar[Dense] = Dense(drop_first=True)
    """The encoder that is named "dense"."""
    _traits = Traits(allows_lost_classes=True, runs_on_device=True)

    if TYPE_CHECKING:

        @property
        def priors(self) -> Array | ClassPrior | None: ...

    def _regularizer(self) -> Regularizer:
        """What is done to the covariance after it was estimated."""
        return Plain()

    def _refuse_parts_of_rows(self) -> None:
        super()._refuse_parts_of_rows()
        if needs_rows(self):
            problem = "shrinkage='auto' and covariance_estimator need all rows at once"
            raise ValueError(f"{problem}: give shrinkage as a number")

    def _chosen_encoder(self) -> Encoder | None:
        """The encoder of the columns; None if all of them must be numbers."""
        given = getattr(self, "encoder", None)
        if given is None:
            return None
        return resolve("encoder", given, {"dense": lambda: self._dense}, ability="encode", example="Dense()")

    def _families(self) -> Sequence[tuple[Any, ...]]:
        return self._over_columns(gaussian_of(self))

    def _over_columns(self, family: Gaussian) -> Sequence[tuple[Any, ...]]:
        """A family over all columns, as they are encoded."""
        if getattr(self, "encoder", None) is None:
            return [("columns", family, every)]
        return [("columns", family, every, self._chosen_encoder())]

    @property
    def encoded_names_(self) -> tuple[str, ...]:
        """Names of the encoded columns: those of means, covariances and coefficients."""
        return tuple(fitted_of(self).model.families["columns"].layout.columns)

    def _given_priors(self, k: int) -> Any:
        return None if self.priors is None else normalized_priors(self.priors)

    means_ = array_of("parameters_", "columns", "mean", in_type_of_columns=True)

    @array_property
    def priors_(self) -> Array:
        return np.exp(self.parameters_[PRIOR]["log_probability"]).astype(self.fitted_.number_type)


def gaussian_of(
    model: GaussianPreset, shape: Full | None = None, regularizer: Regularizer | None = None
) -> Gaussian:
    """The family of a preset, or one with another shape of the covariances or another regularizer."""
    regularizer = model._regularizer() if regularizer is None else regularizer
    return Gaussian(model._shape if shape is None else shape, prior=model.prior, regularizer=regularizer)


class LinearDecision:
    """A decision that is linear in the columns: coefficients from the means and the shared covariance."""

    fitted_: Any
    parameters_: Any
    _shape: ClassVar[Full]

    def _linear_scores(self) -> tuple[Array, Array]:
        """Coefficients (k, d) and intercepts (k,) of log p(class | x), up to a term that all classes share."""
        parameters = self.parameters_["columns"]
        mean = parameters["mean"]
        coefficients = self._shape.precision_times(self._shape.covariance(parameters), mean)
        log_prior = self.parameters_[PRIOR]["log_probability"]
        return coefficients, log_prior - 0.5 * np.sum(coefficients * mean, axis=1)

    @array_property
    def coef_(self) -> Array:
        return self._of_second_class(self._linear_scores()[0])

    @array_property
    def intercept_(self) -> Array:
        return self._of_second_class(self._linear_scores()[1])

    def _of_second_class(self, scores: Array) -> Array:
        """The scores of each class, (k, ...); for two classes the difference between the second and the first."""
        difference = scores[1:] - scores[:1] if len(scores) == 2 else scores
        return np.asarray(difference, dtype=self.fitted_.number_type)


# -- Covariances of the classes that are estimated from their rows, not from sums: Ledoit and Wolf's, or an estimator's


def needs_rows(model: Any) -> bool:
    """Whether the covariance of a preset is no function of sums over rows."""
    estimator, shrinkage = (getattr(model, name, None) for name in ("covariance_estimator", "shrinkage"))
    return estimator is not None or isinstance(shrinkage, str)


def check_options(model: Any, refused: str) -> None:
    """Raises ValueError or, as scikit-learn does, NotImplementedError if the options exclude each other.

    ``refused`` is the message for a covariance estimator with the solver "svd".
    """
    shrinkage, has_estimator = model.shrinkage, model.covariance_estimator is not None
    if has_estimator and shrinkage:
        problem = "covariance_estimator and shrinkage parameters are not None"
        raise ValueError(f"{problem}. Only one of the two can be set.")
    if has_estimator and model.solver == "svd":
        raise ValueError(refused)
    if isinstance(shrinkage, str) and shrinkage != "auto":
        raise ValueError(f"shrinkage must be a number between 0 and 1, 'auto' or None, got {shrinkage!r}")
    if isinstance(shrinkage, str) and model.solver == "svd":
        raise NotImplementedError("shrinkage='auto' is not supported with solver='svd': use solver='eigen'")


def class_covariances(model: Any, given: TrainingRows, classes: Array) -> Array:
    """The covariance of each class by the estimator of a preset, or without one by Ledoit and Wolf's shrinkage, (k, d, d).

    Raises ValueError if a value is missing or a class has no rows.
    """
    rows, encoder, estimator = given.in_memory(), model._chosen_encoder(), model.covariance_estimator
    columns = range(len(rows.table.names))
    if encoder is None:
        x = np.asarray(numeric_matrix(rows.table, columns), dtype=np.float64)
    else:
        x = encoder.fit(rows.summary, columns).encode(rows.table)
    if np.isnan(x).any():
        raise ValueError("shrinkage='auto' and covariance_estimator need rows without missing values (NaN)")
    estimate = shrunk_covariance if estimator is None else _by_estimator(estimator)
    covariances = []
    for code, name in enumerate(classes.tolist()):
        in_class = rows.codes == code
        if not in_class.any():
            raise ValueError(f"class {name!r} has no rows (or no weight), so that its covariance is unknown")
        covariances.append(np.atleast_2d(estimate(x[in_class], rows.weight[in_class])))
    return np.stack(covariances)


def _by_estimator(estimator: Any) -> Callable[[Array, Array], Array]:
    """The covariance of rows by an estimator such as those of `sklearn.covariance`."""

    def covariance(x: Array, weight: Array) -> Array:
        if (weight != weight[0]).any():
            raise ValueError("covariance_estimator accepts no row weights: leave out sample_weight")
        fitted = clone(estimator, safe=False)
        fitted.fit(x)
        if not hasattr(fitted, "covariance_"):
            raise ValueError(f"{type(estimator).__name__} does not have a covariance_ attribute")
        return np.asarray(fitted.covariance_, dtype=np.float64)

    return covariance


def class_weights(rows: TrainingRows, fixed: Array | None, k: int) -> Array:
    """Weights with which covariances of k classes are averaged, (k,): fixed class probabilities, or their frequencies."""
    if fixed is not None:
        return np.asarray(fixed, dtype=np.float64)
    labeled = rows.codes >= 0
    mass = np.bincount(rows.codes[labeled], rows.weight[labeled], minlength=k)
    return np.asarray(mass / mass.sum())


# -- Discriminant analysis, and logistic regression as a generative model with one variance per column -------


@estimator
class LinearDiscriminantAnalysis(
    LinearDecision,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    GaussianPreset,
):
    """Gaussian classes with one covariance matrix. Trained by RC its decision is that of logistic regression.

    Parameters
    ----------
    solver : {"svd", "lsqr", "eigen"}, default="svd"
        There is one closed form. Solvers differ as in scikit-learn: with "lsqr" and "eigen" the covariances of the classes
        are averaged with the weights ``priors``, if these are given, and "auto" and estimators are allowed.
    shrinkage : float or "auto", optional
        Share of a spherical covariance with the same average variance, as in scikit-learn; "auto" is the share of Ledoit
        and Wolf (2004) in each class.
    priors : (k,) array or ClassPrior, optional
        Class probabilities that stay fixed; see `GenerativeClassifier`.
    n_components : int, optional
        Number of discriminant directions of `transform`.
    covariance_estimator : object with ``fit`` and ``covariance_``, optional
        Estimates the covariance of each class, such as those of `sklearn.covariance`. With it, and with
        ``shrinkage="auto"``, training changes the means and the class prior only, and all rows are needed at once.
    encoder : "dense" or encoder of `calibayes.encoders`, optional
        How columns become numbers. By default they must be numbers, which are not changed. "dense" is for tables with
        text, categories, dates and missing values, as in `BayesClassifier`: asinh-scaled and standardized numbers, and
        an indicator of each level of a column but the first, which the others determine
        (`Dense`). In `transform` a missing value counts as the mean.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of means and covariance; "auto" is a prior for a singular covariance only, None is strict maximum
        likelihood.
    store_covariance, tol
        Without effect, accepted so that code for scikit-learn runs: the covariance is always stored.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearDiscriminantAnalysis(n_components=2).fit(X, y).transform(X).shape
    (150, 2)
    """

    solver: str = field(default="svd", kw_only=False)
    shrinkage: float | Literal["auto"] | None = field(default=None, kw_only=False)
    priors: Array | ClassPrior | None = field(default=None, kw_only=False)
    n_components: int | None = field(default=None, kw_only=False)
    store_covariance: bool = field(default=False, kw_only=False)
    tol: float = field(default=1e-4, kw_only=False)
    covariance_estimator: Any = field(default=None, kw_only=False)
    encoder: str | Encoder | None = None

    _shape: ClassVar[Full] = Tied()

    def _regularizer(self) -> Regularizer:
        if self.shrinkage is None:
            return Plain()
        return TowardsSphere(number("shrinkage", self.shrinkage, 0.0, 1.0))

    def _specification(self, rows: TrainingRows, classes: Array) -> Specification:
        # The number of encoded columns is not known yet: `transform` has at most as many directions.
        d = len(rows.summary.names) if self.encoder is None else len(classes)
        self._components(len(classes), d)
        one_of("solver", self.solver, ("svd", "lsqr", "eigen"))
        number("tol", self.tol, 0.0, math.inf)
        refused = "covariance estimator is not supported with svd solver. Try another solver: lsqr or eigen"
        check_options(self, refused)
        class_prior = self._class_prior(len(classes))
        family = self._family(rows, classes, class_prior.fixed)
        return Specification(self._over_columns(family), class_prior)

    def _family(self, rows: TrainingRows, classes: Array, priors: Array | None) -> Gaussian:
        weights = class_weights(rows, priors, len(classes))
        if needs_rows(self):
            covariances = class_covariances(self, rows, classes)
            average = FixedCovariance(np.tensordot(weights, covariances, axes=1)[None])
            return gaussian_of(self, regularizer=average)
        by_rows = priors is None or self.solver == "svd"
        return gaussian_of(self, None if by_rows else covariance_shapes.WeightedTied(tuple(weights.tolist())))

    @array_property
    def covariance_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["covariance"][0], dtype=self.fitted_.number_type)

    @array_property
    def xbar_(self) -> Array:
        """Mean of the classes' means, weighted by the priors, (d,)."""
        return self._average_mean().astype(self.fitted_.number_type)

    def _average_mean(self) -> Array:
        parameters = self.parameters_
        return np.asarray(np.exp(parameters[PRIOR]["log_probability"]) @ parameters["columns"]["mean"])

    def _directions(self) -> tuple[Array, Array]:
        """Directions (d, d) that whiten the covariance, most discriminating first, and their shares of the variance.

        The shares are 0 if the means of all classes are equal.
        """
        white, means = (self.parameters_["columns"][name] for name in ("whitener", "mean"))
        roots = np.sqrt(np.exp(self.parameters_[PRIOR]["log_probability"]))
        between = roots[:, None] * ((means - self._average_mean()) @ white[0].T)
        _, singular, right = np.linalg.svd(between, full_matrices=False)
        kind = self.fitted_.number_type
        shares = singular**2 / max(np.sum(singular**2), np.finfo(np.float64).tiny)
        return (white[0].T @ right.T).astype(kind), shares.astype(kind)

    def _components(self, k: int, d: int) -> int:
        """Number of discriminant directions. Raises ValueError if ``n_components`` is too large."""
        most = min(k - 1, d)
        if self.n_components is None:
            return most
        if whole_number("n_components", self.n_components, 1) > most:
            limits = f"n_components={self.n_components} must lie between 1 and {most}"
            raise ValueError(f"n_components cannot be larger than min(n_features, n_classes - 1): {limits}")
        return self.n_components

    @property
    def _n_features_out(self) -> int:
        k, d = self.means_.shape
        return min(self._components(int(k), int(k)), int(d))

    @array_property
    def scalings_(self) -> Array:
        return self._directions()[0][:, : self._n_features_out]

    @array_property
    def explained_variance_ratio_(self) -> Array:
        return self._directions()[1][: self._n_features_out]

    @on_one_state
    def transform(self, X: Any) -> Array:
        """Coordinates along the most discriminating directions, (n, n_components)."""
        return open_rows(X).map(self, "transform", self._coordinates)

    def _coordinates(self, table: Table, engine: Engine) -> Array:
        fitted = fitted_of(self)
        center = self._average_mean().astype(fitted.number_type)
        rows = fitted.binding.encoders["columns"].encode(table) - center
        complete = rows if self.encoder is None else np.nan_to_num(rows, nan=0.0)
        return np.asarray(complete @ self._directions()[0][:, : self._n_features_out])


@estimator
class QuadraticDiscriminantAnalysis(GaussianPreset):
    """Gaussian classes, each with its own covariance matrix.

    Parameters
    ----------
    reg_param : float, default=0
        Share of the identity in each covariance, as in scikit-learn.
    solver : {"svd", "eigen"}, default="svd"
        There is one closed form. As in scikit-learn, "auto" and estimators need "eigen".
    shrinkage : float or "auto", optional
        Share of a spherical covariance with the same average variance, as in scikit-learn; "auto" is the share of Ledoit
        and Wolf (2004) in each class.
    covariance_estimator : object with ``fit`` and ``covariance_``, optional
        Estimates the covariance of each class, such as those of `sklearn.covariance`. With it, and with
        ``shrinkage="auto"``, training changes the means and the class prior only, and all rows are needed at once.
    priors : (k,) array or ClassPrior, optional
        Class probabilities that stay fixed; see `GenerativeClassifier`.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of means and covariances; "auto" is a prior for classes with a singular covariance only, None is strict
        maximum likelihood.
    encoder : "dense" or encoder of `calibayes.encoders`, optional
        How columns become numbers. By default they must be numbers, which are not changed. "dense" is for tables with
        text, categories, dates and missing values, as in `BayesClassifier`: asinh-scaled and standardized numbers, and
        an indicator of each level of a column but the first, which the others determine
        (`Dense`).
    store_covariance, tol
        Without effect, accepted so that code for scikit-learn runs: the covariances are always stored.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> QuadraticDiscriminantAnalysis(rule="ml").fit(X, y).covariance_[0].shape
    (4, 4)
    """

    solver: str = "svd"
    shrinkage: float | Literal["auto"] | None = None
    priors: Array | ClassPrior | None = None
    reg_param: float = 0.0
    store_covariance: bool = False
    tol: float = 1e-4
    covariance_estimator: Any = None
    encoder: str | Encoder | None = None

    _shape: ClassVar[Full] = Full()

    def _specification(self, rows: TrainingRows, classes: Array) -> Specification:
        one_of("solver", self.solver, ("svd", "eigen"))
        number("tol", self.tol, 0.0, math.inf)
        if self.shrinkage is None and self.covariance_estimator is None:
            return Specification(self._over_columns(gaussian_of(self)), self._class_prior(len(classes)))
        refused = "covariance_estimator is not supported with solver='svd'. Try solver='eigen'"
        check_options(self, refused)
        if not needs_rows(self):
            return super()._specification(rows, classes)
        family = gaussian_of(self, regularizer=FixedCovariance(class_covariances(self, rows, classes)))
        return Specification(self._over_columns(family), self._class_prior(len(classes)))

    def _regularizer(self) -> Regularizer:
        if self.shrinkage is not None:
            if self.reg_param:
                raise ValueError("give reg_param or shrinkage, not both")
            return TowardsSphere(number("shrinkage", self.shrinkage, 0.0, 1.0))
        share = number("reg_param", self.reg_param, 0.0, 1.0)
        return covariance_shapes.TowardsIdentity(share) if share else Plain()

    @array_property
    def covariance_(self) -> list[Array]:
        return list(self.parameters_["columns"]["covariance"].astype(self.fitted_.number_type))

    def _principal_axes(self) -> list[tuple[Array, Array]]:
        """Variances along the principal axes of each class, largest first, and the axes as columns."""
        kind = self.fitted_.number_type
        pairs = [np.linalg.eigh(covariance) for covariance in self.parameters_["columns"]["covariance"]]
        return [(values[::-1].astype(kind), axes[:, ::-1].astype(kind)) for values, axes in pairs]

    @array_property
    def scalings_(self) -> list[Array]:
        """Variances of each class along its principal axes, (d,) each, largest first."""
        return [variances for variances, _ in self._principal_axes()]

    @array_property
    def rotations_(self) -> list[Array]:
        """Principal axes of each class, the columns of a (d, d) array each."""
        return [axes for _, axes in self._principal_axes()]


@estimator
class GenerativeLogisticRegression(LinearDecision, GaussianPreset):
    """Gaussian classes with one variance per column: logistic regression with a closed-form start.

    The model of rc-probabilistic-2024, section VI. Trained by RC its decision approaches that of logistic regression,
    and it still has class means and variances.

    Parameters
    ----------
    priors : (k,) array or ClassPrior, optional
        Class probabilities that stay fixed; see `GenerativeClassifier`.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of means and variances.
    encoder : "dense" or encoder of `calibayes.encoders`, optional
        How columns become numbers. By default they must be numbers, which are not changed. "dense" is for tables with
        text, categories, dates and missing values, as in `BayesClassifier`: asinh-scaled and standardized numbers, and
        an indicator of each level of a column
        (`Dense`).
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GenerativeLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> GenerativeLogisticRegression().fit(X, y).coef_.shape
    (3, 4)
    """

    priors: Array | ClassPrior | None = None
    encoder: str | Encoder | None = None

    _shape: ClassVar[Full] = TiedDiagonal()
    _dense = Dense()

    @array_property
    def var_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["variance"][0], dtype=self.fitted_.number_type)
