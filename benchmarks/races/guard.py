"""Small races on one thread whose ratios must stay above a minimum.

Other load on the machine distorts wall-clock time, and waiting threads of libraries distort processor time. A race counts as too
slow if both ratios are too low, twice.
"""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from calibayes.versions import versions
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
"""Minimum ratio, by the first words of a race: half to two thirds of the usual ratio at these sizes."""


def main() -> int:
    """Run all races, and those below their minimum a second time; 1 if a ratio is below it twice, else 0."""
    with threadpool_limits(1):
        races = GAUSSIANS + NATIVE if versions()["kernels"].startswith("native") else GAUSSIANS
        low = [again for race in races if _low(race()) for again in _low(race())]
    for result in low:
        print(f"too slow: {result.work}: {_ratio(result):.2f}, the minimum is {_floor(result):.2f}")
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
    """Print all results; return those below their minimum."""
    print("\n".join(page.table(results).splitlines()[2:]), flush=True)
    return [result for result in results if _ratio(result) < _floor(result)]


def _ratio(result) -> float:
    return max(result.ratio, result.processor_ratio)


def _floor(result) -> float:
    floors = [floor for begin, floor in FLOORS.items() if result.work.startswith(begin)]
    return floors[0] if floors and result.goal is not None else 0.0
