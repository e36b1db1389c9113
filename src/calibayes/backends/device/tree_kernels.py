"""Rows that trees are grown on, on a GPU of NVIDIA: the passes of `calibayes.backends.device.tree_rows` by compiled kernels.

CuPy compiles `tree_kernels.cu` and holds the arrays. The rows of a node are a range of row numbers; those of its children
share it. Sums of residuals and of variances are added in the shared memory of the multiprocessors, in 32 bits each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from calibayes.backends.device import tree_rows
from calibayes.backends.device.array import Placement, is_on_device
from calibayes.backends.device.tree_rows import (
    FoundSplit,
    GivenRows,
    best_of_columns,
    in_order,
)
from calibayes.core.protocols import Array
from calibayes.kernels import posterior as exact
from calibayes.kernels.forests import MOST_LEAVES, Forest, SplitRequest, TreeNodes, forest_of
from calibayes.kernels.tree_nodes import (
    HALF,
    LARGEST_LOSS,
    MOST_CODES,
    WORD,
    LeafSums,
    SplitOptions,
    Units,
    packed_classes,
)

THREADS, SUMMING, DIVIDING = 256, 512, 256
"""Threads of a block: of a pass over all rows, of sums, of a division."""
STRETCH = 32 * DIVIDING
"""Rows that a block divides."""
FEWEST_ROWS = 4096
"""A block sums up more rows, if there are so many."""
BLOCKS = 8
"""Blocks of sums for each multiprocessor."""
SHARED_BYTES = 32_768
"""Shared memory of a block for sums over leaves."""
USUAL_SHARED_BYTES = 40_000
"""More shared memory of a block has to be asked for."""
MOST_COPIES = 16
"""Largest number of sums that neighboring threads add to instead of one."""
MOST_ROWS = 2**31 - 1
WIDTH = 3
"""Largest number of words of a row that a block reads: sums of their columns fit into its shared memory."""
SAMPLED = 2**14
"""Rows of which the most frequent code of each column is taken."""
LEFT, RIGHT, BOTH = range(3)
"""Which rows of a request are summed: those of a child, or all rows of a node that is not divided."""


def constants() -> dict[str, Any]:
    """The constants of the source, by name."""
    names = ("LOG2_HIGH", "LOG2_LOW", "LOG2_E", "ROUND", "LEAST_EXPONENT", "LOG2", "ROOT_OF_HALF")
    series = {
        name: "{" + ", ".join(repr(float(value)) for value in getattr(exact, name)) + "}"
        for name in ("EXP_SERIES", "LOG_SERIES")
    }
    given = {"HALF": HALF, "LARGEST_LOSS": LARGEST_LOSS, "TWO_TO_MINUS_32": 2.0**-32}
    sizes = {"STRETCH": STRETCH, "DIVIDING": DIVIDING, "SUMMING": SUMMING, "WIDTH": WIDTH}
    sizes["MOST_NODES"] = 2 * MOST_LEAVES - 1
    return {name: getattr(exact, name) for name in names} | series | given | sizes


def source() -> str:
    """The source of the kernels, after the definitions of its constants."""
    defined = "".join(f"#define {name} {value}\n" for name, value in constants().items())
    return defined + Path(__file__).with_suffix(".cu").read_text(encoding="utf-8")


@cache
def module() -> Any:
    """The compiled kernels."""
    return import_module("cupy").RawModule(code=source(), options=("--std=c++17", "--fmad=false"))


@cache
def kernel(name: str) -> Any:
    """A compiled kernel."""
    return module().get_function(name)


class Gpu:
    """A GPU, its arrays and its kernels."""

    def __init__(self, place: Placement) -> None:
        self.cupy = import_module("cupy")
        number = getattr(place.device, "index", getattr(place.device, "id", None))
        self.device = self.cupy.cuda.Device(number)
        self.multiprocessors = int(self.device.attributes["MultiProcessorCount"])

    def array(self, values: Any, dtype: Any = None) -> Any:
        """An array of any kind on the GPU, contiguous."""
        cupy = self.cupy
        with self.device:
            if is_on_device(values) and not isinstance(values, cupy.ndarray):
                values = cupy.from_dlpack(_exportable(values))
            return cupy.ascontiguousarray(cupy.asarray(values), dtype)

    def transposed(self, values: Any) -> Any:
        """A copy of numbers (n, k), (k, n)."""
        given = self.array(values, np.float64)
        with self.device:
            return given.T.copy(order="C")

    def zeros(self, shape: Any, dtype: Any) -> Any:
        with self.device:
            return self.cupy.zeros(shape, dtype)

    def run(self, name: str, grid: tuple[int, ...], threads: int, *arguments: Any, shared: int = 0) -> None:
        """Start a kernel. The arguments are arrays and NumPy's numbers."""
        with self.device:
            if shared > USUAL_SHARED_BYTES:
                kernel(name).max_dynamic_shared_size_bytes = shared
            kernel(name)(grid, (threads,), arguments, shared_mem=shared)

    def over_rows(self, name: str, n: int, *arguments: Any, parts: int = 1, shared: int = 0) -> None:
        """Start a kernel of threads that do row after row."""
        blocks = max(min(-(-n // THREADS), 8 * self.multiprocessors), 1)
        self.run(name, (blocks, parts), THREADS, *arguments, shared=shared)


def _exportable(values: Any) -> Any:
    """An array of PyTorch in a type that is exchanged by all versions: signed words, bytes instead of booleans."""
    torch = import_module("torch")
    same = {torch.uint64: torch.int64, torch.uint32: torch.int32, torch.bool: torch.uint8}
    return values.view(same.get(values.dtype, values.dtype))


class CompiledColumns:
    """Byte columns on a GPU."""

    def __init__(self, place: Placement, words: Any, first: Array) -> None:
        self.gpu, self.first = Gpu(place), first
        given = self.gpu.array(words).view(np.uint64)
        count, self.n = (int(size) for size in given.shape)
        if self.n > MOST_ROWS:
            raise ValueError(f"a GPU holds at most {MOST_ROWS} rows, got {self.n}")
        self.groups = -(-count // WIDTH)
        self.width = max(-(-count // max(self.groups, 1)), 1)
        self.words = self.gpu.zeros((self.groups, self.n, self.width), np.uint64)
        with self.gpu.device:
            for word in range(count):
                self.words[word // self.width, :, word % self.width] = given[word]
        sample = given[:, :: max(self.n // SAMPLED, 1)].get()
        self.common = self.gpu.array(_frequent(sample, self.groups * self.width), np.uint64)
        self.cells = self.gpu.array(first, np.int64)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The arguments of kernels that describe the words."""
        return self.words, np.int64(self.n), np.int32(self.width)

    def place(self, columns: Any) -> tuple[Any, ...]:
        """Group, word in the group, and bits before the byte of columns."""
        group, rest = np.divmod(columns, self.width * WORD)
        return group, rest // WORD, 8 * (rest % WORD)

    def nodes(self, forest: Forest) -> Any:
        """The nodes of trees as the kernels read them, (nodes, 7) int32."""
        group, *place = self.place(np.maximum(forest.column, 0))
        group = np.where(forest.column < 0, -1, group)
        nodes = (group, *place, forest.most, forest.missing_left, *forest.children.T)
        return self.gpu.array(np.stack([np.asarray(part, dtype=np.int32) for part in nodes], axis=1))

    def leaf_codes(self, forest: Forest) -> Any:
        """The leaf of each row in each tree, (n, trees) int8."""
        codes = self.gpu.zeros((self.n, forest.count), np.int8)
        self.gpu.over_rows("leaf_codes", self.n, *self._trees(forest), codes)
        return codes

    def forest_scores(self, forest: Forest, log_factor: Array, start: Any = None) -> Any:
        """Log scores (n, k) plus the log factors (k, leaves) of the leaves of the rows, tree by tree."""
        k = len(log_factor)
        scores = self.gpu.zeros((k, self.n), np.float64) if start is None else self.gpu.transposed(start)
        factors = self.gpu.array(np.ascontiguousarray(log_factor.T), np.float64)
        parts = -(-k // WORD)
        self.gpu.over_rows(
            "forest_scores", self.n, *self._trees(forest), factors, np.int32(k), scores, parts=parts
        )
        return scores.T

    def _trees(self, forest: Forest) -> tuple[Any, ...]:
        """The arguments of kernels that describe rows and trees."""
        first = self.gpu.array(forest.first, np.int64)
        return *self.arguments, self.nodes(forest), first, np.int32(forest.count)


def _frequent(sample: Array, count: int) -> Array:
    """The most frequent code of each column of words (words, m), in words; as many words, filled up with zeros."""
    frequent = np.zeros(count, dtype=np.uint64)
    for place, word in enumerate(sample):
        for shift in range(0, 8 * WORD, 8):
            codes = (word >> np.uint64(shift) & np.uint64(255)).astype(np.int64)
            frequent[place] |= np.uint64(np.bincount(codes, minlength=1).argmax() << shift)
    return frequent


class _Range(NamedTuple):
    """The rows of a node: a range of one of the two arrays of row numbers."""

    begin: int
    end: int
    source: int


class CompiledRows:
    """Rows that trees are grown on, by compiled kernels."""

    def __init__(self, place: Placement, rows: GivenRows, units: Units) -> None:
        self._columns = CompiledColumns(place, rows.words, rows.first)
        self._gpu, self._n, self._units = self._columns.gpu, self._columns.n, units
        array, k = self._gpu.array, rows.scores.shape[1]
        self._scores = self._gpu.transposed(rows.scores)
        self._labels, self._weight = array(rows.labels, np.int32), array(rows.weight, np.float64)
        self._fractions = array(rows.fractions, np.uint32)
        self._is_training = array(rows.training, np.uint8)
        self._held_out_weight = array(rows.held_out_weight, np.float64)
        with self._gpu.device:
            self._training = self._gpu.cupy.flatnonzero(self._is_training).astype(np.int32)
        self._packed = self._gpu.zeros((packed_classes(k), self._n), np.int64)
        self._rows = self._gpu.zeros((2, len(self._training)), np.int32)
        self._leaf = self._gpu.zeros(self._n, np.uint8)

    @property
    def _k(self) -> np.int32:
        return np.int32(len(self._scores))

    def residual_sums(self) -> Array:
        return np.asarray(self._begin().get()[0])

    def split_sums(self, requests: Sequence[SplitRequest]) -> Array:
        sums, ranges, counts = self._divide(requests)
        self._note(requests, ranges, counts)
        return np.asarray(sums.get())

    def first_split(self, options: SplitOptions) -> FoundSplit:
        self._options, self._sums = options, {0: (self._begin(), 0)}
        return self._best_splits(self._sums[0][0], np.zeros(1, dtype=np.uint64))[0]

    def child_splits(self, requests: Sequence[SplitRequest]) -> list[FoundSplit]:
        sums, ranges, counts = self._divide(requests)
        parents = [self._sums.pop(request.node) for request in requests]
        found = self._best_splits(sums, np.array([_address(*parent) for parent in parents], dtype=np.uint64))
        self._note(requests, ranges, counts)
        for place, (request, parent) in enumerate(zip(requests, parents, strict=True)):
            children = (sums, place), parent
            self._sums[request.left], self._sums[request.right] = (
                children if request.is_left_summed else children[::-1]
            )
        return in_order(requests, found)

    def _best_splits(self, sums: Any, parents: Array) -> list[FoundSplit]:
        """The splits of the summed children and of their siblings, alternately."""
        gpu, d, (prior, least) = self._gpu, len(self._columns.first) - 1, self._options[2:]
        found = gpu.zeros((len(sums), 2, d, 5), np.float64)
        if found.size:
            cells = self._columns.cells, np.int32(d), np.int32(len(self._packed))
            limits = np.float64(prior), np.float64(least)
            arguments = gpu.array(parents, np.uint64), sums, *cells, *limits, found
            gpu.run("best_splits", (d, len(sums)), MOST_CODES, *arguments)
        return best_of_columns(found.get().reshape(2 * len(sums), d, 5), self._options)

    def _begin(self) -> Any:
        """Begin a round. The sums over all training rows, (1, 2, cells, c)."""
        given = self._scores, self._labels, self._weight, self._fractions, self._is_training
        scale = np.float64(self._units.packed)
        self._gpu.over_rows(
            "packed_residuals", self._n, *given, np.int64(self._n), self._k, scale, self._packed
        )
        with self._gpu.device:
            self._rows[0] = self._training
        self._nodes = {0: _Range(0, len(self._training), 0)}
        whole = np.array([[0, len(self._training), *[0] * 6, BOTH]], dtype=np.int64)
        counts = self._gpu.zeros((1, 2), np.int32)
        return self._summed(self._gpu.array(whole, np.int64), counts, [len(self._training)])

    def _divide(self, requests: Sequence[SplitRequest]) -> tuple[Any, list[_Range], Any]:
        """Divide the rows of nodes. Sums (m, 2, cells, c), the ranges of the nodes, the numbers of rows of their children."""
        gpu, ranges = self._gpu, [self._nodes.pop(request.node) for request in requests]
        table = [self._described(*pair) for pair in zip(requests, ranges, strict=True)]
        described = gpu.array(np.array(table, dtype=np.int64).reshape(len(ranges), 9))
        sizes, counts = [end - begin for begin, end, _ in ranges], gpu.zeros((len(ranges), 2), np.int32)
        blocks = _blocks([-(-size // STRETCH) for size in sizes])
        if len(blocks):
            own = self._rows, np.int64(self._rows.shape[1])
            arguments = *self._columns.arguments, *own, described, gpu.array(blocks, np.int32), counts
            gpu.run("divide", (len(blocks),), DIVIDING, *arguments)
        return self._summed(described, counts, sizes), ranges, counts

    def _note(self, requests: Sequence[SplitRequest], ranges: Sequence[_Range], counts: Any) -> None:
        """Note the rows of the children of nodes."""
        for request, (begin, end, source), lefts in zip(requests, ranges, counts.get()[:, 0], strict=True):
            middle = begin + int(lefts)
            self._nodes[request.left] = _Range(begin, middle, 1 - source)
            self._nodes[request.right] = _Range(middle, end, 1 - source)

    def _described(self, request: SplitRequest, rows: _Range) -> tuple[int, ...]:
        """A request as the kernels read it."""
        column, most, missing_left = request.split[1:]
        summed = LEFT if request.is_left_summed else RIGHT
        return *rows, *self._columns.place(column), most, int(missing_left), summed

    def _summed(self, described: Any, counts: Any, sizes: Sequence[int]) -> Any:
        """Sums over the rows that requests, of nodes of these sizes, ask for, (m, 2, cells, c)."""
        gpu, columns, c = self._gpu, self._columns, len(self._packed)
        sums = gpu.zeros((len(sizes), 2, int(columns.first[-1]), c), np.int64)
        each = max(sum(sizes) * columns.groups * c // (BLOCKS * gpu.multiprocessors), FEWEST_ROWS)
        blocks = _blocks([-(-size // min(each, tree_rows.PART - SUMMING)) for size in sizes])
        if len(blocks) and columns.groups:
            rows = self._packed, self._rows, np.int64(self._rows.shape[1])
            requests = described, gpu.array(blocks, np.int32), counts
            cells = columns.cells, np.int32(len(columns.first) - 1)
            arguments = *columns.arguments, columns.common, *rows, *requests, *cells, sums
            shared = 8 * MOST_CODES * WORD * columns.width
            gpu.run("node_sums", (len(blocks), columns.groups, c), SUMMING, *arguments, shared=shared)
        return sums

    def leaf_sums(self, tree: TreeNodes) -> LeafSums:
        gpu, k, count = self._gpu, int(self._k), len(tree.column)
        leaves = (count + 1) // 2
        classes = max(min(k, SHARED_BYTES // (24 * leaves)), 1)
        copies = max(min(SHARED_BYTES // (24 * leaves * classes), MOST_COPIES), 1)
        sums = gpu.zeros((3, leaves, k), np.int64)
        nodes = self._columns.nodes(forest_of([tree])), np.int32(count)
        given = self._scores, self._k, self._labels, self._weight, self._is_training
        sizes = np.float64(self._units.leaf), np.int32(classes), np.int32(copies)
        shared, parts = 24 * leaves * classes * copies, -(-k // classes)
        arguments = *self._columns.arguments, *nodes, *given, *sizes, self._leaf, sums
        gpu.over_rows("leaf_sums", self._n, *arguments, parts=parts, shared=shared)
        return LeafSums(*sums.get())

    def move(self, factors: Array) -> int:
        return self._moved(self._gpu.array(factors, np.float64))

    def loss(self) -> int:
        return self._moved(np.uint64(0))

    def _moved(self, factors: Any) -> int:
        """Add log factors, at an address or none, to the log scores. The held-out loss."""
        loss, scale = self._gpu.zeros(1, np.int64), np.float64(self._units.loss)
        moved = self._leaf, factors, self._labels, self._held_out_weight
        self._gpu.over_rows("move", self._n, self._scores, np.int64(self._n), self._k, *moved, scale, loss)
        return int(loss.get()[0])

    def log_scores(self) -> Array:
        return np.asarray(self._scores.T.get(order="C"))


def _address(sums: Any, place: int) -> int:
    """Where the sums of a node are in the memory of the GPU."""
    return int(sums.data.ptr) + place * int(sums.strides[0])


def _blocks(parts: Sequence[int]) -> Array:
    """Of each block the number of its request, its part of the rows and the number of parts, (blocks, 3)."""
    each = np.array(parts, dtype=np.int64)
    request, last = np.repeat(np.arange(len(each)), each), np.cumsum(each)
    part = np.arange(len(request)) - np.repeat(last - each, each)
    return np.stack([request, part, np.repeat(each, each)], axis=1)
