"""Small races whose ratios must not fall: processor time on one thread, so that a busy machine changes little."""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from races import gaussians, page

ROUNDS = 5
FLOORS = {
    "QDA, predict:": 1.3,
    "QDA, predict of float32:": 1.8,
    "QDA, one pass of RC": 0.45,
    "LDA, fit:": 0.8,
}
"""Least ratio of processor time, by how a race begins: about two thirds of what is usual."""


def main() -> int:
    """Run them; 1 where a ratio is below its floor after one more try, else 0."""
    with threadpool_limits(1):
        results = [
            *gaussians.quadratic((4_000, 192, 5), ROUNDS, 1),
            *gaussians.linear((40_000, 50, 5), ROUNDS, 1),
        ]
    print(page.table(results))
    low = [result for result in results if result.processor_ratio < _floor(result)]
    for result in low:
        print(
            f"too slow: {result.work}: {result.processor_ratio:.2f}, at least {_floor(result):.2f} is expected"
        )
    return 1 if low else 0


def _floor(result) -> float:
    named = [floor for begin, floor in FLOORS.items() if result.work.startswith(begin)]
    return named[0] if named and result.goal is not None else 0.0
