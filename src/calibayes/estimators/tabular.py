"""Naive Bayes over data frames with mixed types and missing values: the kind of a column chooses its family and encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from calibayes import families
from calibayes.core.protocols import Array, Family, resolve
from calibayes.core.verify import require
from calibayes.encoders.bins import AdaptiveBins, Grid, KMeansBins, bins_named
from calibayes.encoders.encoder import Encoder
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Counts, Flags, Numbers
from calibayes.encoders.schema import CATEGORICAL, NUMERIC, Schema, content_type, default_kind, schema
from calibayes.estimators.naive_bayes import ClassPriorAttributes
from calibayes.families.counts import smoothing_of
from calibayes.families.kernel_bandwidths import Bandwidth, bandwidth_named
from calibayes.model.binding import ColumnBinding, position
from calibayes.model.estimator import GenerativeEstimator, Traits
from calibayes.model.parameters import estimator, number, whole_number
from calibayes.tables.conversion import IDENTIFIER
from calibayes.tables.summary import TableSummary
from calibayes.tables.table import Table

ColumnKinds: TypeAlias = Mapping[str | int, str]
"""Name or position of a column -> its kind."""


@dataclass(frozen=True)
class KindChoices:
    """Families and encoders that the parameters of an estimator choose for the kinds."""

    smoothing: Mapping[str, Any] = field(default_factory=lambda: {"alpha": 1.0})
    """``alpha`` or ``prior`` of families that count."""
    bins: Encoder = field(default_factory=KMeansBins)
    levels: Encoder = field(default_factory=Levels)
    kernel: Family = field(default_factory=lambda: families.KernelDensity(families.OverBins()))
    cells: Encoder = field(default_factory=AdaptiveBins)
    """The family of kernel densities, and the encoder of its columns."""


class Kind(NamedTuple):
    """The family and the encoder of a kind, and which contents of a column it accepts."""

    family: Callable[[KindChoices], Family]
    encoder: Callable[[KindChoices], Encoder]
    holds: tuple[str, ...] = ("numbers",)


KINDS: dict[str, Kind] = {
    "gaussian": Kind(
        lambda choices: families.Gaussian(families.Diagonal(), prior="auto"), lambda choices: Numbers()
    ),
    "kernel": Kind(lambda choices: choices.kernel, lambda choices: choices.cells),
    "binned": Kind(lambda choices: families.Categorical(**choices.smoothing), lambda choices: choices.bins),
    "categorical": Kind(
        lambda choices: families.Categorical(**choices.smoothing),
        lambda choices: choices.levels,
        ("numbers", "booleans", "text", "categories", "dates"),
    ),
    "multinomial": Kind(lambda choices: families.Multinomial(alpha=1.0), lambda choices: Counts()),
    "poisson": Kind(lambda choices: families.Poisson(prior=families.Gamma()), lambda choices: Counts()),
    "bernoulli": Kind(
        lambda choices: families.Bernoulli(**choices.smoothing),
        lambda choices: Flags(threshold=None),
        ("numbers", "booleans"),
    ),
    "exponential": Kind(lambda choices: families.Exponential(prior_rows=1.0), lambda choices: Numbers()),
    "gamma": Kind(lambda choices: families.GammaDensity(prior_rows=1.0), lambda choices: Numbers()),
    "lognormal": Kind(lambda choices: families.LogNormal(prior_rows=1.0), lambda choices: Numbers()),
    "negative_binomial": Kind(
        lambda choices: families.NegativeBinomial(prior_rows=1.0), lambda choices: Numbers()
    ),
    "vonmises": Kind(lambda choices: families.VonMises(prior_rows=1.0), lambda choices: Numbers()),
    "dirichlet": Kind(lambda choices: families.DirichletDensity(prior_rows=1.0), lambda choices: Numbers()),
}
"""Name -> kind, in the order of the families."""

AUTO = "auto"
"""The kind of columns of numbers for which held-out likelihood chooses one of `CANDIDATES`."""
CANDIDATES = ("kernel", "gaussian", "exponential", "gamma", "lognormal", "negative_binomial")


def density_of(kind: str) -> tuple[Family, Encoder]:
    """The family and the encoder of a kind by default."""
    choices = KindChoices()
    return KINDS[kind].family(choices), KINDS[kind].encoder(choices)


def likeliest(summary: Any, j: int) -> str:
    """The candidate of the highest held-out likelihood for column j; see `calibayes.estimators.likeliest_kind`."""
    from calibayes.estimators.likeliest_kind import likeliest_kind

    densities = {kind: partial(density_of, kind) for kind in CANDIDATES}
    return summary.cached((AUTO, j), lambda: likeliest_kind(summary, j, densities))


def refuse_auto(given: Any) -> None:
    """Raises ValueError if kinds are chosen by all training rows, so that the model is no sum over rows."""
    if AUTO in check_kinds(given).values() or given == AUTO:
        raise ValueError(
            "the kind 'auto' is chosen by all rows at once: give the kinds that `schema_` shows instead"
        )


def check_kinds(given: Any) -> ColumnKinds:
    """The given kinds, none for "auto". Raises ValueError if one is unknown."""
    if isinstance(given, str) and given == AUTO:
        return {}
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"kinds must be a mapping from columns to kinds, got {given!r}")
    for column, kind in given.items():
        if kind not in KINDS and kind not in (IDENTIFIER, AUTO):
            known = ", ".join([*KINDS, IDENTIFIER, AUTO])
            raise ValueError(f"unknown kind {kind!r} of column {column!r}; the kinds are {known}")
    return given


def given_columns(given: ColumnKinds, table: Table | TableSummary) -> dict[int, str]:
    """Position -> kind. Raises ValueError if a column is given twice."""
    kinds: dict[int, str] = {}
    for column, kind in given.items():
        j = position(column, table)
        if kinds.setdefault(j, kind) != kind:
            raise ValueError(f"column {table.names[j]!r} is given as {kinds[j]!r} and as {kind!r}")
    return kinds


def given_kinds(given: ColumnKinds, table: Table | TableSummary) -> dict[int, str]:
    """Position -> kind. Raises ValueError if a kind cannot model the content of its column."""
    kinds = given_columns(given, table)
    for j, kind in kinds.items():
        if kind == IDENTIFIER:
            continue
        accepted = KINDS[CANDIDATES[0] if kind == AUTO else kind].holds
        if (held := content_type(table, j)) not in accepted:
            name, expected = table.names[j], accepted[0]
            raise ValueError(f"column {name!r} cannot be {kind!r}: it holds {held}, not {expected}")
    return kinds


@dataclass(frozen=True)
class OfKind:
    """The columns of one kind, as a selection for a family."""

    kind: str
    given: ColumnKinds
    numeric: str
    """The kind of numeric columns without a given kind."""

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        check_kinds(self.given)
        for kind in (self.kind, self.numeric):
            require(kind in (*KINDS, AUTO), f"unknown kind {kind!r}; the kinds are {', '.join(KINDS)}")

    def __call__(self, table: Table | TableSummary) -> list[int]:
        natural = {NUMERIC: self.numeric, CATEGORICAL: "categorical"}
        given = given_kinds(self.given, table)
        kinds = {j: natural[default_kind(table, j)] for j in table.used} | given
        own = (self.kind, AUTO) if self.kind in CANDIDATES else (self.kind,)
        return sorted(
            j
            for j, kind in kinds.items()
            if kind in own and self.kind == (likeliest(table, j) if kind == AUTO else kind)
        )


def specifications(given: ColumnKinds, numeric: str, choices: KindChoices) -> list[tuple[Any, ...]]:
    """One family and encoder for each kind in use, over the columns of that kind."""
    used = {numeric, "categorical", *given.values()}
    used |= set(CANDIDATES) if AUTO in used else set()
    return [
        (name, kind.family(choices), OfKind(name, given, numeric), kind.encoder(choices))
        for name, kind in KINDS.items()
        if name in used
    ]


def kinds_schema(given: Any, binding: ColumnBinding, summary: TableSummary) -> Schema:
    """The schema of a table whose columns were bound by kind."""
    kinds = given_kinds(check_kinds(given), summary)
    by_user = frozenset(j for j, kind in kinds.items() if kind != AUTO)
    return schema(summary, binding.encoders, binding.chosen, by_user)


# -- Naive Bayes over the kinds of columns --------------------------------------------------------------------

DEFAULT_BINS = 5
"""Number of bins of a numeric column unless given, as in the papers."""
BINS_WITHOUT_DISCRETIZE = "n_bins needs discretize, which chooses how numbers are binned, such as 'kmeans'"


@estimator
class TabularNB(GenerativeEstimator):
    """Parameters of naive Bayes over data frames with mixed types."""

    kinds: ColumnKinds | Literal["auto"] | None = None
    rare_levels: float = 0.0
    max_levels: int | None = None
    alpha: float | Array = 1.0
    prior: families.Dirichlet | None = None
    priors: Array | families.ClassPrior | None = None
    class_weight: Mapping[Any, float] | str | None = None

    _numeric_kind: ClassVar[str] = "kernel"
    _traits = Traits(reads_text=True, is_tempered_if_wide=True)

    class_count_ = ClassPriorAttributes.class_count_
    class_log_prior_ = ClassPriorAttributes.class_log_prior_

    def _choices(self) -> KindChoices:
        """Families and encoders that the parameters choose for the kinds."""
        raise TypeError(f"{type(self).__name__} chooses no families")

    def _families(self) -> Sequence[tuple[Any, ...]]:
        given = check_kinds(self.kinds)
        return specifications(given, AUTO if self.kinds == AUTO else self._numeric_kind, self._choices())

    def _given_columns(self, table: Table) -> dict[int, str]:
        """Position -> kind of the columns whose kind is given."""
        return given_columns(check_kinds(self.kinds), table)

    def _refuse_parts_of_rows(self) -> None:
        super()._refuse_parts_of_rows()
        refuse_auto(self.kinds)

    def _schema(self, binding: ColumnBinding, summary: TableSummary) -> Schema | None:
        return kinds_schema(self.kinds, binding, summary)

    def _levels_encoder(self) -> Levels:
        """The encoder of categorical columns."""
        most = None if self.max_levels is None else whole_number("max_levels", self.max_levels, 1)
        return Levels(rare=number("rare_levels", self.rare_levels, 0.0, 1e300), most=most)


@estimator
class NaiveBayes(TabularNB):
    """Naive Bayes over a data frame: numbers have kernel densities or are binned, everything else is categorical.

    If there are more columns than rows, and ``training`` is None, rules with calibration steps divide the log probabilities by
    the temperature of lowest log loss on the held-out rows of inner folds (``temperature_``). `predict` does not change.

    Parameters
    ----------
    discretize : {"kmeans", "quantile", "uniform", "mdl", "adaptive"} or bins of `calibayes.encoders`, optional
        How numbers are binned: around k-means centers (as in the papers), into equal weights, into equal widths, by the
        minimum description length of the classes, or finely (one bin per value for few values, otherwise many
        quantiles). By default they have kernel densities instead, those of `KernelNB`.
    n_bins : int, optional
        Largest number of bins of a numeric column, by default 5; "mdl" and "adaptive" choose the number themselves.
    kinds : mapping or "auto", optional
        Column, by name or position, -> "gaussian", "kernel", "binned", "categorical", "multinomial", "poisson",
        "bernoulli", "exponential", "gamma", "lognormal", "negative_binomial", "vonmises" (angles in radians) or
        "dirichlet" (the columns of this kind sum to 1), for columns that are to have another kind than by default;
        "identifier" leaves a column out. "auto", for a column or instead of the mapping for all columns of numbers,
        chooses the density of the highest held-out likelihood among "kernel", "gaussian", "exponential", "gamma",
        "lognormal" and "negative_binomial". Dates are numbers (days) and, unless their kind is given, levels (month,
        weekday, hour); text whose values are nearly all distinct is left out.
    rare_levels : float, default=0
        Levels that occur less often than this (by weight) are pooled into one, "other".
    max_levels : int, optional
        Levels beyond this many most frequent ones of a column are pooled too. In a column with a pool, levels that did
        not occur in training belong to it; otherwise their column is skipped. In `partial_fit` the first rows decide
        which levels stay, and new ones join the pool, unless ``training`` has ``keep_summary=True``.
    alpha : float or (d,) array, default=1
        Pseudo-count per level or bin.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    priors : (k,) array or ClassPrior, optional
        Class probabilities; see `GenerativeClassifier`.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`. "gd" needs ``discretize``: kernel densities have no natural parameters.

    Attributes
    ----------
    schema_ : Schema
        The kind of each column and why; it prints as a table.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = NaiveBayes().fit(penguins.data, penguins.target)
    >>> bool(model.score(penguins.data, penguins.target) > 0.98)
    True
    """

    discretize: str | Encoder | None = None
    n_bins: int | None = None

    def _families(self) -> Sequence[tuple[Any, ...]]:
        numeric_kind = "kernel" if self.discretize is None else "binned"
        given = check_kinds(self.kinds)
        return specifications(given, AUTO if self.kinds == AUTO else numeric_kind, self._choices())

    def _choices(self) -> KindChoices:
        most = whole_number("n_bins", DEFAULT_BINS if self.n_bins is None else self.n_bins, 1)
        is_binned = self.discretize is not None or "binned" in check_kinds(self.kinds).values()
        if self.n_bins is not None and not is_binned:
            raise ValueError(BINS_WITHOUT_DISCRETIZE)
        bins = bins_named("kmeans" if self.discretize is None else self.discretize, most)
        return KindChoices(smoothing_of(self.alpha, self.prior), bins=bins, levels=self._levels_encoder())


BINNINGS: Mapping[str, Callable[[], Encoder]] = {"adaptive": AdaptiveBins, "grid": Grid}
"""Short name -> cells that numbers are counted on."""


@estimator
class KernelNB(TabularNB):
    """Naive Bayes over a data frame: a kernel density for each numeric column, everything else is categorical.

    With more columns than rows log probabilities have a temperature, as in `NaiveBayes`.

    Parameters
    ----------
    binning : {"adaptive", "grid"} or encoder of `calibayes.encoders`, default="adaptive"
        Cells that numbers are counted on: bins that are fine where rows are dense, with one bin per value for few values
        and a piecewise constant density; or a uniform grid, with a piecewise linear density. Beyond the range of the
        training rows the density is that of the outermost bin, so that an extreme value favors a class no more than the
        most extreme known one, but `score_samples` does not fall with distance; on a grid it does (Lomax tails).
    bandwidth : {"normal", "silverman", "sheather_jones", "bins"}, float or rule of `calibayes.families`, optional
        Width of the kernel, found before training and then fixed. A number is in the column's units and needs a grid.
        By default "bins", proportional to the number of bins and decreasing with the rows per class, or "silverman" on
        a grid.
    prior_rows : float, default=3
        Pseudo-rows added to each class and column, distributed as the rows of all classes together.
    kinds, rare_levels, max_levels, alpha, prior, priors
        As in `NaiveBayes`; ``alpha`` and ``prior`` are those of levels.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Attributes
    ----------
    schema_ : Schema
        The kind of each column and why; it prints as a table.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import KernelNB
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(KernelNB().fit(X, y).score(X, y) >= KernelNB(rule="ml").fit(X, y).score(X, y))
    True
    """

    binning: str | Encoder = "adaptive"
    bandwidth: str | float | Bandwidth | None = None
    prior_rows: float = 3.0

    def _choices(self) -> KindChoices:
        cells = resolve("binning", self.binning, BINNINGS, ability="encode", example="Grid()")
        default = families.Silverman() if self.binning == "grid" else families.OverBins()
        rule = default if self.bandwidth is None else bandwidth_named(self.bandwidth)
        family = families.KernelDensity(rule, number("prior_rows", self.prior_rows, 0.0, 1e300))
        smoothing = smoothing_of(self.alpha, self.prior)
        return KindChoices(smoothing, levels=self._levels_encoder(), kernel=family, cells=cells)
