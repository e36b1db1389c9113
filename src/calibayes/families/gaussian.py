"""Numbers with a Gaussian density given the class: discriminant analysis and Gaussian naive Bayes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, Self

import numpy as np

from calibayes.core.abilities import GradientStep
from calibayes.core.notices import warn
from calibayes.core.protocols import Array, Arrays, Generator, Layout, ValidStatistics
from calibayes.core.verify import require_arrays, require_finite
from calibayes.families.class_centers import (
    ROUNDING,
    AsEstimated,
    ClassCenters,
    MeanShrinkage,
    as_matrix,
    expand,
    moments_about_centers,
    scatter,
)
from calibayes.families.covariance_shapes import (
    Expected,
    Full,
    Plain,
    Regularizer,
    verify_matrix,
    verify_variances,
)
from calibayes.families.density import UNBOUND
from calibayes.families.gaussian_left_out import leave_one_out
from calibayes.families.priors import NormalInverseWishart, ResolvedPrior, WithinClasses, resolve_prior
from calibayes.kernels import moments

# -- Messages about singular covariances: which classes, and why ---------------------------------------------


class SingularCovarianceWarning(UserWarning):
    """The covariance of a class is singular; a prior is used for it.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SingularCovarianceWarning)  # the prior is wanted
    """


def affected_classes(singular: Array, layout: Layout) -> str:
    """Names of the classes with a singular covariance, from (k,) booleans; (1,) is a tied covariance."""
    if len(singular) < len(layout.classes):
        return "all classes together"
    names = [repr(name) for name, is_singular in zip(layout.classes, singular, strict=True) if is_singular]
    return f"class {', '.join(names)}"


def reason(counts: Array, is_constant: Array, is_determined: Array, layout: Layout) -> str:
    """Why the covariance of a class is singular.

    Parameters
    ----------
    counts : (1,) or (d,) array
        Number of rows of the class, or of its known cells in each column.
    is_constant : (d,) booleans
        Columns without variance within the class.
    is_determined : (d,) booleans
        Columns without variance given others.
    """
    is_unknown = np.broadcast_to(counts <= 0, is_constant.shape)
    if is_unknown.any():
        return f"no known values in {_listed(layout.columns, is_unknown)}"
    if is_constant.any():
        return f"no within-class variance in {_listed(layout.columns, is_constant)}"
    if counts.min() <= len(layout.columns):
        return f"{counts.min():g} rows for {len(layout.columns)} columns"
    return f"determined by the other columns: {_listed(layout.columns, is_determined)}"


def _listed(names: tuple[str, ...], mask: Array, most: int = 5) -> str:
    """The names of the columns in a mask, at most ``most`` of them."""
    chosen = [repr(name) for name, is_chosen in zip(names, mask, strict=True) if is_chosen]
    rest = f" and {len(chosen) - most} more" if len(chosen) > most else ""
    return ("column " if len(chosen) == 1 else "columns ") + ", ".join(chosen[:most]) + rest


# -- Numbers with a Gaussian density given the class: discriminant analysis and Gaussian naive Bayes ---------

SINGULAR = 1e-12
"""A column with no more than this share of its second moment unexplained is determined by the other columns."""
COLLAPSING = 1e-8
"""Unexplained share below which cancellation has cost a variance half of its digits."""
WIDE = 2.0**700
"""Variance of a column that is constant in training: numbers up to 1e100, the largest that are read, leave a posterior alone."""
EIGENVALUE_FLOOR = 1e-2
"""Smallest eigenvalue of a covariance after a gradient step (rc-generative-2025, appendix B)."""


@dataclass(frozen=True)
class Gaussian(ClassCenters):
    """A mean for each class and a covariance of a given shape.

    Missing values (NaN) are integrated out: skipped by diagonal shapes, imputed by expectation maximization in others.

    Parameters
    ----------
    shape : covariance shape
        `Full`, `Diagonal`, `Spherical`, `Tied`, `TiedDiagonal`, `TiedSpherical` or `TreeCovariance`.
    prior : NormalInverseWishart, WithinClasses, "auto" or None
        ``None`` is maximum likelihood; "auto" is maximum likelihood too, except that classes with a singular covariance
        get the default `NormalInverseWishart` prior, with a warning.
    regularizer : Regularizer
        Transformation of the estimated covariance.
    exact_mode : bool
        Whether the covariance includes the term in (sample mean - prior mean), which the papers omit. With it the
        parameters are the exact mode of the posterior, as rules that ascend the posterior need.
    means : MeanShrinkage
        Transformation of the estimated means; `SoftThreshold` for many columns and few rows.

    Examples
    --------
    >>> from calibayes import GenerativeClassifier, every
    >>> from calibayes.families import Tied
    >>> X, y = [[0.0, 1.0], [1.0, 2.0], [4.0, 0.0], [5.0, 2.0]], [0, 0, 1, 1]
    >>> GenerativeClassifier(families=[("numbers", Gaussian(Tied(), prior="auto"), every)]).fit(X, y).predict(X)
    array([0, 0, 1, 1])
    """

    shape: Full = field(default_factory=Full)
    prior: NormalInverseWishart | WithinClasses | Literal["auto"] | None = None
    regularizer: Regularizer = field(default_factory=Plain)
    exact_mode: bool = False
    means: MeanShrinkage = field(default_factory=AsEstimated)
    layout: Layout = field(default=UNBOUND, repr=False, compare=False)
    resolved: ResolvedPrior | None = field(default=None, repr=False, compare=False)
    """The prior with all its parameters, set by `prepare`; None for maximum likelihood."""
    offsets: Array | None = field(default=None, repr=False, compare=False)
    """Points about which each class's moments are summed, minus the center, (k, d); None for the center itself."""
    constant: Array | None = field(default=None, repr=False, compare=False)
    """The variance, the same in all classes, of each column that is constant in training, 0 for others (d,); None if none is."""

    reads = "numbers"

    def __post_init__(self) -> None:
        priors = NormalInverseWishart | WithinClasses
        if not (self.prior is None or isinstance(self.prior, priors) or self.prior == "auto"):
            raise ValueError(
                "the prior of Gaussian must be a NormalInverseWishart(), WithinClasses(), 'auto' or None, "
                f"got {self.prior!r}"
            )

    def bind(self, layout: Layout) -> Gaussian:
        return replace(self, layout=layout, resolved=None, constant=None)

    def conjugate(self) -> Gaussian:
        return replace(self, prior=NormalInverseWishart()) if self.prior in (None, "auto") else self

    def exact(self) -> Gaussian:
        return replace(self, exact_mode=True)

    @property
    def size(self) -> int:
        groups = 1 if self.shape.tied else len(self.layout.classes)
        return groups * self.shape.freedom(len(self.layout.columns))

    # -- statistics ----------------------------------------------------------------------------------------------

    def has_hidden(self, columns: Array) -> bool:
        return self.shape.has_hidden(columns)

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        expected, centers = self._expected(parameters, weights.shape[1]), self.centers
        moments_about = self.shape.moments_about
        if centers.ndim > 1:
            moments_about = partial(moments_about_centers, self.shape)
        count, first, second = moments_about(columns, centers, weights, expected)
        return {"count": count, "first": first, "second": second}

    def _expected(self, parameters: Arrays | None, k: int) -> Expected:
        """Distribution of missing values: of the parameters, or before training of each column by itself."""
        if parameters is None:
            mean = np.zeros((k, len(self.layout.columns))) - self.offset_values
            return Expected(mean, self.shape.diagonal(self.layout.variance)[None])
        return Expected(parameters["mean"] - self.centers, self.shape.covariance(parameters))

    def _estimate(self, statistics: Arrays) -> tuple[Array, Array]:
        """Means minus the centers (k, d) and covariance (g, ...); meaningless where a count is not positive."""
        first, second = statistics["first"], statistics["second"]
        count = as_matrix(statistics["count"])
        (mean, squares), size = scatter(self.shape, statistics), self.sizes(count)
        prior = self.resolved
        if prior is not None:
            m1, m2, prior_mean = prior.m1[:, None], prior.m2[:, None], prior.mean - self.offset_values
            weight = np.where(m1 + count > 0, m1 + count, 1.0)
            squares = squares + expand(m2, second) * prior.covariance
            if self.exact_mode:
                deviation = self.shape.square(mean - prior_mean)
                squares = squares + self.shape.pool(expand(m1 * count / weight, deviation) * deviation)
            mean, size = (m1 * prior_mean + first) / weight, m2 + self.shape.pool(count)
            size = np.where(size > 0, size, 1.0)
        covariance = self.shape.constrain(squares / expand(size, second), size)
        if self.constant is not None:  # what the prior adds to a constant column would differ between classes
            covariance = self.shape.isolate(covariance, self.constant > 0, 0.0)
        offsets = self.offset_values
        mean = self.means.apply(mean + offsets, count, self.shape.variances(covariance)) - offsets
        covariance = self.regularizer.apply(covariance, self.shape)
        if self.constant is not None:
            is_zero = (self.constant > 0) & ~(self.shape.variances(covariance) > 0).any(axis=0)
            covariance = self.shape.isolate(covariance, is_zero, self.constant)
        return mean, covariance

    def parameters(self, statistics: Arrays) -> Arrays:
        mean, covariance = self._estimate(statistics)
        return {"mean": self.centers + mean, **self.shape.covariance_parameters(covariance, len(mean))}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return self.shape.log_density(moments.as_floats(columns), parameters)

    def contrast(self, columns: Array, parameters: Arrays) -> Array:
        return self.shape.contrast(moments.as_floats(columns), parameters)

    # -- validity ------------------------------------------------------------------------------------------------

    def _unexplained(self, statistics: Arrays) -> Array:
        """Variance of each column given all others, as a share of its second moment, (g, d).

        Prior and regularizer are included.
        """
        _, covariance = self._estimate(statistics)
        count = as_matrix(statistics["count"])
        size = self.sizes(count)
        scale = np.abs(self.shape.variances(statistics["second"])) / size
        left = self.shape.unexplained(covariance)
        if self.offsets is not None:
            left = np.where(left > self.resolution, left, 0.0)
        # A second moment of 0 (an empty class, all rows at the center) must not overflow the ratio.
        return left / np.maximum(np.maximum(scale, SINGULAR**2 * np.abs(left)), np.finfo(float).tiny)

    def _determined(self, statistics: Arrays) -> Array:
        """Columns that are determined by the others, so that the covariance is singular, (g, d)."""
        return ~(self._unexplained(statistics) > SINGULAR)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """A class whose count or covariance would be invalid keeps all its moments; a tied shape keeps all or none.

        A variance that has lost half of its digits to cancellation is invalid too if it would shrink further.
        """
        empty = ~np.all(as_matrix(proposed["count"]) > 0, axis=1)
        unexplained = self._unexplained(proposed)
        collapsing = unexplained < COLLAPSING
        if collapsing.any():
            collapsing &= unexplained < self._unexplained(current)
        invalid = self.shape.pool(empty[:, None])[:, 0] | (collapsing | ~(unexplained > SINGULAR)).any(axis=1)
        frozen_classes = np.broadcast_to(invalid > 0, empty.shape).copy()
        if not frozen_classes.any():
            return ValidStatistics(dict(proposed), 0, frozen_classes)
        statistics = {
            name: np.where(expand(frozen_classes[: len(value)], value), current[name], value)
            for name, value in proposed.items()
        }
        sizes = [value.size / len(value) for value in proposed.values()]
        return ValidStatistics(statistics, int(frozen_classes.sum() * sum(sizes)), frozen_classes)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Gaussian:
        """This family with prior, regularizer and shape completed. Raises ValueError if a covariance is singular."""
        sums = self.move(start if pooled is None else pooled, self.layout.center)
        count = as_matrix(sums["count"]).sum(axis=0)
        mean = sums["first"].sum(axis=0) / count
        variances = np.maximum(self.shape.variances(sums["second"]).sum(axis=0) / count - mean**2, 0.0)
        regularizer, shape = self.regularizer.prepare(variances), self.shape.prepare(start)
        without_prior = replace(self, shape=shape, regularizer=regularizer, resolved=None)
        is_constant = variances <= ROUNDING * mean**2
        constant = np.where(is_constant, WIDE, 0.0)
        without_prior = replace(without_prior, constant=constant if is_constant.any() else None)
        prior, prepared = self.prior, without_prior
        if isinstance(prior, WithinClasses):
            prior = prior.conjugate_to(without_prior._within_class_covariance(start), variances)
        if isinstance(prior, NormalInverseWishart):
            resolved = resolve_prior(prior, shape, self.layout, mean, variances)
            prepared = replace(without_prior, resolved=resolved)
        elif prior == "auto":
            prepared = without_prior._resolve_where_singular(start, mean, variances)
        return prepared._checked(start)

    def _within_class_covariance(self, start: Arrays) -> Array:
        """The pooled covariance of all rows about the means of their classes, (...)."""
        count = as_matrix(start["count"])
        squares = self.shape.square(start["first"] / np.where(count > 0, count, 1.0))
        within = start["second"].sum(axis=0) - np.sum(expand(count, squares) * squares, axis=0)
        total = count.sum(axis=0)
        return np.asarray(within / np.where(total > 0, total, 1.0))

    def _resolve_where_singular(self, start: Arrays, mean: Array, variances: Array) -> Gaussian:
        """This family with the default prior on the classes whose covariance is singular, and a warning."""
        singular = np.any(self._determined(start), axis=1)
        if not singular.any():
            return self
        default = NormalInverseWishart()
        prior = resolve_prior(default, self.shape, self.layout, mean, variances)
        has_rows = (as_matrix(start["count"]) > 0).any(axis=1)
        if has_rows.all():  # else there are classes whose rows are still to come
            warn(
                f"{affected_classes(singular, self.layout)}: the covariance is singular ({self._reason(start)}). "
                f"A NormalInverseWishart prior of {default.m2:g} pseudo-rows is used for it. To avoid this, give a "
                "prior, use a tied shape or leave columns out; prior=None (maximum likelihood) raises an error.",
                SingularCovarianceWarning,
            )
        m1 = prior.m1 * np.broadcast_to(singular, prior.m1.shape)
        return replace(self, resolved=replace(prior, m1=m1, m2=prior.m2 * singular))

    def _checked(self, start: Arrays) -> Gaussian:
        """This family. Raises ValueError if a covariance is singular."""
        singular = np.any(self._determined(start), axis=1)
        if singular.any():
            raise ValueError(
                f"{affected_classes(singular, self.layout)}: the {type(self.shape).__name__} covariance is "
                f"singular ({self._reason(start)}). Give a prior (prior=NormalInverseWishart()), use a tied "
                "shape or leave columns out."
            )
        return self

    def _reason(self, start: Arrays) -> str:
        """Why the covariance of the first singular class is singular."""
        determined = self._determined(start)
        group = int(np.argmax(determined.any(axis=1)))
        counts = self.shape.pool(as_matrix(start["count"]))[group]
        sample_covariance = replace(self, resolved=None, regularizer=Plain())._estimate(start)[1]
        variances = self.shape.variances(sample_covariance)[group]
        scale = np.abs(self.shape.variances(start["second"]))[group] / np.where(counts > 0, counts, 1.0)
        is_constant = variances <= SINGULAR * np.maximum(scale, np.finfo(float).tiny)
        return reason(counts, is_constant, determined[group], self.layout)

    # -- verification --------------------------------------------------------------------------------------------

    def _covariance_shape(self) -> tuple[int, ...]:
        """Full of the covariances and of the second moments, (g, d, d) or (g, d)."""
        d = len(self.layout.columns)
        groups = 1 if self.shape.tied else len(self.layout.classes)
        return (groups, d, d) if self.shape.is_matrix else (groups, d)

    def verify(self) -> None:
        self.layout.verify()
        k, d = len(self.layout.classes), len(self.layout.columns)
        if not k:
            return
        require_finite("center", self.layout.center, (d,))
        if self.offsets is not None:
            require_finite("offsets", self.offsets, (k, d))
        if self.constant is not None:
            require_finite("constant", self.constant, (d,), least=0.0)
        self.shape.verify_size(k, d)
        self.regularizer.verify_size(self._covariance_shape())
        if self.resolved is not None:
            self.resolved.verify_size(k, d, self._covariance_shape())

    def verify_statistics(self, statistics: Arrays) -> None:
        k, d = len(self.layout.classes), len(self.layout.columns)
        by_column = not self.shape.is_matrix and np.ndim(statistics.get("count", 0)) > 1
        count = (k, d) if by_column else (k,)
        shapes = {"count": count, "first": (k, d), "second": self._covariance_shape()}
        require_arrays("statistics", statistics, shapes)
        require_finite("count", statistics["count"], count, least=0.0)

    def verify_parameters(self, parameters: Arrays) -> None:
        (g, *form), k, d = self._covariance_shape(), len(self.layout.classes), len(self.layout.columns)
        if self.shape.is_matrix:
            shapes = {"covariance": (g, *form), "whitener": (g, *form), "log_determinant": (g,)}
            require_arrays("parameters", parameters, {"mean": (k, d), **shapes})
            for part in zip(*(parameters[name] for name in shapes), strict=True):
                verify_matrix(*part)
        else:
            require_arrays("parameters", parameters, {"mean": (k, d), "variance": (k, d)})
            verify_variances(parameters["variance"], is_tied=self.shape.tied)

    # -- abilities -----------------------------------------------------------------------------------------------

    leave_one_out = leave_one_out

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Gradient step on the natural parameters, covariance^-1 mean and -1/2 covariance^-1.

        A tied covariance is not changed, as in logistic regression.
        """
        shape, mean, center = self.shape, parameters["mean"], self.centers
        covariance = shape.covariance(parameters)
        count, first = as_matrix(direction["count"]), direction["first"]
        sums = first + count * center
        natural = shape.precision_times(covariance, mean)
        # If the class prior cannot absorb the normalizer, its gradient is part of the step.
        step = sums if shape.tied and absorbed else sums - count * mean
        is_constant = np.zeros(mean.shape[1], dtype=bool) if self.constant is None else self.constant > 0
        moved = natural + rate * np.where(is_constant, 0.0, step)
        if shape.tied:
            means = _finite_squares(shape.covariance_times(covariance, moved), moved)
            offset = 0.5 * (np.sum(moved * means, axis=1) - np.sum(natural * mean, axis=1))
            return GradientStep({**parameters, "mean": means}, offset if absorbed else None)
        centers = np.broadcast_to(center, first.shape)
        squares = direction["second"] + shape.cross(first, centers)
        squares = squares + expand(count, squares) * shape.square(centers)
        gradient = squares - expand(count, squares) * (shape.square(mean) + covariance)
        variances, gradient = shape.variances(covariance)[0], shape.isolate(gradient, is_constant, 0.0)
        covariance = shape.gradient_step(covariance, rate * gradient, EIGENVALUE_FLOOR)
        if is_constant.any():
            covariance = shape.isolate(covariance, is_constant, variances)
        means = _finite_squares(shape.covariance_times(covariance, moved), moved)
        return GradientStep({"mean": means, **shape.covariance_parameters(covariance, len(means))}, None)

    def log_prior(self, parameters: Arrays) -> float:
        if self.resolved is None:
            return 0.0
        prior, covariance = self.resolved, self.shape.covariance(parameters)
        deviation = parameters["mean"] - self.layout.center - prior.mean
        distance = np.sum(deviation * self.shape.precision_times(covariance, deviation), axis=1)
        return self.shape.log_prior(covariance, prior.m2, prior.covariance) - 0.5 * float(prior.m1 @ distance)

    def prior_direction(self, parameters: Arrays) -> Arrays:
        if self.resolved is None:
            return {}
        prior, covariance = self.resolved, self.shape.covariance(parameters)
        target, mean = prior.mean - self.offset_values, parameters["mean"] - self.centers
        target, m1 = np.broadcast_to(target, mean.shape), prior.m1[:, None]
        squares = self.shape.square(target) - self.shape.square(mean)
        second = self.shape.pool(expand(m1, squares) * squares)
        second = second + expand(prior.m2[:, None], second) * (prior.covariance - covariance)
        if self.constant is not None:
            second = self.shape.isolate(second, self.constant > 0, 0.0)
        return {"first": m1 * (target - mean), "second": second}

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        noise = rng.standard_normal((len(classes), len(self.layout.columns)))
        covariance = self.shape.covariance(parameters)
        if self.constant is not None:
            noise[:, self.constant > 0] = 0.0
        drawn = parameters["mean"][classes] + self.shape.root_times(covariance, noise, classes)
        return drawn if given is None else self.shape.conditioned(drawn, given, covariance, classes)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Missing values replaced by the conditional means of the classes, averaged over the posterior."""
        n, covariance = len(columns), self.shape.covariance(parameters)
        by_class = [
            self.shape.conditioned(np.repeat(mean[None], n, axis=0), columns, covariance, np.full(n, c))
            for c, mean in enumerate(parameters["mean"])
        ]
        average = np.einsum("nk,knd->nd", posterior, np.stack(by_class))
        return np.where(np.isnan(columns), average, columns)

    def terms(self, columns: Array, parameters: Arrays) -> Array | None:
        return self.shape.terms(np.asarray(columns, dtype=np.float64), parameters)

    def conditional_terms(self, columns: Array, parameters: Arrays, order: Array) -> Array:
        return self.shape.conditional_terms(np.asarray(columns, dtype=np.float64), parameters, order)


