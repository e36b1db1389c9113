"""Cross-validated loss as a function of lam, from generative to discriminative training."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.estimators.presets.trade_off import TradeOffCV
from calibayes.plots.display import MAIN, Display


class TradeOffDisplay(Display):
    """Mean and standard error over the folds of the held-out score against lam, and the chosen lam.

    Make it with `from_estimator`.

    Parameters
    ----------
    lam : (m,) array
        1 is generative training, 0 discriminative.
    losses : (m, folds) array
        Held-out scores.
    chosen : float
        The lam of lowest mean score.
    scoring : str
        Name of the score.

    Attributes
    ----------
    line_, band_, chosen_ : matplotlib artists
        The mean, one standard error to either side, and the line at the chosen lam.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import TradeOffCV
    >>> from calibayes.plots import TradeOffDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> display = TradeOffDisplay.from_estimator(TradeOffCV(lams=[1.0, 0.5]).fit(X, y))
    >>> display.losses.shape[0]
    2
    """

    def __init__(self, lam: Array, losses: Array, *, chosen: float, scoring: str) -> None:
        self.lam, self.losses, self.chosen, self.scoring = np.asarray(lam), losses, chosen, scoring

    @classmethod
    def from_estimator(cls, estimator: TradeOffCV, *, ax: Any = None, **kwargs: Any) -> TradeOffDisplay:
        """Draw the path of a fitted `TradeOffCV`; ``kwargs`` are for the line (``plot``)."""
        check_is_fitted(estimator)
        results, scoring = estimator.cv_results_, estimator.scoring
        display = cls(results["lam"], results[scoring], chosen=estimator.lam_, scoring=scoring)
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> TradeOffDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes = self.draw_on(ax, 4.0)
        mean, error = (
            self.losses.mean(axis=1),
            self.losses.std(axis=1) / np.sqrt(self.losses.shape[1]),
        )
        (self.line_,) = axes.plot(self.lam, mean, **{"marker": "o", "color": MAIN, **kwargs})
        self.band_ = axes.fill_between(
            self.lam, mean - error, mean + error, alpha=0.2, color=self.line_.get_color()
        )
        self.chosen_ = axes.axvline(self.chosen, color="black", linewidth=0.8, linestyle="--")
        axes.set_xlabel("lam (1: generative, 0: discriminative)")
        axes.set_ylabel(f"held-out {self.scoring.replace('_', ' ')}")
        axes.set_title(f"lam = {self.chosen:g} has the lowest held-out loss", loc="left")
        return self


def plot_trade_off(model: TradeOffCV, *, ax: Any = None) -> Any:
    """Draw the held-out loss along the path of `TradeOffCV` (`TradeOffDisplay`); returns the axes.

    Examples
    --------
    >>> from calibayes import GaussianNB, TradeOffCV
    >>> from sklearn.datasets import load_iris
    >>> model = TradeOffCV(GaussianNB(), lams=(1.0, 0.5), cv=3).fit(*load_iris(return_X_y=True))
    >>> axes = plot_trade_off(model)
    """
    return TradeOffDisplay.from_estimator(model, ax=ax).ax_
