"""The picture of the leaderboard: Elo ratings with their intervals."""

from __future__ import annotations

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from leaderboard.models import OURS
from leaderboard.standings import HIGHEST, LOWEST

INK, ACCENT = "#444444", "#c44e00"


def draw_ratings(elo, path):
    """A dot and an interval for each model, the highest rating on top; ours in another color."""
    models = list(elo.points.index)[::-1]
    figure = Figure(figsize=(7.0, 0.9 + 0.32 * len(models)), layout="constrained")
    axes = figure.add_subplot()
    for height, model in enumerate(models):
        color = ACCENT if model in OURS else INK
        axes.plot(np.clip(elo.interval(model), LOWEST, HIGHEST), [height, height], color=color, linewidth=2)
        axes.plot(np.clip([elo.points[model]], LOWEST, HIGHEST), [height], "o", color=color)
    axes.set_yticks(np.arange(len(models)), models)
    axes.set_ylim(-0.7, len(models) - 0.3)
    for label in axes.get_yticklabels():
        label.set_color(ACCENT if label.get_text() in OURS else INK)
    axes.set_xlabel("Elo rating, with 95 % interval (RandomForest = 1000)")
    axes.grid(axis="x", color="#dddddd")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    with rc_context({"svg.hashsalt": "leaderboard"}):  # the same picture every time
        figure.savefig(path, metadata={"Date": None})
