"""Small races whose ratios must not fall, on one thread.

A busy machine disturbs the clock, and waiting threads of libraries the time of the processor: a race is too slow where
both ratios say so, twice.
"""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from calibayes.kernels.dispatch import native_kernels
from races import counts, data, gaussians, page

FLOORS = {
    "QDA, predict:": 1.2,
    "QDA, predict of float32:": 1.6,
    "QDA, one pass of RC": 0.45,
    "LDA, fit:": 0.8,
    "LDA by RC": 0.8,
    "naive Bayes over levels, fit:": 1.5,
    "naive Bayes over levels, predict:": 4.0,
    "naive Bayes over levels, one pass of RC:": 1.5,
    "Gaussian naive Bayes, predict:": 1.5,
}
"""Least ratio, by how a race begins: half to two thirds of what is usual at these sizes."""


def main() -> int:
    """Run them, those that fall short a second time; 1 where a ratio is below its floor twice, else 0."""
    with threadpool_limits(1):
        races = GAUSSIANS if native_kernels.module is None else GAUSSIANS + NATIVE
        low = [again for race in races if _low(race()) for again in _low(race())]
    for result in low:
        print(f"too slow: {result.work}: {_ratio(result):.2f}, {_floor(result):.2f} is the least expected")
    return 1 if low else 0


GAUSSIANS = (
    lambda: gaussians.quadratic((4_000, 192, 5), 3, 1),
    lambda: gaussians.linear((40_000, 50, 5), 3, 1),
    lambda: gaussians.logistic("8,000 x 30", data.numbers(8_000, 30, 5), 3, 1),
)
NATIVE = (
    lambda: gaussians.diagonal((20_000, 50, 5), 3, 1),
    lambda: counts.levels((10_000, 96, 5), 3, 1),
)


def _low(results):
    """The races below their floor, after all were printed."""
    print("\n".join(page.table(results).splitlines()[2:]), flush=True)
    return [result for result in results if _ratio(result) < _floor(result)]


def _ratio(result) -> float:
    return max(result.ratio, result.processor_ratio)


def _floor(result) -> float:
    named = [floor for begin, floor in FLOORS.items() if result.work.startswith(begin)]
    return named[0] if named and result.goal is not None else 0.0
