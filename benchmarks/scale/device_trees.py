"""Rounds of growing trees on a GPU: `python -m benchmarks.scale.device_trees` prints a table; `--quick` uses few rows on the CPU.

Needs PyTorch. With CuPy, the compiled kernels are measured beside the operations of PyTorch. Rows are random bytes whose
classes depend on sums and products of columns. A tenth of the rows is held out.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from array_api_compat import array_namespace

from calibayes.backends.device.array import Placement
from calibayes.backends.device.tree_rows import (
    FoundSplit,
    GivenRows,
    Scales,
    SplitRequest,
    TorchColumns,
    TorchRows,
    is_compiled,
)
from calibayes.kernels import tree_nodes
from calibayes.kernels.forests import Forest, TreeNodes, forest_of
from calibayes.kernels.tree_growth import GrowthSettings, full_steps
from calibayes.kernels.tree_nodes import LeafSums, Split, SplitOptions, first_cells

SIZES = "10000000x24x2", "10000000x24x10"
CODES = 255
AHEAD = 0.2
"""Nodes whose gain is at least so large a share of that of the next one are divided with it."""
STEPS = ("first_split", "child_splits", "leaf_sums", "move")


# -- Rows


def random_rows(n: int, d: int, k: int, device: torch.device, seed: int = 0) -> GivenRows:
    """Random bytes in d columns, and classes that depend on pairs of columns."""
    generator = torch.Generator(device=device).manual_seed(seed)
    place = {"generator": generator, "device": device}
    codes = torch.randint(0, CODES, (n, -(-d // 8) * 8), dtype=torch.uint8, **place)
    codes[:, d:] = 0
    scores = torch.stack([class_score(codes, c, d) for c in range(k)])
    scores -= torch.log(-torch.log(torch.rand(k, n, **place)))
    words = codes.view(torch.int64).T.contiguous()
    training = torch.rand(n, **place) >= 0.1
    fractions = torch.randint(0, 2**32, (n,), **place)
    weight, start = (
        torch.ones(n, dtype=torch.float64, device=device),
        torch.full((1, k), 1 / k, dtype=torch.float64),
    )
    begin = start.log().to(device).expand(n, k)
    first = first_cells(np.full(d, CODES))
    return GivenRows(words, first, scores.argmax(0), weight, begin, fractions, training, weight * ~training)


def class_score(codes: Any, c: int, d: int) -> Any:
    """A sum of products and of steps of columns, (n,)."""
    own = (codes[:, [(c + j) % d for j in range(6)]].float() - CODES / 2) / CODES
    return 3.0 * own[:, 0] * own[:, 1] * 4 + 2.0 * (own[:, 2] > 0) * own[:, 3] + own[:, 4] - own[:, 5]


def scales_of(n: int) -> Scales:
    """Units of rows of weight one."""
    scale = tree_nodes.scale_of(np.ones(n))
    return Scales(scale, scale * tree_nodes.FINER, scale * tree_nodes.LOSS_UNITS)


# -- Growth of one tree: nodes are searched some levels ahead, and the tree is that of one split at a time


@dataclass
class Node:
    """A node whose best split is known."""

    number: int
    found: FoundSplit
    children: tuple[Node, Node] | None = None

    @property
    def gain(self) -> float:
        return self.found.split.gain


@dataclass
class Search:
    """The search for the splits of a tree."""

    rows: Any
    options: SplitOptions
    passes: int = 0
    count: int = 1

    def divide(self, parents: list[Node]) -> None:
        """Find the children of nodes, in one pass over their rows."""
        numbers = range(self.count, self.count + 2 * len(parents), 2)
        requests = [
            SplitRequest(node.number, node.found.split, left, left + 1, node.found.is_left_smaller)
            for node, left in zip(parents, numbers, strict=True)
        ]
        found = self.rows.child_splits(requests)
        for parent, left, *splits in zip(parents, numbers, found[::2], found[1::2], strict=True):
            parent.children = Node(left, splits[0]), Node(left + 1, splits[1])
        self.count += 2 * len(parents)
        self.passes += 1


def grown(search: Search, leaves: int) -> TreeNodes:
    """The tree that has the leaf of the largest gain split, until it has so many leaves."""
    root = Node(0, search.rows.first_split(search.options))
    while True:
        tree, unknown = replayed(root, leaves)
        if not unknown:
            return tree
        search.divide(unknown)


def replayed(root: Node, leaves: int) -> tuple[TreeNodes, list[Node]]:
    """The tree as far as nodes are known, and the nodes whose children are to be found next.

    These are the nodes that would be split if their unknown children gained nothing, without those that gain far less than
    the first of them.
    """
    nodes, frontier, unknown = [root], {0}, []
    splits: list[tuple[int, int]] = []  # a node, and its first child
    while frontier and len(splits) + len(unknown) + 1 < leaves:
        place = min(frontier, key=lambda place: (-nodes[place].gain, place))
        node = nodes[place]
        least = AHEAD * unknown[0].gain if unknown else 0.0
        if node.gain <= least:
            break
        frontier.remove(place)
        if node.children is None:
            unknown.append(node)
        else:
            splits.append((place, len(nodes)))
            frontier |= {len(nodes), len(nodes) + 1}
            nodes += node.children
    return tree_of([node.found.split for node in nodes], splits), unknown


def tree_of(by_node: list[Split], splits: list[tuple[int, int]]) -> TreeNodes:
    """The tree of these splits of nodes, whose leaves are numbered in order."""
    count = len(by_node)
    tree = TreeNodes(
        *(
            np.full(count, value, dtype)
            for value, dtype in ((-1, np.int32), (0, np.uint8), (False, np.bool_))
        ),
        np.zeros((count, 2), dtype=np.int32),
    )
    for place, child in splits:
        _, tree.column[place], tree.most[place], tree.missing_left[place] = by_node[place]
        tree.children[place] = child, child + 1
    tree.children[tree.column < 0] = np.arange((count + 1) // 2)[:, None]
    return tree


# -- Rounds


@dataclass
class Timed:
    """Rows on a device, and the seconds of each of their passes."""

    rows: Any
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.rows, name)

        def timed(*arguments: Any) -> Any:
            began = time.perf_counter()
            result = method(*arguments)
            self.seconds[name] += time.perf_counter() - began
            return result

        return timed


@dataclass
class Rounds:
    """Trees grown on rows, round by round."""

    rows: Any
    first: Any
    k: int
    scales: Scales
    settings: GrowthSettings
    trees: list[TreeNodes] = field(default_factory=list)
    factors: list[Any] = field(default_factory=list)
    losses: list[int] = field(default_factory=list)
    passes: int = 0

    def advance(self) -> None:
        prior, least = (
            self.settings.prior * self.scales.packed,
            self.settings.least_variance * self.scales.packed,
        )
        d = len(self.first) - 1
        options = SplitOptions(
            np.arange(d, dtype=np.int32),
            np.zeros(d, dtype=np.int8),
            prior,
            least * tree_nodes.packed_classes(self.k) / self.k,
        )
        search = Search(self.rows, options)
        tree = grown(search, self.settings.leaves)
        sums = self.rows.leaf_sums(tree)
        known = LeafSums(*(part / self.scales.leaves for part in sums))
        self.trees.append(tree)
        self.factors.append(self.settings.rate * full_steps(known, self.settings.prior))
        self.losses.append(self.rows.move(self.factors[-1]))
        self.passes += search.passes

    def digest(self) -> str:
        """Of the trees, their log factors and the losses."""
        arrays = [part for tree in self.trees for part in tree] + self.factors + [np.array(self.losses)]
        return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]

    def forest(self) -> tuple[Forest, Any]:
        """The trees, and their log factors (k, leaves)."""
        return forest_of(self.trees), np.concatenate(self.factors).T


def kinds(place: Placement) -> dict[str, tuple[Any, Any]]:
    """The kinds of rows and columns for a device, by name."""
    found: dict[str, tuple[Any, Any]] = {"PyTorch": (TorchRows, TorchColumns)}
    if is_compiled(place):
        from calibayes.backends.device.tree_kernels import CompiledColumns, CompiledRows

        found["compiled"] = CompiledRows, CompiledColumns
    return found


def synchronize(device: torch.device) -> float:
    """The time when the device has nothing left to do."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def measured(
    name: str, make: Any, given: GivenRows, k: int, settings: GrowthSettings, device: torch.device
) -> Rounds:
    """Rounds of one kind of rows. Prints a row of the table."""
    place = Placement(array_namespace(given.weight), device)
    n, scales = len(given.weight), scales_of(len(given.weight))
    began = synchronize(device)
    rows = Timed(make[0](place, given, scales))
    moved = synchronize(device) - began
    rounds = Rounds(rows, given.first, k, scales, settings)
    rounds.advance()  # kernels are compiled at first use
    seconds, rows.seconds = {"first round": synchronize(device) - began - moved}, defaultdict(float)
    began = synchronize(device)
    for _ in range(settings.trees):
        rounds.advance()
    total = synchronize(device) - began
    seconds |= {step: rows.seconds[step] for step in STEPS}
    seconds["host"] = total - sum(rows.seconds.values())
    loss = rounds.losses[-1] / scales.losses / float(given.held_out_weight.sum())
    parts = ", ".join(f"{step} {second:.3f}" for step, second in seconds.items())
    passes = rounds.passes / len(rounds.trees)
    print(
        f"| {n}x{len(given.first) - 1}x{k} | {name} | {total:.2f} s | {parts}; copied in {moved:.2f} s, "
        f"{passes:.1f} divisions a tree, loss {loss:.6f}, {rounds.digest()} |",
        flush=True,
    )
    predicted(make[1], place, given, rounds)
    return rounds


