"""The joint model p(x, class): a class prior and families over disjoint columns, independent given the class."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add, or_
from typing import Any, cast

import numpy as np

from calibayes.core import abilities, verify
from calibayes.core.protocols import Array, Arrays, Block, Family, InvalidUpdateError, Layout, ModelArrays
from calibayes.families.density import UNBOUND
from calibayes.kernels import moments
from calibayes.kernels.dispatch import on_host
from calibayes.kernels.posterior import log_project

PRIOR = "class_prior"
"""Name of the class prior among the families."""


@dataclass(frozen=True)
class ClassPrior:
    """Class probabilities p(class), estimated from class counts or fixed.

    Parameters
    ----------
    fixed : (k,) array, optional
        Class probabilities that no rule changes.
    alpha : float, default=0
        Pseudo-count per class.
    allows_zero : bool, default=False
        Whether a class may have probability 0, by ``fixed`` or because it has no rows. Such a class is never predicted.
    """

    fixed: Array | None = None
    alpha: float = 0.0
    allows_zero: bool = False
    layout: Layout = field(default=UNBOUND, repr=False, compare=False)

    def bind(self, layout: Layout) -> ClassPrior:
        """This prior over the classes of a layout.

        Raises ValueError if alpha is negative, or if ``fixed`` are not k probabilities that sum to 1, or one is 0 where
        that is not allowed.
        """
        if not self.alpha >= 0:
            raise ValueError(f"alpha, the pseudo-count per class, must not be negative, got {self.alpha}")
        if self.fixed is None:
            return replace(self, layout=layout)
        fixed = _checked_probabilities(self.fixed, len(layout.classes))
        if not self.allows_zero and (fixed == 0).any():
            raise ValueError(
                "Priors must be positive; leave out the rows of a class that cannot occur, or use rule='ml'"
            )
        return replace(self, layout=layout, fixed=fixed)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> ClassPrior:
        """This prior, unchanged. Raises ValueError if no class has rows, or if one has none and that is not allowed."""
        counts = zip(self.layout.classes, start["count"], strict=True)
        empty = [name for name, count in counts if not count > 0]
        if len(empty) > (len(self.layout.classes) - 1 if self.allows_zero else 0):
            raise ValueError(f"no rows (or no weight) in class {', '.join(map(repr, empty))}")
        return self

    def statistics(self, weights: Array) -> Arrays:
        """Class counts: column sums of the weights (n, k)."""
        return {"count": moments.zeroth(weights)}

    def parameters(self, statistics: Arrays) -> Arrays:
        """Log probabilities of the classes, (k,); -inf for a probability of 0."""
        with np.errstate(divide="ignore"):
            if self.fixed is not None:
                return {"log_probability": np.log(self.fixed)}
            count = statistics["count"] + self.alpha
            return {"log_probability": np.log(count) - np.log(count.sum())}

    def verify(self) -> None:
        self.layout.verify()
        verify.require_finite("alpha", np.asarray(self.alpha, dtype=np.float64), (), least=0.0)
        if self.layout.classes and self.fixed is not None:
            verify.require_probabilities("fixed", self.fixed, (len(self.layout.classes),))
            is_possible = self.allows_zero or bool((self.fixed > 0).all())
            verify.require(is_possible, "fixed contains a probability of 0")

    def verify_parameters(self, parameters: Arrays) -> None:
        verify.require_names("parameters of the class prior", parameters, ["log_probability"])
        shape = (len(self.layout.classes),)
        verify.require_log_probabilities("log_probability", parameters["log_probability"], shape)

    def verify_statistics(self, statistics: Arrays) -> None:
        shape = (len(self.layout.classes),)
        verify.require_arrays("statistics of the class prior", statistics, {"count": shape}, least=0.0)

    def keep_valid(self, current: Arrays, proposed: Arrays, frozen_classes: Array) -> tuple[Arrays, int]:
        """The proposed counts; frozen classes, and those whose count would not be positive, keep the current one."""
        keep = frozen_classes | ~(proposed["count"] > 0)
        return {"count": np.where(keep, current["count"], proposed["count"])}, int(keep.sum())

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, offset: Array | None
    ) -> Arrays:
        """Gradient step on log p(class).

        The result is projected onto the simplex. With an ``offset`` (k,), the change of log normalizers that families
        leave to the class prior, it is normalized instead.
        """
        if self.fixed is not None:
            return parameters
        moved = parameters["log_probability"] + rate * direction["count"]
        if offset is not None:
            moved = moved + offset
            return {"log_probability": moved - np.logaddexp.reduce(moved)}
        return {"log_probability": log_project(moved[None, :])[0]}

    def log_prior(self, parameters: Arrays) -> float:
        """Log density of the Dirichlet prior, up to a constant."""
        return 0.0 if self.fixed is not None else self.alpha * float(np.sum(parameters["log_probability"]))

    def prior_direction(self, parameters: Arrays) -> Arrays:
        """Pseudo-counts of the classes less as many expected ones."""
        if self.fixed is not None:
            return {}
        probability = np.exp(parameters["log_probability"])
        return {"count": self.alpha * (1.0 - len(probability) * probability)}


def _checked_probabilities(given: Array, k: int) -> Array:
    """Class probabilities (k,), normalized. Raises ValueError if they are not k numbers from 0 on that sum to 1."""
    try:
        fixed = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"priors must be numbers, one for each class, got {given!r}") from None
    if fixed.shape != (k,):
        raise ValueError(f"Number of priors must match number of classes: {fixed.size} given, {k} classes")
    if not (np.isfinite(fixed).all() and (fixed >= 0).all()):
        raise ValueError(f"Priors must be non-negative and finite, got {fixed.tolist()}")
    if not np.isclose(fixed.sum(), 1.0):
        raise ValueError(f"The sum of the priors should be 1, not {fixed.sum():g}")
    return np.asarray(fixed / fixed.sum())


# -- Statistics by class: the first axis of an array is that of classes or of components, or has one entry for all


def _is_shared(arrays: Arrays, of_class: Array) -> bool:
    """Whether an array has one entry for all classes or components, whose classes are ``of_class``."""
    return any(len(array) != len(of_class) for array in arrays.values())


def _changed(valid: Arrays, proposed: Arrays, of_class: Array) -> Array:
    """The classes in which valid statistics differ from the proposed ones."""
    differs = np.zeros(len(of_class), dtype=bool)
    for name, array in valid.items():
        differs |= on_host((array != proposed[name]).reshape(len(array), -1).any(axis=1))
    return np.asarray(of_class[differs])


def _keep(current: Arrays, proposed: Arrays, mask: Array) -> Arrays:
    """The proposed statistics, with the current ones in the entries of a mask."""
    return {
        name: np.where(mask[: len(new)].reshape(-1, *[1] * (new.ndim - 1)), current[name], new)
        for name, new in proposed.items()
    }


def _traits(families: Mapping[str, Family]) -> dict[str, Any]:
    """What a `Product` records about bound families."""
    sizes = [family.size for family in families.values() if isinstance(family, abilities.Sized)]
    is_fused = len(families) == 1 and all(hasattr(family, "fused_pass") for family in families.values())
    is_structured = any(isinstance(family, abilities.Structured) for family in families.values())
    return {"least_cells": max(sizes, default=0), "has_fused_pass": is_fused, "is_structured": is_structured}


@dataclass(frozen=True)
class Product:
    """p(class) times the product over families of p(columns of the family | class): the `Model` of the library.

    Methods that run once per block look up optional abilities of a family by attribute name: an isinstance check
    against a protocol takes longer than a small block.
    """

    prior: ClassPrior
    families: Mapping[str, Family]
    least_cells: int = 0
    """Least number of cells of a block of rows, once bound: as many as the largest statistics have numbers."""
    has_fused_pass: bool = False
    """Whether `fused_pass` can be used, once bound: there is one family, and it has such a kernel."""
    is_structured: bool = False
    """Whether a family learns a structure, so that statistics are part of the structure statistics."""

    # -- before training -----------------------------------------------------------------------------------------

    def bind(self, layouts: Mapping[str, Layout], classes: tuple[str, ...]) -> Product:
        """This model over given columns (one layout per family) and classes."""
        families = {name: family.bind(layouts[name]) for name, family in self.families.items()}
        return Product(self.prior.bind(Layout(classes, ())), families, **_traits(families))

    def prepare(self, start: ModelArrays, pooled: ModelArrays | None = None) -> Product:
        """This model with default priors and structures fixed from the statistics of the data."""
        pooled = pooled or {}
        prior = self.prior.prepare(start[PRIOR])
        families = {name: f.prepare(start[name], pooled.get(name)) for name, f in self.families.items()}
        return replace(self, prior=prior, families=families)

    @property
    def structure(self) -> tuple[tuple[str, Hashable], ...]:
        """Name and structure of each family that learns one."""
        return tuple((name, family.structure) for name, family in self._with(abilities.Structured))

    def _with(self, ability: type) -> list[tuple[str, Any]]:
        """Names and families that have an ability."""
        return [(name, family) for name, family in self.families.items() if isinstance(family, ability)]

    # -- verification --------------------------------------------------------------------------------------------

    @property
    def parts(self) -> Mapping[str, Any]:
        """The class prior and the families, by name."""
        return {PRIOR: self.prior, **self.families}

    def verify(self) -> None:
        """Raises ValueError if a part is invalid by itself, or the parts have different classes."""
        is_named = bool(self.families) and PRIOR not in self.families
        verify.require(is_named, f"no family, or one named {PRIOR!r}")
        for part in self.parts.values():
            is_able = isinstance(part, abilities.Verifiable)
            verify.require(is_able, f"{type(part).__name__} cannot be verified")
            part.verify()
        classes = {part.layout.classes for part in self.parts.values()}
        verify.require(len(classes) == 1, "the class prior and the families have different classes")
        for name, value in _traits(self.families).items() if self.prior.layout.classes else ():
            verify.require(getattr(self, name) == value, f"{name} must be {value} for these families")

    def verify_parameters(self, parameters: ModelArrays) -> None:
        for part, arrays in self._with_arrays("parameters", parameters):
            part.verify_parameters(arrays)

    def verify_statistics(self, statistics: ModelArrays) -> None:
        for part, arrays in self._with_arrays("statistics", statistics):
            part.verify_statistics(arrays)

    def verify_structure_statistics(self, structure_statistics: ModelArrays) -> None:
        """Of the sums over the data: structure statistics, or statistics for families without a structure."""
        for part, arrays in self._with_arrays("data_statistics", structure_statistics):
            getattr(part, "verify_structure_statistics", part.verify_statistics)(arrays)

    def _with_arrays(self, name: str, arrays: ModelArrays) -> Iterator[tuple[abilities.Verifiable, Arrays]]:
        """Each part with its arrays. Raises ValueError if there are arrays of other parts."""
        verify.require_names(name, arrays, self.parts)
        return ((part, arrays[key]) for key, part in self.parts.items())

    # -- statistics ----------------------------------------------------------------------------------------------

    def recentered(self, statistics: ModelArrays) -> Product:
        """This model with sums about the means of far classes (see `Recentering`); itself if no family needs them."""
        families = self._with(abilities.Recentering)
        closer = {name: f.recentered(statistics[name]) for name, f in families}
        is_same = all(closer[name] is f for name, f in families)
        return self if is_same else replace(self, families={**self.families, **closer})

    def gains(self, statistics: ModelArrays, *, more_to_come: bool = False) -> bool:
        """Whether a family's sums about other points show variances."""
        families = self._with(abilities.Recentering)
        return any(f.gains(statistics[name], more_to_come=more_to_come) for name, f in families)

    def sharing_centers(self, other: Product) -> Product:
        """This model with sums about the points that either has chosen."""
        families = self._with(abilities.Recentering)
        shared = {name: f.sharing_centers(other.families[name]) for name, f in families}
        return replace(self, families={**self.families, **shared})

    def moved(self, statistics: ModelArrays, other: Product) -> ModelArrays:
        """Statistics of this model, with moments about the points of another one of the same families."""
        families, others = self._with(abilities.Movable), other.parts
        moved = {name: f.move(statistics[name], others[name].centers) for name, f in families}
        return {**statistics, **moved}

    def data_sums(self, block: Block, weights: Array) -> Mapping[str, Any]:
        has_hidden = any(
            family.has_hidden(block.columns[name])
            for name, family in self.families.items()
            if isinstance(family, abilities.AllowsMissing)
        )
        return {"statistics": self.structure_statistics(block, weights), "hidden": int(has_hidden)}

    def structure_statistics(self, block: Block, weights: Array) -> ModelArrays:
        sums = {PRIOR: self.prior.statistics(weights)}
        for name, f in self.families.items():
            sums[name] = getattr(f, "structure_statistics", f.statistics)(block.columns[name], weights)
        return sums

    def statistics_of(self, structure_statistics: ModelArrays) -> ModelArrays:
        families = self._with(abilities.Structured) if self.is_structured else []
        structured = {name: f.statistics_of(structure_statistics[name]) for name, f in families}
        return {**structure_statistics, **structured}

    def statistics(self, block: Block, weights: Array, parameters: ModelArrays | None = None) -> ModelArrays:
        known, sums = parameters or {}, {PRIOR: self.prior.statistics(weights)}
        for name, family in self.families.items():
            sums[name] = family.statistics(block.columns[name], weights, known.get(name))
        return sums

    def keep_valid(self, current: ModelArrays, proposed: ModelArrays) -> tuple[ModelArrays, int]:
        """Valid statistics of every family; a class that a family freezes keeps its class count too."""
        checked = {name: f.keep_valid(current[name], proposed[name]) for name, f in self.families.items()}
        frozen_classes = reduce(or_, [family.frozen_classes for family in checked.values()])
        prior, frozen = self.prior.keep_valid(current[PRIOR], proposed[PRIOR], frozen_classes)
        statistics = {name: family.statistics for name, family in checked.items()}
        return {PRIOR: prior, **statistics}, frozen + sum(family.frozen for family in checked.values())

    def keep_valid_classes(self, current: ModelArrays, proposed: ModelArrays) -> tuple[ModelArrays, int]:
        """A class with an invalid statistic keeps all; with statistics that classes share, all classes keep theirs."""
        valid, frozen = self.keep_valid(current, proposed)
        if not frozen:
            return valid, 0
        every_class = np.arange(len(self.prior.layout.classes))
        entries = {name: getattr(part, "component_classes", every_class) for name, part in self.parts.items()}
        kept = [_changed(valid[name], proposed[name], of_class) for name, of_class in entries.items()]
        frozen_classes = reduce(or_, [np.isin(every_class, classes) for classes in kept])
        if any(_is_shared(proposed[name], of_class) for name, of_class in entries.items()):
            frozen_classes[:] = True
        masks = {name: frozen_classes[of_class] for name, of_class in entries.items()}
        statistics = {name: _keep(current[name], proposed[name], mask) for name, mask in masks.items()}
        sizes = [mask[: len(a)].sum() * a[0].size for n, mask in masks.items() for a in proposed[n].values()]
        return statistics, int(sum(sizes))

    def keep_all(self, current: ModelArrays, proposed: ModelArrays) -> tuple[ModelArrays, int]:
        """The proposed statistics. Raises InvalidUpdateError if one of them is invalid."""
        statistics, frozen = self.keep_valid(current, proposed)
        if frozen:
            raise InvalidUpdateError(f"{frozen} statistics would be invalid")
        return statistics, 0

    # -- parameters ----------------------------------------------------------------------------------------------

    def parameters(self, statistics: ModelArrays) -> ModelArrays:
        families = {name: family.parameters(statistics[name]) for name, family in self.families.items()}
        return {PRIOR: self.prior.parameters(statistics[PRIOR]), **families}

    def gradient_step(self, parameters: ModelArrays, direction: ModelArrays, rate: float) -> ModelArrays:
        free = self.prior.fixed is None
        families: Mapping[str, Any] = self.families
        steps = {
            name: family.gradient_step(parameters[name], direction[name], rate, absorbed=free)
            for name, family in families.items()
        }
        offsets = [step.offset for step in steps.values() if step.offset is not None]
        offset = np.sum(offsets, axis=0) if offsets else None
        prior = self.prior.gradient_step(parameters[PRIOR], direction[PRIOR], rate, offset)
        return {PRIOR: prior, **{name: step.parameters for name, step in steps.items()}}

    def log_prior(self, parameters: ModelArrays) -> float:
        families = self._with(abilities.Penalized)
        of_families = sum(family.log_prior(parameters[name]) for name, family in families)
        return self.prior.log_prior(parameters[PRIOR]) + of_families

    def with_prior(self, direction: ModelArrays, parameters: ModelArrays, weight: float) -> ModelArrays:
        families = self._with(abilities.PriorDirection)
        moves = {name: family.prior_direction(parameters[name]) for name, family in families}
        moves[PRIOR] = self.prior.prior_direction(parameters[PRIOR])
        return {
            part: {name: a + weight * moves.get(part, {}).get(name, 0.0) for name, a in arrays.items()}
            for part, arrays in direction.items()
        }

    # -- densities -----------------------------------------------------------------------------------------------

    def log_joint(self, block: Block, parameters: ModelArrays) -> Array:
        parts = [f.log_density(block.columns[name], parameters[name]) for name, f in self.families.items()]
        return reduce(add, parts, parameters[PRIOR]["log_probability"])

    def contrast(self, block: Block, parameters: ModelArrays) -> Array:
        parts = [
            getattr(f, "contrast", f.log_density)(block.columns[name], parameters[name])
            for name, f in self.families.items()
        ]
        return reduce(add, parts, parameters[PRIOR]["log_probability"])

    def fused_pass(
        self, block: Block, parameters: ModelArrays, generative: float, negligible: float
    ) -> abilities.PassResult:
        """Assessment and statistics of a block in one call, if `has_fused_pass`."""
        name, family = next(iter(self.families.items()))
        rows, log_prior = (block.labels, block.weight, block.held_out), parameters[PRIOR]["log_probability"]
        inputs = abilities.PassInputs(log_prior, *rows, generative, negligible)
        result = cast(abilities.FusedPass, family).fused_pass(block.columns[name], parameters[name], inputs)
        counts = self.prior.statistics(result.classes[None])
        return result._replace(statistics={PRIOR: counts, name: result.statistics})
