"""Mixtures: several components per class, each a density of the same family over numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from calibayes.core import abilities, verify
from calibayes.core.protocols import Array, Arrays, Generator, Layout, ValidStatistics
from calibayes.families.covariance_shapes import Diagonal
from calibayes.families.density import UNBOUND
from calibayes.families.gaussian import Gaussian
from calibayes.kernels import cut_points
from calibayes.kernels import posterior as components

COMPONENT = "component"
"""Name of the statistic with the weight of the rows in each component, (components,)."""
LEAST_SHARE = 1e-12
"""Smallest share of a component in its class, so that its log weight is finite."""
NEEDED_ABILITIES = (
    abilities.AllowsMissing,
    abilities.Sampling,
    abilities.Filling,
    abilities.Reasons,
    abilities.Conjugate,
    abilities.Penalized,
)


@dataclass(frozen=True)
class Mixture:
    """p(x | class) = sum over the components of the class of weight * density, one component per seed of the layout.

    The components are the classes of an inner family, whose parameters may be tied over all of them. The class weight
    of a row is distributed over the components of the class by their posterior (gdt-2004), before training by the
    nearest seed, so that maximum likelihood is expectation maximization. The weights of components have no prior.

    Parameters
    ----------
    family : Family
        A family over numbers, such as a `Gaussian` in any shape.

    Examples
    --------
    >>> from calibayes import MixtureDiscriminantAnalysis
    >>> X, y = [[0.0], [0.5], [9.0], [9.5], [4.0], [4.5], [5.0], [5.5]], [0, 0, 0, 0, 1, 1, 1, 1]
    >>> MixtureDiscriminantAnalysis(n_components=[2, 1], random_state=0).fit(X, y).score(X, y)  # its family is Mixture
    1.0
    """

    family: Any = field(default_factory=lambda: Gaussian(Diagonal()))
    layout: Layout = field(default=UNBOUND, repr=False, compare=False)

    reads = "clusters"

    def __post_init__(self) -> None:
        is_able = all(isinstance(self.family, ability) for ability in NEEDED_ABILITIES)
        if not is_able or getattr(self.family, "reads", None) != "numbers":
            raise ValueError(
                f"the family of Mixture must be a family over numbers such as Gaussian(), got {self.family!r}"
            )

    def bind(self, layout: Layout) -> Mixture:
        if not layout.seeds:
            raise ValueError(
                "Mixture needs seeds for its components, and the layout has none: use the encoder Clusters()"
            )
        # A class that had no rows when the seeds were determined has one component, at the center.
        seedless = len(layout.classes) - len(layout.seeds)
        layout = replace(layout, seeds=(*layout.seeds, *[layout.center[None]] * seedless))
        names = [
            f"{name}, component {number}" if len(seeds) > 1 else name
            for name, seeds in zip(layout.classes, layout.seeds, strict=True)
            for number in range(1, len(seeds) + 1)
        ]
        inner = self.family.bind(replace(layout, classes=tuple(names), seeds=()))
        return replace(self, family=inner, layout=layout)

    @cached_property
    def component_classes(self) -> Array:
        """The class of each component, ascending, (components,)."""
        return np.repeat(np.arange(len(self.layout.seeds)), [len(seeds) for seeds in self.layout.seeds])

    def verify(self) -> None:
        self.layout.verify()
        self.family.verify()
        if not self.layout.classes:
            return
        verify.require_length("seeds", self.layout.seeds, len(self.layout.classes))
        inner: Layout = self.family.layout
        verify.require_length("classes of the components", inner.classes, len(self.component_classes))
        has_columns = inner.columns == self.layout.columns
        verify.require(has_columns, "the components have other columns than the mixture")
        verify.require_finite("center", self.layout.center, (len(inner.columns),))

    def verify_parameters(self, parameters: Arrays) -> None:
        shape = (len(self.component_classes),)
        log_weight = verify.require_finite("log_weight", parameters.get("log_weight"), shape)
        weight = verify.probabilities_of("log_weight", log_weight)
        verify.require_sums_of_one("log_weight", self._class_totals(weight))
        self.family.verify_parameters(_without("log_weight", parameters))

    def verify_statistics(self, statistics: Arrays) -> None:
        component_weight = statistics.get(COMPONENT)
        verify.require_finite(COMPONENT, component_weight, (len(self.component_classes),), least=0.0)
        self.family.verify_statistics(_inner(statistics))

    @property
    def owner(self) -> Array:
        """Older name of `component_classes`."""
        return self.component_classes

    @property
    def has_several_components(self) -> bool:
        """Whether some class has more than one component."""
        return len(self.component_classes) > len(self.layout.classes)

    @property
    def size(self) -> int:
        return self.family.size if isinstance(self.family, abilities.Sized) else len(self.component_classes)

    # -- statistics ----------------------------------------------------------------------------------------------

    def has_hidden(self, columns: Array) -> bool:
        return self.has_several_components or bool(self.family.has_hidden(columns))

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        if parameters is None:
            shares = self._nearest_seeds(columns)
        else:
            shares = self._density_and_shares(columns, parameters)[1]
        component_weights = weights[:, self.component_classes] * shares
        inner = self.family.statistics(columns, component_weights, parameters)
        return {COMPONENT: component_weights.sum(axis=0), **inner}

    def _nearest_seeds(self, columns: Array) -> Array:
        """Indicators of the nearest seed of each class, by standardized distance, (n, components).

        Of seeds that differ in distance by rounding only, in units of the spread of the seeds, the first.
        """
        scale = column_scales(self.layout.variance, len(self.layout.columns))
        rows, nearest = np.asarray(columns, dtype=np.float64), []
        for seeds in self.layout.seeds:
            middle = seeds.mean(axis=0)
            unit = scale * (np.abs((seeds - middle) / scale).max() or 1.0)
            squares = cut_points.squared_distances((rows - middle) / unit, (seeds - middle) / unit)
            nearest.append(np.eye(len(seeds))[cut_points.first_least(squares)])
        return np.concatenate(nearest, axis=1)

    def _density_and_shares(self, columns: Array, parameters: Arrays) -> tuple[Array, Array]:
        """log p(x | class), (n, k), and the posterior of components within their class, (n, components)."""
        parts = self.family.log_density(columns, parameters) + parameters["log_weight"]
        return components.log_sum_and_shares(parts, self.component_classes)

    def parameters(self, statistics: Arrays) -> Arrays:
        weight = np.maximum(statistics[COMPONENT], LEAST_SHARE * self._class_totals(statistics[COMPONENT]))
        log_weight = np.log(weight) - np.log(self._class_totals(weight))
        return {"log_weight": log_weight, **self.family.parameters(_inner(statistics))}

    def _class_totals(self, weight: Array) -> Array:
        """Sum of the weights over the class of each component, (components,)."""
        return np.bincount(self.component_classes, weight)[self.component_classes]

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return self._density_and_shares(columns, parameters)[0]

    # -- validity ------------------------------------------------------------------------------------------------

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Mixture:
        family = self.family.prepare(_inner(start), None if pooled is None else _inner(pooled))
        return replace(self, family=family)

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """The inner family freezes components one by one; a class is frozen if all its components are.

        Weights of components freeze independently of the components, so that a step of expectation maximization raises
        the likelihood even if some component is frozen.
        """
        inner = self.family.keep_valid(_inner(current), _inner(proposed))
        weight = proposed[COMPONENT]
        vanishing = ~(weight > LEAST_SHARE * np.maximum(self._class_totals(weight), 0.0))
        statistics = {COMPONENT: np.where(vanishing, current[COMPONENT], weight), **inner.statistics}
        frozen_classes = np.bincount(self.component_classes, ~inner.frozen_classes) == 0
        return ValidStatistics(statistics, inner.frozen + int(vanishing.sum()), frozen_classes)

    # -- abilities -----------------------------------------------------------------------------------------------

    def conjugate(self) -> Self:
        return replace(self, family=self.family.conjugate())

    def exact(self) -> Self:
        return replace(self, family=self.family.exact())

    def log_prior(self, parameters: Arrays) -> float:
        return float(self.family.log_prior(parameters))

    def prior_direction(self, parameters: Arrays) -> Arrays:
        moves: Arrays = getattr(self.family, "prior_direction", lambda _: {})(parameters)
        return moves

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        """Sample a component by its posterior given the known cells, then a row from the component."""
        if given is None:
            shares = np.exp(parameters["log_weight"])[None]
        else:
            shares = self._density_and_shares(given, parameters)[1]
        drawn = components.draw_parts(shares, self.component_classes, classes, rng)
        return self.family.sample(parameters, drawn, rng, given)

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        shares = self._density_and_shares(columns, parameters)[1]
        return self.family.fill(columns, parameters, posterior[:, self.component_classes] * shares)

    def terms(self, columns: Array, parameters: Arrays) -> Array | None:
        return None if self.has_several_components else self.family.terms(columns, parameters)

    @property
    def centers(self) -> Array:
        """Of the components, (d,) or (components, d)."""
        return self.family.centers if isinstance(self.family, abilities.Movable) else self.layout.center

    def recentered(self, statistics: Arrays) -> Self:
        if not isinstance(self.family, abilities.Recentering):
            return self
        family: Any = self.family.recentered(_inner(statistics))
        return self if family is self.family else replace(self, family=family)

    def gains(self, statistics: Arrays, *, more_to_come: bool = False) -> bool:
        inner, is_able = _inner(statistics), isinstance(self.family, abilities.Recentering)
        return is_able and self.family.gains(inner, more_to_come=more_to_come)

    def sharing_centers(self, other: Any) -> Self:
        if not isinstance(self.family, abilities.Recentering):
            return self
        return replace(self, family=self.family.sharing_centers(other.family))

    def move(self, statistics: Arrays, center: Array) -> Arrays:
        inner = _inner(statistics)
        moved = self.family.move(inner, center) if isinstance(self.family, abilities.Movable) else inner
        return {COMPONENT: statistics[COMPONENT], **moved}


def column_scales(variance: Array, d: int) -> Array:
    """Standard deviations of the columns as units of distance, (d,); 1 for constant columns or without variances."""
    known = np.ones(d) if len(variance) == 0 else np.asarray(variance)
    return np.sqrt(np.where(known > 0, known, 1.0))


def _inner(statistics: Arrays) -> Arrays:
    """The statistics of the inner family."""
    return _without(COMPONENT, statistics)


def _without(name: str, arrays: Arrays) -> Arrays:
    return {other: value for other, value in arrays.items() if other != name}
