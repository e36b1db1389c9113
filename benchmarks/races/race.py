"""A race: the same work by calibayes and by peers, and the ratio that calibayes should reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from races.timing import Duration, in_turns, once


@dataclass(frozen=True)
class Result:
    """Times of one race.

    Attributes
    ----------
    goal : float or None
        Target for the ratio, or None.
    """

    work: str
    peer: str
    ours: Duration
    theirs: Duration
    goal: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        """Wall-clock time of the peer divided by ours."""
        return self.theirs.wall / self.ours.wall

    @property
    def processor_ratio(self) -> float:
        return self.theirs.processor / self.ours.processor

    @property
    def met(self) -> bool:
        return self.goal is None or self.ratio >= self.goal


def race(
    work: str,
    ours: Callable[[], object],
    peers: dict[str, tuple[Callable[[], object], float | None]],
    rounds: int,
) -> list[Result]:
    """Run ours against each peer, given with its target; a function that returns a `Duration` has timed itself."""
    contestants = {"ours": ours, **{name: work for name, (work, _) in peers.items()}}
    best = in_turns({name: _timed(run) for name, run in contestants.items()}, rounds)
    return [Result(work, name, best["ours"], best[name], goal) for name, (_, goal) in peers.items()]


def _timed(run: Callable[[], object]) -> Callable[[], Duration]:
    def timed() -> Duration:
        results: list[object] = []
        duration = once(lambda: results.append(run()))
        return results[0] if isinstance(results[0], Duration) else duration

    return timed
