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

from calibayes.backends.device.array import Placement, to_numpy
from calibayes.backends.device.growth import DeviceFold
from calibayes.backends.device.tree_rows import GivenRows, TorchColumns, TorchRows, is_compiled
from calibayes.kernels import tree_nodes
from calibayes.kernels.dispatch import reused_threads
from calibayes.kernels.forests import forest_of
from calibayes.kernels.growth_rows import BlockFold, GrowthRows
from calibayes.kernels.tree_growth import Growth, GrowthSettings
from calibayes.kernels.tree_nodes import SplitOptions, Units, first_cells

SIZES = "10000000x24x2", "10000000x24x10"
CODES = 255
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


def units_of(n: int) -> Units:
    """Units of n rows of weight one."""
    return tree_nodes.units_of(1.0, tree_nodes.in_parts(np.ones(1), 1.0) * n)


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


def growth_of(rows: Any, given: GivenRows, units: Units, settings: GrowthSettings, k: int) -> Growth:
    """Growth of trees on rows, of whatever kind."""
    d, classes = len(given.first) - 1, tree_nodes.packed_classes(k)
    limits = settings.prior * units.packed, settings.least_variance * units.packed * classes / k
    options = SplitOptions(np.arange(d, dtype=np.int32), np.zeros(d, dtype=np.int8), *limits)
    return Growth(rows, units, settings, options, k)


def digest(growth: Growth) -> str:
    """Of the trees, their log factors and masses, and the last loss."""
    arrays = [part for tree, *others in growth.trees for part in (*tree, *others)] + [np.array(growth.loss)]
    return hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16]


def on_host(given: GivenRows) -> GrowthRows:
    """The rows in the memory of the host, as one fold."""
    words, labels, fractions, training = (
        array.cpu().numpy() for array in (given.words, given.labels, given.fractions, given.training)
    )
    start, codes = given.scores[0].cpu().numpy(), labels.astype(np.int32)
    rows = words.view(np.uint64), given.first, codes, np.ones(1), start
    return GrowthRows(*rows, fractions.astype(np.uint32), ~training[None])


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


def measured(name: str, make: Any, given: GivenRows, k: int, trees: int, device: torch.device) -> None:
    """Rounds of one kind of rows. Prints rows of the table."""
    place = Placement(array_namespace(given.weight), device)
    n, units = len(given.weight), units_of(len(given.weight))
    began = synchronize(device)
    rows = Timed(make[0](place, given, units))
    moved = synchronize(device) - began
    growth = growth_of(DeviceFold(rows, given.first), given, units, GrowthSettings(), k)
    growth.advance()  # kernels are compiled at first use
    seconds, rows.seconds = {"first round": synchronize(device) - began - moved}, defaultdict(float)
    began = synchronize(device)
    for _ in range(trees - 1):
        growth.advance()
    total = synchronize(device) - began
    seconds |= {step: rows.seconds[step] for step in STEPS}
    seconds["host"] = total - sum(rows.seconds.values())
    parts = ", ".join(f"{step} {second:.3f}" for step, second in seconds.items())
    loss = growth.loss / units.loss / float(given.held_out_weight.sum())
    size = f"{n}x{len(given.first) - 1}x{k}"
    notes = f"{parts}; copied in {moved:.2f} s, loss {loss:.6f}, {digest(growth)}"
    print(f"| {size} | {name} | {total + seconds['first round']:.2f} s | {notes} |", flush=True)
    predicted(make[1], place, given, growth)


def measured_on_host(given: GivenRows, k: int, trees: int, threads: int) -> None:
    """The same rounds by native code on the host. Prints a row of the table."""
    units, rows = units_of(len(given.weight)), on_host(given)
    with reused_threads(threads):
        growth = growth_of(BlockFold(rows, 0, units), given, units, GrowthSettings(), k)
        began = time.perf_counter()
        for _ in range(trees):
            growth.advance()
        total = time.perf_counter() - began
    size = f"{len(given.weight)}x{len(given.first) - 1}x{k}"
    print(
        f"| {size} | host, {threads} threads | {total:.2f} s | {trees} trees, {digest(growth)} |", flush=True
    )


def predicted(make: Any, place: Placement, given: GivenRows, growth: Growth) -> None:
    """Print the time of predictions of the trees, and whether the scores are those of growth."""
    columns, forest = make(place, given.words, given.first), forest_of([added.tree for added in growth.trees])
    factors = np.concatenate([added.log_factor for added in growth.trees]).T
    columns.forest_scores(forest, factors, given.scores)
    began = synchronize(place.device)
    scores = columns.forest_scores(forest, factors, given.scores)
    seconds = synchronize(place.device) - began
    same = to_numpy(scores).tobytes() == growth.rows.rows.log_scores().tobytes()
    note = f"scores are those of growth: {same}"
    print(f"| prediction by {forest.count} trees | | {seconds:.3f} s | {note} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--sizes", nargs="*", default=SIZES, help="rows x columns x classes")
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--only", help="the kind of rows: PyTorch or compiled")
    parser.add_argument("--host", type=int, default=0, help="threads of the host that grow the same trees")
    parser.add_argument("--quick", action="store_true", help="few rows on the CPU")
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(device="cpu", sizes=["20000x10x2", "20000x10x3"], trees=5, host=1)
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
                measured(name, make, given, k, options.trees, device)
        if options.host:
            measured_on_host(given, k, options.trees, options.host)


if __name__ == "__main__":
    main()
