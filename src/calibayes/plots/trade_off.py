"""Cross-validated loss as a function of lam, from generative to discriminative training."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.estimators.presets.trade_off import TradeOffCV
from calibayes.plots.axes import axes_or_new


def plot_trade_off(model: TradeOffCV, *, ax: Any = None) -> Any:
    """Plot mean and standard error of the held-out score over the folds against lam; marks the chosen lam.

    Examples
    --------
    >>> from calibayes import GaussianNB, TradeOffCV
    >>> from sklearn.datasets import load_iris
    >>> model = TradeOffCV(GaussianNB(), lams=(1.0, 0.5), cv=3).fit(*load_iris(return_X_y=True))
    >>> axes = plot_trade_off(model)
    """
    axes = axes_or_new(ax, 4.0)
    lam, losses = model.cv_results_["lam"], model.cv_results_[model.scoring]
    mean, standard_error = losses.mean(axis=1), losses.std(axis=1) / np.sqrt(losses.shape[1])
    axes.fill_between(lam, mean - standard_error, mean + standard_error, alpha=0.2)
    axes.plot(lam, mean, marker="o")
    axes.axvline(model.lam_, color="black", linewidth=0.8, linestyle="--")
    axes.set_xlabel("lam (1: generative, 0: discriminative)")
    axes.set_ylabel(f"held-out {model.scoring.replace('_', ' ')}")
    axes.set_title(f"lam = {model.lam_:g} has the lowest held-out loss", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return axes
