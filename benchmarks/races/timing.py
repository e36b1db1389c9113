"""Times of several contestants that run in turns, so that other load on the machine affects all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from calibayes import TrainingOptions


@dataclass(frozen=True)
class Duration:
    """Wall-clock seconds, and processor seconds (all threads together)."""

    wall: float
    processor: float

    def __le__(self, other: Duration) -> bool:
        return self.wall <= other.wall


def once(work: Callable[[], object]) -> Duration:
    """The duration of one call."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Duration(time.perf_counter() - wall, time.process_time() - processor)


def in_turns(contestants: Mapping[str, Callable[[], Duration]], rounds: int) -> dict[str, Duration]:
    """The lowest of several rounds, separately for wall-clock and processor time."""
    turns = [{name: run() for name, run in contestants.items()} for _ in range(rounds)]
    return {
        name: Duration(min(turn[name].wall for turn in turns), min(turn[name].processor for turn in turns))
        for name in contestants
    }


class Stopwatch:
    """A callback that records the time of each update."""

    def __init__(self) -> None:
        self.times: list[tuple[float, float]] = []

    def __call__(self, progress: object) -> bool:
        self.times.append((time.perf_counter(), time.process_time()))
        return False

    def shortest(self) -> Duration:
        """Lowest time between two updates: that of one pass. The last one is left out, since it computes no direction."""
        wall, processor = np.diff(self.times, axis=0)[:-1].min(axis=0)
        return Duration(float(wall), float(processor))


def one_pass(model, X, y) -> Duration:
    """The duration of one pass of an estimator with a fixed number of updates."""
    stopwatch = Stopwatch()
    model.set_params(training=TrainingOptions(callbacks=[stopwatch])).fit(X, y)
    return stopwatch.shortest()
