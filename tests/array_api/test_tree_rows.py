"""Rows that trees are grown on, on a device: every pass has the bits of NumPy's. A GPU is tested where there is one."""

import numpy as np
import pytest

from calibayes.backends.device import tree_rows
from calibayes.backends.device.array import to_numpy
from calibayes.backends.device.tree_rows import GivenRows, device_rows
from calibayes.kernels import posterior as exact
from calibayes.kernels import tree_nodes
from calibayes.kernels.forests import ONE_LEAF, SplitRequest, TreeNodes, forest_of, leaf_codes
from calibayes.kernels.level_counts import look_up, offsets
from calibayes.kernels.tree_nodes import (
    HALF,
    ByteColumns,
    LabeledScores,
    Split,
    SplitOptions,
    Units,
    byte_columns,
)
from tests.kernel_versions import numpy_only
from tests.seeds import generator

CASES = {
    "two classes": {"k": 2, "sizes": (9, 255, 4, 2)},
    "three classes": {"k": 3, "sizes": (5, 30, 256)},
    "ten classes": {"k": 10, "sizes": (17, 3)},
    "a column": {"k": 2, "sizes": (6,)},
    "columns of one code": {"k": 3, "sizes": (1, 8, 1, 1)},
    "70 columns": {"k": 2, "sizes": tuple(2 + j % 60 for j in range(70))},
    "weights": {"k": 4, "sizes": (12, 40), "weight": (0.0, 3.0)},
    "far scores": {"k": 3, "sizes": (12, 40), "spread": 400.0},
    "no held-out rows": {"k": 2, "sizes": (12, 40), "held_out": 0.0},
    "many held-out rows": {"k": 2, "sizes": (12, 40), "held_out": 0.9},
}


class HostRows:
    """The passes by NumPy, row by row and node by node."""

    def __init__(self, rows, units):
        self.rows, self.units = rows, units
        self.columns = ByteColumns(rows.words, rows.first)
        self.scores, self.k = rows.scores.copy(), rows.scores.shape[1]

    @property
    def scored(self):
        return LabeledScores(self.scores, self.rows.labels, self.rows.weight)

    def residual_sums(self):
        with numpy_only():
            self.packed = tree_nodes.packed_residuals(self.scored, self.units.packed, self.rows.fractions)
        self.nodes = {0: np.flatnonzero(self.rows.training)}
        return self.sums(self.nodes[0])

    def sums(self, rows):
        cells = int(self.columns.first[-1])
        total = np.zeros((2, cells, self.packed.shape[1]), dtype=np.int64)
        variance = self.packed[rows] & (HALF - 1)
        for j, first in enumerate(self.columns.first[:-1]):
            codes = self.columns.column(j)[rows]
            np.add.at(total[0], first + codes, (self.packed[rows] - variance) // HALF)
            np.add.at(total[1], first + codes, variance)
        return total

    def split_sums(self, requests):
        wanted = []
        for node, split, left, right, is_left_summed in requests:
            rows = self.nodes.pop(node)
            codes = self.columns.column(split.column)[rows]
            is_left = tree_nodes.is_left(codes, split.most, split.missing_left)
            self.nodes[left], self.nodes[right] = rows[is_left], rows[~is_left]
            wanted.append(self.sums(self.nodes[left if is_left_summed else right]))
        return wanted

    def leaf_sums(self, tree):
        self.leaf, leaves = leaf_codes(self.columns, forest_of([tree]))[:, 0], (len(tree.column) + 1) // 2
        with numpy_only():
            return tree_nodes.leaf_sums(self.scored, self.leaf, ~self.rows.training, leaves, self.units.leaf)

    def move(self, factors):
        self.scores += factors[self.leaf]
        return self.loss()

    def first_split(self, options):
        self.options, self.known = options, {0: self.residual_sums()}
        return self.found(self.known[0])

    def child_splits(self, requests):
        splits = []
        for request, own in zip(requests, self.split_sums(requests), strict=True):
            other = self.known.pop(request.node) - own
            both = (own, other) if request.is_left_summed else (other, own)
            self.known[request.left], self.known[request.right] = both
            splits += map(self.found, both)
        return splits

    def found(self, sums):
        with numpy_only():
            split = tree_nodes.best_split(sums, self.columns.first, self.options)
        if split.gain <= 0:
            return split, None
        begin, end = self.columns.first[split.column : split.column + 2]
        is_left = tree_nodes.is_left(np.arange(end - begin), split.most, split.missing_left)
        left, right = (sums[1, begin:end][side].sum() for side in (is_left, ~is_left))
        return split, left < right

    def loss(self):
        with numpy_only():
            return tree_nodes.whole_loss(self.scored, self.rows.held_out_weight > 0, self.units.loss)


def example(n, k, sizes, weight=(1.0, 1.0), spread=2.0, held_out=0.1, seed=0):
    """Random rows; a column has a missing value in one row of so many."""
    rng = generator([n, k, len(sizes), seed])
    codes = (rng.random((n, len(sizes))) * np.array(sizes)).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.1] = 0
    columns = byte_columns(codes, np.array(sizes))
    scores = spread * rng.normal(size=(n, k))
    training = rng.random(n) >= held_out
    weights = rng.uniform(*weight, n)
    held_out_weight = np.where(training, 0.0, weights)
    fractions = rng.integers(2**32, size=n, dtype=np.uint32)
    labels = rng.integers(k, size=n)
    return GivenRows(*columns, labels, weights, scores, fractions, training, held_out_weight)


