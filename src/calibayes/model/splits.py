"""Folds of training rows, with one meaning of ``cv`` for every estimator, and orders of rows that depend on content.

A number of folds is stratified: the rows of each class are dealt to the folds in turn, in random order. A splitter or a
list of splits is used as scikit-learn does, on all rows that were passed. `expand_counts` orders rows by their content
alone, so that results do not change when rows are passed in another order, or when a row of weight 2 is passed twice.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv

from calibayes.core.protocols import Array
from calibayes.kernels.cut_points import MULTIPLIER, mixed
from calibayes.kernels.level_counts import places_in_class
from calibayes.kernels.moments import RowCounts, count_of_one, weight_of_one, whole_counts
from calibayes.model.checked_rows import Rows, TrainingRows
from calibayes.model.parameters import WHOLE, whole_number
from calibayes.tables.summary import content_hashes, table_order_hashes


def expand_counts(rows: Rows, seed: int) -> Rows:
    """The rows in an order that depends on their content and the seed alone.

    Whole sample weights (before class weights) are counts: a row becomes as many rows, divided by the greatest common
    divisor of the weights, or fewer and heavier ones if they would be too many.
    """
    counts = whole_counts(rows.weight / rows.factor)
    if counts is None:
        everywhere, once = np.arange(len(rows.codes)), np.ones(len(rows.codes), dtype=np.uint64)
        hashes = table_order_hashes(rows.table, everywhere, rows.codes, once, seed)
        order = np.lexsort([rows.weight, hashes])
        return rows.only(order[_shuffled(hashes[order])])
    identity = mixed(content_hashes(rows.table, seed)) ^ mixed(rows.codes.astype(np.uint64))
    _, first, which = np.unique(identity, return_index=True, return_inverse=True)
    total = np.bincount(which.ravel(), counts, minlength=len(first))
    copies = np.maximum(np.rint(total / count_of_one(counts)), 1.0)
    parts = (total / np.gcd.reduce(total.astype(np.int64))).astype(np.uint64)
    hashes = table_order_hashes(rows.table, first, rows.codes[first], parts, seed)
    order = np.argsort(hashes, kind="stable")
    source = np.repeat(order, copies[order].astype(int))
    source = source[_shuffled(hashes[source])]
    expanded = rows.only(first[source])
    return expanded._replace(weight=(total / copies)[source] * expanded.factor)


def unit_weight(rows: TrainingRows) -> float:
    """The weight of one row (`weight_of_one`); class weights enter by their average."""
    sample_weight, top = rows.weight / rows.factor, float(rows.weight.max())
    total, sample_total = float((rows.weight / top).sum()), float((sample_weight / top).sum())
    return weight_of_one(sample_weight) * (total / sample_total)


def row_counts(rows: TrainingRows, k: int) -> RowCounts:
    """How rows of k classes count by their weights, for trees: whole sample weights are counts."""
    weight, factor = rows.weight, np.ones(1)
    if isinstance(rows.factor, np.ndarray):
        factor, labeled = np.ones(k), rows.codes >= 0
        factor[rows.codes[labeled]] = rows.factor[labeled]
    elif weight.strides == (0,):  # one number for all rows
        return RowCounts(float(weight[0]), 0.0, factor)
    counts = whole_counts(weight / rows.factor)
    return RowCounts(unit_weight(rows), 0.0 if counts is None else count_of_one(counts), factor)


def rows_by_weight(rows: TrainingRows) -> float:
    """The number of rows, where a row of weight 2 counts twice; to three digits, so that rounding errors decide nothing."""
    return round(float(rows.weight.sum()) / unit_weight(rows), 3)


def _shuffled(hashes: Array) -> Array:
    """A pseudo-random order of rows with these hashes, equal ones adjacent in the input."""
    new = np.append(True, hashes[1:] != hashes[:-1])
    begin = np.maximum.accumulate(np.where(new, np.arange(len(hashes)), 0))
    copy = (np.arange(len(hashes)) - begin).astype(np.uint64)
    return np.argsort(mixed(mixed(copy + MULTIPLIER) ^ hashes), kind="stable")


MANY_ROWS = 3000
FOLDS, FEWER_FOLDS = 5, 3
"""Default number of folds, and from `MANY_ROWS` on."""
TRIAL_ROWS = 20_000
"""Number of rows that suffices to choose between models and weight them."""
SMALL_PARTS = 10
"""If models are compared on some rows only, one row in so many is held out by each fold of all rows."""
LEAST_OF_CLASS = 50
"""Least number of rows of a class in a subset, if it has that many."""
LEFT_OUT, NEVER_HELD_OUT = -2, -1


class EvaluationFolds(NamedTuple):
    """Rows that models are compared on, and which of them each fold holds out, (n,) booleans each."""

    rows: Rows
    held_out: list[Array]


class Division(NamedTuple):
    """All rows in the order of their content, those that models are compared on, and two kinds of folds."""

    rows: Rows
    compared: Array
    """(n,) booleans."""
    held_out: list[Array]
    """Of the rows that are compared, those that each fold holds out, (compared,) booleans each."""
    crossing: list[Array]
    """Folds of all rows, (n,) booleans each, for models that learn from predictions for the rows of the first folds.

    Each crosses all of the first folds: a model that was trained on all folds but one learns too much from predictions that
    were made without this fold."""

    def compared_folds(self) -> EvaluationFolds:
        """The rows that models are compared on, and their folds."""
        return EvaluationFolds(self.rows.only(self.compared), self.held_out)

    def compared_in_proportion(self) -> Array:
        """The rows that models are compared on, (n,) booleans, without those that small classes have in excess.

        All classes have about the same share of these rows, and at least one other row each.
        """
        codes, share = self.rows.codes, self.compared.mean()
        counts = np.bincount(codes)
        most = np.minimum(np.ceil(share * counts), counts - 1)
        return np.asarray(self.compared & (places_in_class(codes) < most[codes]))


def evaluation_folds(cv: Any, rows: Rows, n: int, seed: int) -> EvaluationFolds:
    """Folds that depend on the content of the rows and on how often they occur, not on their order.

    By default (None) five folds, three from 3,000 rows on, of at most about 20,000 rows. Splitters split the n rows that
    were passed.
    """
    return divided(cv, rows, n, seed).compared_folds()


def divided(cv: Any, rows: Rows, n: int, seed: int, most: int | None = None) -> Division:
    """`evaluation_folds` of about ``most`` rows (20,000), and as many folds of all rows that cross them.

    If there are more rows, each of these holds out a tenth: that is enough to find out how long to train.

    The folds of splitters are used for both: they may keep groups of rows together.
    """
    if cv is not None and not isinstance(cv, WHOLE):
        masks = held_out_masks(cv, rows, n, seed)
        return Division(rows, np.ones(len(rows.codes), dtype=bool), masks, masks)
    rows = expand_counts(rows, seed)
    many = len(rows.codes)
    count = whole_number("cv", (FEWER_FOLDS if many >= MANY_ROWS else FOLDS) if cv is None else cv, 2)
    share = min((TRIAL_ROWS if most is None else most) / many, 1.0) if cv is None else 1.0
    fold = assign_folds(rows.codes, count, share)
    compared = fold != LEFT_OUT
    parts = count if compared.all() else SMALL_PARTS
    crossing = masks_of(places_in_class(rows.codes) // count % parts, count)
    return Division(rows, compared, masks_of(fold[compared], count), crossing)


def held_out_masks(cv: Any, rows: Rows, n: int, seed: int) -> list[Array]:
    """The rows that each fold holds out, (rows,) booleans each. Splitters split the n rows that were passed."""
    if isinstance(cv, WHOLE):
        count = whole_number("cv", cv, 2)
        masks = masks_of(shuffled_folds(rows.codes, count, seed), count)
    else:
        codes = np.zeros(n, dtype=int)
        codes[rows.positions] = rows.codes
        tests = [test for _, test in check_cv(cv, codes, classifier=True).split(codes, codes)]
        masks = [np.isin(rows.positions, test) for test in tests]
    if not any(mask.any() for mask in masks):
        raise ValueError(f"cv={cv!r} holds out no row: a class needs two rows at least")
    return masks


def masks_of(fold: Array, count: int) -> list[Array]:
    """Fold numbers as masks, one for each fold that has rows."""
    return [fold == number for number in range(count) if (fold == number).any()]


def shuffled_folds(codes: Array, count: int, seed: int) -> Array:
    """The fold of each row, (n,), stratified and in random order; -1 for the only row of a class."""
    order = np.random.default_rng(seed).permutation(len(codes))
    fold = np.empty(len(codes), dtype=np.intp)
    fold[order] = assign_folds(codes[order], count)
    return fold


def assign_folds(codes: Array, count: int, share: float = 1.0) -> Array:
    """The fold of each row, (n,): the rows of each class are dealt to the folds in turn.

    The only row of a class is never held out (-1), so that every class can be learned in each fold. Of each class only a
    ``share`` takes part, at least 50 rows; the others have -2.
    """
    fold = np.full(len(codes), NEVER_HELD_OUT)
    begin = 0
    for code in _by_first_row(codes):
        class_rows = np.flatnonzero(codes == code)
        if len(class_rows) > 1:
            most = max(int(np.ceil(share * len(class_rows))), LEAST_OF_CLASS)
            place = np.arange(len(class_rows))
            fold[class_rows] = np.where(place < most, (place + begin) % count, LEFT_OUT)
            begin += min(most, len(class_rows))  # small classes do not all begin with the first fold
    return fold


def _by_first_row(codes: Array) -> Array:
    """The distinct codes of labeled rows in the order of their first rows: names of classes do not matter."""
    labeled = codes[codes >= 0]
    distinct, first = np.unique(labeled, return_index=True)
    return np.asarray(distinct[np.argsort(first)])


def hold_out(
    codes: Array, fraction: float, rng: np.random.Generator, name: str = "validation_fraction"
) -> Array:
    """A random share of each class's rows, (n,) booleans; every class keeps at least one training row."""
    held = np.zeros(len(codes), dtype=bool)
    for code in _by_first_row(codes):
        rows = rng.permutation(np.flatnonzero(codes == code))
        held[rows[: min(round(fraction * len(rows)), len(rows) - 1)]] = True
    if not held.any():
        raise ValueError(f"{name}={fraction} of {len(codes)} rows holds out no row at all")
    return held


def stratified_subset(codes: Array, most: int | None, seed: int) -> Array:
    """Positions of at most so many rows, drawn class by class, and all rows of classes that would keep few."""
    n = len(codes)
    if most is None or n <= most:
        return np.arange(n)
    counts = np.bincount(codes)
    of_class = np.maximum(np.ceil(most / n * counts), np.minimum(counts, 10))
    return np.sort(some_of_each_class(codes, of_class, seed))


def some_of_each_class(codes: Array, most: Array, seed: int) -> Array:
    """Positions of at most ``most[class]`` rows of each class, drawn with a seed."""
    order = np.random.default_rng(seed).permutation(len(codes))
    drawn = codes[order]
    return np.asarray(order[places_in_class(drawn) < most[drawn]])
