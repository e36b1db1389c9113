"""The joint model p(x, class): a class prior and families over their own columns, independent given the class."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import cast

import numpy as np

from calibayes.core.abilities import (
    AllowsMissing,
    NaturalParameters,
    PassInputs,
    PassResult,
    Penalized,
    Structured,
)
from calibayes.core.block import Block
from calibayes.core.protocols import Array, Arrays, Family, Layout, Trees
from calibayes.kernels.numbers import moments
from calibayes.kernels.posterior.simplex import log_project


@dataclass(frozen=True)
class ClassPrior:
    """Class probabilities from counts.

    Parameters
    ----------
    fixed : (k,) array, optional
        Probabilities to keep under every rule.
    alpha : float, default=0
        Pseudo-count per class.
    """

    fixed: Array | None = None
    alpha: float = 0.0
    layout: Layout = field(default_factory=lambda: Layout((), ()), repr=False, compare=False)

    def bind(self, layout: Layout) -> ClassPrior:
        k = len(layout.classes)
        if not self.alpha >= 0:
            raise ValueError(f"the pseudo-count of classes must not be negative, got {self.alpha}")
        if self.fixed is None:
            return replace(self, layout=layout)
        fixed = np.asarray(self.fixed, dtype=np.float64)
        if fixed.shape != (k,):
            raise ValueError(
                f"Number of priors must match number of classes: {fixed.size} given, {k} classes"
            )
        if not (np.isfinite(fixed).all() and (fixed > 0).all()):
            raise ValueError("Priors must be positive: a class that cannot occur should be left out")
        if not np.isclose(fixed.sum(), 1.0):
            raise ValueError(f"The sum of the priors should be 1, not {fixed.sum():g}")
        return replace(self, layout=layout, fixed=fixed / fixed.sum())

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> ClassPrior:
        empty = [
            name for name, count in zip(self.layout.classes, start["count"], strict=True) if not count > 0
        ]
        if empty:
            raise ValueError(f"no rows (or no weight) in class {', '.join(map(repr, empty))}")
        return self

    def statistics(self, weights: Array) -> Arrays:
        return {"count": moments.zeroth(weights)}

    def parameters(self, statistics: Arrays) -> Arrays:
        if self.fixed is not None:
            return {"log_probability": np.log(self.fixed)}
        count = statistics["count"] + self.alpha
        return {"log_probability": np.log(count) - np.log(count.sum())}

    def keep_valid(self, current: Arrays, proposed: Arrays, held: Array) -> tuple[Arrays, int]:
        """Counts stay above zero, and a class that a family holds keeps its count."""
        keep = held | ~(proposed["count"] > 0)
        return {"count": np.where(keep, current["count"], proposed["count"])}, int(keep.sum())

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, offset: Array | None
    ) -> Arrays:
        """A gradient step on log p, projected onto the simplex; only normalized where families are conditional."""
        if self.fixed is not None:
            return parameters
        moved = parameters["log_probability"] + rate * direction["count"]
        if offset is not None:
            moved = moved + offset
            return {"log_probability": moved - np.logaddexp.reduce(moved)}
        return {"log_probability": log_project(moved[None, :])[0]}

    def log_prior(self, parameters: Arrays) -> float:
        return 0.0 if self.fixed is not None else self.alpha * float(np.sum(parameters["log_probability"]))


PRIOR = "class_prior"
"""Name of the class prior among the families."""


@dataclass(frozen=True)
class Product:
    """p(class) times the product of p(columns of a family | class).

    What is done block by block asks families for an ability by its name: asking for a protocol takes longer than many a
    block.
    """

    prior: ClassPrior
    families: Mapping[str, Family]

    def bind(self, layouts: Mapping[str, Layout], classes: tuple[str, ...]) -> Product:
        bound = {name: family.bind(layouts[name]) for name, family in self.families.items()}
        return Product(self.prior.bind(Layout(classes, ())), bound)

    def prepare(self, start: Trees, pooled: Trees | None = None) -> Product:
        given = pooled or {}
        prior = self.prior.prepare(start[PRIOR])
        families = {name: f.prepare(start[name], given.get(name)) for name, f in self.families.items()}
        return Product(prior, families)

    @property
    def structure(self) -> tuple[tuple[str, Hashable], ...]:
        """The structures that its families have found."""
        return tuple((name, f.structure) for name, f in self.families.items() if isinstance(f, Structured))

    def has_hidden(self, block: Block) -> bool:
        return any(
            f.has_hidden(block.columns[name])
            for name, f in self.families.items()
            if isinstance(f, AllowsMissing)
        )

    def structure_statistics(self, block: Block, weights: Array) -> Trees:
        sums = {
            name: getattr(f, "structure_statistics", f.statistics)(block.columns[name], weights)
            for name, f in self.families.items()
        }
        return {PRIOR: self.prior.statistics(weights), **sums}

    def statistics_of(self, survey: Trees) -> Trees:
        found = {
            name: f.statistics_of(survey[name])
            for name, f in self.families.items()
            if isinstance(f, Structured)
        }
        return {**survey, **found}

    def statistics(self, block: Block, weights: Array, parameters: Trees | None = None) -> Trees:
        given = parameters or {}
        sums = {
            name: family.statistics(block.columns[name], weights, given.get(name))
            for name, family in self.families.items()
        }
        return {PRIOR: self.prior.statistics(weights), **sums}

    def parameters(self, statistics: Trees) -> Trees:
        found = {name: family.parameters(statistics[name]) for name, family in self.families.items()}
        return {PRIOR: self.prior.parameters(statistics[PRIOR]), **found}

    def log_joint(self, block: Block, parameters: Trees) -> Array:
        parts = [f.log_density(block.columns[name], parameters[name]) for name, f in self.families.items()]
        return reduce(np.add, parts, parameters[PRIOR]["log_probability"])

    def contrast(self, block: Block, parameters: Trees) -> Array:
        parts = [
            getattr(f, "contrast", f.log_density)(block.columns[name], parameters[name])
            for name, f in self.families.items()
        ]
        return reduce(np.add, parts, parameters[PRIOR]["log_probability"])

    def fused_pass(
        self, block: Block, parameters: Trees, generative: float, decided: float
    ) -> PassResult | None:
        """All that a pass wants of a block in one go, where there is one family and it can do that."""
        name, family = next(iter(self.families.items()))
        if len(self.families) > 1 or not hasattr(family, "fused_pass"):
            return None
        given = PassInputs(
            parameters[PRIOR]["log_probability"],
            block.labels,
            block.weight,
            block.held_out,
            generative,
            decided,
        )
        seen = family.fused_pass(block.columns[name], parameters[name], given)
        counts = self.prior.statistics(seen.classes[None])
        return PassResult(seen.assessment, {PRIOR: counts, name: seen.statistics}, seen.classes)

    def keep_valid(self, current: Trees, proposed: Trees) -> tuple[Trees, int]:
        """Each family freezes what is its own; a class that one of them holds keeps its class count."""
        admissions = {name: f.keep_valid(current[name], proposed[name]) for name, f in self.families.items()}
        held = np.any([admission.frozen_classes for admission in admissions.values()], axis=0)
        prior, frozen = self.prior.keep_valid(current[PRIOR], proposed[PRIOR], held)
        kept = {name: admission.statistics for name, admission in admissions.items()}
        return {PRIOR: prior, **kept}, frozen + sum(admission.frozen for admission in admissions.values())

    def gradient_step(self, parameters: Trees, direction: Trees, rate: float) -> Trees:
        free = self.prior.fixed is None
        steps = {
            name: cast(NaturalParameters, family).gradient_step(
                parameters[name], direction[name], rate, absorbed=free
            )
            for name, family in self.families.items()
        }
        offsets = [step.offset for step in steps.values() if step.offset is not None]
        prior = self.prior.gradient_step(
            parameters[PRIOR], direction[PRIOR], rate, np.sum(offsets, axis=0) if offsets else None
        )
        return {PRIOR: prior, **{name: step.parameters for name, step in steps.items()}}

    def log_prior(self, parameters: Trees) -> float:
        penalized = [(name, f) for name, f in self.families.items() if isinstance(f, Penalized)]
        return self.prior.log_prior(parameters[PRIOR]) + sum(
            f.log_prior(parameters[name]) for name, f in penalized
        )
