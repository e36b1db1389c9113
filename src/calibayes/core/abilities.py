"""Optional abilities of families: small protocols instead of methods that raise."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from calibayes.core.protocols import Array, Arrays, Family, Generator


@runtime_checkable
class CountStatistics(Protocol):
    """Statistics that are counts of levels."""

    def cells(self, statistics: Arrays) -> Array:
        """All counts, (k, number of cells)."""


@runtime_checkable
class SumsByColumn(Protocol):
    """Statistics to which every column adds by itself, so that they follow from counts of the values of single columns."""

    def statistics_by_column(self, columns: Sequence[tuple[Array, Array]]) -> Arrays:
        """`Family.statistics` from encoded values of each column, (v,), and their total weights by class, (v, k)."""


class GradientStep(NamedTuple):
    """Parameters after a step on the natural parameters."""

    parameters: Arrays
    offset: Array | None
    """Change of each class's log normalizer that the class prior absorbs, (k,); None if it stays in the family."""


@runtime_checkable
class NaturalParameters(Protocol):
    """Natural parameters, with a gradient step and a projection back to valid ones."""

    def gradient_step(
        self, parameters: Arrays, direction: Arrays, rate: float, *, absorbed: bool = True
    ) -> GradientStep:
        """Add ``rate`` times the gradient that belongs to ``direction = statistics(X, Y - P)``, then project.

        ``absorbed`` says whether the class prior can take over changes of the normalizers.
        """


@runtime_checkable
class Sampling(Protocol):
    """Random rows."""

    def sample(self, parameters: Arrays, classes: Array, rng: Generator, given: Array | None = None) -> Array:
        """One row for each class code, (n, d); cells that are not missing in ``given`` (n, d) keep their value."""


@runtime_checkable
class Filling(Protocol):
    """Imputation of missing values."""

    def fill(self, columns: Any, parameters: Arrays, posterior: Array) -> Array:
        """The rows with missing values replaced by their mean or most probable level, classes weighted by the posterior."""


@runtime_checkable
class Reasons(Protocol):
    """A log density that is a sum over columns, for some or all settings of the family."""

    def terms(self, columns: Any, parameters: Arrays) -> Array | None:
        """The term of each column in log p(x | class), (n, k, d), up to a constant that all classes share.

        The term of a column depends on that column alone. None if the density has no such terms, because the columns are
        dependent given the class.
        """


@runtime_checkable
class PositionTerms(Protocol):
    """A log density of sequences that is a sum over positions."""

    def position_terms(self, columns: Any, parameters: Arrays) -> Array:
        """log p(symbol | symbols before it, class) of each position, (n, k, length); 0 at gaps."""


@runtime_checkable
class ConditionalTerms(Protocol):
    """Densities of all leading columns of an order, in one computation."""

    def conditional_terms(self, columns: Any, parameters: Arrays, order: Array) -> Array:
        """log p(column | columns before it in ``order``, class) of each column, (n, k, d); 0 where it is missing."""


@runtime_checkable
class Contrasting(Protocol):
    """A log density that is cheaper up to a term that all classes share, which is enough for a posterior."""

    def contrast(self, columns: Any, parameters: Arrays) -> Array:
        """log p(x | class) minus a term that depends on x alone, (n, k)."""


class PassInputs(NamedTuple):
    """Inputs of a fused pass beside columns and parameters."""

    log_prior: Array
    """log p(class), (k,)."""
    labels: Array
    weight: Array
    held_out: Array
    generative: float
    negligible: float
    """A class weight that is no larger counts as zero."""


class PassResult(NamedTuple):
    """Results of a fused pass."""

    assessment: Any
    statistics: Any
    """Statistics with the weights W that follow from the posterior."""
    classes: Array
    """Sums of these weights, (k,)."""


@runtime_checkable
class FusedPass(Protocol):
    """Densities, posterior, scores and statistics in one pass, for a model with a single family."""

    def fused_pass(self, columns: Any, parameters: Arrays, inputs: PassInputs) -> PassResult:
        """`log_density`, the posterior with the class prior, its scores, and `statistics` with the resulting weights."""


@runtime_checkable
class Movable(Protocol):
    """Moments that can be summed about another point."""

    @property
    def centers(self) -> Array:
        """The point about which moments are summed, (d,), or one for each class, (k, d)."""

    def move(self, statistics: Arrays, center: Array) -> Arrays:
        """The same sums about another point, (d,), or about one for each class, (k, d)."""


