"""Several components a class: a mixture of any family over numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibayes.core.abilities import (
    AllowsMissing,
    Conjugate,
    Filling,
    Movable,
    Penalized,
    Reasons,
    Sampling,
    Sized,
)
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.families.gaussian.gaussian import Gaussian
from calibayes.families.gaussian.shapes import Diagonal
from calibayes.kernels.numbers import clusters
from calibayes.kernels.posterior import components

MASS = "component"
"""Name of the weight of the rows in each component among the statistics."""
LEAST_SHARE = 1e-12
"""Least share of a component in its class: an empty one is nearly, not wholly, impossible."""
NEEDS = (AllowsMissing, Sampling, Filling, Reasons, Conjugate, Penalized)


@dataclass(frozen=True)
class Mixture:
    """p(x | class) = sum over the class's components of weight * density, as many as the layout has seeds.

    The components are the classes of an inner family, which may be tied over all of them. A class's weight is shared
    out over its components by their posterior (gdt-2004), at the start by the nearest seed, so that maximum likelihood
    is expectation maximization. The weights of components have no prior.

    Parameters
    ----------
    family : Family
        A family over numbers, such as a `Gaussian` in any shape.
    """

    family: Any = field(default_factory=lambda: Gaussian(Diagonal()))
    layout: Layout = field(default_factory=lambda: Layout((), ()), repr=False, compare=False)

    reads = "clusters"

    def __post_init__(self) -> None:
        able = all(isinstance(self.family, need) for need in NEEDS)
        if not able or getattr(self.family, "reads", None) != "numbers":
            raise ValueError(
                f"a mixture is made of a family over numbers such as Gaussian(), got {self.family!r}"
            )

    def bind(self, layout: Layout) -> Mixture:
        if not layout.seeds:
            raise ValueError(
                "a mixture must be told where its components begin: give its columns the encoder Clusters()"
            )
        # A class without rows at the time when seeds were found has one component, anywhere.
        lost = len(layout.classes) - len(layout.seeds)
        layout = replace(layout, seeds=(*layout.seeds, *[layout.center[None]] * lost))
        names = [
            f"{name}, component {number}" if len(seeds) > 1 else name
            for name, seeds in zip(layout.classes, layout.seeds, strict=True)
            for number in range(1, len(seeds) + 1)
        ]
        inner = self.family.bind(replace(layout, classes=tuple(names), seeds=()))
        return replace(self, family=inner, layout=layout)

    @cached_property
    def owner(self) -> Array:
        """The class of each component, ascending."""
        return np.repeat(np.arange(len(self.layout.seeds)), [len(seeds) for seeds in self.layout.seeds])

    @property
    def several(self) -> bool:
        """Whether some class has more than one component."""
        return len(self.owner) > len(self.layout.classes)

    @property
    def size(self) -> int:
        return self.family.size if isinstance(self.family, Sized) else len(self.owner)

    # -- statistics ----------------------------------------------------------------------------------------------

    def has_hidden(self, columns: Array) -> bool:
        return self.several or bool(self.family.has_hidden(columns))

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        shares = self._nearest(columns) if parameters is None else self._judged(columns, parameters)[1]
        shared = weights[:, self.owner] * shares
        return {MASS: shared.sum(axis=0), **self.family.statistics(columns, shared, parameters)}

    def _nearest(self, columns: Array) -> Array:
        """1 for the nearest seed of each class, columns in units of their spread, else 0, (n, components)."""
        spread = spreads(self.layout.variance, len(self.layout.columns))
        rows = (np.asarray(columns, dtype=np.float64) - self.layout.center) / spread
        away = [
            clusters.squared_distances(rows, (seeds - self.layout.center) / spread)
            for seeds in self.layout.seeds
        ]
        return np.concatenate([np.eye(each.shape[1])[np.argmin(each, axis=1)] for each in away], axis=1)

    def _judged(self, columns: Array, parameters: Arrays) -> tuple[Array, Array]:
        """log p(x | class), (n, k), and the posterior of components within their class, (n, components)."""
        parts = self.family.log_density(columns, parameters) + parameters["log_weight"]
        return components.log_sum_and_shares(parts, self.owner)

    def parameters(self, statistics: Arrays) -> Arrays:
        mass = np.maximum(statistics[MASS], LEAST_SHARE * self._of_class(statistics[MASS]))
        weight = np.log(mass) - np.log(self._of_class(mass))
        return {"log_weight": weight, **self.family.parameters(_inner(statistics))}

    def _of_class(self, mass: Array) -> Array:
        """Weight of each component's class, (components,)."""
        return np.bincount(self.owner, mass)[self.owner]

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return self._judged(columns, parameters)[0]

    # -- validity ------------------------------------------------------------------------------------------------

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Mixture:
        family = self.family.prepare(_inner(start), None if pooled is None else _inner(pooled))
        return replace(self, family=family)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """Components freeze one by one, by the inner family's measure; a class is held where all of its own are.

        Weights of components freeze by themselves, so that a step of expectation maximization raises the likelihood
        though some component must stay where it is.
        """
        inner = self.family.keep_valid(_inner(current), _inner(proposed))
        mass = proposed[MASS]
        lost = ~(mass > LEAST_SHARE * np.maximum(self._of_class(mass), 0.0))
        kept = {MASS: np.where(lost, current[MASS], mass), **inner.statistics}
        held = np.bincount(self.owner, ~inner.frozen_classes) == 0
        return ValidStatistics(kept, inner.frozen + int(lost.sum()), held)

    # -- abilities -----------------------------------------------------------------------------------------------

    def conjugate(self) -> Self:
        return replace(self, family=self.family.conjugate())

    def exact(self) -> Self:
        return replace(self, family=self.family.exact())

    def log_prior(self, parameters: Arrays) -> float:
        return float(self.family.log_prior(parameters))

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        """The component by its posterior given what is known, then a row of it."""
        shares = (
            np.exp(parameters["log_weight"])[None] if given is None else self._judged(given, parameters)[1]
        )
        return self.family.sample(
            parameters, components.draw_parts(shares, self.owner, classes, rng), rng, given
        )

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        shares = self._judged(columns, parameters)[1]
        return self.family.fill(columns, parameters, posterior[:, self.owner] * shares)

    @property
    def groups(self) -> tuple[str, ...]:
        return (" + ".join(self.layout.columns),) if self.several else self.family.groups

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        """The log of a sum is no sum over columns, so they count together; one component has its family's terms."""
        if self.several:
            return self.log_density(columns, parameters)[:, :, None]
        return self.family.terms(columns, parameters)

    def move(self, statistics: Arrays, center: Array) -> Arrays:
        inner = _inner(statistics)
        moved = self.family.move(inner, center) if isinstance(self.family, Movable) else inner
        return {MASS: statistics[MASS], **moved}


def spreads(variance: Array, d: int) -> Array:
    """In what units distances are measured, (d,): standard deviations, or one where a column has none."""
    known = np.ones(d) if len(variance) == 0 else np.asarray(variance)
    return np.sqrt(np.where(known > 0, known, 1.0))


def _inner(statistics: Arrays) -> Arrays:
    """Those of the inner family."""
    return {name: value for name, value in statistics.items() if name != MASS}
