"""Reliability diagram (calibration curve): predicted probabilities against observed frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from calibayes.core.protocols import Array
from calibayes.model.parameters import whole_number
from calibayes.plots.figures import MAIN, REFERENCE, Display, legend_label, literal

# -- Labels and predicted probabilities of rows: of an estimator and new rows, of its held-out rows, or given as arrays

TOLERANCE = 1e-9
"""Probabilities may be outside of 0 and 1 by so much, as sums with rounding errors are."""
MARKED = {"color": MAIN, "marker": "o", "markersize": 4}
"""Style of a curve with points."""
DEVIATIONS = 1.96
"""Half the width of a 95 % interval of the normal distribution, in standard deviations."""


@dataclass(frozen=True)
class ScoredRows:
    """Rows of positive weight, each with a label and the probabilities of the classes.

    Attributes
    ----------
    codes : (n,) integers
        Class of each row, a position in ``classes``.
    probabilities : (n, k) array
    classes : (k,) array
    weight : (n,) array
    """

    codes: Array
    probabilities: Array
    classes: Array
    weight: Array

    def position(self, pos_label: Any = None) -> int:
        """Position of a class among ``classes``; None is the second of two classes.

        Raises ValueError if there is no such class, or ``pos_label`` is None and there are not two classes.
        """
        classes = self.classes.tolist()
        if pos_label is None:
            if len(classes) != 2:
                raise ValueError(f"pos_label must be given for {len(classes)} classes: one of {classes}")
            return 1
        positions = np.flatnonzero(self.classes == pos_label)
        if not len(positions):
            raise ValueError(f"pos_label={pos_label!r} is not among the classes: give one of {classes}")
        return int(positions[0])


def rows_of_estimator(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> ScoredRows:
    """The rows X with labels y and the estimator's probabilities; without X and y, its held-out rows (``held_out_``).

    Raises ValueError if only one of X and y is given, if there are no held-out rows, or if weights are given for them.
    """
    check_is_fitted(estimator)
    if (X is None) != (y is None):
        raise ValueError("give both X and y, or neither for the held-out rows of the estimator")
    if X is not None:
        return rows_of_predictions(y, estimator.predict_proba(X), estimator.classes_, sample_weight)
    if sample_weight is not None:
        raise ValueError("sample_weight is for the rows of X: give X and y as well, or leave it out")
    record = getattr(estimator, "held_out_", None)
    if record is None:
        raise ValueError(f"{type(estimator).__name__} has no held-out rows (held_out_): give X and y")
    classes = np.asarray(estimator.classes_)
    return _with_weight(record.codes, np.exp(record.log_posterior), classes, record.weight)


def rows_of_predictions(
    y_true: Any,
    y_prob: Any,
    classes: Sequence[Any] | Array | None = None,
    sample_weight: Any = None,
    pos_label: Any = None,
) -> ScoredRows:
    """Rows with labels and given probabilities, (n, k), or (n,) for ``pos_label``, by default the second of two classes.

    Raises ValueError if the shapes or labels do not agree, or if numbers are not probabilities.
    """
    labels, values = column_or_1d(y_true), np.asarray(y_prob, dtype=np.float64)
    names = np.unique(labels) if classes is None else np.asarray(classes)
    if values.ndim == 1:
        is_of_first = pos_label is not None and bool(np.any(names[:1] == pos_label))
        values = np.column_stack([values, 1 - values] if is_of_first else [1 - values, values])
    if values.ndim != 2:
        raise ValueError(f"y_prob must be an array of shape (n,) or (n, k), got shape {values.shape}")
    check_consistent_length(labels, values)
    if values.shape[1] != len(names):
        raise ValueError(
            f"y_prob has probabilities of {values.shape[1]} classes, but there are {len(names)} classes: {names.tolist()}. "
            "Give the class of each column as classes="
        )
    if not ((values >= -TOLERANCE) & (values <= 1 + TOLERANCE)).all():
        raise ValueError("y_prob must be probabilities between 0 and 1")
    if not np.isin(labels, names).all():
        raise ValueError(f"y_true has labels that are not among the classes {names.tolist()}")
    order = np.argsort(names)
    codes = order[np.searchsorted(names[order], labels)]
    weight = _checked_weight(sample_weight, len(labels))
    return _with_weight(codes, np.clip(values, 0.0, 1.0), names, weight)


def _checked_weight(sample_weight: Any, n: int) -> Array:
    """Weights of n rows, 1 by default. Raises ValueError if they are not n finite numbers of 0 or more."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise ValueError(
            f"sample_weight must be an array of shape ({n},) of finite numbers of 0 or more, and not all 0"
        )
    return weight


