"""Initial statistics: of the labels, of random labels, or of randomly weighted rows.

Random numbers are drawn by row: row r uses its own range of a counter-based generator, so that a start is the same for
every partition of the table into blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from calibayes.core.block import Block
from calibayes.core.protocols import Array
from calibayes.core.resolve import resolve

WORDS = 4
"""Random words per count of the generator."""


class Start(Protocol):
    """Class weights of the initial statistics."""

    def weights(self, block: Block, k: int) -> Array:
        """Class weights of the rows at the start, (n, k)."""


@dataclass(frozen=True)
class Data:
    """The labels."""

    def weights(self, block: Block, k: int) -> Array:
        weights = np.zeros((len(block.labels), k))
        labeled = np.flatnonzero(block.labels >= 0)
        weights[labeled, block.labels[labeled]] = block.weight[labeled]
        return weights


@dataclass(frozen=True)
class Likelihood(Data):
    """The labels; if something is hidden (components, missing values), then maximum likelihood (EM) until it converges."""


@dataclass(frozen=True)
class EvenWeights:
    """Every row with weight 1 / k in each class: the sum over classes is the sum over all rows, labeled or not."""

    def weights(self, block: Block, k: int) -> Array:
        return np.repeat(block.weight[:, None] / k, k, axis=1)


@dataclass(frozen=True)
class RandomLabels:
    """Random labels: class weights of each row drawn uniformly from the simplex."""

    seed: int = 0

    def weights(self, block: Block, k: int) -> Array:
        shares = exponentials(self.seed, block.first, len(block.weight), k)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True) * block.weight[:, None])


@dataclass(frozen=True)
class Bootstrap:
    """Random row weights of mean one (Rubin's Bayesian bootstrap), so that no class is lost."""

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
    names: dict[str, Callable[[], Start]] = {
        "data": Data,
        "likelihood": Likelihood,
        "random": partial(RandomLabels, seed),
        "bootstrap": partial(Bootstrap, seed),
    }
    named: Start = resolve("start", start, names, ability="weights", example="RandomLabels()")
    return named
