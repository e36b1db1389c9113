"""Generative probabilistic models for classification: a worked example of what the notes derive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from calibayes.estimators.naive_bayes import GaussianNB, NaiveBayes
from calibayes.experiments.comparison import Figure, Pair, Report, Row
from calibayes.experiments.experiment import Paper
from calibayes.experiments.protocols.fitting import fitted
from calibayes.experiments.protocols.worked_example import TwoClasses, WorkedExample
from calibayes.experiments.results.cells import key
from calibayes.experiments.running import Results
from calibayes.experiments.settings import Settings
from calibayes.plots import plot_boundaries
from calibayes.plots.axes import new_figure

NAME = "generative-models-notes"

WORLD = TwoClasses(
    probability=0.4,
    means=((0.0, 0.0), (2.0, 1.0)),
    covariances=(((1.0, 0.6), (0.6, 1.0)), ((1.5, -0.7), (-0.7, 0.8))),
)
MODELS = (
    ("LDA", LinearDiscriminantAnalysis(rule="ml")),
    ("QDA", QuadraticDiscriminantAnalysis(rule="ml")),
    ("naive Bayes, Gaussian", GaussianNB(rule="ml", var_smoothing=0.0)),
    ("naive Bayes, 5 levels a column", NaiveBayes(rule="ml", discretize="kmeans", n_bins=5)),
)
COSTS = ((0.0, 1.0), (5.0, 0.0))
"""Missing the second class costs five times as much as a false alarm."""

EXAMPLE = WorkedExample(WORLD, MODELS, COSTS, training_rows=400, test_rows=100_000)


@dataclass(frozen=True)
class Example:
    """The table of errors and costs, and the boundaries."""

    name: str = "example"

    def cells(self, settings: Settings) -> list[WorkedExample]:
        return [EXAMPLE] if settings.datasets is None else []

    def report(self, results: Results, settings: Settings) -> Report:
        found = results[key(EXAMPLE)]["scores"]
        columns = ("error", "cost, most probable class", "cost, least expected cost")
        rows = [
            Row(
                label,
                {name: Pair(value, unit=0.0, digits=4) for name, value in zip(columns, scores, strict=True)},
            )
            for label, scores in found.items()
        ]
        figure = Figure(f"{NAME}-{self.name}", _draw)
        return Report(
            NAME,
            self.name,
            "LDA's line, QDA's curve, naive Bayes, the Bayes error, and decisions at unequal costs",
            tuple(rows),
            (
                "Two Gaussian classes with known parameters; 400 training rows, errors and costs on 100,000 others. "
                + "Missing the second class costs 5, a false alarm 1: the same posterior decides elsewhere.",
            ),
            figures=(figure,),
        )


def _draw() -> Any:
    columns, target = WORLD.draw(EXAMPLE.training_rows, seed=0)
    figure = new_figure(8.0, 7.0)
    panels = figure.subplots(2, 2)
    trained = {label: fitted(model, columns, target)[0] for label, model in MODELS}
    for axes, label in zip(panels.flat, ("LDA", "QDA", "naive Bayes, Gaussian"), strict=False):
        scores = {label: _log_odds(trained[label].predict_proba), "Bayes rule": _log_odds(WORLD.posterior)}
        plot_boundaries(columns, target, scores, ax=axes)
    shift = -np.log(COSTS[1][0] / COSTS[0][1])
    quadratic = trained["QDA"].predict_proba
    shifted = {"QDA": _log_odds(quadratic), "QDA, costs 1 and 5": _log_odds(quadratic, shift)}
    plot_boundaries(columns, target, shifted, ax=panels[1, 1])
    return figure


def _log_odds(posterior: Any, threshold: float = 0.0) -> Any:
    """A score that is zero where the log odds of the second class are at a threshold."""

    def score(columns: Array) -> Array:
        probability = np.clip(posterior(columns), 1e-300, 1.0)
        return np.asarray(np.log(probability[:, 1] / probability[:, 0]) - threshold)

    return score


PAPER = Paper(
    NAME, "Agarwal, lecture notes on generative probabilistic models for classification", (Example(),)
)
