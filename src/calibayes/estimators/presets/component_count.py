"""The number of components of a mixture: by information criterion or by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from calibayes.core.protocols import Array, Engine, Layout
from calibayes.encoders.clusters import Clusters
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.splits import held_out_masks
from calibayes.families import ClassPrior, Gaussian, Mixture, Product
from calibayes.kernels.posterior.logspace import held_out_scores
from calibayes.learn import data_sums, learn
from calibayes.learn.plan import NoGainBeforeTraining
from calibayes.learn.run import Run
from calibayes.rules import ML
from calibayes.tables.sources import ArraySource
from calibayes.tables.summaries.in_memory import summary_of

FOLDS = 5
FEWEST = 2.0
"""Least number of rows in the penalty; with fewer it would be negative."""


def information_criterion(
    family: Gaussian, rows: Rows, classes: Sequence[str], most: int, seed: int, updates: int, engine: Engine
) -> Array:
    """BIC of each class's mixture with 1, 2, ... components, (k, most); inf if there are too few rows.

    A tied covariance is tied within the class here, since the classes are fitted one by one.
    """
    criteria = np.full((len(classes), most), np.inf)
    for c, name in enumerate(classes):
        class_rows = rows.only(rows.codes == c)
        for count in range(1, most + 1):
            if len(class_rows.codes) > count:
                encoder = Clusters(count, seed)
                criteria[c, count - 1] = _of_class(family, class_rows, name, encoder, updates, engine)
    return criteria


def _of_class(
    family: Gaussian, rows: Rows, name: str, encoder: Clusters, updates: int, engine: Engine
) -> float:
    """-2 log likelihood + log n times the number of free parameters, of a mixture for one class."""
    try:
        one_class = summary_of(rows.table, rows.weight, np.zeros_like(rows.codes))
        fitted = encoder.fit(one_class, range(len(rows.table.names)))
    except ValueError:  # a column is all missing in this class
        return np.inf
    columns = fitted.encode(rows.table)
    source = ArraySource({"columns": columns}, np.zeros_like(rows.codes), rows.weight, np.zeros(len(columns)))
    layout = Layout((name,), rows.table.names, **fitted.layout())
    model = Product(ClassPrior(), {"columns": Mixture(family)}).bind({"columns": layout}, (name,))
    start = data_sums(model, source, engine, 1).statistics
    try:
        model = model.prepare(start)
    except ValueError:
        return np.inf
    run = Run(model, ML(), ML().begin(model, start), stop=NoGainBeforeTraining(), limit=updates)
    learn([run], source, engine)
    likelihood = (
        rows.weight @ model.families["columns"].log_density(columns, run.best.parameters["columns"])[:, 0]
    )
    return float(
        -2.0 * likelihood
        + np.log(max(rows.weight.sum(), FEWEST))
        * degrees_of_freedom(family, len(layout.seeds[0]), columns.shape[1])
    )


def degrees_of_freedom(family: Gaussian, components: int, d: int) -> int:
    """Number of free parameters of one class's mixture: weights, means, covariances."""
    covariances = 1 if family.shape.tied else components
    return components - 1 + components * d + covariances * family.shape.freedom(d)


def validation_scores(estimator: Any, rows: Rows, labels: Array, most: int, seed: int) -> dict[str, Array]:
    """Held-out log loss and error of 1, 2, ... components in every class, (most, folds), under the estimator's rule.

    Raises ValueError if a class has one row only.
    """
    if np.bincount(rows.codes[rows.codes >= 0]).min() < 2:
        raise ValueError(
            "a class has one row only, so the number of components cannot be chosen by cross-validation: "
            "give n_components as a number"
        )
    folds = held_out_masks(FOLDS, rows._replace(positions=np.arange(len(rows.codes))), len(labels), seed)
    scores = np.array(
        [
            [
                _fold_scores(clone(estimator).set_params(n_components=count), rows, labels, mask)
                for mask in folds
            ]
            for count in range(1, most + 1)
        ]
    )
    return {"n_components": np.arange(1, most + 1), "log_loss": scores[..., 0], "error": scores[..., 1]}


def _fold_scores(estimator: Any, rows: Rows, labels: Array, held_out: Array) -> tuple[float, float]:
    estimator.fit(rows.table.rows(~held_out), labels[~held_out], rows.weight[~held_out])
    known = held_out & (rows.codes >= 0)
    log_posterior = estimator.predict_log_proba(rows.table.rows(known))
    return held_out_scores(log_posterior, rows.codes[known], rows.weight[known])
