"""How many components the classes of a mixture should have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from calibayes.core.protocols import Array, Engine, Layout
from calibayes.encoders.clusters import Clusters
from calibayes.estimators.reading import Rows
from calibayes.families import ClassPrior, Gaussian, Mixture, Product
from calibayes.learn import Data, Lane, learn, survey
from calibayes.learn.stops import Settled
from calibayes.posterior import scores
from calibayes.rules import ML
from calibayes.tables.sources import ArraySource

FOLDS = 5
FEWEST = 2.0
"""Weights count rows; fewer than two would reward parameters."""


def information(
    family: Gaussian, rows: Rows, classes: Sequence[str], most: int, seed: int, updates: int, engine: Engine
) -> Array:
    """BIC of each class's own mixture with 1, 2, ... components, (k, most); inf where there are too few rows.

    A tied covariance is tied within the class here, since the classes are judged one by one.
    """
    found = np.full((len(classes), most), np.inf)
    for c, name in enumerate(classes):
        own = rows.only(rows.codes == c)
        for count in range(1, most + 1):
            if len(own.codes) > count:
                found[c, count - 1] = _of_class(family, own, name, Clusters(count, seed), updates, engine)
    return found


def _of_class(
    family: Gaussian, own: Rows, name: str, encoder: Clusters, updates: int, engine: Engine
) -> float:
    """-2 log likelihood + log n times the number of free parameters, of a mixture of one class's rows."""
    try:
        fitted = encoder.fit(own.table, range(len(own.table.names)), own.weight, np.zeros_like(own.codes))
    except ValueError:  # a column that is all missing in this class
        return np.inf
    columns = fitted.encode(own.table)
    source = ArraySource({"columns": columns}, np.zeros_like(own.codes), own.weight, np.zeros(len(columns)))
    layout = Layout((name,), own.table.names, **fitted.layout())
    model = Product(ClassPrior(), {"columns": Mixture(family)}).bind({"columns": layout}, (name,))
    start = survey(model, source, engine, Data(), 1)
    try:
        model = model.prepare(start)
    except ValueError:
        return np.inf
    lane = Lane(model, ML(), start, stop=Settled(), limit=updates)
    learn([lane], source, engine)
    likelihood = (
        own.weight @ model.families["columns"].log_density(columns, lane.best.parameters["columns"])[:, 0]
    )
    return float(
        -2.0 * likelihood
        + np.log(max(own.weight.sum(), FEWEST)) * freedom(family, len(layout.seeds[0]), columns.shape[1])
    )


def freedom(family: Gaussian, components: int, d: int) -> int:
    """Number of free parameters of one class's mixture: weights, means, covariances."""
    covariances = 1 if family.shape.tied else components
    return components - 1 + components * d + covariances * family.shape.freedom(d)


def validated(estimator: Any, rows: Rows, labels: Array, most: int, seed: int) -> dict[str, Array]:
    """Held-out log loss and error of 1, 2, ... components in every class, (most, folds), under the estimator's rule."""
    folds = _splits(rows.codes, seed)
    losses = np.array(
        [
            [_held_out(clone(estimator).set_params(n_components=count), rows, labels, held) for held in folds]
            for count in range(1, most + 1)
        ]
    )
    return {"n_components": np.arange(1, most + 1), "log_loss": losses[..., 0], "error": losses[..., 1]}


def _splits(codes: Array, seed: int) -> list[Array]:
    """Which rows each fold holds out, booleans each."""
    rarest = int(np.bincount(codes[codes >= 0]).min())
    if rarest < 2:
        raise ValueError(
            "a class has one row only: the number of components cannot be chosen by cross-validation"
        )
    splitter = StratifiedKFold(min(FOLDS, rarest), shuffle=True, random_state=seed)
    return [np.isin(np.arange(len(codes)), held) for _, held in splitter.split(codes, codes)]


def _held_out(estimator: Any, rows: Rows, labels: Array, held: Array) -> tuple[float, float]:
    known = held & (rows.codes >= 0)
    estimator.fit(rows.table.rows(~held), labels[~held], rows.weight[~held])
    log_posterior = estimator.predict_log_proba(rows.table.rows(known))
    sums = scores(log_posterior, np.eye(len(estimator.classes_))[rows.codes[known]], rows.weight[known])
    return sums["log_loss"] / sums["weight"], sums["error"] / sums["weight"]
