"""Where learning begins: the statistics of the data, of random labels, or of randomly weighted rows.

Random numbers belong to rows, not to blocks: row r uses its own stretch of a counter-based generator, so that a start
is the same for every partition of the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from calibayes.core.block import Block
from calibayes.core.protocols import Array

WORDS = 4
"""Random words per step of the generator's counter."""


class Start(Protocol):
    """Where learning begins."""

    def weights(self, block: Block, k: int) -> Array:
        """Class weights of the rows at the start, (n, k)."""


@dataclass(frozen=True)
class Data:
    """The labels as they are."""

    def weights(self, block: Block, k: int) -> Array:
        weights = np.zeros((len(block.labels), k))
        labeled = np.flatnonzero(block.labels >= 0)
        weights[labeled, block.labels[labeled]] = block.weight[labeled]
        return weights


@dataclass(frozen=True)
class Likelihood(Data):
    """The labels as they are, then maximum likelihood until it gains no more, where something is hidden."""


@dataclass(frozen=True)
class Even:
    """Every row belongs to all classes alike: sums over classes are sums over all rows, labeled or not."""

    def weights(self, block: Block, k: int) -> Array:
        return np.repeat(block.weight[:, None] / k, k, axis=1)


@dataclass(frozen=True)
class RandomLabels:
    """Every row belongs to all classes, in shares drawn uniformly from the simplex."""

    seed: int = 0

    def weights(self, block: Block, k: int) -> Array:
        shares = exponentials(self.seed, block.first, len(block.weight), k)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True) * block.weight[:, None])


@dataclass(frozen=True)
class Bootstrap:
    """Every row counts with a random weight of mean one (Rubin's Bayesian bootstrap), so no class is ever lost."""

    seed: int = 0

    def weights(self, block: Block, k: int) -> Array:
        return Data().weights(block, k) * exponentials(self.seed, block.first, len(block.weight), 1)


def exponentials(seed: int, first: int, n: int, k: int) -> Array:
    """Standard exponential numbers of rows ``first`` to ``first + n``, (n, k)."""
    counters = -(-k // WORDS)
    generator = np.random.Philox(key=seed).advance(first * counters)
    words = generator.random_raw(n * counters * WORDS).reshape(n, counters * WORDS)[:, :k]
    return np.asarray(-np.log((words >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54))


def start_named(start: str | Start, seed: int) -> Start:
    """The start of that name with a seed, or the start itself."""
    if not isinstance(start, str):
        if isinstance(start, type) or not hasattr(start, "weights"):
            raise ValueError(f"start must be a name or a start such as RandomLabels(), got {start!r}")
        return start
    names: dict[str, Start] = {
        "data": Data(),
        "likelihood": Likelihood(),
        "random": RandomLabels(seed),
        "bootstrap": Bootstrap(seed),
    }
    if start not in names:
        raise ValueError(f"unknown start {start!r}; the starts are {', '.join(names)}")
    return names[start]
