"""Agarwal, lecture notes on generative models for classification: a worked example of their derivations."""

from __future__ import annotations

from typing import Any

import numpy as np

import calibayes as cb
from calibayes.core.protocols import Array
from calibayes.plots import plot_boundaries
from calibayes.plots.figures import new_figure
from calibayes.reproduction.experiment import Experiment, Paper, Results, Settings, task_key
from calibayes.reproduction.procedures import fit_clone
from calibayes.reproduction.result_tables import ExperimentReport, Figure, NumberPair, TableRow
from calibayes.reproduction.simulations import TwoGaussianClasses, WorkedExample

NAME = "generative-models-notes"

DISTRIBUTION = TwoGaussianClasses(
    probability=0.4,
    means=((0.0, 0.0), (2.0, 1.0)),
    covariances=(((1.0, 0.6), (0.6, 1.0)), ((1.5, -0.7), (-0.7, 0.8))),
)
MODELS = (
    ("LDA", cb.LinearDiscriminantAnalysis(rule="ml")),
    ("QDA", cb.QuadraticDiscriminantAnalysis(rule="ml")),
    ("naive Bayes, Gaussian", cb.GaussianNB(rule="ml", var_smoothing=0.0)),
    ("naive Bayes, 5 levels a column", cb.NaiveBayes(rule="ml", discretize="kmeans", n_bins=5)),
)
COSTS = ((0.0, 1.0), (5.0, 0.0))
"""Cost of each decision (column) for each true class (row)."""

EXAMPLE = WorkedExample(DISTRIBUTION, MODELS, COSTS, training_rows=400, test_rows=100_000)


class Example(Experiment):
    """Table of errors and costs, and figure of the decision boundaries."""

    def task_groups(self, settings: Settings) -> dict[str, list[WorkedExample]]:
        return {"scores": [EXAMPLE]} if settings.datasets is None else {}

    def report(self, results: Results, settings: Settings) -> ExperimentReport:
        columns = ("error", "cost, most probable class", "cost, lowest expected cost")
        rows = []
        for label, scores in results[task_key(EXAMPLE)]["scores"].items():
            pairs = [NumberPair(value, unit=0.0, digits=4) for value in scores]
            rows.append(TableRow(label, dict(zip(columns, pairs, strict=True))))
        note = (
            "Two Gaussian classes with known parameters; 400 training rows, errors and costs on 100,000 test rows. "
            "Deciding for the first class if the second is true costs 5, the opposite error 1. Decisions are for "
            "the most probable class, or for the one with the lowest expected cost under the same posterior."
        )
        figure = Figure(f"{NAME}-{self.name}", draw_boundaries, is_on_site=True)
        return self.report_of(rows, note, figures=(figure,))


def draw_boundaries() -> Any:
    """The training rows, with the decision boundaries of the models and of the Bayes rule."""
    columns, target = DISTRIBUTION.draw(EXAMPLE.training_rows, seed=0)
    figure = new_figure(8.0, 7.0)
    panels = figure.subplots(2, 2)
    models = {label: fit_clone(model, columns, target)[0] for label, model in MODELS}
    for axes, label in zip(panels.flat, ("LDA", "QDA", "naive Bayes, Gaussian"), strict=False):
        scores = {
            label: _log_odds(models[label].predict_proba),
            "Bayes rule": _log_odds(DISTRIBUTION.posterior),
        }
        plot_boundaries(columns, target, scores, ax=axes)
    shift = -np.log(COSTS[1][0] / COSTS[0][1])
    quadratic = models["QDA"].predict_proba
    shifted = {"QDA": _log_odds(quadratic), "QDA, costs 1 and 5": _log_odds(quadratic, shift)}
    plot_boundaries(columns, target, shifted, ax=panels[1, 1])
    return figure


def _log_odds(posterior: Any, threshold: float = 0.0) -> Any:
    """Log odds of the second class minus a threshold, as a function of the columns."""

    def score(columns: Array) -> Array:
        probability = np.clip(posterior(columns), 1e-300, 1.0)
        return np.asarray(np.log(probability[:, 1] / probability[:, 0]) - threshold)

    return score


TITLE = "Errors of LDA, QDA, naive Bayes and the Bayes rule, and decisions with unequal costs"
PAPER = Paper(
    NAME,
    "Agarwal, lecture notes on generative probabilistic models for classification",
    (Example(NAME, "example", TITLE),),
)