def _finite_squares(means: Array, natural: Array) -> Array:
    """The means (k, d), with NaN instead of those whose squares, which log densities contain, overflow."""
    finite = np.isfinite(means**2) & np.isfinite(natural * means)
    return np.where(finite, means, np.nan)


# -- Covariances times a factor: posteriors that are less extreme --------------------------------------------


@dataclass(frozen=True)
class Inflated:
    """The covariance of another regularizer, times a factor.

    Under a tied covariance this divides all differences of log densities by the factor and leaves the class prior as it
    is. Factors above 1 correct for columns that are not independent given the class, and for estimates from few rows.

    Parameters
    ----------
    factor : float
    inner : Regularizer, default=Plain()
        Applied first.

    Examples
    --------
    >>> from calibayes.families import Gaussian, Tied
    >>> Gaussian(Tied(), regularizer=Inflated(4.0)).regularizer.factor
    4.0
    """

    factor: float
    inner: Regularizer = field(default_factory=Plain)

    def __post_init__(self) -> None:
        if not 0 < self.factor < math.inf:
            raise ValueError(f"Inflated({self.factor}): the factor must be positive and finite")

    def prepare(self, variances: Array) -> Self:
        return replace(self, inner=self.inner.prepare(variances))

    def apply(self, covariance: Array, shape: Full) -> Array:
        return np.asarray(self.factor * self.inner.apply(covariance, shape))

    def verify_size(self, covariance_shape: tuple[int, ...]) -> None:
        self.inner.verify_size(covariance_shape)
