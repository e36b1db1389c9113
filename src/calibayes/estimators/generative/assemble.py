"""From a recipe and training rows to a bound model and its encoded rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from calibayes.core.abilities import Recodable, Sized
from calibayes.core.protocols import Array, Family, Layout, Trees
from calibayes.encoders.schema import Schema
from calibayes.estimators.generative.binding import ColumnBinding, bind
from calibayes.estimators.generative.recipe import Recipe
from calibayes.estimators.interface import checks
from calibayes.estimators.interface.input import Rows
from calibayes.families import Product
from calibayes.tables.sources import ArraySource
from calibayes.tables.table import Table


class Assembly(NamedTuple):
    """A model bound to columns, and how they are encoded."""

    binding: ColumnBinding
    model: Product
    classes: Array
    schema: Schema | None = None
    notes: Mapping[str, Any] = {}

    def source(self, rows: Rows, held_out: Array | None = None) -> ArraySource:
        """The encoded rows; ``held_out`` (n,) booleans are those that do not train."""
        if held_out is None:
            weight, validation = rows.weight, np.zeros(len(rows.codes))
        else:
            weight, validation = rows.weight * ~held_out, rows.weight * held_out
        return encoded_source(self.binding, self.model, rows.table, rows.codes, weight, validation)


def assemble(recipe: Recipe, rows: Rows, classes: Array) -> Assembly:
    """Fit the encoders to the rows and bind the families to their columns."""
    specification = recipe.specify(rows, classes)
    binding = bind(specification.families, rows.table, rows.weight, rows.codes)
    for name, family in binding.families.items():
        checks.abilities_present(recipe.rule, name, family)
    families = {name: recipe.rule.adapt(family) for name, family in binding.families.items()}
    layouts, names = layouts_of(binding, classes)
    model = Product(specification.class_prior, families).bind(layouts, names)
    schema = recipe.describe(binding, rows.table)
    return Assembly(binding, model, classes, schema, specification.notes)


def layouts_of(binding: ColumnBinding, classes: Array) -> tuple[dict[str, Layout], tuple[str, ...]]:
    """The layouts of all families and the names of the classes."""
    names = tuple(str(name) for name in classes)
    return binding.layouts(names), names


def encoded_source(
    binding: ColumnBinding, model: Product, table: Table, codes: Array, weight: Array, held_out: Array
) -> ArraySource:
    """Encoded rows in blocks of a size that suits the model."""
    sizes = [family.size for family in model.families.values() if isinstance(family, Sized)]
    return ArraySource(
        binding.encode(table),
        codes,
        weight,
        held_out,
        k=len(model.prior.layout.classes),
        least_cells=max(sizes, default=0),
    )


def recoded(
    families: Mapping[str, Family],
    statistics: Trees,
    moved: Mapping[str, Sequence[Array]],
    layouts: Mapping[str, Layout],
) -> Trees:
    """Statistics after levels were given new codes."""
    changed = {
        name: family.recode(statistics[name], moved[name], layouts[name].levels)
        for name, family in families.items()
        if name in moved and isinstance(family, Recodable)
    }
    return {**statistics, **changed}
