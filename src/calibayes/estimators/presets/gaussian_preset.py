"""One Gaussian family over all columns: the base of discriminant analysis and its relatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from calibayes.core.notices import warn
from calibayes.core.protocols import Array
from calibayes.encoders.encoder import Encoder
from calibayes.estimators.generative.attributes import fitted_of
from calibayes.estimators.generative.binding import every
from calibayes.estimators.generative.estimator import GenerativeEstimator
from calibayes.estimators.interface.device_input import array_property
from calibayes.estimators.interface.parameters import estimator
from calibayes.families import ClassPrior, Gaussian, NormalInverseWishart
from calibayes.families.gaussian.shape import Regularizer, Shape
from calibayes.families.gaussian.shapes import Plain
from calibayes.families.model import PRIOR

ROUNDED_SUM = 1e-5
"""A sum of priors that differs from 1 by no more is 1 up to rounding, as in scikit-learn."""


def normalized_priors(priors: Any) -> Any:
    """Class probabilities that sum to 1, with scikit-learn's warning if they did not; a `ClassPrior` or None unchanged.

    Raises ValueError if one is negative.
    """
    if priors is None or isinstance(priors, ClassPrior):
        return priors
    given = np.array(priors, dtype=np.float64)
    if (given < 0).any():
        raise ValueError(f"priors must be non-negative, got {given.tolist()}")
    if not abs(given.sum() - 1.0) > ROUNDED_SUM or not given.sum() > 0:
        return given
    warn(f"The priors do not sum to 1. Renormalizing: their sum is {given.sum():g}")
    return given / given.sum()


@estimator
class GaussianPreset(GenerativeEstimator):
    """One Gaussian family over all columns."""

    prior: NormalInverseWishart | Literal["auto"] | None = "auto"
    class_weight: Mapping[Any, float] | str | None = None

    shape: ClassVar[Shape]
    allows_lost_classes = True
    runs_on_device = True

    if TYPE_CHECKING:

        @property
        def priors(self) -> Array | ClassPrior | None: ...

    def regularizer(self) -> Regularizer:
        """What is done to the covariance after it was estimated."""
        return Plain()

    def chosen_encoder(self) -> Encoder | None:
        """The encoder of the columns; None if all of them must be numbers."""
        return None

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        return self.over_columns(Gaussian(self.shape, prior=self.prior, regularizer=self.regularizer()))

    def over_columns(self, family: Gaussian) -> Sequence[tuple[Any, ...]]:
        """A family over all columns, as they are encoded."""
        encoder = self.chosen_encoder()
        return [("columns", family, every) if encoder is None else ("columns", family, every, encoder)]

    @property
    def encoded_names_(self) -> tuple[str, ...]:
        """Names of the encoded columns: those of means, covariances and coefficients."""
        return tuple(fitted_of(self).model.families["columns"].layout.columns)

    def class_priors(self, k: int) -> Any:
        return normalized_priors(self.priors)

    @array_property
    def means_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["mean"], dtype=self.fitted_.number_type)

    @array_property
    def priors_(self) -> Array:
        return np.exp(self.parameters_[PRIOR]["log_probability"]).astype(self.fitted_.number_type)


class LinearDecision:
    """A decision that is linear in the columns: coefficients from the means and the shared covariance."""

    fitted_: Any
    parameters_: Any
    shape: ClassVar[Shape]

    def _linear_scores(self) -> tuple[Array, Array]:
        """Coefficients (k, d) and intercepts (k,) of log p(class | x), up to a term that all classes share."""
        parameters = self.parameters_["columns"]
        mean = parameters["mean"]
        coefficients = self.shape.precision_times(self.shape.covariance(parameters), mean)
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
