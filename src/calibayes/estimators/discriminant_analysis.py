"""Discriminant analysis and its tied-diagonal kin, logistic regression in generative form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.encoders.numbers import numbers
from calibayes.estimators.checks import number, whole_number
from calibayes.estimators.columns import every
from calibayes.estimators.generative import Weighted
from calibayes.families import Full, Gaussian, NormalInverseWishart, Tied, TiedDiagonal
from calibayes.families.gaussian.regularizers import Plain, Regularizer, TowardsIdentity, TowardsSphere
from calibayes.families.gaussian.shapes import Shape
from calibayes.families.model import PRIOR


@dataclass(eq=False, repr=False, kw_only=True)
class Discriminant(Weighted):
    """One Gaussian family over all columns."""

    priors: Array | None = None
    prior: NormalInverseWishart | Literal["auto"] | None = "auto"

    _shape: ClassVar[Shape]

    def _regularizer(self) -> Regularizer:
        return Plain()

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        family = Gaussian(self._shape, prior=self.prior, regularizer=self._regularizer())
        return [("columns", family, every)]

    def _fixed_priors(self, k: int) -> Array | None:
        return self.priors

    @property
    def means_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["mean"])

    @property
    def priors_(self) -> Array:
        return np.asarray(np.exp(self.parameters_[PRIOR]["log_probability"]))


class Linear:
    """A decision that is linear in the columns: coefficients from means and the shared covariance."""

    def _scores(self) -> tuple[Array, Array]:
        """Coefficients (k, d) and intercepts (k,) of log p(class | x), up to a term that all classes share."""
        parameters = self.parameters_["columns"]  # type: ignore[attr-defined]
        shape = self._shape  # type: ignore[attr-defined]
        mean = parameters["mean"]
        coefficients = shape.precision_times(shape.covariance(parameters), mean)
        log_prior = self.parameters_[PRIOR]["log_probability"]  # type: ignore[attr-defined]
        return coefficients, log_prior - 0.5 * np.sum(coefficients * mean, axis=1)

    @property
    def coef_(self) -> Array:
        coefficients, _ = self._scores()
        return coefficients[1:] - coefficients[:1] if len(coefficients) == 2 else coefficients

    @property
    def intercept_(self) -> Array:
        _, intercepts = self._scores()
        return intercepts[1:] - intercepts[:1] if len(intercepts) == 2 else intercepts


def _refuse(covariance_estimator: Any) -> None:
    if covariance_estimator is not None:
        raise ValueError(
            "covariance_estimator is not supported: a covariance here is a function of sums over rows"
        )


@dataclass(eq=False, repr=False, kw_only=True)
class LinearDiscriminantAnalysis(Linear, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Discriminant):  # type: ignore[misc]
    """Gaussian classes with one covariance matrix. Trained by RC it is a fast logistic regression.

    Parameters
    ----------
    shrinkage : float, optional
        Share of an even sphere of the same average variance in the covariance, as in scikit-learn; "auto" is not
        offered, since it is no function of sums.
    priors : (k,) array, optional
        Class probabilities that stay fixed.
    n_components : int, optional
        Number of discriminant directions of `transform`.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of means and covariance; "auto" puts one on a singular covariance, None is strict maximum likelihood.
    solver, store_covariance, tol
        Accepted so that code written for scikit-learn runs, without effect: there is one closed form and the
        covariance is always there. ``covariance_estimator`` must be None.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> LinearDiscriminantAnalysis(n_components=2).fit(X, y).transform(X).shape
    (150, 2)
    """

    solver: str = field(default="svd", kw_only=False)
    shrinkage: float | None = field(default=None, kw_only=False)
    n_components: int | None = None
    store_covariance: bool = False
    tol: float = 1e-4
    covariance_estimator: None = None

    _shape: ClassVar[Shape] = Tied()

    def _regularizer(self) -> Regularizer:
        _refuse(self.covariance_estimator)
        return (
            Plain()
            if self.shrinkage is None
            else TowardsSphere(number("shrinkage", self.shrinkage, 0.0, 1.0))
        )

    @property
    def covariance_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["covariance"][0])

    @property
    def xbar_(self) -> Array:
        """Mean of the classes' means, weighted by the priors, (d,)."""
        return np.asarray(self.priors_ @ self.means_)

    def _directions(self) -> tuple[Array, Array]:
        """Directions (d, d) that make the covariance the identity, most discriminating first, and their ratios."""
        white = self.parameters_["columns"]["whitener"][0]
        between = np.sqrt(self.priors_)[:, None] * ((self.means_ - self.xbar_) @ white.T)
        _, singular, right = np.linalg.svd(between, full_matrices=False)
        return white.T @ right.T, singular**2 / np.sum(singular**2)

    @property
    def _max_components(self) -> int:
        most: int = min(len(self.classes_) - 1, self.n_features_in_)
        if self.n_components is None:
            return most
        if not 1 <= whole_number("n_components", self.n_components, 1) <= most:
            raise ValueError(
                f"n_components={self.n_components} must lie between 1 and min(d, k - 1) = {most}"
            )
        return self.n_components

    @property
    def _n_features_out(self) -> int:
        return self._max_components

    @property
    def scalings_(self) -> Array:
        return self._directions()[0][:, : self._max_components]

    @property
    def explained_variance_ratio_(self) -> Array:
        return self._directions()[1][: self._max_components]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearDiscriminantAnalysis:
        """See `GenerativeClassifier.fit`."""
        super().fit(X, y, sample_weight)
        _ = self._max_components
        return self

    def transform(self, X: Any) -> Array:
        """Coordinates along the most discriminating directions, (n, n_components)."""
        check_is_fitted(self)
        rows = numbers(self._read(X, reset=False), range(self.n_features_in_))
        return np.asarray((rows - self.xbar_) @ self.scalings_)


