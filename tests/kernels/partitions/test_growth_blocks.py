"""Trees grown on many blocks: the same bits as on one, also if blocks lose what trees have made of them or repeat a pass."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from calibayes.engines import Serial, Threads
from calibayes.kernels.dispatch import thread_limit
from calibayes.kernels.growth_rows import GrowthRows, ManyBlocks, RowMarks
from calibayes.kernels.row_keys import keys_of, row_order
from calibayes.kernels.tree_growth import GrowthSettings, grow_forests, held_out_scores, units_of_blocks
from calibayes.kernels.tree_nodes import PACKED_ROWS, byte_columns
from tests.kernel_versions import numpy_only
from tests.kernels.partitions.growth_tables import (
    Sample,
    assert_same_growth,
    example,
    grow_folds,
    only,
    with_folds,
)
from tests.seeds import generator

SETTINGS = GrowthSettings(trees=9, leaves=7, prior=1.0)


@dataclass(eq=False)
class Blocks:
    """A source of blocks; ``disturb`` gets each block before it is handed out, and returns it or another one."""

    blocks: list[GrowthRows]
    disturb: Callable[[GrowthRows], GrowthRows] = lambda block: block

    def parts(self) -> Iterator[Callable[[], GrowthRows]]:
        return iter([lambda place=place: self._load(place) for place in range(len(self.blocks))])

    def _load(self, place: int) -> GrowthRows:
        self.blocks[place] = self.disturb(self.blocks[place])
        return self.blocks[place]

    def marked(self, marks: RowMarks) -> Blocks:
        begin, blocks = 0, []
        for block in self.blocks:
            blocks.append(block.marked(marks.of(slice(begin, begin + block.n))))
            begin += block.n
        return Blocks(blocks, self.disturb)


@dataclass
class Counting:
    """An engine that counts passes."""

    passes: int = 0

    def total(self, function: Callable[[Any], Mapping[str, Any]], source: Any) -> Any:
        self.passes += 1
        return Serial().total(function, source)

    def each(self, function: Callable[[Any], Any], source: Any) -> list[Any]:
        return Serial().each(function, source)


@dataclass
class Repeating:
    """An engine that repeats passes over single blocks, as a cluster does after it has lost a worker.

    With ``late`` it also repeats the pass before this one, whose result is no longer wanted.
    """

    rng: np.random.Generator
    late: bool = False
    repeated: int = 0
    before: list[Callable[[Any], Any]] = field(default_factory=list)

    def total(self, function: Callable[[Any], Mapping[str, Any]], source: Any) -> Any:
        def careless(block: Any) -> Mapping[str, Any]:
            for earlier in [*self.before, *[function] * int(self.rng.integers(3))]:
                earlier(block)
                self.repeated += 1
            return function(block)

        result = Serial().total(careless, source)
        self.before = [function] if self.late and self.rng.random() < 0.5 else []
        return result

    def each(self, function: Callable[[Any], Any], source: Any) -> list[Any]:
        return Serial().each(function, source)


CUTS = {
    "a single row": [1, 8, 9, 130],
    "a single row at the end": [64, 299],
    "no row": [0, 77, 77, 300],
    "two blocks": [150],
    "one block": [],
}
"""Where 300 rows are cut into blocks."""
TABLES: dict[str, dict[str, Any]] = {
    "two classes": {"k": 2},
    "three classes": {"k": 3},
    "seven classes": {"k": 7},
    "one weight": {"k": 3, "weight": 0.3},
    "missing codes": {"k": 2, "missing": 0.2},
    "many columns": {"k": 3, "sizes": (9, 2, 9, 40, 2, 2, 256, 6, 7, 4)},
    "monotone columns": {"k": 2, "missing": 0.1, "direction": [1, 0, -1]},
}


def sample_of(name: str) -> tuple[Sample, Any]:
    """A sample of 300 rows with two folds, and the direction of its columns."""
    options = dict(TABLES[name])
    direction = options.pop("direction", None)
    rows = example(n=300, **options)
    if "weight" in options:
        rows.weight = np.array([options["weight"]])
    held_out = np.arange(300) % 3 == np.arange(2)[:, None]
    return with_folds(rows, held_out), None if direction is None else np.array(direction, np.int8)


def cut(rows: GrowthRows, cuts: list[int]) -> list[GrowthRows]:
    """The rows in consecutive blocks."""
    return [only(rows, own) for own in np.split(np.arange(rows.n), cuts)]


def grow_blocks(
    sample: Sample, engine: Any, source: Blocks, direction: Any = None, settings: GrowthSettings = SETTINGS
) -> Any:
    """Growth on blocks, with keys that were found on the blocks."""
    blocks = ManyBlocks(engine, source)
    keys = keys_of(blocks, sample.rows.log_start.shape[-1])
    return grow_forests(blocks, len(sample.rows.held_out), settings, keys, direction)


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("name", TABLES)
def test_blocks_grow_the_forests_of_all_rows_to_the_bit(name: str, cuts: str) -> None:
    sample, direction = sample_of(name)
    expected = grow_folds(sample, SETTINGS, direction=direction)
    assert max(grown.forest.count for grown in expected.forests) > 2
    assert max(expected.forests[0].forest.leaves) == 7
    for engine in (Serial(), Threads(2)):
        source = Blocks(cut(sample.rows, CUTS[cuts]))
        assert_same_growth(grow_blocks(sample, engine, source, direction), expected)


@pytest.mark.parametrize("name", ["three classes", "monotone columns"])
def test_blocks_grow_the_same_with_numpy_and_with_threads_over_folds(name: str) -> None:
    sample, direction = sample_of(name)
    expected = grow_folds(sample, SETTINGS, direction=direction)
    args = sample, Serial(), Blocks(cut(sample.rows, [100, 250])), direction
    with numpy_only():
        assert_same_growth(grow_blocks(*args), expected)
    with thread_limit(2):
        assert_same_growth(grow_blocks(*args), expected)


@pytest.mark.parametrize("name", TABLES)
def test_the_order_of_blocks_changes_no_bit(name: str) -> None:
    sample, direction = sample_of(name)
    expected = grow_folds(sample, SETTINGS, direction=direction)
    blocks = cut(sample.rows, [30, 31, 200])
    assert_same_growth(grow_blocks(sample, Serial(), Blocks(blocks[::-1]), direction), expected)


def disturbances(rng: np.random.Generator) -> dict[str, Callable[[GrowthRows], GrowthRows]]:
    """What happens to a block before a pass: at random, always."""

    def cleared(block: GrowthRows) -> GrowthRows:
        block.folds.clear()
        return block

    def some_folds_cleared(block: GrowthRows) -> GrowthRows:
        for place in [*block.folds]:
            if rng.random() < 0.3:
                del block.folds[place]
        return block

    def pickled(block: GrowthRows) -> GrowthRows:
        again: GrowthRows = pickle.loads(pickle.dumps(block))
        assert not again.folds
        return again

    def sometimes(change: Callable[[GrowthRows], GrowthRows]) -> Callable[[GrowthRows], GrowthRows]:
        return lambda block: change(block) if rng.random() < 0.2 else block

    return {
        "always cleared": cleared,
        "sometimes cleared": sometimes(cleared),
        "some folds cleared": some_folds_cleared,
        "always pickled": pickled,
        "sometimes pickled": sometimes(pickled),
    }


@pytest.mark.parametrize("change", disturbances(generator(0)))
@pytest.mark.parametrize("name", ["two classes", "seven classes", "monotone columns"])
def test_blocks_that_lose_their_state_between_passes_grow_the_same(name: str, change: str) -> None:
    sample, direction = sample_of(name)
    expected = grow_folds(sample, SETTINGS, direction=direction)
    for seed in range(3):
        disturb = disturbances(generator([1, seed]))[change]
        source = Blocks(cut(sample.rows, [1, 8, 9, 130]), disturb)
        assert_same_growth(grow_blocks(sample, Serial(), source, direction), expected)


@pytest.mark.parametrize("late", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("name", ["two classes", "seven classes", "monotone columns"])
def test_passes_that_are_repeated_on_a_block_change_nothing(name: str, late: bool) -> None:
    sample, direction = sample_of(name)
    expected = grow_folds(sample, SETTINGS, direction=direction)
    for seed in range(3):
        engine = Repeating(generator([2, seed]), late)
        source = Blocks(cut(sample.rows, [1, 8, 9, 130]))
        assert_same_growth(grow_blocks(sample, engine, source, direction), expected)
        assert engine.repeated > 100


def test_blocks_forget_what_another_growth_made_of_them() -> None:
    """The same blocks are used for one growth after another, in which trees differ."""
    sample, _ = sample_of("three classes")
    source = Blocks(cut(sample.rows, [100, 250]))
    expected = grow_folds(sample, SETTINGS)
    for settings in (SETTINGS, GrowthSettings(trees=3, leaves=3), SETTINGS):
        found = grow_blocks(sample, Serial(), source, settings=settings)
        assert all(len(block.folds) == 2 for block in source.blocks)
    assert_same_growth(found, expected)


def test_a_tree_of_31_leaves_needs_few_passes_over_the_blocks() -> None:
    """One to begin, one for each of a few groups of splits, one for the sums of leaves and one for the loss."""
    sample = with_folds(example(n=3000, sizes=(40, 30, 9)), np.zeros((1, 3000), dtype=bool))
    passes = []
    for trees in (1, 6):
        engine = Counting()
        settings = GrowthSettings(trees=trees, leaves=31)
        found = grow_blocks(sample, engine, Blocks(cut(sample.rows, [1000])), settings=settings)
        assert found.forests[0].forest.leaves == (31,) * trees
        passes.append(engine.passes)
    assert (passes[1] - passes[0]) / 5 <= 3 + 20


def test_marks_of_blocks_are_those_of_their_rows() -> None:
    sample, _ = sample_of("seven classes")
    rng, rows = generator(3), only(sample.rows, np.arange(300))
    start, places = rng.normal(size=(300, 7)), rng.permutation(7).astype(np.int32)
    held_out = rng.random((4, 300)) < 0.3
    for log_start in (start, start[0]):
        marks = RowMarks(log_start, places, sample.rows.fractions, held_out)
        whole = rows.marked(marks)
        many = ManyBlocks(Serial(), Blocks(cut(rows, [1, 8, 9, 130]))).marked(marks)
        assert whole.labels.dtype == np.int32
        assert np.array_equal(np.concatenate(many.each(lambda block: block.labels)), places[rows.labels])
        for name in ("fractions", "weight"):
            parts = many.each(lambda block, name=name: getattr(block, name))
            assert np.array_equal(np.concatenate(parts), getattr(whole, name))
        assert np.array_equal(np.concatenate(many.each(lambda block: block.held_out), axis=1), held_out)
        scores = np.concatenate(many.each(GrowthRows.scores))
        assert np.array_equal(scores, np.broadcast_to(log_start, (300, 7)))
        assert np.array_equal(whole.scores(), scores)


def test_held_out_scores_of_blocks_are_those_of_all_rows() -> None:
    sample, _ = sample_of("seven classes")
    (_, grown), _ = grow_folds(sample, SETTINGS)
    parts = [held_out_scores(grown, 1, block) for block in cut(sample.rows, [1, 8, 9, 130])]
    assert np.concatenate(parts).tobytes() == held_out_scores(grown, 1, sample.rows).tobytes()


def test_units_do_not_depend_on_blocks() -> None:
    rows = example(n=300, weight=generator(6).exponential(size=300) * 10.0 ** np.arange(-150, 150))
    rows.held_out = np.arange(300)[None] % 7 == 0
    expected = units_of_blocks(with_folds(rows, rows.held_out).blocks)
    for cuts in CUTS.values():
        assert units_of_blocks(ManyBlocks(Serial(), Blocks(cut(rows, cuts)))) == expected
    units, sizes = expected
    whole = [int(np.floor(weight * units.loss + 0.5)) for weight in rows.weight[::7]]
    assert sizes == {"rows": 300, "held_out": sum(whole)}


# -- more rows than packed numbers may be added up: sums in several stretches, with Python's integers as the reference


def many_rows() -> Sample:
    """A little more than 2^20 rows of two columns, with large weights, in which the first column decides."""
    n, rng = PACKED_ROWS + 5000, generator(8)
    codes = rng.integers(0, 5, size=(n, 2)).astype(np.uint8)
    labels = (rng.random(n) < 0.1 + 0.2 * codes[:, 0]).astype(np.int32)
    columns = byte_columns(codes, np.array([5, 5]))
    weight = 2.0**30 * rng.uniform(0.997, 1.0, n)
    rows = GrowthRows(columns.words, columns.first, labels, weight, np.log(np.full(2, 0.5)))
    order = row_order(rng.integers(0, 2**64, n, dtype=np.uint64), labels, np.ones(1))
    marks = RowMarks(rows.log_start, np.arange(2, dtype=np.int32), order.fractions, np.zeros((1, n), bool))
    one = with_folds(only(rows, slice(0, 9)), np.zeros((1, 9), bool)).keys
    return Sample(rows.marked(marks), one)


def test_sums_of_more_rows_than_fit_into_packed_numbers_are_exact() -> None:
    """The sums at the root and of the leaves, as blocks find them, against sums of Python's integers."""
    sample = many_rows()
    units, _ = units_of_blocks(sample.blocks)
    assert units.packed > units.whole
    fold = sample.blocks.fold("growth", 0, units)
    sums, codes = fold.residual_sums(), np.stack([sample.rows.columns.column(j) for j in (0, 1)])
    # Every posterior is 1/2 and every variance 1/2: the parts of a row, by the definition of packed numbers.
    size, fraction = sample.rows.weight * units.packed, sample.rows.fractions * 2.0**-32
    half, whole = np.floor(0.5 * size + fraction).astype(int), np.floor(size + fraction).astype(int)
    residual = np.where(sample.rows.labels == 1, whole, 0) - half
    for j in (0, 1):
        for code in range(5):
            own = codes[j] == code
            expected = [sum(residual[own].tolist()), sum(half[own].tolist())]
            assert sums[:, 5 * j + code, 0].tolist() == expected
    assert half.sum() > 2**29
    settings = GrowthSettings(trees=1, leaves=3)
    (grown,), _ = grow_folds(sample, settings)
    leaf = np.floor(sample.rows.weight * units.leaf).astype(int)
    (tree,) = grown.forest.trees()
    assert set(tree.column[tree.column >= 0]) == {0}
    found = sample.blocks.fold("growth", 0, units)
    in_leaves = found.leaf_sums(tree)
    of_rows = found._codes
    for c in (0, 1):
        for number in range(3):
            own = (of_rows == number) & (sample.rows.labels == c)
            assert in_leaves[2, number, c] == sum(leaf[own].tolist())


def test_more_rows_than_fit_into_packed_numbers_grow_the_same_in_blocks() -> None:
    sample = many_rows()
    settings = GrowthSettings(trees=2, leaves=4)
    expected = grow_folds(sample, settings)
    assert expected.forests[0].forest.leaves == (4, 4)
    blocks = ManyBlocks(Threads(2), Blocks(cut(sample.rows, [1000, PACKED_ROWS - 7])))
    assert_same_growth(grow_forests(blocks, 1, settings, sample.keys), expected)