@runtime_checkable
class Recentering(Protocol):
    """Moments about one point that lose digits of classes far from it, and can be summed about the classes' means."""

    def recentered(self, statistics: Arrays) -> Family:
        """This family with sums about the means of the classes whose variances have lost digits; itself if none has."""

    def gains(self, statistics: Arrays, *, more_to_come: bool = False) -> bool:
        """Whether sums about these points show variances that sums about the center have lost.

        A class of equal rows shows none. With ``more_to_come`` equal rows of all classes count too: further ones may vary.
        """

    def sharing_centers(self, other: Any) -> Family:
        """This family with sums about the points that it or another one of the same kind has chosen."""


@runtime_checkable
class Sized(Protocol):
    """Statistics that may be larger than a block of rows, so that adding them would cost more than computing them."""

    @property
    def size(self) -> int:
        """Approximate number of different numbers in the statistics."""


@runtime_checkable
class AllowsMissing(Protocol):
    """Missing values: NaN among numbers, a negative code among levels."""

    def has_hidden(self, columns: Any) -> bool:
        """Whether the statistics of these rows depend on the parameters (expected statistics), so that there is no closed form."""


@runtime_checkable
class HasSupport(Protocol):
    """Numbers without a density, such as negative ones: they are refused, in training and in predictions."""

    def in_support(self, x: Array) -> Array:
        """Which cells (n, d) have a density, (n, d) booleans; those of missing cells (NaN) are not used."""


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
class PriorDirection(Protocol):
    """A prior that is equivalent to pseudo-rows"""

    def prior_direction(self, parameters: Arrays) -> Arrays:
        """Pseudo-rows of the prior less as many rows as the parameters expect: the gradient of the log prior.

        It is of the form of the statistics, whose names may be left out where nothing is added. ``statistics(X, W)`` is
        the gradient of a likelihood in the same sense.
        """


@runtime_checkable
class Verifiable(Protocol):
    """Checks of a family and its arrays that come from outside, such as a model file; see `calibayes.core.verify`.

    Each raises ValueError with what is wrong. None allocates more than a multiple of the arrays that are given, whatever
    sizes the layout claims.
    """

    def verify(self) -> None:
        """The layout and everything that `Family.prepare` has fixed fit together."""

    def verify_parameters(self, parameters: Arrays) -> None:
        """The parameters have the names and shapes of this family and describe a density."""

    def verify_statistics(self, statistics: Arrays) -> None:
        """The statistics, of data or of a rule's state, have the names and shapes of this family."""


@runtime_checkable
class VerifiableStructure(Protocol):
    """`Verifiable` for a family that is `Structured`."""

    def verify_structure_statistics(self, structure_statistics: Arrays) -> None:
        """The structure statistics have the names and shapes of this family."""


@runtime_checkable
class Structured(Protocol):
    """A structure that is found in sums over the data that contain the statistics of every possible structure.

    `Family.prepare` finds it in these structure statistics, which are additive over rows.
    """

    @property
    def structure(self) -> Hashable:
        """The structure found, None before: statistics of different structures cannot be added."""

    def structure_statistics(self, columns: Any, weights: Array) -> Arrays:
        """Sums over rows, linear in the weights (n, k), from which any structure can be found."""

    def statistics_of(self, structure_statistics: Arrays) -> Arrays:
        """``statistics`` of the same rows: the part of the structure statistics that the structure needs."""


@runtime_checkable
class Recodable(Protocol):
    """Statistics (or structure statistics) that can be mapped to another set of levels."""

    def occurrences(self, statistics: Arrays) -> Array:
        """Weight of the rows with each level, columns concatenated, (cells,)."""

    def recode(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        """The same counts after level i of column j became level ``codes[j][i]`` of ``levels[j]``.

        A negative code removes a level that never occurred.
        """


class LeftOut(NamedTuple):
    """Training rows that are left out of the statistics one at a time, and what was learned from all of them."""

    statistics: Arrays
    """Of all rows."""
    parameters: Arrays
    """Of all rows."""
    codes: Array
    """The class of each row, (n,)."""
    weight: Array
    """The weight of each row in the statistics of its class, (n,)."""

    def of_rows(self, rows: slice) -> LeftOut:
        """Some of the rows."""
        return self._replace(codes=self.codes[rows], weight=self.weight[rows])


@runtime_checkable
class LeavesOneOut(Protocol):
    """Exact leave-one-out densities from the statistics of all rows, for some or all settings of the family."""

    def leave_one_out(self, columns: Any, left_out: LeftOut) -> Array | None:
        """log p(x | class) of each row under the closed form of all other rows, (n, k).

        The family is prepared with the statistics of all rows; what `prepare` takes from the data is that of the other
        rows. NaN marks rows whose removal may change more than numbers, such as a covariance that becomes singular. None
        if the settings allow no leave-one-out but by a fit for each row.
        """
