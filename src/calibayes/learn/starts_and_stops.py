"""How training starts and stops: initial statistics, stopping criteria, and the plan of a training.

Random numbers of a start are drawn by row: row r uses its own range of a counter-based generator, so that a start is the
same for every partition of the table into blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from calibayes.core.protocols import Array, Block, Rule, resolve
from calibayes.kernels.posterior import label_weights
from calibayes.learn.checkpoint import Recorder
from calibayes.learn.run import Callback, Entry

TAIL = 0.75
"""Index of the tail of random weights: the expected sum of the squares of their shares is 1 - `TAIL`."""
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
        return label_weights(block.labels, block.weight, k)


@dataclass(frozen=True)
class Likelihood(Data):
    """The labels; if something is hidden (components, missing values), then maximum likelihood (EM) until it converges."""


@dataclass(frozen=True)
class EvenWeights:
    """Every row with weight 1 / k in each class: the sum over classes is the sum over all rows, labeled or not."""

    def weights(self, block: Block, k: int) -> Array:
        return np.broadcast_to(block.weight[:, None] / k, (len(block.weight), k)).copy()


@dataclass(frozen=True)
class RandomLabels:
    """Random labels: class weights of each row drawn uniformly from the simplex."""

    seed: int = 0

    def weights(self, block: Block, k: int) -> Array:
        shares = exponentials(self.seed, block.first, len(block.weight), k)
        return shares / shares.sum(axis=1, keepdims=True) * block.weight[:, None]


@dataclass(frozen=True)
class Bootstrap:
    """Random row weights of mean one (Rubin's Bayesian bootstrap), so that no class is lost."""

    seed: int = 0

    def weights(self, block: Block, k: int) -> Array:
        return Data().weights(block, k) * exponentials(self.seed, block.first, len(block.weight), 1)


@dataclass(frozen=True)
class RandomParameters:
    """Random parameters: each class has those of all rows, whatever their labels, with random weights of a heavy tail.

    The weights are U ** (-1 / `TAIL`), with uniform U. Divided by their sum, those of many rows are Poisson-Dirichlet
    distributed (Pitman and Yor 1997): the parameters vary as much as those of samples of four rows, however many rows there
    are. All classes have the same share of the weight. Random labels give all classes about the same parameters.
    """

    seed: int = 0

    def weights(self, block: Block, k: int) -> Array:
        """Weights before `scaled`."""
        tails: Array = np.exp(exponentials(self.seed, block.first, len(block.weight), k) / TAIL)
        return tails * block.weight[:, None]

    def scaled(self, totals: Array, size: float) -> Start:
        """The same start with the share of each class; ``totals`` (k,) are the sums of `weights`."""
        return Scaled(self, size / len(totals) / totals)


@dataclass(frozen=True)
class Scaled:
    """A start whose weights are multiplied by a factor for each class."""

    start: Start
    factors: Array

    def weights(self, block: Block, k: int) -> Array:
        return self.start.weights(block, k) * self.factors


@dataclass(frozen=True)
class SeveralStarts:
    """One training from each of several starts, of which the best one is used (rc-generative-2025, section 4).

    Their best states are compared by what chooses the best state of a training (``stop``, or the rule): the soft error for
    `calibayes.rules.RC.paper`. Where it is the same, the lowest soft error decides, then the order.

    Parameters
    ----------
    starts : starts

    Examples
    --------
    >>> from calibayes import GaussianNB, TrainingOptions
    >>> from calibayes.rules import RC
    >>> X, y = [[0.0], [2.0], [1.0], [6.0]], [0, 0, 1, 1]
    >>> training = TrainingOptions(start=SeveralStarts.of(Bootstrap, 5))
    >>> GaussianNB(rule=RC.paper(), training=training).fit(X, y).predict(X)
    array([0, 0, 0, 1])
    """

    starts: Sequence[Start]

    def __post_init__(self) -> None:
        if not isinstance(self.starts, list | tuple) or not self.starts:
            raise ValueError(f"starts must be a list of at least one start, got {self.starts!r}")
        for start in self.starts:
            if isinstance(start, str | type | SeveralStarts) or not hasattr(start, "weights"):
                raise ValueError(f"each start must be an object such as Bootstrap(seed=1), got {start!r}")

    @classmethod
    def of(cls, kind: Callable[..., Start], n: int, seed: int = 0) -> Self:
        """The labels, and ``n`` random starts of a kind, such as `Bootstrap`, with the seeds from ``seed`` on."""
        return cls((Data(), *(kind(seed=number) for number in range(seed, seed + n))))

    def weights(self, block: Block, k: int) -> Array:
        """Those of the first start."""
        return self.starts[0].weights(block, k)


def exponentials(seed: int, first: int, n: int, k: int) -> Array:
    """Standard exponential numbers of rows ``first`` to ``first + n``, (n, k)."""
    counters = -(-k // WORDS)
    generator = np.random.Philox(key=seed).advance(first * counters)
    words = generator.random_raw(n * counters * WORDS).reshape(n, counters * WORDS)[:, :k]
    return np.asarray(-np.log((words >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54))


class Stop(Protocol):
    """When training ends, and which state it returns."""

    def score(self, entry: Entry) -> float | None:
        """The state with the lowest score is returned; None leaves the choice to the rule."""

    def met(self, history: Sequence[Entry]) -> bool:
        """Whether to stop at the last entry."""

    def unfinished(self, history: Sequence[Entry]) -> bool:
        """Whether training would have gone on if the number of updates had not ended it."""


@dataclass(frozen=True)
class Never:
    """No criterion: train for the full number of updates; the rule chooses the best state."""

    def score(self, entry: Entry) -> float | None:
        return None

    def met(self, history: Sequence[Entry]) -> bool:
        return False

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return False


@dataclass(frozen=True)
class LastState(Never):
    """Train for the full number of updates or sum of steps; the last state is the best."""

    def score(self, entry: Entry) -> float:
        return -entry.total_step


@dataclass(frozen=True)
class SoftErrorRises(Never):
    """Stop at the first update that raises the soft error, as in the papers; the lowest soft error is the best."""

    def score(self, entry: Entry) -> float:
        return entry.soft_error

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return NoGain().unfinished(history)

    def met(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and history[-1].soft_error > history[-2].soft_error


@dataclass(frozen=True)
class NoGain(Never):
    """Stop when an update gains less than ``tolerance`` per row in the objective; the highest objective is the best."""

    tolerance: float = 1e-4

    def score(self, entry: Entry) -> float:
        return -entry.objective

    def met(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and not NoGain.unfinished(self, history)

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return len(history) > 1 and history[-1].objective - history[-2].objective >= self.tolerance


@dataclass(frozen=True)
class NoGainBeforeTraining(NoGain):
    """`NoGain` for a start that training continues from: ending it early is no problem."""

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return False


@dataclass(frozen=True)
class Patience(Never):
    """Stop when ``metric`` (lower is better) has not improved for ``rounds`` updates."""

    metric: str = "soft_error"
    rounds: int = 5

    def __post_init__(self) -> None:
        if self.metric not in {field.name for field in fields(Entry)}:
            raise ValueError(
                f"unknown metric {self.metric!r}; the metrics are {', '.join(f.name for f in fields(Entry))}"
            )

    def score(self, entry: Entry) -> float:
        value = float(getattr(entry, self.metric))
        if math.isnan(value):
            raise ValueError(f"there is no {self.metric}: it needs held-out rows, set validation_fraction")
        return value

    def met(self, history: Sequence[Entry]) -> bool:
        scores = [self.score(entry) for entry in history]
        return len(scores) - 1 - scores.index(min(scores)) >= self.rounds


@dataclass(frozen=True)
class MaxPasses(Never):
    """Stop after a number of passes over the data, those of rejected steps included."""

    passes: int = 100

    def met(self, history: Sequence[Entry]) -> bool:
        return history[-1].passes >= self.passes


@dataclass(frozen=True)
class TimeLimit(Never):
    """Stop after a number of seconds."""

    seconds: float = math.inf

    def met(self, history: Sequence[Entry]) -> bool:
        return history[-1].seconds >= self.seconds


@dataclass(frozen=True)
class AnyOf:
    """Stop when any of several is met; the first one with a score chooses the best state."""

    stops: tuple[Stop, ...]

    def __post_init__(self) -> None:
        if not self.stops:
            raise ValueError("give at least one stop, or None")

    def score(self, entry: Entry) -> float | None:
        scores = [stop.score(entry) for stop in self.stops]
        return next((score for score in scores if score is not None), None)

    def met(self, history: Sequence[Entry]) -> bool:
        return any(stop.met(history) for stop in self.stops)

    def unfinished(self, history: Sequence[Entry]) -> bool:
        return any(stop.unfinished(history) for stop in self.stops)


@dataclass(frozen=True)
class ValidationLoss(Never):
    """Held-out log loss: the lowest is the best; stop after ``rounds`` updates without a lower one, or with ``also``."""

    also: Stop
    rounds: int = 10

    def score(self, entry: Entry) -> float:
        return entry.validation_log_loss

    def met(self, history: Sequence[Entry]) -> bool:
        patience = Patience("validation_log_loss", self.rounds)
        return patience.met(history) or self.also.met(history)


STOPS: dict[Any, Callable[[], Stop]] = {None: Never, "objective": NoGain, "soft_error": SoftErrorRises}


def start_named(start: str | Start, seed: int) -> Start:
    """The start of that name with a seed, or the start itself."""
    names: dict[Any, Callable[[], Start]] = {
        "data": Data,
        "likelihood": Likelihood,
        "random": partial(RandomLabels, seed),
        "bootstrap": partial(Bootstrap, seed),
        "random_parameters": partial(RandomParameters, seed),
    }
    return resolve("start", start, names, ability="weights", example="RandomLabels()")


def stop_named(stop: Any, rule: Rule | None = None) -> Stop:
    """The stop of that name, the stop itself, or any of several; "objective" is what the rule means by it."""
    if isinstance(stop, list | tuple):
        return AnyOf(tuple(stop_named(part, rule) for part in stop))
    if rule is not None and isinstance(stop, str) and stop == "objective":
        stop = rule.stop
    return resolve("stop", stop, STOPS, ability="unfinished", example="Patience()")


@dataclass(frozen=True)
class Plan:
    """How to train.

    Attributes
    ----------
    rule : Rule
    start : str or Start
        Initial statistics.
    stop : str, Stop, several of them or None
        When to stop, and which state is the best.
    max_iter : int
        Largest number of updates.
    batch_size : int, optional
        Rows of a mini-batch; by default an update uses all rows.
    seed : int
        Seed of random starts and of the order of mini-batches.
    callbacks : sequence of callables
    likelihood : Rule, optional
        Maximum likelihood, for the start `Likelihood`.
    recorder : Recorder, optional
        Keeps the state after each pass, so that an interrupted training can be continued.
    """

    rule: Rule
    start: str | Start = "data"
    stop: str | Stop | Sequence[Stop] | None = "objective"
    max_iter: int = 64
    batch_size: int | None = None
    seed: int = 0
    callbacks: Sequence[Callback] = ()
    likelihood: Rule | None = None
    recorder: Recorder | None = None