def units_for(rows):
    top = float(rows.weight.max())
    return tree_nodes.units_of(top, tree_nodes.in_parts(rows.weight, top))


def random_split(rng, rows):
    sizes = np.diff(rows.first)
    column = int(rng.integers(len(sizes)))
    return Split(1.0, column, int(rng.integers(1, max(sizes[column], 2))), bool(rng.integers(2)))


def random_requests(rng, rows, nodes, count):
    """Splits of some nodes, and the numbers of all nodes then."""
    divided = rng.permutation(sorted(nodes))[:count]
    first = max(nodes) + 1
    requests = [
        SplitRequest(
            int(node), random_split(rng, rows), first + 2 * i, first + 2 * i + 1, bool(rng.integers(2))
        )
        for i, node in enumerate(divided)
    ]
    return requests, (nodes - set(divided)) | set(range(first, first + 2 * len(divided)))


def random_tree(rng, rows, leaves):
    """A tree of random splits."""
    column, most, missing_left, children = [-1], [0], [False], [[0, 0]]
    for _ in range(leaves - 1):
        node = int(rng.choice(np.flatnonzero(np.array(column) < 0)))
        split = random_split(rng, rows)
        column[node], most[node], missing_left[node] = split.column, split.most, split.missing_left
        children[node] = [len(column), len(column) + 1]
        column += [-1, -1]
        most, missing_left, children = most + [0] * 2, missing_left + [False] * 2, children + [[0, 0]] * 2
    tree = TreeNodes(
        np.array(column, np.int32),
        np.array(most, np.uint8),
        np.array(missing_left),
        np.array(children, np.int32),
    )
    tree.children[tree.column < 0] = np.arange(leaves)[:, None]
    return tree


def check_rounds(there, here, rows, rounds=3, seed=0):
    """Rounds of growth of random trees: every pass of both has the same bits."""
    rng, k = generator([seed, 1]), rows.scores.shape[1]
    for leaves in (1, 2, 31)[:rounds]:
        np.testing.assert_array_equal(there.residual_sums(), here.residual_sums())
        nodes = {0}
        for count in (1, 2, 3, 6):
            requests, nodes = random_requests(rng, rows, nodes, count)
            np.testing.assert_array_equal(there.split_sums(requests), here.split_sums(requests))
        tree = random_tree(rng, rows, leaves)
        for found, expected in zip(there.leaf_sums(tree), here.leaf_sums(tree), strict=True):
            np.testing.assert_array_equal(found, expected)
        factors = rng.normal(size=(leaves, k))
        assert there.move(factors) == here.move(factors) == there.loss()
        assert there.log_scores().tobytes() == here.scores.tobytes()


@pytest.mark.parametrize("name", CASES)
def test_passes_have_the_bits_of_numpy(kind, name):
    rows = example(3000, **CASES[name])
    units = units_for(rows)
    there = kind.on(rows, units)
    result = there.residual_sums()
    assert (result.dtype, there.split_sums([]).shape[0]) == (np.int64, 0)
    check_rounds(there, HostRows(rows, units), rows)


@pytest.mark.parametrize("n", [40, 1500])
@pytest.mark.parametrize("name", CASES)
def test_splits_found_on_the_device_are_those_of_numpy(kind, name, n):
    rng, rows = generator([n]), example(n, **CASES[name])
    units, columns = units_for(rows), rng.permutation(len(rows.first) - 1)[:9].astype(np.int32)
    options = SplitOptions(columns, np.zeros(len(rows.first) - 1, np.int8), 2 * units.packed, units.packed)
    there, here = kind.on(rows, units), HostRows(rows, units)
    for _ in range(2):
        leaves, count, found = {}, 1, [there.first_split(options)]
        expected, new = [here.first_split(options)], [0]
        for _ in range(5):
            assert [split.split for split in found] == [split for split, _ in expected]
            for node, split, (_, is_left_smaller) in zip(new, found, expected, strict=True):
                if split.split.gain > 0:
                    leaves[node] = split.split
                    assert split.is_left_smaller == is_left_smaller
            divided = sorted(leaves, key=lambda node: rng.random())[:3]
            requests = [
                SplitRequest(node, leaves.pop(node), count + 2 * i, count + 2 * i + 1, bool(rng.integers(2)))
                for i, node in enumerate(divided)
            ]
            new = [node for request in requests for node in (request.left, request.right)]
            count += len(new)
            found, expected = there.child_splits(requests), here.child_splits(requests)
        tree = random_tree(rng, rows, 5)
        there.leaf_sums(tree), here.leaf_sums(tree)
        factors = rng.normal(size=(5, rows.scores.shape[1]))
        assert there.move(factors) == here.move(factors)


