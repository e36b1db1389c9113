"""Folds that share the reading of the data: each uses the blocks of all rows, with weight zero on those it holds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibayes.core.block import Block
from calibayes.core.protocols import Array, Engine, Source, Trees
from calibayes.estimators.generative.assemble import assemble
from calibayes.estimators.generative.recipe import Recipe
from calibayes.estimators.interface.input import Rows
from calibayes.families import Product
from calibayes.learn import Data
from calibayes.tables.sources import ArraySource


@dataclass(frozen=True)
class Fold:
    """One fold's model, and its view of the blocks that all folds share."""

    model: Product
    view: Callable[[Block], Block]
    held_out: Array
    """The rows it holds out, (n,) booleans."""


def shared_folds(
    recipe: Recipe,
    rows: Rows,
    classes: Array,
    held_out: Sequence[Array],
    training: Sequence[Rows] | None = None,
) -> tuple[ArraySource, list[Fold]]:
    """One source with each fold's encoding of all rows, and the folds. Encoders are fitted to training rows alone.

    ``training`` are the training rows of each fold, if they are known already.
    """
    training = [rows.only(~mask) for mask in held_out] if training is None else training
    columns: dict[str, Array] = {}
    folds = []
    for position, (mask, fold_rows) in enumerate(zip(held_out, training, strict=True)):
        assembly = assemble(recipe, fold_rows, classes)
        encoded = assembly.binding.encode(rows.table)
        columns |= {f"{position}/{name}": array for name, array in encoded.items()}
        names = tuple(assembly.model.families)
        folds.append(Fold(assembly.model, _view(f"{position}/", names, mask), mask))
    nothing = np.zeros(len(rows.codes))
    return ArraySource(columns, rows.codes, rows.weight, nothing, k=len(classes)), folds


def _view(prefix: str, names: Sequence[str], held_out: Array) -> Callable[[Block], Block]:
    """A block's columns of one fold; held-out rows have no training weight, training rows no validation weight.

    The blocks are the same in every pass, so that their weights are computed once.
    """
    weights: dict[tuple[int, int], tuple[Array, Array]] = {}

    def view(block: Block) -> Block:
        key = block.first, len(block.weight)
        if key not in weights:
            mask = held_out[block.first : block.first + len(block.weight)]
            weights[key] = block.weight * ~mask, block.weight * mask
        columns = {name: block.columns[prefix + name] for name in names}
        return Block(columns, block.labels, *weights[key], block.first)

    return view


def prepare_folds(
    folds: Sequence[Fold], source: Source, engine: Engine, k: int
) -> tuple[list[Product], list[Trees]]:
    """The prepared models of all folds and their initial statistics, from one pass."""

    def sums(block: Block) -> Mapping[str, Trees]:
        views = [fold.view(block) for fold in folds]
        return {
            str(number): fold.model.structure_statistics(view, Data().weights(view, k))
            for number, (fold, view) in enumerate(zip(folds, views, strict=True))
        }

    totals = list(engine.total(sums, source).values())
    models = [fold.model.prepare(total) for fold, total in zip(folds, totals, strict=True)]
    return models, [model.statistics_of(total) for model, total in zip(models, totals, strict=True)]
