"""Learning curves: errors and losses over the updates of an iterative rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.ensemble.bayes import PosteriorAverage
from calibayes.ensemble.fitted_ensemble import FREQUENCIES, TREES
from calibayes.estimators.trade_off import TradeOffCV
from calibayes.plots.figures import MAIN, Display, legend_label, literal


class HistoryDisplay(Display):
    """A quantity of ``history_`` over the updates of a rule, a curve for each training.

    Make it with `from_estimator` or `from_histories`.

    Parameters
    ----------
    curves : mapping
        Name -> values before the first update, after the first, and so on.
    quantity : str
        Name of the quantity, for the label of the axis.

    Attributes
    ----------
    lines_ : list of matplotlib lines
        In the order of ``curves``.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load
    >>> from calibayes.plots import HistoryDisplay
    >>> X, y = load("penguins", return_X_y=True)
    >>> display = HistoryDisplay.from_estimator(NaiveBayes().fit(X, y), quantity="error")
    >>> values = display.curves["NaiveBayes"]
    >>> bool(values[-1] < values[0])
    True
    """

    def __init__(self, curves: Mapping[str, Array], *, quantity: str) -> None:
        self.curves, self.quantity = dict(curves), quantity

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        quantity: str = "soft_error",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> HistoryDisplay:
        """Draw the training of a fitted classifier, or of the members of an ensemble that have a history.

        Parameters
        ----------
        estimator : fitted classifier of this package
        quantity : str, default="soft_error"
            A key of ``history_``: "soft_error" (mean of 1 - p(true class)), "error", "log_loss", "objective", ...
        name : str, optional
            For the legend; by default the name of the class of the estimator. Curves of an ensemble have the names of its
            members.
        ax : matplotlib axes, optional
        **kwargs
            For the lines, as in ``matplotlib.axes.Axes.plot``.

        Returns
        -------
        HistoryDisplay
        """
        check_is_fitted(estimator)
        members = getattr(estimator, "models_", {name or type(estimator).__name__: estimator})
        histories = {key: getattr(member, "history_", {}) for key, member in members.items()}
        iterative = {key: history for key, history in histories.items() if len(history)}
        if not iterative:
            raise ValueError(
                f"{type(estimator).__name__} was trained in closed form and has no history: fit it with an iterative rule, "
                "such as rule='rc'"
            )
        return cls.from_histories(iterative, quantity=quantity, ax=ax, **kwargs)

    @classmethod
    def from_histories(
        cls,
        histories: Mapping[str, Mapping[str, Array]],
        *,
        quantity: str = "soft_error",
        ax: Any = None,
        **kwargs: Any,
    ) -> HistoryDisplay:
        """Draw several trainings: name -> ``history_`` of a fitted classifier."""
        for name, history in histories.items():
            if quantity not in history:
                raise ValueError(
                    f"the history of {name} has no {quantity!r}: give one of {', '.join(map(repr, history))}"
                )
        curves = {name: np.asarray(history[quantity]) for name, history in histories.items()}
        return cls(curves, quantity=quantity).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> HistoryDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, self.lines_ = self.draw_on(ax, 4.5), []
        for number, (name, values) in enumerate(self.curves.items()):
            options = {"color": f"C{number % 10}", "label": legend_label(name), **kwargs}
            self.lines_ += axes.plot(np.arange(len(values)), values, **options)
        label = f"{self.quantity.replace('_', ' ')} of the training rows"
        axes.set(xlabel="updates of the rule", ylabel=label)
        axes.legend(frameon=False)
        return self


# -- Cross-validated loss as a function of lam, from generative to discriminative training -------------------


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
        mean, error = self.losses.mean(axis=1), self.losses.std(axis=1) / np.sqrt(self.losses.shape[1])
        (self.line_,) = axes.plot(self.lam, mean, **{"marker": "o", "color": MAIN, **kwargs})
        shade = {"alpha": 0.2, "color": self.line_.get_color()}
        self.band_ = axes.fill_between(self.lam, mean - error, mean + error, **shade)
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


# -- Stacked bars of how much each member of an ensemble contributes to the decisions ------------------------


class MembersDisplay(Display):
    """For each predicted class, the mean share of each member of an ensemble in the probability of that class.

    Classes that are predicted for no row are omitted. Make it with `from_estimator`.

    Parameters
    ----------
    shares : (c, members) array
        Mean shares by predicted class.
    classes : c names
    rows : (c,) integers
        Rows that each class is predicted for.
    members : names of the members

    Attributes
    ----------
    bars_ : list of matplotlib containers
        One for each member.
    ax_, figure_ : matplotlib axes and figure

    Examples
    --------
    >>> from calibayes import BayesClassifier
    >>> from calibayes.plots import MembersDisplay
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> display = MembersDisplay.from_estimator(BayesClassifier().fit(X, y), X)
    >>> display.rows.sum(), display.shares.sum(axis=1).round(6).tolist()
    (np.int64(150), [1.0, 1.0, 1.0])
    """

    def __init__(
        self, shares: Array, *, classes: tuple[str, ...], rows: Array, members: tuple[str, ...]
    ) -> None:
        self.shares, self.classes, self.rows, self.members = shares, classes, rows, members

    @classmethod
    def from_estimator(
        cls, estimator: PosteriorAverage, X: Any, *, ax: Any = None, **kwargs: Any
    ) -> MembersDisplay:
        """Draw the shares of the members in the predictions for these rows; ``kwargs`` are for the bars (``barh``)."""
        shares, predicted = estimator.shares(X), np.argmax(estimator.predict_proba(X), axis=1)
        present, rows = np.unique(predicted, return_counts=True)
        means = np.stack([shares[predicted == code].mean(axis=0) for code in present])
        trees = () if estimator.fitted_.grown is None else (TREES,)
        members = (*estimator.models_, FREQUENCIES, *trees)
        classes = tuple(str(estimator.classes_[code]) for code in present)
        return cls(means, classes=classes, rows=rows, members=members).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> MembersDisplay:
        """Draw on these axes, or on those of a new figure. Returns the display."""
        axes, self.bars_ = self.draw_on(ax, 1.5 + 0.35 * len(self.classes)), []
        heights, left = np.arange(len(self.classes))[::-1], np.zeros(len(self.classes))
        for number, name in enumerate(self.members):
            options = {"color": f"C{number % 10}", "label": legend_label(name), **kwargs}
            self.bars_.append(axes.barh(heights, self.shares[:, number], left=left, **options))
            left = left + self.shares[:, number]
        pairs = zip(self.classes, self.rows, strict=True)
        axes.set_yticks(heights, [literal(f"{name} ({n})") for name, n in pairs])
        axes.set(xlim=(0.0, 1.0), xlabel="share in the probability of the predicted class")
        axes.set_title(f"Contribution of the members, mean over {self.rows.sum()} rows", loc="left")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return self


def plot_members(model: PosteriorAverage, X: Any, *, ax: Any = None) -> Any:
    """Draw the shares of the members of an ensemble (`MembersDisplay`); returns the axes.

    Examples
    --------
    >>> from calibayes import GaussianNB, LinearDiscriminantAnalysis, PosteriorMixture
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("nb", GaussianNB(rule="ml")), ("lda", LinearDiscriminantAnalysis(rule="ml"))]
    >>> axes = plot_members(PosteriorMixture(models=members).fit(X, y), X)
    """
    return MembersDisplay.from_estimator(model, X, ax=ax).ax_