def _with_weight(codes: Array, probabilities: Array, classes: Array, weight: Array) -> ScoredRows:
    """The rows whose weight is not 0: others would make groups of rows without weight, whose means are 0 / 0."""
    used = weight > 0
    return ScoredRows(codes[used], probabilities[used], classes, weight[used])


def wilson_interval(share: Array, rows: Array) -> tuple[Array, Array]:
    """Lower and upper ends of 95 % Wilson intervals (Wilson 1927), (m,) each, of shares (m,) of numbers of rows (m,)."""
    square = DEVIATIONS**2 / rows
    middle = (share + square / 2) / (1 + square)
    spread = DEVIATIONS / (1 + square) * np.sqrt(share * (1 - share) / rows + square / (4 * rows))
    return np.minimum(middle - spread, share), np.maximum(middle + spread, share)


def effective_rows(weight: Array) -> float:
    """Number of rows of equal weight whose mean has the same variance (effective sample size, Kish 1965)."""
    return float(weight.sum() ** 2 / (weight**2).sum())


# -- Reliability diagram (calibration curve): predicted probabilities against observed frequencies -----------


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Reliability diagram: in groups of rows, the share of rows of a class against its mean predicted probability.

    Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    prob_true, prob_pred : (m,) arrays
        Share of the rows of each group that are of the class, and mean predicted probability of the class.
    lower, upper : (m,) arrays
        95 % intervals of ``prob_true``.
    rows : (m,) array
        Number of rows in each group, or the sum of their weights.
    label : str
        The class or classes whose probability is drawn, for the labels of the axes.
    name : str, optional
        For the legend.

    Attributes
    ----------
    calibration_error : float
        Mean absolute difference of ``prob_true`` and ``prob_pred``, weighted by ``rows`` (expected calibration error).
    line_, bars_, diagonal_ : matplotlib artists
        The curve, its intervals and the diagonal.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load
    >>> from calibayes.plots import ReliabilityDisplay
    >>> from sklearn.model_selection import train_test_split
    >>> X, X_new, y, y_new = train_test_split(*load("penguins", return_X_y=True), random_state=0, test_size=0.5)
    >>> display = ReliabilityDisplay.from_estimator(NaiveBayes(rule="ml").fit(X, y), X_new, y_new)
    >>> bool(display.calibration_error < 0.05)
    True
    """

    prob_true: Array
    prob_pred: Array
    _: KW_ONLY
    lower: Array
    upper: Array
    rows: Array
    label: str
    name: str | None = None

    @property
    def calibration_error(self) -> float:
        """Expected calibration error: mean absolute difference of share and probability, weighted by the rows."""
        return float(np.average(np.abs(self.prob_true - self.prob_pred), weights=self.rows))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        n_bins: int = 10,
        strategy: str = "quantile",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the reliability of a classifier on labeled rows that it was not trained on.

        Parameters
        ----------
        estimator : fitted classifier with `predict_proba`
        X, y : rows and labels, optional
            Without them, the held-out rows of a classifier of this package (``held_out_``).
        sample_weight : (n,) array, optional
        n_bins : int, default=10
            Number of groups.
        strategy : {"quantile", "uniform"}
            Groups of equally many rows, or of equally wide ranges of the probability.
        pos_label : label, optional
            The class whose probability is drawn; by default the predicted class of each row.
        name : str, optional
            For the legend; by default the name of the class of the estimator.
        ax : matplotlib axes, optional
        **kwargs
            For the line, as in ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        ReliabilityDisplay
        """
        rows = rows_of_estimator(estimator, X, y, sample_weight)
        label = type(estimator).__name__ if name is None else name
        return cls._of(rows, n_bins, strategy, pos_label, label).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        n_bins: int = 10,
        strategy: str = "quantile",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the reliability of given probabilities.

        Parameters
        ----------
        y_true : (n,) labels
        y_prob : (n, k) or (n,) array
            Probabilities of all classes, or of ``pos_label``, which is then by default the second of two classes.
        classes : (k,) labels, optional
            The class of each column of ``y_prob``; by default the sorted labels.
        sample_weight, n_bins, strategy, pos_label, name, ax, **kwargs
            As in `from_estimator`; there is no default ``name``.

        Returns
        -------
        ReliabilityDisplay
        """
        rows = rows_of_predictions(y_true, y_prob, classes, sample_weight, pos_label)
        if np.ndim(y_prob) == 1 and pos_label is None:
            pos_label = rows.classes[1]
        return cls._of(rows, n_bins, strategy, pos_label, name).plot(ax=ax, **kwargs)

    @classmethod
    def _of(
        cls, rows: ScoredRows, n_bins: int, strategy: str, pos_label: Any, name: str | None
    ) -> ReliabilityDisplay:
        if pos_label is None:
            predicted = rows.probabilities.argmax(axis=1)
            probability, is_true = rows.probabilities.max(axis=1), predicted == rows.codes
            label = "the predicted class"
        else:
            place, label = rows.position(pos_label), f"class {pos_label}"
            probability, is_true = rows.probabilities[:, place], rows.codes == place
        groups = _groups(probability, n_bins, strategy)
        members = [groups == group for group in np.unique(groups)]
        weights = [rows.weight[rows_in] for rows_in in members]
        prob_true, prob_pred = (
            np.array([np.average(values[m], weights=w) for m, w in zip(members, weights, strict=True)])
            for values in (is_true, probability)
        )
        count = np.array([effective_rows(w) for w in weights])
        lower, upper = wilson_interval(prob_true, count)
        total = np.array([w.sum() for w in weights])
        return cls(prob_true, prob_pred, lower=lower, upper=upper, rows=total, label=label, name=name)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> ReliabilityDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, name = self.draw_on(ax, 5.0), self.name if name is None else name
        error = f"calibration error {self.calibration_error:.3f}"
        label = legend_label(error if name is None else f"{name} ({error})")
        (self.diagonal_,) = axes.plot([0, 1], [0, 1], linestyle=":", **REFERENCE)
        (self.line_,) = axes.plot(self.prob_pred, self.prob_true, **{**MARKED, "label": label, **kwargs})
        self.bars_ = _whiskers(axes, self.line_, self.lower, self.upper)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        axes.set_xlabel(literal(f"mean probability of {self.label}"))
        axes.set_ylabel(literal(f"share of rows where {self.label} is true (bars: 95 %)"))
        axes.legend(frameon=False, loc="upper left")
        return self


def _whiskers(axes: Any, line: Any, lower: Array, upper: Array) -> Any:
    """Vertical intervals at the points of a line, in its color."""
    return axes.vlines(line.get_xdata(), lower, upper, color=line.get_color(), linewidth=1, alpha=0.6)


def _groups(probability: Array, n_bins: int, strategy: str) -> Array:
    """The group of each row, (n,) integers."""
    count = whole_number("n_bins", n_bins, 1)
    inner = np.arange(1, count) / count
    if strategy == "quantile":
        return np.searchsorted(np.unique(np.quantile(probability, inner)), probability, side="right")
    if strategy == "uniform":
        return np.searchsorted(inner, probability, side="right")
    raise ValueError(f"strategy must be 'quantile' or 'uniform', got {strategy!r}")


# -- Observed coverage and mean size of prediction sets ------------------------------------------------------

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


class CoverageDisplay(Display):
    """Share of rows whose prediction set contains the true class (observed coverage), against the nominal coverage.

    The numbers at the points are mean numbers of classes in a set. Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    stated, observed : (m,) arrays
        Nominal coverage, and share of the rows whose set contains their class.
    size : (m,) array
        Mean number of classes in a set.
    n_rows : int
    name : str, optional

    Attributes
    ----------
    line_, bars_, diagonal_ : matplotlib artists
        The curve, 95 % intervals, and the diagonal.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from calibayes.plots import CoverageDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GaussianNB().fit(X[::3], y[::3]).with_held_out(X[1::3], y[1::3])
    >>> display = CoverageDisplay.from_estimator(model, X[2::3], y[2::3], coverages=[0.8, 0.9])
    >>> display.observed.shape, bool((display.size > 0.5).all())
    ((2,), True)
    """

    def __init__(
        self, stated: Array, observed: Array, size: Array, *, n_rows: int, name: str | None = None
    ) -> None:
        self.stated, self.observed, self.size = stated, observed, size
        self.n_rows, self.name = n_rows, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        coverages: Sequence[float] = COVERAGES,
        by_class: bool = False,
        score: Any = "probability",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CoverageDisplay:
        """Draw the coverage of `predict_set` on labeled rows that are neither training rows nor held-out rows of the model.

        Parameters
        ----------
        estimator : fitted classifier of this package
        X, y : rows and labels
        coverages : numbers between 0 and 1
        by_class, score
            As in `predict_set`.
        name : str, optional
            For the legend; by default the name of the class of the estimator.
        ax : matplotlib axes, optional
        **kwargs
            For the line, as in ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        CoverageDisplay
        """
        sets = {level: estimator.predict_set(X, level, by_class=by_class, score=score) for level in coverages}
        label = type(estimator).__name__ if name is None else name
        return cls.from_predictions(y, sets, classes=estimator.classes_, name=label, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        sets: Mapping[float, Any],
        *,
        classes: Any = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CoverageDisplay:
        """Draw given prediction sets.

        Parameters
        ----------
        y_true : (n,) labels
        sets : mapping
            Nominal coverage -> (n, k) booleans: whether the set of a row contains a class.
        classes : (k,) labels, optional
            The class of each column of the sets; by default the sorted labels.
        name, ax, **kwargs
            As in `from_estimator`; there is no default ``name``.

        Returns
        -------
        CoverageDisplay
        """
        labels = column_or_1d(y_true)
        names = np.unique(labels) if classes is None else np.asarray(classes)
        is_class = labels[:, None] == names[None, :]
        if not is_class.any(axis=1).all():
            raise ValueError(f"y_true has labels that are not among the classes {names.tolist()}")
        if not sets:
            raise ValueError(
                "sets must be a dictionary coverage -> booleans of shape (n, k), got an empty one"
            )
        stated = np.array(sorted(sets), dtype=np.float64)
        members = [_checked_sets(sets[level], is_class) for level in stated.tolist()]
        observed = np.array([(is_member & is_class).any(axis=1).mean() for is_member in members])
        size = np.array([is_member.sum(axis=1).mean() for is_member in members])
        return cls(stated, observed, size, n_rows=len(labels), name=name).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> CoverageDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, name = self.draw_on(ax, 5.0), self.name if name is None else name
        low = float(min(self.stated.min(), self.observed.min())) - 0.03
        lower, upper = wilson_interval(self.observed, np.full(len(self.observed), float(self.n_rows)))
        label = legend_label("prediction sets" if name is None else name)
        (self.diagonal_,) = axes.plot([low, 1], [low, 1], linestyle=":", **REFERENCE)
        (self.line_,) = axes.plot(self.stated, self.observed, **{**MARKED, "label": label, **kwargs})
        self.bars_ = _whiskers(axes, self.line_, lower, upper)
        for x, y, size in zip(self.stated, self.observed, self.size, strict=True):
            axes.annotate(f"{size:.2f}", (x, y), (5, -11), textcoords="offset points", fontsize="small")
        axes.set(xlim=(low, 1.02), xlabel="nominal coverage", ylabel="observed coverage (bars: 95 %)")
        axes.set_title(f"{self.n_rows} rows; numbers: mean size of a set", loc="left")
        axes.legend(frameon=False, loc="upper left")
        return self


def _checked_sets(sets: Any, is_class: Array) -> Array:
    is_member = np.asarray(sets, dtype=bool)
    if is_member.shape != is_class.shape:
        raise ValueError(
            f"sets must be booleans of shape {is_class.shape}, rows by classes, got shape {is_member.shape}"
        )
    return is_member
