"""A class prior and families over their own columns, independent given the class: the joint model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import cast

import numpy as np

from calibayes.core.abilities import Given, Look, Natural, Penalised, Structured
from calibayes.core.block import Block
from calibayes.core.protocols import Array, Family, Layout, Trees
from calibayes.families.class_prior import ClassPrior

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

    def survey(self, block: Block, weights: Array) -> Trees:
        sums = {
            name: getattr(f, "survey", f.statistics)(block.columns[name], weights)
            for name, f in self.families.items()
        }
        return {PRIOR: self.prior.statistics(weights), **sums}

    def project(self, survey: Trees) -> Trees:
        found = {
            name: f.project(survey[name]) for name, f in self.families.items() if isinstance(f, Structured)
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

    def look(self, block: Block, parameters: Trees, generative: float, decided: float) -> Look | None:
        """All that a pass wants of a block in one go, where there is one family and it can do that."""
        name, family = next(iter(self.families.items()))
        if len(self.families) > 1 or not hasattr(family, "look"):
            return None
        given = Given(
            parameters[PRIOR]["log_probability"],
            block.labels,
            block.weight,
            block.held_out,
            generative,
            decided,
        )
        seen = family.look(block.columns[name], parameters[name], given)
        counts = self.prior.statistics(seen.classes[None])
        return Look(seen.assessment, {PRIOR: counts, name: seen.statistics}, seen.classes)

    def admit(self, current: Trees, proposed: Trees) -> tuple[Trees, int]:
        """Each family freezes what is its own; a class that one of them holds keeps its class count."""
        admissions = {name: f.admit(current[name], proposed[name]) for name, f in self.families.items()}
        held = np.any([admission.held for admission in admissions.values()], axis=0)
        prior, frozen = self.prior.admit(current[PRIOR], proposed[PRIOR], held)
        kept = {name: admission.statistics for name, admission in admissions.items()}
        return {PRIOR: prior, **kept}, frozen + sum(admission.frozen for admission in admissions.values())

    def ascend(self, parameters: Trees, direction: Trees, rate: float) -> Trees:
        free = self.prior.fixed is None
        steps = {
            name: cast(Natural, family).ascend(parameters[name], direction[name], rate, absorbed=free)
            for name, family in self.families.items()
        }
        offsets = [step.offset for step in steps.values() if step.offset is not None]
        prior = self.prior.ascend(
            parameters[PRIOR], direction[PRIOR], rate, np.sum(offsets, axis=0) if offsets else None
        )
        return {PRIOR: prior, **{name: step.parameters for name, step in steps.items()}}

    def log_prior(self, parameters: Trees) -> float:
        penalised = [(name, f) for name, f in self.families.items() if isinstance(f, Penalised)]
        return self.prior.log_prior(parameters[PRIOR]) + sum(
            f.log_prior(parameters[name]) for name, f in penalised
        )
