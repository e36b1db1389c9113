"""Discriminant analysis, and logistic regression as a generative model with one variance per column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from calibayes.core.protocols import Array
from calibayes.core.resolve import resolve
from calibayes.encoders.dense import Dense
from calibayes.encoders.encoder import Encoder
from calibayes.estimators.generative.attributes import fitted_of
from calibayes.estimators.generative.binding import every
from calibayes.estimators.generative.estimator import GenerativeEstimator
from calibayes.estimators.generative.recipe import Specification
from calibayes.estimators.interface.input import Rows, new_table
from calibayes.estimators.interface.parameters import estimator, number, whole_number
from calibayes.families import ClassPrior, Full, Gaussian, NormalInverseWishart, Tied, TiedDiagonal
from calibayes.families.gaussian.shape import Regularizer, Shape
from calibayes.families.gaussian.shapes import Plain, TowardsIdentity, TowardsSphere
from calibayes.families.model import PRIOR


@estimator
class GaussianPreset(GenerativeEstimator):
    """One Gaussian family over all columns."""

    priors: Array | ClassPrior | None = None
    prior: NormalInverseWishart | Literal["auto"] | None = "auto"
    class_weight: Mapping[Any, float] | str | None = None

    shape: ClassVar[Shape]

    def regularizer(self) -> Regularizer:
        """What is done to the covariance after it was estimated."""
        return Plain()

    def chosen_encoder(self) -> Encoder | None:
        """The encoder of the columns; None if all of them must be numbers."""
        return None

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        family = Gaussian(self.shape, prior=self.prior, regularizer=self.regularizer())
        encoder = self.chosen_encoder()
        return [("columns", family, every) if encoder is None else ("columns", family, every, encoder)]

    def class_priors(self, k: int) -> Any:
        return self.priors

    @property
    def encoded_names_(self) -> tuple[str, ...]:
        """Names of the encoded columns: those of means, covariances and coefficients."""
        return tuple(fitted_of(self).model.families["columns"].layout.columns)

    @property
    def means_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["mean"])

    @property
    def priors_(self) -> Array:
        return np.asarray(np.exp(self.parameters_[PRIOR]["log_probability"]))


class LinearDecision:
    """A decision that is linear in the columns: coefficients from the means and the shared covariance."""

    parameters_: Any
    shape: ClassVar[Shape]

    def _linear_scores(self) -> tuple[Array, Array]:
        """Coefficients (k, d) and intercepts (k,) of log p(class | x), up to a term that all classes share."""
        parameters = self.parameters_["columns"]
        mean = parameters["mean"]
        coefficients = self.shape.precision_times(self.shape.covariance(parameters), mean)
        log_prior = self.parameters_[PRIOR]["log_probability"]
        return coefficients, log_prior - 0.5 * np.sum(coefficients * mean, axis=1)

    @property
    def coef_(self) -> Array:
        coefficients, _ = self._linear_scores()
        return coefficients[1:] - coefficients[:1] if len(coefficients) == 2 else coefficients

    @property
    def intercept_(self) -> Array:
        _, intercepts = self._linear_scores()
        return intercepts[1:] - intercepts[:1] if len(intercepts) == 2 else intercepts


def _accepting_text(tags: Any, encoder: Any) -> Any:
    """The tags of an estimator that reads text if it has an encoder."""
    tags.input_tags.string = encoder is not None
    return tags


def _encoder_named(given: str | Encoder | None, dense: Dense) -> Encoder | None:
    """The encoder that is given; ``dense`` for "dense"."""
    if given is None:
        return None
    encoder: Encoder = resolve(
        "encoder", given, {"dense": lambda: dense}, ability="encode", example="Dense()"
    )
    return encoder


def _refuse_covariance_estimator(covariance_estimator: Any) -> None:
    if covariance_estimator is not None:
        raise ValueError(
            "covariance_estimator is not supported: the covariance must be a function of sums over rows"
        )


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
    shrinkage : float, optional
        Share of a spherical covariance with the same average variance, as in scikit-learn; "auto" is not offered, since
        it is no function of sums over rows.
    priors : (k,) array or ClassPrior, optional
        Class probabilities that stay fixed; see `GenerativeClassifier`.
    n_components : int, optional
        Number of discriminant directions of `transform`.
    encoder : "dense" or encoder of `calibayes.encoders`, optional
        How columns become numbers. By default they must be numbers, which are not changed. "dense" is for tables with
        text, categories, dates and missing values, as in `BayesClassifier`: asinh-scaled and standardized numbers, and
        an indicator of each level of a column but the first, which the others determine
        (`Dense`). In `transform` a missing value counts as the mean.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of means and covariance; "auto" is a prior for a singular covariance only, None is strict maximum
        likelihood.
    solver, store_covariance, tol
        Without effect, accepted so that code for scikit-learn runs: there is one closed form, and the covariance is
        always stored. ``covariance_estimator`` must be None.
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
    shrinkage: float | None = field(default=None, kw_only=False)
    n_components: int | None = None
    store_covariance: bool = False
    tol: float = 1e-4
    covariance_estimator: None = None
    encoder: str | Encoder | None = None

    shape: ClassVar[Shape] = Tied()

    def __sklearn_tags__(self) -> Any:
        return _accepting_text(super().__sklearn_tags__(), self.encoder)

    def chosen_encoder(self) -> Encoder | None:
        return _encoder_named(self.encoder, Dense(drop_first=True))

    def regularizer(self) -> Regularizer:
        _refuse_covariance_estimator(self.covariance_estimator)
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
        """Directions (d, d) that whiten the covariance, most discriminating first, and their shares of the variance."""
        white = self.parameters_["columns"]["whitener"][0]
        between = np.sqrt(self.priors_)[:, None] * ((self.means_ - self.xbar_) @ white.T)
        _, singular, right = np.linalg.svd(between, full_matrices=False)
        return white.T @ right.T, singular**2 / np.sum(singular**2)

    def specify(self, rows: Rows, classes: Array) -> Specification:
        # The number of encoded columns is not known yet: `transform` has at most as many directions.
        d = len(rows.table.names) if self.encoder is None else len(classes)
        self._components(len(classes), d)
        return super().specify(rows, classes)

    def _components(self, k: int, d: int) -> int:
        """Number of discriminant directions. Raises ValueError if ``n_components`` is too large."""
        most = min(k - 1, d)
        if self.n_components is None:
            return most
        if whole_number("n_components", self.n_components, 1) > most:
            raise ValueError(
                f"n_components={self.n_components} must lie between 1 and min(d, k - 1) = {most}"
            )
        return self.n_components

    @property
    def _n_features_out(self) -> int:
        k, d = self.means_.shape
        return min(self._components(int(k), int(k)), int(d))

    @property
    def scalings_(self) -> Array:
        return self._directions()[0][:, : self._n_features_out]

    @property
    def explained_variance_ratio_(self) -> Array:
        return self._directions()[1][: self._n_features_out]

    def transform(self, X: Any) -> Array:
        """Coordinates along the most discriminating directions, (n, n_components)."""
        encoder, table = fitted_of(self).binding.encoders["columns"], new_table(self, X)
        rows = encoder.encode(table) - self.xbar_
        complete = rows if self.encoder is None else np.nan_to_num(rows, nan=0.0)
        return np.asarray(complete @ self.scalings_)


@estimator
class QuadraticDiscriminantAnalysis(GaussianPreset):
    """Gaussian classes, each with its own covariance matrix.

    Parameters
    ----------
    reg_param : float, default=0
        Share of the identity in each covariance, as in scikit-learn.
    shrinkage : float, optional
        Share of a spherical covariance with the same average variance, as in scikit-learn.
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
    solver, store_covariance, tol
        Without effect, accepted so that code for scikit-learn runs.
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
    shrinkage: float | None = None
    reg_param: float = 0.0
    store_covariance: bool = False
    tol: float = 1e-4
    covariance_estimator: None = None
    encoder: str | Encoder | None = None

    shape: ClassVar[Shape] = Full()

    def __sklearn_tags__(self) -> Any:
        return _accepting_text(super().__sklearn_tags__(), self.encoder)

    def chosen_encoder(self) -> Encoder | None:
        return _encoder_named(self.encoder, Dense(drop_first=True))

    def regularizer(self) -> Regularizer:
        _refuse_covariance_estimator(self.covariance_estimator)
        if self.shrinkage is not None:
            if self.reg_param:
                raise ValueError("give reg_param or shrinkage, not both")
            return TowardsSphere(number("shrinkage", self.shrinkage, 0.0, 1.0))
        return TowardsIdentity(number("reg_param", self.reg_param, 0.0, 1.0)) if self.reg_param else Plain()

    @property
    def covariance_(self) -> list[Array]:
        return list(self.parameters_["columns"]["covariance"])


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

    encoder: str | Encoder | None = None

    shape: ClassVar[Shape] = TiedDiagonal()

    def __sklearn_tags__(self) -> Any:
        return _accepting_text(super().__sklearn_tags__(), self.encoder)

    def chosen_encoder(self) -> Encoder | None:
        return _encoder_named(self.encoder, Dense())

    @property
    def var_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["variance"][0])