@dataclass(eq=False, repr=False, kw_only=True)
class QuadraticDiscriminantAnalysis(Discriminant):
    """Gaussian classes, each with its own covariance matrix.

    Parameters
    ----------
    reg_param : float, default=0
        Share of the identity in each covariance, as in scikit-learn.
    shrinkage : float, optional
        Share of an even sphere of the same average variance in each covariance, as in scikit-learn.
    priors : (k,) array, optional
        Class probabilities that stay fixed.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of means and covariances; "auto" puts one on classes with a singular covariance, None is strict maximum
        likelihood.
    solver, store_covariance, tol
        Accepted so that code written for scikit-learn runs, without effect.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> QuadraticDiscriminantAnalysis(rule="ml").fit(X, y).covariance_[0].shape
    (4, 4)
    """

    solver: str = "svd"
    shrinkage: float | None = None
    reg_param: float = 0.0
    store_covariance: bool = False
    tol: float = 1e-4
    covariance_estimator: None = None

    _shape: ClassVar[Shape] = Full()

    def _regularizer(self) -> Regularizer:
        _refuse(self.covariance_estimator)
        if self.shrinkage is not None:
            if self.reg_param:
                raise ValueError("give reg_param or shrinkage, not both")
            return TowardsSphere(number("shrinkage", self.shrinkage, 0.0, 1.0))
        return TowardsIdentity(number("reg_param", self.reg_param, 0.0, 1.0)) if self.reg_param else Plain()

    @property
    def covariance_(self) -> list[Array]:
        return list(self.parameters_["columns"]["covariance"])


@dataclass(eq=False, repr=False, kw_only=True)
class GenerativeLogisticRegression(Linear, Discriminant):
    """Gaussian classes with one variance a column: logistic regression with a closed-form start.

    The model of rc-probabilistic-2024, section VI. Trained by RC its decision approaches that of logistic regression,
    while class means and variances stay readable.

    Parameters
    ----------
    priors : (k,) array, optional
        Class probabilities that stay fixed.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of means and variances.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GenerativeLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> GenerativeLogisticRegression().fit(X, y).coef_.shape
    (3, 4)
    """

    _shape: ClassVar[Shape] = TiedDiagonal()

    @property
    def var_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["variance"][0])