def test_without_columns_there_is_no_split(kind):
    rows = example(30, 3, ())
    there = kind.on(rows, units_for(rows))
    options = SplitOptions(np.zeros(0, np.int32), np.zeros(0, np.int8), 1.0, 1.0)
    assert there.first_split(options).split == tree_nodes.NO_SPLIT
    sums = there.leaf_sums(ONE_LEAF)
    np.testing.assert_array_equal(sums.mass.sum(), int(30 * units_for(rows).leaf))


def test_the_device_decides_which_kind_is_used(kind):
    pytest.importorskip("torch")
    rows = example(50, 2, (3, 9))
    usual = device_rows(kind.place, rows, units_for(rows))
    is_compiled = kind.device == "cuda" and tree_rows.is_compiled(kind.place)
    assert (type(usual) is tree_rows.TorchRows) is not is_compiled


def test_sums_of_parts_do_not_overflow(kind, monkeypatch):
    rows = example(40_000, 2, (3, 9))
    monkeypatch.setattr(tree_rows, "MOST_SUMS", 40)  # of three nodes at a time
    monkeypatch.setattr(tree_rows, "PART", 1024)
    units = Units(2.0**21, 2.0**9)  # variances of all rows are beyond 2^32
    here = HostRows(rows, units)
    assert here.residual_sums()[1].max() > HALF
    check_rounds(kind.on(rows, units), here, rows)


def test_arrays_on_the_device_are_as_good(kind):
    rows = example(500, 3, (12, 40))
    units, (words, first, labels, weight, scores, fractions, training, held_out_weight) = (
        units_for(rows),
        rows,
    )
    moved = (kind.array(array) for array in (labels, weight, scores, fractions, training, held_out_weight))
    there = GivenRows(kind.array(words), first, *moved)
    check_rounds(kind.on(there, units), HostRows(rows, units), rows)
    np.testing.assert_array_equal(to_numpy(there.scores), scores)  # the given scores are not moved


@pytest.mark.parametrize("k", [2, 3, 10])
def test_posteriors_have_the_bits_of_numpy(k):
    torch = pytest.importorskip("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scores = generator([k]).normal(size=(200_000, k)) * np.geomspace(1e-9, 900, 200_000)[:, None]
    scores[0], scores[1, 0], scores[2] = -np.inf, -np.inf, 0.0
    expected = exact.exact_posterior(scores)
    found = tree_rows.exact_posterior(torch, torch.asarray(scores.T.copy(), device=device))
    assert found.posterior.cpu().numpy().T.tobytes() == expected.posterior.tobytes()
    assert found.shifted.cpu().numpy().T.tobytes() == expected.shifted.tobytes()
    assert tree_rows.exact_log(torch, found.total).cpu().numpy().tobytes() == expected.log_sum.tobytes()


@pytest.mark.parametrize("k", [3, 12])
def test_leaves_and_scores_of_trees_are_those_of_numpy(kind, k):
    rng, rows = generator([2]), example(2000, k, (9, 255, 4, 2, 2, 2, 2, 2, 31))
    forest = forest_of([random_tree(rng, rows, leaves) for leaves in (1, 2, 7, 127, 31)])
    log_factor = rng.normal(size=(k, sum(forest.leaves)))
    with numpy_only():
        codes = leaf_codes(ByteColumns(rows.words, rows.first), forest)
        sums = look_up(codes, log_factor, offsets(forest.leaves))
    columns = kind.columns(kind.place, rows.words, rows.first)
    np.testing.assert_array_equal(to_numpy(columns.leaf_codes(forest)), codes)
    found = to_numpy(columns.forest_scores(forest, log_factor))
    assert np.ascontiguousarray(found).tobytes() == sums.tobytes()
    none = forest_of([])
    assert columns.leaf_codes(none).shape == (2000, 0)
    begun = columns.forest_scores(none, np.zeros((k, 0)), rows.scores)
    np.testing.assert_array_equal(to_numpy(begun), rows.scores)
