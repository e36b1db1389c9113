"""A race: the same work by ours and by a peer, and what ours must reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from races.timing import Took, in_turns, once


@dataclass(frozen=True)
class Result:
    """How a race ended.

    Attributes
    ----------
    goal : float or None
        Least ratio, or None where there is none to meet.
    """

    work: str
    peer: str
    ours: Took
    theirs: Took
    goal: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        """How many times as long the peer takes, by the clock."""
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
    """Ours against each peer, given with its goal; a function that answers with a `Took` has timed itself."""
    contestants = {"ours": ours, **{name: work for name, (work, _) in peers.items()}}
    best = in_turns({name: _timed(run) for name, run in contestants.items()}, rounds)
    return [Result(work, name, best["ours"], best[name], goal) for name, (_, goal) in peers.items()]


def _timed(run: Callable[[], object]) -> Callable[[], Took]:
    def timed() -> Took:
        said: list[object] = []
        took = once(lambda: said.append(run()))
        return said[0] if isinstance(said[0], Took) else took

    return timed
