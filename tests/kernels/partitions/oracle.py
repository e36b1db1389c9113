"""Splits and trees written from their definitions: every split is tried, and sums are taken over the rows themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from calibayes.kernels.tree_nodes import HALF, ByteColumns, Split, SplitOptions, byte_columns

NO_BOUNDS = (-np.inf, np.inf)


class Rows(NamedTuple):
    """Codes (n, d) with the number of codes of each column, and whole residuals and variances, (n, k) each."""

    codes: Any
    sizes: Any
    residual: Any
    variance: Any

    @property
    def columns(self) -> ByteColumns:
        return byte_columns(self.codes, self.sizes)

    @property
    def packed(self) -> Any:
        return self.residual * HALF + self.variance

    def everyone(self) -> Any:
        return np.arange(len(self.codes), dtype=np.int32)

    def none(self) -> Any:
        """No row, as booleans."""
        return np.zeros(len(self.codes), dtype=bool)

    def only(self, chosen: Any) -> Rows:
        """Some of the rows."""
        return Rows(self.codes[chosen], self.sizes, self.residual[chosen], self.variance[chosen])


def random_rows(rng: np.random.Generator, n: int, sizes: list[int], k: int, missing: float = 0.2) -> Rows:
    """Rows whose residuals depend on their codes."""
    known = 1 + np.floor(rng.random((n, len(sizes))) * (np.array(sizes) - 1)).astype(int)
    codes = np.where(rng.random(known.shape) < missing, 0, np.minimum(known, np.array(sizes) - 1))
    signal = np.stack([np.sin(codes.sum(axis=1) + c) for c in range(k)], axis=1)
    residual = np.round(1000 * (signal + rng.normal(size=(n, k)))).astype(np.int64)
    return Rows(codes.astype(np.uint8), np.array(sizes), residual, rng.integers(1, 400, size=(n, k)))


def options(d: int, prior: float = 50.0, least: float = 300.0, direction: Any = None) -> SplitOptions:
    signs = np.zeros(d, np.int8) if direction is None else np.array(direction, np.int8)
    return SplitOptions(np.arange(d, dtype=np.int32), signs, prior, least)


def is_on_left(codes: Any, split: Split) -> Any:
    return np.where(codes == 0, split.missing_left, codes <= split.most)


def quality(rows: Rows, chosen: Any, prior: float) -> float:
    return sum(
        float(rows.residual[chosen, c].sum()) ** 2 / (float(rows.variance[chosen, c].sum()) + prior)
        for c in range(rows.residual.shape[1])
    )


def change(rows: Rows, chosen: Any, prior: float, bounds: tuple[float, float]) -> float:
    """Full step of the log odds of the second class over some rows, within bounds; the first moves by as much."""
    step = rows.residual[chosen, 0].sum() / (rows.variance[chosen, 0].sum() + prior)
    return float(np.clip(2.0 * step, *bounds))


def gain(rows: Rows, chosen: Any, split: Split, given: SplitOptions, bounds: Any = NO_BOUNDS) -> float:
    """Gain of a split of some rows; minus infinity if it is not possible."""
    left = is_on_left(rows.codes[chosen, split.column], split)
    sides = chosen[left], chosen[~left]
    if split.column not in given.columns or min(rows.variance[side].sum() for side in sides) < given.least:
        return -np.inf
    if sign := given.direction[split.column]:
        of_left, of_right = (change(rows, side, given.prior, bounds) for side in sides)
        if sign * of_left > sign * of_right:
            return -np.inf
    return sum(quality(rows, side, given.prior) for side in sides) - quality(rows, chosen, given.prior)


def every_split(rows: Rows, chosen: Any, given: SplitOptions, bounds: Any = NO_BOUNDS) -> list[Split]:
    """All splits with their gains. Without a missing value, missing ones go to the side of the larger variance."""
    splits = []
    for j, codes in enumerate(rows.sizes):
        for missing_left in (False, True) if (rows.codes[chosen, j] == 0).any() else (None,):
            for most in range(1, codes):
                split = Split(0.0, j, most, bool(missing_left))
                if missing_left is None:
                    left = is_on_left(rows.codes[chosen, j], split)
                    larger = rows.variance[chosen[left]].sum() >= rows.variance[chosen[~left]].sum()
                    split = split._replace(missing_left=bool(larger))
                splits.append(split._replace(gain=gain(rows, chosen, split, given, bounds)))
    return splits


def best_of(splits: list[Split]) -> Split | None:
    """The first of the splits of the largest gain; None if nothing is gained."""
    found = max(splits, key=lambda split: split.gain, default=None)
    return found if found is not None and found.gain > 1e-9 else None


class Nodes(NamedTuple):
    """A tree by its definition: lists of its nodes in the order in which they were made, and of its leaves in that order."""

    column: list[int]
    most: list[int]
    missing_left: list[bool]
    children: list[list[int]]
    """Left and right child; the number of the leaf, twice, for a leaf."""
    rows: list[list[int]]
    """Of each leaf."""
    bounds: list[tuple[float, float]]
    """Of each leaf."""


def tree_by_definition(rows: Rows, given: SplitOptions, most_leaves: int) -> Nodes:
    """One leaf after another is split, that of the largest gain, until there are enough or nothing is gained."""
    chosen, bounds, splits, children = [rows.everyone()], [NO_BOUNDS], [], {}
    while True:
        begin = len(splits)
        for own, limits in zip(chosen[begin:], bounds[begin:], strict=True):
            splits.append(best_of(every_split(rows, own, given, limits)))
        open_ = [node for node in range(len(splits)) if node not in children and splits[node] is not None]
        if not open_ or len(splits) - len(children) >= most_leaves:
            break
        node = max(open_, key=lambda node: (splits[node].gain, -node))
        left = is_on_left(rows.codes[chosen[node], splits[node].column], splits[node]).astype(bool)
        bounds += child_bounds(rows, chosen[node], left, splits[node], given, bounds[node])
        children[node] = [len(chosen), len(chosen) + 1]
        chosen += [chosen[node][left], chosen[node][~left]]
    leaves = [node for node in range(len(splits)) if node not in children]
    made = [splits[node] if node in children else Split(0.0, -1, 0, False) for node in range(len(splits))]
    return Nodes(
        [split.column for split in made],
        [split.most for split in made],
        [bool(split.missing_left) for split in made],
        [children[node] if node in children else [leaves.index(node)] * 2 for node in range(len(made))],
        [chosen[node].tolist() for node in leaves],
        [bounds[node] for node in leaves],
    )


def child_bounds(rows: Rows, chosen: Any, left: Any, split: Split, given: SplitOptions, bounds: Any) -> Any:
    """Below and above the middle of the changes of both children, if the column has a direction."""
    sign = given.direction[split.column]
    if not sign:
        return bounds, bounds
    middle = np.mean([change(rows, side, given.prior, bounds) for side in (chosen[left], chosen[~left])])
    lower, upper = (bounds[0], float(middle)), (float(middle), bounds[1])
    return (lower, upper) if sign > 0 else (upper, lower)
