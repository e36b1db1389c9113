"""What families may be able to do beyond their protocol: small protocols, never methods that raise."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from calibayes.core.protocols import Array, Arrays, Family


@runtime_checkable
class CountStatistics(Protocol):
    """Statistics that are counts of levels."""

    def cells(self, statistics: Arrays) -> Array:
        """All counts, (k, number of cells)."""


class GradientStep(NamedTuple):
    """Parameters after a step on the natural parameters."""

    parameters: Arrays
    offset: Array | None
    """Change of each class's log normalizer that the class prior absorbs, (k,); None where it stays inside."""


@runtime_checkable
class NaturalParameters(Protocol):
    """Natural parameters that a gradient can move, with a projection back to valid ones."""

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Add ``rate`` times the gradient that belongs to ``direction = statistics(X, Y - P)``, then project.

        ``absorbed`` says whether the class prior can take over changes of the normalizers.
        """


@runtime_checkable
class Sampling(Protocol):
    """New rows."""

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        """One row of columns for each class code; cells that are known in ``given`` (n, d) keep their value."""


@runtime_checkable
class Filling(Protocol):
    """What missing cells are likely to be."""

    def fill(self, columns: Any, parameters: Arrays, posterior: Array) -> Array:
        """The rows with missing cells at their mean or most probable level, classes weighted by the posterior."""


@runtime_checkable
class Reasons(Protocol):
    """A log density that is a sum over columns or groups of columns."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the terms."""

    def terms(self, columns: Any, parameters: Arrays) -> Array:
        """The terms of log p(x | class), (n, k, groups), up to a constant that all classes share."""


@runtime_checkable
class Contrasting(Protocol):
    """A log density that is cheaper up to a term which all classes share: a posterior needs no more."""

    def contrast(self, columns: Any, parameters: Arrays) -> Array:
        """log p(x | class) minus something that depends on x alone, (n, k)."""


class PassInputs(NamedTuple):
    """What a look at some rows needs to know beside their columns and a family's parameters."""

    log_prior: Array
    """log p(class), (k,)."""
    labels: Array
    weight: Array
    held_out: Array
    generative: float
    decided: float
    """A class weight that is no larger counts as none."""


class PassResult(NamedTuple):
    """What was seen."""

    assessment: Any
    statistics: Arrays
    """Those of the weights that follow from the posterior."""
    classes: Array
    """The sums of these weights, (k,)."""


@runtime_checkable
class FusedPass(Protocol):
    """Densities, posterior, scores and statistics in one go, for a family that is alone."""

    def fused_pass(self, columns: Any, parameters: Arrays, inputs: PassInputs) -> PassResult:
        """`log_density`, its posterior with the class prior, how good that is, and `statistics` of its weights."""


@runtime_checkable
class Movable(Protocol):
    """Moments that can be summed about another point."""

    def move(self, statistics: Arrays, center: Array) -> Arrays:
        """The same sums about another center than the layout's, (d,)."""


@runtime_checkable
class Sized(Protocol):
    """Statistics that may be larger than a block of rows, so that adding them up would cost more than making them."""

    @property
    def size(self) -> int:
        """How many different numbers the statistics hold, about."""


@runtime_checkable
class AllowsMissing(Protocol):
    """Missing cells: NaN among numbers, a negative code among levels."""

    def has_hidden(self, columns: Any) -> bool:
        """Whether the statistics of these rows depend on the parameters, so that no closed form ends at once."""


@runtime_checkable
class Conjugate(Protocol):
    """A default prior."""

    def conjugate(self) -> Family:
        """This family with its default conjugate prior, or itself where it has one already."""


@runtime_checkable
class Penalized(Protocol):
    """A prior on the parameters whose density is known."""

    def exact(self) -> Family:
        """This family with a prior whose posterior mode is exactly what `parameters` gives."""

    def log_prior(self, parameters: Arrays) -> float:
        """Log prior density of the parameters, up to a constant."""


@runtime_checkable
class Structured(Protocol):
    """A structure, found in sums over the data that are richer than the statistics that are learned.

    `Family.prepare` finds it in a survey. The surveys are what adds up over rows; the statistics of a structure follow.
    """

    @property
    def structure(self) -> Hashable:
        """What was found, None before: statistics of different structures have nothing to do with each other."""

    def structure_statistics(self, columns: Any, weights: Array) -> Arrays:
        """Sums over rows, linear in the weights (n, k), from which any structure can be found."""

    def statistics_of(self, survey: Arrays) -> Arrays:
        """What ``statistics`` of the same rows would be: the part of a survey that the structure needs."""


@runtime_checkable
class Recodable(Protocol):
    """Statistics (surveys, of a family that is `Structured`) that can move to more levels."""

    def occurrences(self, statistics: Arrays) -> Array:
        """Weight of the rows that have each level, all columns side by side, (cells,)."""

    def recode(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        """The same counts where level i of column j has become level ``codes[j][i]`` of ``levels[j]``.

        A negative code is a level that is no more, since it never occurred.
        """
