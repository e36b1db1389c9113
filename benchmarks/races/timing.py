"""Times of several contestants, in turns, so that whatever else the machine does meets all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Took:
    """Seconds on the clock, and of the processor (all threads together)."""

    wall: float
    processor: float

    def __le__(self, other: Took) -> bool:
        return self.wall <= other.wall


def once(work: Callable[[], object]) -> Took:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - wall, time.process_time() - processor)


def in_turns(contestants: Mapping[str, Callable[[], Took]], rounds: int) -> dict[str, Took]:
    """The best of some rounds, clock and processor each by itself."""
    found = [{name: run() for name, run in contestants.items()} for _ in range(rounds)]
    return {
        name: Took(min(turn[name].wall for turn in found), min(turn[name].processor for turn in found))
        for name in contestants
    }


class Stopwatch:
    """A callback that notes when each update came in."""

    def __init__(self) -> None:
        self.times: list[tuple[float, float]] = []

    def __call__(self, progress: object) -> bool:
        self.times.append((time.perf_counter(), time.process_time()))
        return False

    def shortest(self) -> Took:
        """The least time from one update to the next: that of one pass. The last one takes no further direction."""
        wall, processor = np.diff(self.times, axis=0)[:-1].min(axis=0)
        return Took(float(wall), float(processor))


def one_pass(model, X, y) -> Took:
    """The time of one pass of an estimator that takes some updates of a fixed step."""
    watch = Stopwatch()
    model.set_params(callbacks=[watch]).fit(X, y)
    return watch.shortest()
