"""Linear scales: from values to coordinates, and the ticks of an axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from calibayes.core.protocols import Array

Number = TypeVar("Number", float, Array)


@dataclass(frozen=True)
class Scale:
    """Maps values from ``low`` to ``high`` linearly to coordinates from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: Number) -> Number:
        """The coordinate of a value, or those of an array of values."""
        span = self.high - self.low
        share = (value - self.low) / span if span > 0 else value * 0.0 + 0.5
        moved: Number = self.start + share * (self.end - self.start)
        return moved

    def ticks(self, most: int = 5) -> list[float]:
        """Round values on the scale.

        >>> Scale(0.0, 1.0, 0.0, 100.0).ticks()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        """
        span = self.high - self.low
        if not span > 0:
            return [self.low]
        magnitude = 10.0 ** math.floor(math.log10(span / most))
        steps = [magnitude * factor for factor in (1.0, 2.0, 2.5, 5.0, 10.0)]
        step = next(step for step in steps if span / step <= most - 1 or step == steps[-1])
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def around(values: Array, start: float, end: float, *, floor: float | None = None) -> Scale:
    """A scale that contains all finite values, with a margin; ``floor`` is the least lower end."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return Scale(0.0, 1.0, start, end)
    low, high = float(finite.min()), float(finite.max())
    margin = 0.06 * (high - low) or max(abs(high), 1e-3) * 0.1
    bottom = low - margin if floor is None else max(low - margin, floor)
    return Scale(bottom, high + margin, start, end)
