"""Numbers with a Gaussian density given the class, in six shapes of covariance."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from calibayes.core.abilities import GradientStep
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.families.gaussian.covariance_priors import ResolvedPrior, WithinClasses, resolved
from calibayes.families.gaussian.regularizers import Plain, Regularizer
from calibayes.families.gaussian.shapes import Expected, Full, Shape
from calibayes.families.gaussian.singular import SingularCovarianceWarning, where, why
from calibayes.families.priors import NormalInverseWishart

ROUNDING = 1e-14
"""A scatter that is a smaller share of the second moment is rounding, not scatter."""
SINGULAR = 1e-12
"""A column of whose second moment no more than this is left is determined by the class and the other columns."""
COLLAPSING = 1e-8
"""Below this a variance has lost half of its digits, as second moment minus squared mean."""
EIGENVALUE_FLOOR = 1e-2
"""Least eigenvalue of a covariance after a gradient step (rc-generative-2025, appendix B)."""


@dataclass(frozen=True)
class Gaussian:
    """A mean for each class and a covariance in some shape.

    Parameters
    ----------
    shape : Shape
        `Full`, `Diagonal`, `Spherical`, or their tied kin.
    prior : NormalInverseWishart, WithinClasses, "auto" or None
        ``None`` is strict maximum likelihood; "auto" is maximum likelihood where it is valid and, for a class whose
        covariance is singular, the default prior with a warning.
    regularizer : Regularizer
        What is done to the covariance after it was estimated.
    exactly : bool
        Whether the prior keeps the term in (sample mean - prior mean) of the covariance. The papers leave it out; with
        it the parameters are the exact mode of a posterior, which rules that climb a posterior need.
    """

    shape: Shape = field(default_factory=Full)
    prior: NormalInverseWishart | WithinClasses | Literal["auto"] | None = None
    regularizer: Regularizer = field(default_factory=Plain)
    exactly: bool = False
    layout: Layout = field(default_factory=lambda: Layout((), ()), repr=False, compare=False)
    resolved: ResolvedPrior | None = field(default=None, repr=False, compare=False)

    reads = "numbers"

    def __post_init__(self) -> None:
        priors = NormalInverseWishart | WithinClasses
        if not (self.prior is None or isinstance(self.prior, priors) or self.prior == "auto"):
            raise ValueError(
                "the prior of a Gaussian is a NormalInverseWishart(), WithinClasses(), 'auto' or None, "
                f"got {self.prior!r}"
            )

    def bind(self, layout: Layout) -> Gaussian:
        return replace(self, layout=layout, resolved=None)

    def conjugate(self) -> Gaussian:
        return replace(self, prior=NormalInverseWishart()) if self.prior in (None, "auto") else self

    def exact(self) -> Gaussian:
        return replace(self, exactly=True)

    @property
    def size(self) -> int:
        groups = 1 if self.shape.tied else len(self.layout.classes)
        return groups * self.shape.freedom(len(self.layout.columns))

    # -- statistics ----------------------------------------------------------------------------------------------

    def _pool(self, per_class: Array) -> Array:
        return self.shape.pool(per_class)

    def has_hidden(self, columns: Array) -> bool:
        return self.shape.has_hidden(columns)

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        expected = self._expected(parameters, weights.shape[1])
        count, first, second = self.shape.about(columns, self.layout.center, weights, expected)
        return {"count": count, "first": first, "second": second}

    def _expected(self, parameters: Arrays | None, k: int) -> Expected:
        """What missing cells are taken for: by the parameters, or at the start by each column alone."""
        if parameters is None:
            return Expected(np.zeros((k, len(self.layout.columns))), np.diag(self.layout.variance)[None])
        return Expected(parameters["mean"] - self.layout.center, self.shape.covariance(parameters))

    def _estimate(self, statistics: Arrays) -> tuple[Array, Array]:
        """Mean about the center (k, d) and covariance (g, ...); nonsense where a count is not positive."""
        first, second = statistics["first"], statistics["second"]
        count = _rows(statistics["count"])
        some = np.where(count > 0, count, 1.0)
        mean, size = first / some, self._pool(some)
        squares = self.shape.square(mean)
        squares *= _like(some, squares)
        scatter = second - self._pool(squares)
        scatter[np.abs(scatter) <= ROUNDING * np.abs(second)] = 0.0
        prior = self.resolved
        if prior is not None:
            m1, m2 = prior.m1[:, None], prior.m2[:, None]
            weight = np.where(m1 + count > 0, m1 + count, 1.0)
            scatter = scatter + _like(m2, second) * prior.covariance
            if self.exactly:
                away = self.shape.square(mean - prior.mean)
                scatter = scatter + self._pool(_like(m1 * count / weight, away) * away)
            mean, size = (m1 * prior.mean + first) / weight, m2 + self._pool(count)
            size = np.where(size > 0, size, 1.0)
        covariance = self.shape.settle(scatter / _like(size, second), size)
        return mean, self.regularizer.apply(covariance, self.shape)

    def parameters(self, statistics: Arrays) -> Arrays:
        mean, covariance = self._estimate(statistics)
        return {"mean": self.layout.center + mean, **self.shape.finish(covariance, len(mean))}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return self.shape.log_density(_floats(columns), parameters)

    def contrast(self, columns: Array, parameters: Arrays) -> Array:
        return self.shape.contrast(_floats(columns), parameters)

    # -- validity ------------------------------------------------------------------------------------------------

    def _left(self, statistics: Arrays) -> Array:
        """What is left of each column's second moment when the means and the columns before it are known, (g, d).

        It is measured on the covariance that will be used.
        """
        _, covariance = self._estimate(statistics)
        count = _rows(statistics["count"])
        size = self._pool(np.where(count > 0, count, 1.0))
        scale = np.abs(self.shape.variances(statistics["second"])) / size
        pivots = self.shape.pivots(covariance)
        # Where nothing was summed (an empty class, all rows at the center) all of it is left, and a ratio would overflow.
        return pivots / np.maximum(np.maximum(scale, SINGULAR**2 * np.abs(pivots)), np.finfo(float).tiny)

    def _determined(self, statistics: Arrays) -> Array:
        """Columns that have no variance of their own, (g, d)."""
        return ~(self._left(statistics) > SINGULAR)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """A class whose count or covariance would be invalid keeps all its moments; a tied shape keeps all or none.

        Nor may a variance that has lost half of its digits to cancellation shrink further.
        """
        empty = ~(_rows(proposed["count"]) > 0).all(axis=1)
        left = self._left(proposed)
        collapsing = left < COLLAPSING
        if collapsing.any():
            collapsing &= left < self._left(current)
        held = self._pool(empty[:, None])[:, 0] | (collapsing | ~(left > SINGULAR)).any(axis=1)
        held = np.array(np.broadcast_to(held > 0, empty.shape))
        if not held.any():
            return ValidStatistics(dict(proposed), 0, held)
        kept = {
            name: np.where(_like(held[: len(value)], value), current[name], value)
            for name, value in proposed.items()
        }
        sizes = [value.size / len(value) for value in proposed.values()]
        return ValidStatistics(kept, int(held.sum() * sum(sizes)), held)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Gaussian:
        rows = start if pooled is None else pooled
        count = _rows(rows["count"]).sum(axis=0)
        mean = rows["first"].sum(axis=0) / count
        variances = np.maximum(self.shape.variances(rows["second"]).sum(axis=0) / count - mean**2, 0.0)
        regularizer, shape = self.regularizer.prepare(variances), self.shape.prepare(start)
        bare = replace(self, shape=shape, regularizer=regularizer, resolved=None)
        if isinstance(self.prior, NormalInverseWishart):
            prepared = replace(bare, resolved=bare._resolve(self.prior, mean, variances))
        elif isinstance(self.prior, WithinClasses):
            found = self.prior.conjugate_to(bare._within(start), variances)
            prepared = replace(bare, resolved=bare._resolve(found, mean, variances))
        elif self.prior == "auto":
            prepared = bare._resolve_where_singular(start, mean, variances)
        else:
            prepared = bare
        return prepared._checked(start)

    def _within(self, start: Arrays) -> Array:
        """The scatter of all rows about the means of their classes, in the form of one covariance."""
        count = _rows(start["count"])
        some = np.where(count > 0, count, 1.0)
        squares = self.shape.square(start["first"] / some)
        scatter = start["second"].sum(axis=0) - np.sum(_like(count, squares) * squares, axis=0)
        total = count.sum(axis=0)
        return np.asarray(scatter / np.where(total > 0, total, 1.0))

    def _resolve(self, prior: NormalInverseWishart, mean: Array, variances: Array) -> ResolvedPrior:
        return resolved(prior, self.shape, self.layout, mean, variances)

    def _resolve_where_singular(self, start: Arrays, mean: Array, variances: Array) -> Gaussian:
        singular = self._determined(start).any(axis=1)
        if not singular.any():
            return self
        default = NormalInverseWishart()
        prior = self._resolve(default, mean, variances)
        warnings.warn(
            f"{where(singular, self.layout)}: the covariance is singular ({self._why(start)}); a prior worth "
            f"{default.m2:g} rows was put on it. Give prior=None for strict maximum likelihood, or a tied shape.",
            SingularCovarianceWarning,
            stacklevel=8,
        )
        m1 = prior.m1 * np.broadcast_to(singular, prior.m1.shape)
        return replace(self, resolved=replace(prior, m1=m1, m2=prior.m2 * singular))

    def _checked(self, start: Arrays) -> Gaussian:
        singular = self._determined(start).any(axis=1)
        if singular.any():
            raise ValueError(
                f"{where(singular, self.layout)}: the {type(self.shape).__name__} covariance is singular "
                f"({self._why(start)}). A prior (prior=NormalInverseWishart()), a tied shape, or leaving columns out helps."
            )
        return self

    def _why(self, start: Arrays) -> str:
        """The first singular class's reason, in words."""
        determined = self._determined(start)
        group = int(np.argmax(determined.any(axis=1)))
        counts = self._pool(_rows(start["count"]))[group]
        within = replace(self, resolved=None, regularizer=Plain())._estimate(start)[1]
        scale = np.abs(self.shape.variances(start["second"]))[group] / np.where(counts > 0, counts, 1.0)
        flat = self.shape.variances(within)[group] <= SINGULAR * np.maximum(scale, np.finfo(float).tiny)
        return why(counts, flat, determined[group], self.layout)

    # -- abilities -----------------------------------------------------------------------------------------------

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Gradient in (covariance^-1 mean, -1/2 covariance^-1); a tied covariance stays, as in logistic regression."""
        shape, mean, center = self.shape, parameters["mean"], self.layout.center
        covariance = shape.covariance(parameters)
        count, first = _rows(direction["count"]), direction["first"]
        sums = first + count * center
        natural = shape.precision_times(covariance, mean)
        if shape.tied:
            # With fixed class probabilities the normalizer belongs to the density, and so to the gradient.
            moved = natural + rate * (sums if absorbed else sums - count * mean)
            means = shape.covariance_times(covariance, moved)
            offset = 0.5 * (np.sum(moved * means, axis=1) - np.sum(natural * mean, axis=1))
            return GradientStep({**parameters, "mean": means}, offset if absorbed else None)
        centers = np.broadcast_to(center, first.shape)
        squares = direction["second"] + shape.cross(first, centers)
        squares = squares + _like(count, squares) * shape.square(centers)
        gradient = squares - _like(count, squares) * (shape.square(mean) + covariance)
        moved = natural + rate * (sums - count * mean)
        covariance = shape.gradient_step(covariance, rate * gradient, EIGENVALUE_FLOOR)
        means = shape.covariance_times(covariance, moved)
        return GradientStep({"mean": means, **shape.finish(covariance, len(means))}, None)

    def log_prior(self, parameters: Arrays) -> float:
        if self.resolved is None:
            return 0.0
        prior, covariance = self.resolved, self.shape.covariance(parameters)
        away = parameters["mean"] - self.layout.center - prior.mean
        distance = np.sum(away * self.shape.precision_times(covariance, away), axis=1)
        return self.shape.log_prior(covariance, prior.m2, prior.covariance) - 0.5 * float(prior.m1 @ distance)

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        noise = rng.standard_normal((len(classes), len(self.layout.columns)))
        covariance = self.shape.covariance(parameters)
        drawn = parameters["mean"][classes] + self.shape.root_times(covariance, noise, classes)
        return drawn if given is None else self.shape.conditioned(drawn, given, covariance, classes)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """Each class's conditional mean, weighted by the posterior."""
        k, covariance = posterior.shape[1], self.shape.covariance(parameters)
        by_class = [
            self.shape.conditioned(
                np.repeat(mean[None], len(columns), axis=0), columns, covariance, np.full(len(columns), c)
            )
            for c, mean in zip(range(k), parameters["mean"], strict=True)
        ]
        likely = np.einsum("nk,knd->nd", posterior, np.stack(by_class))
        return np.where(np.isnan(columns), likely, columns)

    @property
    def groups(self) -> tuple[str, ...]:
        return self.shape.groups(self.layout.columns)

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        return self.shape.terms(np.asarray(columns, dtype=np.float64), parameters)

    def move(self, statistics: Arrays, center: Array) -> Arrays:
        """x - center' = (x - center) + shift, so moments move by the lower ones."""
        count, first, second = _rows(statistics["count"]), statistics["first"], statistics["second"]
        shift = np.broadcast_to(self.layout.center - center, first.shape)
        across = self.shape.cross(first, shift)
        squares = self.shape.square(shift)
        moved = second + self._pool(across + _like(count, squares) * squares)
        return {"count": statistics["count"], "first": first + count * shift, "second": moved}


def _floats(columns: Array) -> Array:
    """Numbers in float64; float32 stays, and shapes say what they make of it."""
    numbers = np.asarray(columns)
    return numbers if numbers.dtype == np.float32 else np.asarray(numbers, dtype=np.float64)


def _rows(count: Array) -> Array:
    """Counts of rows (k, 1), or of known cells (k, d)."""
    return count[:, None] if count.ndim == 1 else count


def _like(per_class: Array, value: Array) -> Array:
    """Per-class numbers with as many axes as the value they multiply."""
    return per_class.reshape(per_class.shape + (1,) * (value.ndim - per_class.ndim))