def predicted(make: Any, place: Placement, given: GivenRows, rounds: Rounds) -> None:
    """Print the time of predictions of the trees, and whether the scores are those of growth."""
    columns, (forest, factors) = make(place, given.words, given.first), rounds.forest()
    columns.forest_scores(forest, factors, given.scores)
    began = synchronize(place.device)
    scores = columns.forest_scores(forest, factors, given.scores)
    seconds = synchronize(place.device) - began
    same = (
        np.asarray(scores.get() if hasattr(scores, "get") else scores.cpu()).tobytes()
        == rounds.rows.log_scores().tobytes()
    )
    print(
        f"| prediction by {forest.count} trees | | {seconds:.3f} s | scores are those of growth: {same} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sizes", nargs="*", default=SIZES, help="rows x columns x classes")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--only", help="the kind of rows: PyTorch or compiled")
    parser.add_argument("--quick", action="store_true", help="few rows on the CPU")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(device="cpu", sizes=["20000x10x2", "20000x10x3"], trees=5)
        options = parser.parse_args()
    device = torch.device(options.device)
    hardware = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{hardware}, PyTorch {torch.__version__}, {options.trees} trees of 31 leaves")
    print("\n| rows x columns x classes | kind | rounds | notes |\n| --- | --- | ---: | --- |", flush=True)
    for size in options.sizes:
        n, d, k = (int(part) for part in size.split("x"))
        given = random_rows(n, d, k, device)
        place = Placement(array_namespace(given.weight), device)
        for name, make in kinds(place).items():
            if options.only in (None, name):
                measured(name, make, given, k, GrowthSettings(trees=options.trees), device)


if __name__ == "__main__":
    main()
