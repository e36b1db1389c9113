"""Lanes along a path: to one value of tau after the other, all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from calibayes.core.protocols import Engine, Source
from calibayes.learn.lane import Lane
from calibayes.learn.loop import learn
from calibayes.learn.progress import Callback

TAUS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
"""Where a path is looked at. Statistics are sums, so that tau, the sum of steps, means the same for any number of rows;
a number of updates does not."""


def walk(
    lanes: Sequence[Lane],
    source: Source,
    engine: Engine,
    taus: Sequence[float] = TAUS,
    callbacks: Sequence[Callback] = (),
) -> Iterator[float]:
    """Each tau once the lanes are there; a lane that gains nothing any more stays where it is.

    It ends where no lane moves.
    """
    for tau in taus:
        for lane in lanes:
            lane.aim(tau)
        if all(lane.done for lane in lanes):
            return
        learn(lanes, source, engine, callbacks)
        yield tau
