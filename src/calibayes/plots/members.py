"""Which member of a mixture decides what, as stacked bars."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.estimators.averaged import FREQUENCIES, Averaged
from calibayes.plots.axes import axes_or_new


def plot_members(model: Averaged, X: Any, *, ax: Any = None) -> Any:
    """For each class, how much of the probability with which it was decided the members brought, on average.

    Rows are counted with the class that is most probable for them; a class that none has is left out. Returns the axes.
    """
    shares, decided = model.shares(X), np.argmax(model.predict_proba(X), axis=1)
    present = np.unique(decided)
    means = np.stack([shares[decided == code].mean(axis=0) for code in present])
    axes = axes_or_new(ax, 1.5 + 0.35 * len(present))
    places, left = np.arange(len(present))[::-1], np.zeros(len(present))
    for number, name in enumerate((*model.models_, FREQUENCIES)):
        axes.barh(places, means[:, number], left=left, color=f"C{number % 10}", label=name)
        left = left + means[:, number]
    labels = [f"{model.classes_[code]} ({np.sum(decided == code)})" for code in present]
    axes.set_yticks(places, labels)
    axes.set_xlim(0.0, 1.0)
    axes.set_xlabel("share of the probability of the decided class")
    axes.set_title(f"Who decides, over {len(decided)} rows", loc="left")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.spines[["top", "right"]].set_visible(False)
    return axes
