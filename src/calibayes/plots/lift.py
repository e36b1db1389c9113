"""Gain and lift: how many rows of a class are found among the rows of highest probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.plots.display import MAIN, QUIET, Display, legend_label, literal
from calibayes.plots.scores import ScoredRows, rows_of_estimator, rows_of_predictions


class LiftDisplay(Display):
    """Gain and lift of a class among the rows of highest predicted probability.

    The gain is the share of the rows of the class that are among them. The lift is the gain divided by that of rows in random
    order.

    Make it with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    share : (m,) array
        Share of all rows that are selected, those of highest probability first.
    gain : (m,) array
        Share of the rows of the class that are among the selected rows.
    frequency : float
        Share of the class among all rows.
    pos_label : label
    kind : {"gain", "lift"}
    name : str, optional

    Attributes
    ----------
    lift : (m,) array
        Ratio ``gain / share``.
    line_, chance_ : matplotlib artists
        The curve, and that of rows in random order.
    best_ : matplotlib artist or None
        The gain if all rows of the class came first; None for the lift.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes.plots import LiftDisplay
    >>> display = LiftDisplay.from_predictions([0, 1, 0, 1], [0.1, 0.9, 0.6, 0.7])
    >>> display.gain.tolist(), display.lift.tolist()
    ([0.5, 1.0, 1.0, 1.0], [2.0, 2.0, 1.3333333333333333, 1.0])
    """

    def __init__(
        self,
        share: Array,
        gain: Array,
        *,
        frequency: float,
        pos_label: Any,
        kind: str = "gain",
        name: str | None = None,
    ) -> None:
        if kind not in ("gain", "lift"):
            raise ValueError(f"kind must be 'gain' or 'lift', got {kind!r}")
        self.share, self.gain, self.frequency = share, gain, frequency
        self.pos_label, self.kind, self.name = pos_label, kind, name

    @property
    def lift(self) -> Array:
        """Frequency of the class among the selected rows, divided by its frequency among all rows, (m,)."""
        return self.gain / self.share

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        kind: str = "gain",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> LiftDisplay:
        """Draw gain or lift of a classifier on labeled rows that it was not trained on.

        Parameters
        ----------
        estimator : fitted classifier with `predict_proba`
        X, y : rows and labels, optional
            Without them, the held-out rows of a classifier of this package (``held_out_``).
        sample_weight : (n,) array, optional
        pos_label : label, optional
            The class whose rows are counted; by default the second of two.
        kind : {"gain", "lift"}
        name, ax, **kwargs
            As in `ReliabilityDisplay.from_estimator`.

        Returns
        -------
        LiftDisplay
        """
        rows = rows_of_estimator(estimator, X, y, sample_weight)
        label = type(estimator).__name__ if name is None else name
        return cls._of(rows, pos_label, kind, label).plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        classes: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        kind: str = "gain",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> LiftDisplay:
        """Draw gain or lift of given probabilities, (n, k), or (n,) for ``pos_label``.

        ``classes`` are the classes of the columns, by default the sorted labels. The other parameters are those of
        `from_estimator`.
        """
        rows = rows_of_predictions(
            y_true, y_prob, classes=classes, sample_weight=sample_weight, pos_label=pos_label
        )
        return cls._of(rows, pos_label, kind, name).plot(ax=ax, **kwargs)

    @classmethod
    def _of(cls, rows: ScoredRows, pos_label: Any, kind: str, name: str | None) -> LiftDisplay:
        positive = rows.position(pos_label)
        is_positive = rows.codes == positive
        if not is_positive.any():
            raise ValueError(f"no row is of class {rows.classes[positive]!r}")
        # Rows of equal probability are selected together.
        places = np.unique(-rows.probabilities[:, positive], return_inverse=True)[1].reshape(-1)
        share = np.cumsum(np.bincount(places, rows.weight))
        gain = np.cumsum(np.bincount(places, rows.weight * is_positive))
        frequency = float(gain[-1] / share[-1])
        return cls(
            share / share[-1],
            gain / gain[-1],
            frequency=frequency,
            pos_label=rows.classes[positive],
            kind=kind,
            name=name,
        )

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> LiftDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, name = self.draw_on(ax, 4.5), self.name if name is None else name
        is_gain = self.kind == "gain"
        x = np.append(0.0, self.share) if is_gain else self.share
        y = np.append(0.0, self.gain) if is_gain else self.lift
        options = {"color": MAIN, "label": legend_label(f"class {self.pos_label}" if name is None else name)}
        self.best_ = None
        quiet = {"color": QUIET, "linewidth": 1}
        if is_gain:
            (self.best_,) = axes.plot(
                [0, self.frequency, 1], [0, 1, 1], linestyle="--", label="perfect order", **quiet
            )
        (self.chance_,) = axes.plot(
            [0, 1], [0, 1] if is_gain else [1, 1], linestyle=":", label="random order", **quiet
        )
        (self.line_,) = axes.plot(x, y, **{**options, **kwargs})
        axes.set_xlim(0.0, 1.0)
        axes.set_ylim(bottom=0.0)
        axes.set_xlabel("share of the rows, highest probability first")
        gain = f"share of the rows of class {self.pos_label} among them"
        axes.set_ylabel(literal(gain if is_gain else f"lift of class {self.pos_label}"))
        axes.legend(frameon=False)
        return self
