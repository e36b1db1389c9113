"""The content of a report as plain values: numbers, strings and arrays, which can be written as JSON."""

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
    """The distribution of a column by class: ``edges`` of bins or names of ``levels``, and numbers of rows.

    ``counts`` has shape (groups of classes, bins or levels); ``ends`` are the labels of the first and the last edge.
    """

    counts: Array
    edges: Array | None = None
    levels: tuple[str, ...] = ()
    ends: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class ColumnFacts:
    """One column: its kind and the reason for it, its content, and its mutual information with the class."""

    name: str
    kind: str
    reason: str
    missing: int
    distinct: int
    information: float
    """Mutual information with the class in bits, corrected for bias."""
    range: str
    picture: Picture | None = None


@dataclass(frozen=True)
class TableFacts:
    """The table: its columns by decreasing information; ``groups`` are the names of the classes in the pictures."""

    rows: int
    unlabeled: int
    missing: int
    duplicates: int | None
    classes: tuple[ClassCount, ...]
    groups: tuple[str, ...]
    columns: tuple[ColumnFacts, ...]
    read_rows: int
    """Number of rows from which pictures and information were computed."""


@dataclass(frozen=True)
class Interval:
    """A mean over folds with its confidence interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class MethodFacts:
    """Scores of a model with a training rule on held-out rows."""

    name: str
    model: str
    rule: str
    error: Interval
    log_loss: Interval
    training_error: float
    seconds: float
    difference: Interval
    """Its log loss minus that of the first method, fold by fold; the intervals of all methods hold together."""


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
    """All methods, lowest log loss first."""

    methods: tuple[MethodFacts, ...]
    ranks: RankFacts | None
    chosen: tuple[str, str] | None
    """Model and rule that the report describes: the default unless another one is better beyond doubt; None if not compared."""
    close: int
    """Number of methods that cannot be distinguished from the first."""
    folds: int
    rows: int
    all_rows: int
    notes: Mapping[str, int]
    """Warning -> number of fits that gave it."""


@dataclass(frozen=True)
class Curve:
    """Scores by iteration of a rule, or by total step of an ensemble member; empty where they are not known."""

    name: str
    steps: Array
    error: Array
    held_out_error: Array
    log_loss: Array
    held_out_log_loss: Array
    best: int


@dataclass(frozen=True)
class CurveFacts:
    """Learning curves, and a description of them."""

    curves: tuple[Curve, ...]
    label: str
    """Label of the horizontal axis."""
    about: str


@dataclass(frozen=True)
class ProbabilityBin:
    """Rows of similar probability: the mean predicted probability, and the observed share with its interval."""

    predicted: float
    observed: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True)
class Tradeoff:
    """ROC and gain curves of one class against all others."""

    name: str
    auc: float
    false_positive_rate: Array
    true_positive_rate: Array
    share: Array
    """Share of all rows, those of highest probability first."""
    found: Array
    """Share of the rows of the class that are among them."""
    frequency: float


@dataclass(frozen=True)
class Threshold:
    """Average cost of two-class predictions by the threshold on the probability of one class."""

    name: str
    other: str
    thresholds: Array
    costs: Array
    best: float
    honest_cost: float
    """Average cost on each half of the rows at the threshold that was chosen on the other half."""
    usual_cost: float
    """Average cost at the threshold ``usual``."""
    usual: float
    """The threshold that is optimal for the costs if the probabilities are calibrated."""


@dataclass(frozen=True)
class QualityFacts:
    """Quality of the predictions for held-out rows."""

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
    bins: tuple[ProbabilityBin, ...]
    calibrated: str
    """The class whose probability the bins are about."""
    calibration_error: float
    tradeoffs: tuple[Tradeoff, ...]
    threshold: Threshold | None
    costs: Array | None
    cost: float | None
    """Average cost if the class of least expected cost is predicted; None without costs."""
    cost_of_likely: float | None
    """Average cost if the most probable class is predicted; None without costs."""


@dataclass(frozen=True)
class Contribution:
    """Contribution of a column to the log odds of a row."""

    column: str
    value: str
    contribution: float


@dataclass(frozen=True)
class RowReasons:
    """Contributions of the columns to the prediction of one row."""

    row: int
    why_shown: str
    label: str
    decided: str
    probability: float
    """Probability of the predicted class ``decided``."""
    other: str
    other_probability: float
    """The second most probable class, and its probability."""
    log_odds: float
    """Of the predicted class against the other one: the sum of the contributions."""
    contributions: tuple[Contribution, ...]
    rest: float
    """Sum of the contributions that are not listed."""


@dataclass(frozen=True)
class ReasonFacts:
    """Mean absolute contributions of the columns, largest first, and the contributions in single rows."""

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
    """Column, value and p-value of its least probable cells."""


@dataclass(frozen=True)
class SurpriseFacts:
    """The rows of lowest density."""

    rows: tuple[SurprisingRow, ...]
    about: str
    scored: int
    expected: float
    """Share of the rows with a p-value of at most one percent."""
    left_out: int
    """Number of columns that are not part of the density."""


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
    """The complete content of a report."""

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
