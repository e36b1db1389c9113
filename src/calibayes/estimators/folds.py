"""Folds that share the reading of the data: each sees the blocks of all rows with weight zero on those it holds out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.block import Block
from calibayes.core.protocols import Array, Engine, Rule, Trees
from calibayes.estimators.reading import Rows
from calibayes.estimators.training import Training
from calibayes.families import Product
from calibayes.learn import Data
from calibayes.tables.sources import ArraySource


@dataclass(frozen=True)
class Fold:
    """One fold's model, and how it sees the blocks that all folds share."""

    model: Product
    view: Callable[[Block], Block]
    held: Array
    """Which rows it holds out, (n,) booleans."""


def shared(
    base: Training, rule: Rule, rows: Rows, splits: Sequence[Array], training: Sequence[Rows] | None = None
) -> tuple[ArraySource, list[Fold]]:
    """One source with each fold's own encoding of all rows, and the folds. Encoders see training rows alone.

    ``training`` are those of each fold, where somebody has them already.
    """
    training = [rows.only(~held) for held in splits] if training is None else training
    columns: dict[str, Array] = {}
    folds = []
    for position, (held, own) in enumerate(zip(splits, training, strict=True)):
        worker: Any = copy.copy(base)
        worker._bind(rule, own)
        columns |= {f"{position}/{name}": array for name, array in worker._encode(rows.table).items()}
        folds.append(Fold(worker._model, _view(f"{position}/", tuple(worker._model.families), held), held))
    nothing = np.zeros(len(rows.codes))
    return ArraySource(columns, rows.codes, rows.weight, nothing, k=len(base.classes_)), folds


def _view(prefix: str, names: Sequence[str], held: Array) -> Callable[[Block], Block]:
    """A fold's columns, its training rows with their weight, its held-out rows with none.

    The blocks are the same in every pass, so that their weights are worked out once.
    """
    known: dict[tuple[int, int], tuple[Array, Array]] = {}

    def see(block: Block) -> Block:
        place = block.first, len(block.weight)
        if place not in known:
            mine = held[block.first : block.first + len(block.weight)]
            known[place] = block.weight * ~mine, block.weight * mine
        columns = {name: block.columns[prefix + name] for name in names}
        return Block(columns, block.labels, *known[place], block.first)

    return see


def begun(
    folds: Sequence[Fold], source: ArraySource, engine: Engine, k: int
) -> tuple[list[Product], list[Trees]]:
    """The models of all folds, prepared, and the statistics they begin with, from one pass."""

    def surveys(block: Block) -> Mapping[str, Trees]:
        seen = [fold.view(block) for fold in folds]
        sums = [
            fold.model.structure_statistics(b, Data().weights(b, k))
            for fold, b in zip(folds, seen, strict=True)
        ]
        return {str(number): statistics for number, statistics in enumerate(sums)}

    found = list(engine.total(surveys, source).values())
    models = [fold.model.prepare(sums) for fold, sums in zip(folds, found, strict=True)]
    return models, [model.statistics_of(sums) for model, sums in zip(models, found, strict=True)]
