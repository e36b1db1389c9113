"""Tables to grow trees on, with the keys, fractions and held-out rows that growth needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from calibayes.kernels.growth_rows import GrowthRows, OneBlock, RowMarks
from calibayes.kernels.row_keys import Keys, keys_of, row_order
from calibayes.kernels.tree_growth import GrownForest, GrownForests, GrowthSettings, grow_forests
from calibayes.kernels.tree_nodes import byte_columns
from tests.seeds import generator


def example(
    n: int = 400,
    sizes: tuple[int, ...] = (9, 30, 4),
    k: int = 3,
    seed: int = 0,
    weight: Any = None,
    missing: float = 0.0,
) -> GrowthRows:
    """Rows whose classes depend on two columns together."""
    rng = generator([n, k, seed])
    codes = np.floor(rng.random((n, len(sizes))) * np.array(sizes)).astype(np.uint8)
    score = np.stack([np.sin(codes[:, 0] + c) * np.cos(codes[:, -1] * (c + 1)) for c in range(k)], axis=1)
    labels = np.argmax(2 * score + rng.gumbel(size=(n, k)), axis=1).astype(np.int32)
    codes[rng.random(codes.shape) < missing] = 0
    weight = rng.uniform(0.5, 2.0, n) if weight is None else np.broadcast_to(weight, n)
    columns, start = byte_columns(codes, np.array(sizes)), np.log(np.full(k, 1 / k))
    return GrowthRows(columns.words, columns.first, labels, weight, start)


def only(rows: GrowthRows, chosen: Any) -> GrowthRows:
    """Some of the rows, or all in another order."""
    fields = ("labels", "weight", "fractions")
    some = {name: getattr(rows, name)[chosen] for name in fields if len(getattr(rows, name)) == rows.n}
    if rows.log_start.ndim == 2:
        some["log_start"] = rows.log_start[chosen]
    if rows.held_out.size:
        some["held_out"] = rows.held_out[:, chosen]
    return replace(rows, words=np.ascontiguousarray(rows.words[:, chosen]), folds={}, **some)


class Sample(NamedTuple):
    """Rows in memory with their marks, and the keys of columns and classes."""

    rows: GrowthRows
    keys: Keys

    @property
    def blocks(self) -> OneBlock:
        return OneBlock(self.rows)


def with_folds(rows: GrowthRows, held_out: Any) -> Sample:
    """A sample with the rows that each fold holds out, (folds, n)."""
    k = rows.log_start.shape[-1]
    keys = keys_of(OneBlock(rows), k)
    order = row_order(keys.hashes(rows), rows.labels, rows.weight)
    marks = RowMarks(rows.log_start, np.arange(k, dtype=np.int32), order.fractions, held_out)
    return Sample(rows.marked(marks), keys)


def halves(rows: GrowthRows) -> Sample:
    """One fold that holds out every second row."""
    return with_folds(rows, (np.arange(rows.n) % 2 == 1)[None])


def grow_folds(sample: Sample, settings: GrowthSettings, **options: Any) -> GrownForests:
    return grow_forests(sample.blocks, len(sample.rows.held_out), settings, sample.keys, **options)


def grow(rows: GrowthRows, settings: GrowthSettings, direction: Any = None) -> GrownForest:
    """Trees on all rows, none held out."""
    sample = with_folds(rows, np.zeros((1, rows.n), dtype=bool))
    return grow_folds(sample, settings, direction=direction).forests[0]


def assert_same_forest(found: GrownForest, expected: GrownForest) -> None:
    """Structure, log factors and mass are the same to the bit."""
    for name, array in vars(expected.forest).items():
        assert np.array_equal(array, getattr(found.forest, name)), name
    for name in ("log_factor", "mass"):
        assert getattr(found, name).shape == getattr(expected, name).shape, name
        assert getattr(found, name).tobytes() == getattr(expected, name).tobytes(), name


def assert_same_growth(found: GrownForests, expected: GrownForests) -> None:
    """All forests and losses are the same to the bit."""
    assert found.losses.tobytes() == expected.losses.tobytes()
    for one, other in zip(found.forests, expected.forests, strict=True):
        assert_same_forest(one, other)
