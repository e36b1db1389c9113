"""The values that a report consists of. They hold numbers and texts alone, so that they can be written as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from calibayes.core.protocols import Array


class Skipped(NamedTuple):
    """A section, a model or a column that the report does not show."""

    what: str
    why: str


@dataclass(frozen=True)
class ClassCount:
    """A class and its number of rows."""

    name: str
    rows: int


@dataclass(frozen=True)
class Picture:
    """The values of a column by class: ``edges`` of bins or names of ``levels``, and rows by class.

    ``counts`` is (groups of classes, bins or levels).
    """

    counts: Array
    edges: Array | None = None
    levels: tuple[str, ...] = ()
    ends: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class ColumnFacts:
    """One column: how the model treats it and why, what is in it, and what it says about the class on its own."""

    name: str
    kind: str
    reason: str
    missing: int
    distinct: int
    information: float
    """Mutual information with the class in bits, corrected for chance."""
    range: str
    picture: Picture | None = None


@dataclass(frozen=True)
class TableFacts:
    """The table: its columns by decreasing information; ``groups`` are the classes that pictures show."""

    rows: int
    unlabeled: int
    missing: int
    duplicates: int | None
    classes: tuple[ClassCount, ...]
    groups: tuple[str, ...]
    columns: tuple[ColumnFacts, ...]
    read_rows: int
    """Rows that pictures and information were computed from."""


@dataclass(frozen=True)
class Interval:
    """An average over folds with a confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class MethodFacts:
    """A model with a rule on held-out rows."""

    name: str
    model: str
    rule: str
    error: Interval
    log_loss: Interval
    training_error: float
    seconds: float
    difference: Interval
    """Its error minus that of the first method, fold by fold."""


@dataclass(frozen=True)
class RankFacts:
    """Average ranks over folds of the best rule of each model."""

    names: tuple[str, ...]
    ranks: tuple[float, ...]
    critical_difference: float
    friedman_p: float
    folds: int


@dataclass(frozen=True)
class RankingFacts:
    """All methods, best first."""

    methods: tuple[MethodFacts, ...]
    ranks: RankFacts | None
    folds: int
    rows: int
    all_rows: int
    notes: Mapping[str, int]
    """Warning of a fit -> how often it was given."""


@dataclass(frozen=True)
class Curve:
    """Scores by iteration of a rule or by total step of a member; empty where they are not known."""

    name: str
    steps: Array
    error: Array
    held_out_error: Array
    log_loss: Array
    held_out_log_loss: Array
    best: int


@dataclass(frozen=True)
class CurveFacts:
    """Learning curves, and what they are curves of."""

    curves: tuple[Curve, ...]
    label: str
    """What the horizontal axis shows."""
    about: str


@dataclass(frozen=True)
class Bin:
    """Rows of similar probability: the mean of what was predicted, and the share that came true with its interval."""

    predicted: float
    observed: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True)
class Tradeoff:
    """Rows of one class against the others, sorted by its probability."""

    name: str
    auc: float
    false_positive_rate: Array
    true_positive_rate: Array
    share: Array
    """Share of all rows that are taken, most probable first."""
    found: Array
    """Share of the class's rows among them."""
    frequency: float


@dataclass(frozen=True)
class Threshold:
    """Cost of deciding for a class from a probability on, for two classes."""

    name: str
    other: str
    thresholds: Array
    costs: Array
    best: float
    honest_cost: float
    """Average cost at a threshold that was chosen on the other half of the rows."""
    usual_cost: float
    """At the threshold that follows from the costs if probabilities are right."""
    usual: float


@dataclass(frozen=True)
class QualityFacts:
    """How well held-out rows are predicted."""

    how: str
    rows: int
    error: float
    error_low: float
    error_high: float
    log_loss: float
    brier: float
    majority_error: float
    prior_log_loss: float
    classes: tuple[str, ...]
    confusion: Array
    bins: tuple[Bin, ...]
    calibrated: str
    """Whose probability the bins are about."""
    calibration_error: float
    tradeoffs: tuple[Tradeoff, ...]
    threshold: Threshold | None
    costs: Array | None
    cost: float | None
    """Average cost of the decisions of least expected cost, if costs are given."""
    cost_of_likely: float | None
    """Average cost of deciding for the most probable class."""


@dataclass(frozen=True)
class Contribution:
    """A column's part in the log odds of a row."""

    column: str
    value: str
    contribution: float


@dataclass(frozen=True)
class RowReasons:
    """Why the model decides a row as it does."""

    row: int
    why_shown: str
    label: str
    decided: str
    probability: float
    """Held-out probability of the decided class."""
    chosen: str
    other: str
    log_odds: float
    contributions: tuple[Contribution, ...]
    rest: float
    """Sum of the contributions that are not listed."""


@dataclass(frozen=True)
class ReasonFacts:
    """Mean absolute contributions of the columns, largest first, and reasons of single rows."""

    overall: Mapping[str, float]
    rows: int
    permutations: int
    singles: tuple[RowReasons, ...]


@dataclass(frozen=True)
class SurprisingRow:
    """A row of low density."""

    row: int
    label: str
    p_value: float
    cells: tuple[tuple[str, str, float], ...]
    """Column, value and p-value of its strangest cells."""


@dataclass(frozen=True)
class SurpriseFacts:
    """The rows of lowest density."""

    rows: tuple[SurprisingRow, ...]
    about: str
    scored: int
    expected: float
    """Share of the rows with a p-value of at most one percent."""
    left_out: int
    """Number of columns that the density does not have."""


@dataclass(frozen=True)
class SuspectLabel:
    """A row whose label looks wrong."""

    row: int
    label: str
    suggested: str
    probability: float
    score: float
    reason: str


@dataclass(frozen=True)
class LabelFacts:
    """Rows whose label looks wrong, most suspicious first."""

    rows: tuple[SuspectLabel, ...]
    issues: int
    judged: int


@dataclass(frozen=True)
class Facts:
    """All that a report says."""

    title: str
    about: str
    model: str
    table: TableFacts
    findings: Any = None
    ranking: RankingFacts | None = None
    curves: CurveFacts | None = None
    quality: QualityFacts | None = None
    reasons: ReasonFacts | None = None
    surprise: SurpriseFacts | None = None
    labels: LabelFacts | None = None
    code: str | None = None
    skipped: Sequence[Skipped] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Stage -> seconds."""
