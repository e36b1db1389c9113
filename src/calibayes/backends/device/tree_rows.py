"""Rows that trees are grown on, in arrays of PyTorch on a device: only sums of whole numbers come to the host.

A round of growth is a few passes over the rows: sums of residuals over all training rows, sums over children while nodes
are divided, sums over the leaves of the grown tree, and its addition to the log scores. All of them have the same bits as
those of NumPy, see `calibayes.kernels.tree_nodes`. `device_rows` returns the rows with these passes: by operations of
PyTorch here, or by compiled kernels where CuPy is installed (`calibayes.backends.device.tree_kernels`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, Protocol

import numpy as np

from calibayes.backends.device.array import Placement, is_on_device, row_ranges, to_numpy
from calibayes.core.protocols import Array
from calibayes.kernels import posterior as exact
from calibayes.kernels.forests import Forest, SplitRequest, TreeNodes
from calibayes.kernels.tree_nodes import (
    HALF,
    LARGEST_LOSS,
    MOST_CODES,
    NO_SPLIT,
    PACKED_ROWS,
    WORD,
    LeafSums,
    Split,
    SplitOptions,
    Units,
    packed_classes,
)

PART = PACKED_ROWS
"""Packed numbers of so many rows are added."""
MOST_SUMS = 2**25
"""Most sums of a class that are added up at a time."""
FEWEST_SUMS = 2**17
"""Sums are divided among so many numbers at least: additions to the same number wait for each other."""
POSTERIOR_ARRAYS = 10
"""Temporary arrays (k, n) of posteriors."""


class FoundSplit(NamedTuple):
    """The best split of a node."""

    split: Split
    is_left_smaller: bool
    """Whether the left child has less variance than the right one: as a rule it has fewer rows."""


class GivenRows(NamedTuple):
    """Rows that trees are grown on, as NumPy arrays or on the device."""

    words: Any
    """Codes of the columns, eight columns in a word, (words, n) uint64; see `calibayes.kernels.tree_nodes.ByteColumns`."""
    first: Array
    """First cell of each column, and the number of all cells, (d + 1,), as a NumPy array."""
    labels: Any
    """Class codes, (n,)."""
    weight: Any
    """(n,) float64."""
    scores: Any
    """Log scores at the start, (n, k) float64."""
    fractions: Any
    """Numbers of a row are rounded up with the probability ``fractions * 2**-32``, (n,) uint32."""
    training: Any
    """Whether trees are grown on a row, (n,) booleans."""
    held_out_weight: Any
    """Weight in the held-out loss, 0 for rows that are not held out, (n,) float64."""


class DeviceRows(Protocol):
    """Rows that trees are grown on. The results are NumPy arrays of whole numbers."""

    def residual_sums(self) -> Array:
        """Begin a round, with all training rows in node 0. Sums by cell and class of residuals and variances, (2, cells, c).

        Of two classes, the sums are those of the second (c is 1).
        """

    def split_sums(self, requests: Sequence[SplitRequest]) -> Array:
        """Divide the rows of nodes. The sums of the child of each that is asked for, (m, 2, cells, c)."""

    def first_split(self, options: SplitOptions) -> FoundSplit:
        """Begin a round as `residual_sums` does, and find the best split of node 0 on the device: no sums come to the host.

        The options have no directions of columns.
        """

    def child_splits(self, requests: Sequence[SplitRequest]) -> list[FoundSplit]:
        """Divide the rows of nodes, after `first_split`. The best splits of the left and the right child of each, (2 m,)."""

    def leaf_sums(self, tree: TreeNodes) -> LeafSums:
        """Find the leaf of each row. Sums of residuals and variances of training rows and of the weights of all rows by class.

        Each is (leaves, k). A round has begun since the last move.
        """

    def move(self, factors: Array) -> int:
        """Add the log factors (leaves, k) of the leaf of each row to its log scores. The held-out loss."""

    def loss(self) -> int:
        """The held-out loss."""

    def log_scores(self) -> Array:
        """The log scores of the rows, (n, k)."""


def device_rows(place: Placement, rows: GivenRows, units: Units) -> DeviceRows:
    """Rows on a device of PyTorch or CuPy: by compiled kernels on a GPU of NVIDIA where CuPy is installed."""
    if is_compiled(place):
        from calibayes.backends.device.tree_kernels import CompiledRows

        return CompiledRows(place, rows, units)
    return TorchRows(place, rows, units)


def is_compiled(place: Placement) -> bool:
    """Whether kernels for this device can be compiled."""
    is_cuda = str(place.device).startswith("cuda") or place.xp.__name__.endswith("cupy")
    return is_cuda and find_spec("cupy") is not None


# -- The best split of a node, from what is best in each column -----------------------------------------------------------


def best_of_columns(found: Array, options: SplitOptions) -> list[FoundSplit]:
    """The best splits of nodes from those of their columns, (m, d, 5).

    The numbers are the gain, the largest code on the left, whether missing values go left, and the variances of the left
    side and of the node.
    """
    if not len(options.columns):
        return [FoundSplit(NO_SPLIT, False) for _ in found]
    nodes, columns = np.arange(len(found)), options.columns
    best = columns[found[:, columns, 0].argmax(axis=1)]
    splits = zip(best.tolist(), found[nodes, best].tolist(), strict=True)
    return [
        FoundSplit(Split(gain, j, int(most), bool(side)) if gain > 0 else NO_SPLIT, 2 * left < total)
        for j, (gain, most, side, left, total) in splits
    ]


def in_order(requests: Sequence[SplitRequest], found: Sequence[FoundSplit]) -> list[FoundSplit]:
    """The splits of left and right children, from those of summed children and their siblings."""
    pairs = zip(requests, found[::2], found[1::2], strict=True)
    ordered = ((own, other) if request.is_left_summed else (other, own) for request, own, other in pairs)
    return [split for pair in ordered for split in pair]


# -- Posteriors of (k, n) log scores, by the operations of `calibayes.kernels.posterior` one by one ----------------------


class ShiftedPosterior(NamedTuple):
    """Posteriors, log scores less the largest, (k, n), and sums of their exponentials, (n,)."""

    posterior: Any
    shifted: Any
    total: Any


def exact_exp(torch: Any, x: Any) -> Any:
    """As `calibayes.kernels.posterior.exact_exp`."""
    safe = torch.clamp(x, min=exact.LEAST_EXPONENT)
    shifted = (safe * exact.LOG2_E).add_(exact.ROUND)
    m = shifted - exact.ROUND
    r = safe.sub_(m * exact.LOG2_HIGH).sub_(m * exact.LOG2_LOW)
    p = torch.full_like(r, float(exact.EXP_SERIES[0]))
    for coefficient in exact.EXP_SERIES[1:]:
        p.mul_(r).add_(float(coefficient))
    bits = p.view(torch.int64) + (shifted.view(torch.int64) << 52)
    return torch.where(x > exact.LEAST_EXPONENT, bits.view(torch.float64), 0.0)


def exact_log(torch: Any, x: Any) -> Any:
    """As `calibayes.kernels.posterior.exact_log`."""
    bits = x.view(torch.int64)
    exponent = (bits - exact.ROOT_OF_HALF) >> 52
    y = (bits - (exponent << 52)).view(torch.float64)
    f = (y - 1.0) / (y + 1.0)
    z = f * f
    p = torch.full_like(z, float(exact.LOG_SERIES[0]))
    for coefficient in exact.LOG_SERIES[1:]:
        p.mul_(z).add_(float(coefficient))
    f = 2.0 * f
    return exponent.to(torch.float64) * exact.LOG2 + (f + f * (z * p))


def exact_posterior(torch: Any, scores: Any) -> ShiftedPosterior:
    """As `calibayes.kernels.posterior.exact_posterior`, of log scores (k, n)."""
    top = scores.amax(0)
    is_finite = torch.isfinite(top)
    shifted = torch.where(is_finite, scores - torch.where(is_finite, top, 0.0), 0.0)
    if len(scores) == 2:  # the exponential of 0 is 1
        powers = torch.where(shifted < 0.0, exact_exp(torch, shifted.amin(0)), 1.0)
    else:
        powers = exact_exp(torch, shifted)
    total = powers[0].clone()
    for power in powers[1:]:
        total += power
    return ShiftedPosterior(powers / total, shifted, total)


def variances(posterior: Any, k: int) -> Any:
    """As `calibayes.kernels.tree_nodes.variances`, of posteriors of some of k classes."""
    return (posterior * (1.0 - posterior)).mul_(k / (k - 1))


# -- Columns of bytes, and the way of rows through trees -----------------------------------------------------------------


class NodeTable(NamedTuple):
    """Where rows go from each node, by their code in a column. Arrays (nodes,) on the host."""

    column: Array
    most: Array
    missing_left: Array
    left: Array
    right: Array


def walked(tree: TreeNodes) -> NodeTable:
    """The nodes of a tree, whose leaves lead to themselves."""
    own, is_leaf = np.arange(len(tree.column)), tree.column < 0
    left, right = np.where(is_leaf, own, tree.children.T)
    return NodeTable(np.where(is_leaf, 0, tree.column), tree.most, tree.missing_left, left, right)


def depth(tree: TreeNodes) -> int:
    """Number of splits on the longest way from the root."""
    depths = np.zeros(len(tree.column), dtype=np.int64)
    for node in np.flatnonzero(tree.column >= 0):  # children come after their parents
        depths[tree.children[node]] = depths[node] + 1
    return int(depths.max())


class TorchColumns:
    """Byte columns on a device of PyTorch."""

    def __init__(self, place: Placement, words: Any, first: Array) -> None:
        self.place, self.torch, self.first = place, import_module("torch"), first
        words = as_int64(place, words)
        self.n = int(words.shape[1])
        by_byte = [(words >> 8 * byte).to(self.torch.uint8) for byte in range(WORD)]
        self.bytes = self.torch.stack(by_byte, dim=-1)
        """(words, n, 8); column 8 t + s is byte s of word t."""

    @property
    def d(self) -> int:
        return len(self.first) - 1

    def table(self, nodes: NodeTable) -> tuple[Any, ...]:
        """A table of nodes on the device: the place of a column's first byte, its lowest code on the left, their number."""
        array, column = self.place.array, nodes.column.astype(np.int64)
        begin = column // WORD * self.n * WORD + column % WORD
        # Codes less the lowest on the left, as bytes: a missing value is the largest if it goes right.
        lowest = 1 - nodes.missing_left.astype(np.int64)
        limits = (array(values, "uint8") for values in (lowest, nodes.most - lowest))
        return array(begin, "int64"), *limits, array(nodes.left, "int32"), array(nodes.right, "int32")

    def children(self, table: tuple[Any, ...], rows: Any, at: Any) -> Any:
        """The nodes to which rows (m,) go from nodes ``at`` (m,) int32."""
        begin, lowest, limit, left, right = (array.index_select(0, at) for array in table)
        code = self.bytes.view(-1).index_select(0, begin.add_(rows, alpha=WORD))
        return self.torch.where(code.sub_(lowest) <= limit, left, right)

    def leaves(self, tree: TreeNodes) -> Any:
        """The leaf of each row, (n,) int32."""
        torch, table = self.torch, self.table(walked(tree))
        steps, numbers = depth(tree), self.place.array(tree.children[:, 0], "int32")
        found = torch.empty(self.n, dtype=torch.int32, device=self.place.device)
        for part in row_ranges(self.n, 64):
            rows = torch.arange(part.start, part.stop, device=self.place.device)
            at = torch.zeros_like(rows, dtype=torch.int32)
            for _ in range(steps):
                at = self.children(table, rows, at)
            found[part] = numbers.index_select(0, at)
        return found

    def leaf_codes(self, forest: Forest) -> Any:
        """The leaf of each row in each tree, (n, trees) int8."""
        codes = [self.leaves(tree).to(self.torch.int8) for tree in forest.trees()]
        none = self.torch.zeros((self.n, 0), dtype=self.torch.int8, device=self.place.device)
        return self.torch.stack(codes, dim=1) if codes else none

    def forest_scores(self, forest: Forest, log_factor: Array, start: Any = None) -> Any:
        """Log scores (n, k) plus the log factors (k, leaves) of the leaves of the rows, tree by tree."""
        scores = self.torch.zeros(
            (len(log_factor), self.n), dtype=self.torch.float64, device=self.place.device
        )
        if start is not None:
            scores += placed(self.place, start, "float64").T
        factors, first = self.place.array(log_factor, "float64"), 0
        for tree, leaves in zip(forest.trees(), forest.leaves, strict=True):
            own = self.leaves(tree) + first
            for of_class, factor in zip(scores, factors, strict=True):
                of_class += factor.index_select(0, own)
            first += leaves
        return scores.T

    def sums(self, packed: Any, rows: Any, slots: Any, count: int) -> Any:
        """Sums of packed numbers (c, n) over rows (m,) by slot (m,) and cell, unpacked, (count, 2, cells, c)."""
        torch, c, device = self.torch, packed.shape[0], self.place.device
        copies = max(FEWEST_SUMS // max(count * MOST_CODES * WORD, 1), 1)
        total = torch.zeros((count, 2, int(self.first[-1]), c), dtype=torch.int64, device=device)
        # Of the rows of a part, each copy has an equal share.
        for part in range(0, len(rows), copies * PART):
            chosen = slice(part, part + copies * PART)
            sums = torch.zeros((c, MOST_CODES * copies * count, self.d), dtype=torch.int64, device=device)
            for own in row_ranges(len(rows[chosen]), 24 * WORD):
                self._add(sums, packed, rows[chosen][own], slots[chosen][own], copies)
            total += unpacked(sums.view(c, copies, count, -1)).index_select(2, self._places)
        return total

    def _add(self, sums: Any, packed: Any, rows: Any, slots: Any, copies: int) -> None:
        """Add packed numbers to sums (c, count * copies * codes, d)."""
        count = sums.shape[1] // (MOST_CODES * copies)
        copy = self.torch.arange(len(rows), device=rows.device) % copies
        begin = ((copy * count + slots) * MOST_CODES)[:, None]
        numbers = packed.index_select(1, rows)[:, :, None]
        for word, first in enumerate(range(0, self.d, WORD)):
            columns = min(self.d - first, WORD)
            codes = self.bytes[word].index_select(0, rows)[:, :columns] + begin
            for of_class, number in zip(sums, numbers, strict=True):
                of_word = of_class[:, first : first + columns]
                of_word.scatter_add_(0, codes, number.expand(-1, columns))

    @cached_property
    def _places(self) -> Any:
        """Places of the cells in sums by code and column, (cells,)."""
        codes = [np.arange(size) * self.d + j for j, size in enumerate(np.diff(self.first))]
        return self.place.array(np.concatenate([np.zeros(0, dtype=np.int64), *codes]), "int64")

    def best_splits(self, sums: Any, options: SplitOptions) -> list[FoundSplit]:
        """The best splits of nodes with sums (m, 2, cells, c), as `calibayes.kernels.tree_nodes.best_split` finds them."""
        if not self.d:
            return best_of_columns(np.zeros((len(sums), 0, 5)), options)
        each = max(MOST_SUMS // (self.d * MOST_CODES * sums.shape[3]), 1)
        parts = [self._searched(part, options) for part in sums.split(each)]
        return best_of_columns(to_numpy(self.torch.cat(parts)), options)

    def _searched(self, sums: Any, options: SplitOptions) -> Any:
        """The best split of each column, see `best_of_columns`."""
        torch, prior = self.torch, options.prior
        none = torch.zeros_like(sums[:, :, :1])
        by_code = torch.cat([sums, none], dim=2)[:, :, self._padded]  # (m, 2, d, codes, c)
        total, missing = by_code.sum(3, keepdim=True), by_code[:, :, :, :1]
        right = torch.cumsum(by_code[:, :, :, 1:], 3)  # the left sides if missing values go right
        left = torch.cat([right, right + missing], 3)
        gain = quality(left, prior) + quality(total - left, prior) - quality(total, prior)
        size, whole = left[:, 1].sum(-1).double(), total[:, 1].sum(-1).double()
        has_gaps = (missing != 0).any(-1).any(1)
        sides = torch.arange(left.shape[3], device=sums.device) >= right.shape[3]
        possible = (size >= options.least) & (whole - size >= options.least) & self._has_code
        gain = torch.where(possible & (has_gaps | ~sides), gain, 0.0)
        place = gain.argmax(-1, keepdim=True)
        gain, size = gain.gather(-1, place), size.gather(-1, place)
        is_left = torch.where(has_gaps, place >= right.shape[3], size >= whole - size)
        most = place % right.shape[3] + 1
        return torch.cat([gain, most.double(), is_left.double(), size, whole], -1)

    @cached_property
    def _padded(self) -> Any:
        """The cells of each column, filled up with a cell of zeros, (d, codes)."""
        sizes = np.diff(self.first)[:, None]
        codes = np.arange(sizes.max(initial=2))
        return self.place.array(np.where(codes < sizes, self.first[:-1, None] + codes, self.first[-1]))

    @cached_property
    def _has_code(self) -> Any:
        """Whether the column has the code that is the largest on the left, for both sides of missing values, (d, 2 codes)."""
        real = self._padded[:, 1:] < int(self.first[-1])
        return self.torch.cat([real, real], 1)


def quality(sums: Any, prior: float) -> Any:
    """Sum over classes, one after another, of residual**2 / (variance + prior), of sums (m, 2, d, codes, c)."""
    qualities = None
    for residual, variance in zip(*(part.unbind(-1) for part in sums.double().unbind(1)), strict=True):
        of_class = residual * residual / (variance + prior)
        qualities = of_class if qualities is None else qualities + of_class
    return qualities


def unpacked(sums: Any) -> Any:
    """Packed sums (c, copies, count, cells) as sums of residuals and variances over the copies, (count, 2, cells, c)."""
    variance = sums & (HALF - 1)
    parts = [part.sum(1).permute(1, 2, 0) for part in ((sums - variance) >> 32, variance)]
    return import_module("torch").stack(parts, dim=1)


def as_int64(place: Placement, words: Any) -> Any:
    """Words of 64 bits as int64 on the device."""
    if is_on_device(words):
        return words.view(import_module("torch").int64)
    return place.array(np.ascontiguousarray(words).view(np.int64))


def placed(place: Placement, values: Any, dtype: str) -> Any:
    """An array of any kind on the device, of a type given by name."""
    if not is_on_device(values):
        return place.array(values, dtype)
    return values.to(device=place.device, dtype=getattr(import_module("torch"), dtype))


# -- Growth ----------------------------------------------------------------------------------------------------------------


class TorchRows:
    """Rows that trees are grown on, by operations of PyTorch."""

    def __init__(self, place: Placement, rows: GivenRows, units: Units) -> None:
        self._columns = TorchColumns(place, rows.words, rows.first)
        self._place, self._torch, self._units = place, self._columns.torch, units
        self._scores = placed(place, rows.scores, "float64").T.contiguous().clone()
        self._labels = placed(place, rows.labels, "int64")
        self._weight = placed(place, rows.weight, "float64")
        self._rounding = placed(place, _widened(rows.fractions), "float64") * 2.0**-32
        self._is_training = placed(place, rows.training, "bool")
        self._held_out_weight = placed(place, rows.held_out_weight, "float64")
        self._held_out = self._torch.nonzero(self._held_out_weight)[:, 0]
        self._training = self._torch.nonzero(self._is_training)[:, 0]
        k, n = self._scores.shape
        self._packed = self._torch.empty((packed_classes(k), n), dtype=self._torch.int64, device=place.device)
        self._posterior = self._torch.empty_like(self._scores)
        """At the beginning of the round."""
        self._leaf = self._torch.zeros(n, dtype=self._torch.int32, device=place.device)

    def residual_sums(self) -> Array:
        return to_numpy(self._begin())[0]

    def split_sums(self, requests: Sequence[SplitRequest]) -> Array:
        return to_numpy(self._divide(requests))

    def first_split(self, options: SplitOptions) -> FoundSplit:
        sums = self._begin()
        self._options, self._sums = options, {0: sums[0]}
        return self._columns.best_splits(sums, options)[0]

    def child_splits(self, requests: Sequence[SplitRequest]) -> list[FoundSplit]:
        both = []
        for request, own in zip(requests, self._divide(requests), strict=True):
            both += [own, self._sums.pop(request.node).sub_(own)]
            self._sums[request.left], self._sums[request.right] = (
                both[-2:] if request.is_left_summed else both[:-3:-1]
            )
        found = self._columns.best_splits(self._torch.stack(both), self._options) if both else []
        return in_order(requests, found)

    def _begin(self) -> Any:
        """Begin a round. The sums over all training rows, (1, 2, cells, c)."""
        for rows in self._ranges():
            self._posterior[:, rows] = exact_posterior(self._torch, self._scores[:, rows]).posterior
            self._packed[:, rows] = self._residuals(rows)
        # The place of a node in a table is its number plus 1; place 0 is that of rows that are not trained on.
        self._node, self._largest = self._is_training.to(self._torch.int32), 0
        slots = self._torch.zeros_like(self._training, dtype=self._torch.int32)
        return self._summed(self._training, slots, 1)

    def _ranges(self) -> list[slice]:
        k, n = self._scores.shape
        return row_ranges(n, 8 * k * POSTERIOR_ARRAYS)

    def _residuals(self, rows: slice) -> Any:
        """Packed numbers of rows, (c, m), 0 for those that are not trained on."""
        torch, (k, c) = self._torch, (len(self._scores), len(self._packed))
        posterior = self._posterior[k - c :, rows]
        units, rounding = self._weight[rows] * self._units.packed, self._rounding[rows]
        spread = variances(posterior, k).mul_(units).add_(rounding).floor_()
        deviation = (posterior * units).add_(rounding).floor_()
        classes = torch.arange(k - c, k, device=self._place.device)[:, None]
        of_label = (units + rounding).floor_() * (self._labels[rows] == classes)
        packed = (of_label - deviation).to(torch.int64) * HALF + spread.to(torch.int64)
        return packed * self._is_training[rows]

    def _summed(self, rows: Any, slots: Any, count: int) -> Any:
        """Sums over rows by slot, (count, 2, cells, c)."""
        most = max(MOST_SUMS // max(int(self._columns.first[-1]), 1), 1)
        parts = []
        for begin in range(0, max(count, 1), most):
            own, mine = min(most, count - begin), (rows, slots)
            if count > most:
                chosen = self._torch.nonzero((slots >= begin) & (slots < begin + own))[:, 0]
                mine = rows[chosen], slots[chosen] - begin
            parts.append(self._columns.sums(self._packed, *mine, own))
        return self._torch.cat(parts)

    def _divide(self, requests: Sequence[SplitRequest]) -> Any:
        """Divide the rows of nodes. The sums that are asked for, (m, 2, cells, c)."""
        torch, columns = self._torch, self._columns
        self._largest = max([self._largest, *(max(request.left, request.right) for request in requests)])
        is_divided, nodes, slot = _tables(requests, self._largest)
        divided = torch.nonzero(self._place.array(is_divided, "bool").index_select(0, self._node))[:, 0]
        at = self._node.index_select(0, divided)
        moved = columns.children(columns.table(nodes), divided, at)
        self._node[divided] = moved
        slots = self._place.array(slot, "int32").index_select(0, moved)
        summed = torch.nonzero(slots >= 0)[:, 0]
        return self._summed(divided[summed], slots[summed], len(requests))

    def leaf_sums(self, tree: TreeNodes) -> LeafSums:
        torch, k = self._torch, len(self._scores)
        self._leaf, leaves = self._columns.leaves(tree), (len(tree.column) + 1) // 2
        copies = max(FEWEST_SUMS // (leaves * k), 1)
        residual, variance, mass = torch.zeros(
            (3, k, copies * leaves), dtype=torch.int64, device=self._place.device
        )
        for rows in self._ranges():
            own, labels = self._leaf[rows], self._labels[rows][None]
            own = own + torch.arange(len(own), dtype=torch.int32, device=own.device) % copies * leaves
            deviation, spread, of_label = self._leaf_units(rows)
            deviation.scatter_add_(0, labels, of_label[None] * self._is_training[rows])
            residual.index_add_(1, own, deviation)
            variance.index_add_(1, own, spread)
            mass.view(-1).index_add_(0, labels[0] * (copies * leaves) + own, of_label)
        sums = (array.view(k, copies, leaves).sum(1).T for array in (residual, variance, mass))
        return LeafSums(*map(to_numpy, sums))

    def _leaf_units(self, rows: slice) -> tuple[Any, Any, Any]:
        """Posteriors, negative, and variances of rows in units of leaf sums, 0 if not trained on, (k, m); weights, (m,)."""
        torch, posterior = self._torch, self._posterior[:, rows]
        units, is_training = self._weight[rows] * self._units.leaf, self._is_training[rows]
        spread = variances(posterior, len(posterior)).mul_(units).floor_().to(torch.int64) * is_training
        deviation = (posterior * units).floor_().to(torch.int64).neg_() * is_training
        return deviation, spread, units.floor().to(torch.int64)

    def move(self, factors: Array) -> int:
        for scores, factor in zip(self._scores, self._place.array(factors.T, "float64"), strict=True):
            scores += factor.index_select(0, self._leaf)
        return self.loss()

    def loss(self) -> int:
        return sum(int(loss) for loss in self._held_out_losses())

    def _held_out_losses(self) -> Iterator[Any]:
        """The held-out losses of ranges of rows."""
        torch = self._torch
        for part in row_ranges(len(self._held_out), 8 * len(self._scores) * POSTERIOR_ARRAYS):
            rows = self._held_out[part]
            _, shifted, total = exact_posterior(torch, self._scores.index_select(1, rows))
            losses = exact_log(torch, total) - shifted.gather(0, self._labels[rows][None])[0]
            units = self._held_out_weight[rows] * self._units.loss
            yield (losses.clamp_(max=LARGEST_LOSS) * units).add_(0.5).floor_().to(torch.int64).sum()

    def log_scores(self) -> Array:
        return to_numpy(self._scores.T.contiguous())


def _widened(fractions: Any) -> Any:
    """Whole numbers of 32 bits in a type that every library has."""
    return fractions if is_on_device(fractions) else fractions.astype(np.int64)


def _tables(requests: Sequence[SplitRequest], largest: int) -> tuple[Array, NodeTable, Array]:
    """By the place of a node, its number plus 1: whether it is divided, its children, and the number of a summed child."""
    size = largest + 2
    is_divided, slot = np.zeros(size, dtype=bool), np.full(size, -1)
    nodes = np.zeros((5, size), dtype=np.int64)
    for number, (node, split, left, right, is_left_summed) in enumerate(requests):
        is_divided[node + 1] = True
        nodes[:, node + 1] = split.column, split.most, split.missing_left, left + 1, right + 1
        slot[(left if is_left_summed else right) + 1] = number
    return is_divided, NodeTable(*nodes), slot
