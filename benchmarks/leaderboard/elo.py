"""Elo ratings by pairwise comparisons, as TabArena computes them, with intervals by a bootstrap over tables.

On each fold of a table the model with the lower loss wins (a tie is half a win for either), and every table has weight one.
The ratings are the maximum likelihood estimate of the Bradley-Terry model on the Elo scale, on which 400 points are odds
of 10 to 1. `bencheval`, the package that TabArena uses, computes them where it is installed; without it the same model is
fitted here.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize

REFERENCE, REFERENCE_RATING = "RandomForest", 1000.0
DRAWS, LEVEL = 200, 0.95
RIDGE = 5e-7
"""Weight of the squared ratings (in units of log odds), so that a model that wins always has a finite rating."""
POINTS = 400 / np.log(10)
"""Elo points for each unit of log odds."""


@dataclass(frozen=True)
class Ratings:
    """Elo ratings by model, and the draws of the bootstrap, a line for each."""

    points: pd.Series
    draws: pd.DataFrame

    def interval(self, model):
        """Lower and upper end, at the level LEVEL."""
        return np.quantile(self.draws[model], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])

    def difference(self, model, other):
        """The difference of two ratings, its interval, and the share of draws in which it is positive."""
        draws = self.draws[model] - self.draws[other]
        ends = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return self.points[model] - self.points[other], ends, float(np.mean(draws > 0))


def ratings(losses):
    """Elo ratings from a data frame with the columns table, model, fold and loss.

    The ratings are shifted so that the reference has its fixed rating, if it is there, in the estimate but not in every
    draw: so the reference has an interval, too.
    """
    found = by_bencheval(losses) if has_bencheval() else by_likelihood(losses)
    shift = REFERENCE_RATING - found.points.get(REFERENCE, found.points.mean())
    return Ratings((found.points + shift).sort_values(ascending=False), found.draws + shift)


def has_bencheval():
    return importlib.util.find_spec("bencheval") is not None


def by_bencheval(losses):
    from bencheval.elo_utils import EloHelper

    helper = EloHelper(method_col="model", task_col="table", error_col="loss", split_col="fold")
    battles = helper.convert_results_to_battles(losses)
    draws = helper.compute_elo_ratings(battles, BOOTSTRAP_ROUNDS=DRAWS, show_process=False)
    return Ratings(helper.compute_mle_elo(battles), draws)


def by_likelihood(losses):
    """The same with the functions below."""
    models = sorted(losses["model"].unique())
    wins = np.array([table_wins(table, models) for _, table in losses.groupby("table")])
    rng = np.random.default_rng(0)
    counts = [rng.multinomial(len(wins), np.full(len(wins), 1 / len(wins))) for _ in range(DRAWS)]
    draws = [bradley_terry(np.tensordot(count, wins, axes=1)) for count in counts]
    return Ratings(pd.Series(bradley_terry(wins.sum(axis=0)), models), pd.DataFrame(draws, columns=models))


def table_wins(table, models):
    """(models, models): how often each wins against each on one table, on average over its folds."""
    losses = table.pivot(index="fold", columns="model", values="loss").reindex(columns=models).to_numpy()
    lower, equal = losses[:, :, None] < losses[:, None, :], losses[:, :, None] == losses[:, None, :]
    wins = (lower + 0.5 * equal).sum(axis=0) / len(losses)
    np.fill_diagonal(wins, 0.0)
    return wins


def bradley_terry(wins):
    """Elo ratings around REFERENCE_RATING from the numbers of wins of each model (rows) against each other (columns)."""
    n = len(wins)

    def objective(strengths):
        gaps = strengths[:, None] - strengths[None, :]
        losing = 1 / (1 + np.exp(gaps))
        value = np.sum(wins * np.logaddexp(0, -gaps)) + RIDGE * strengths @ strengths
        slopes = wins * losing
        return value, slopes.sum(axis=0) - slopes.sum(axis=1) + 2 * RIDGE * strengths

    found = minimize(
        objective, np.zeros(n), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-12}
    )
    return REFERENCE_RATING + POINTS * (found.x - found.x.mean())
