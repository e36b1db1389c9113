"""Predictions of a fitted model: joint log densities, posteriors, decisions, densities."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from calibayes.core.protocols import Array, Block, Engine, ModelArrays
from calibayes.families import Product
from calibayes.kernels.posterior import log_normalize
from calibayes.model.decision import most_probable, tempered
from calibayes.model.fitted import SINGLE, Fitted
from calibayes.model.recipe import encoded_source
from calibayes.tables.table import Table

Joint: TypeAlias = Callable[[Product, Block, ModelArrays], Array]
"""log p(x, class) of a block of rows, (n, k), possibly up to a term that all classes share."""
OfJoint: TypeAlias = Callable[[Array], Array]


def most_probable_classes(fitted: Fitted, table: Table, engine: Engine) -> Array:
    """The codes of the most probable classes, (n,)."""
    return _by_block(fitted, table, engine, most_probable, Product.contrast)


def log_joint(fitted: Fitted, table: Table, engine: Engine) -> Array:
    """log p(x, class), (n, k)."""
    return _by_block(fitted, table, engine, lambda joint: joint, Product.log_joint)


def tempered_posterior(fitted: Fitted, log_posterior: Array) -> Array:
    """log p(class | x) at the temperature of the model, (n, k)."""
    return log_posterior if fitted.temperature == 1.0 else tempered(log_posterior, fitted.temperature)


def log_posterior(fitted: Fitted, table: Table, engine: Engine, untempered: Array | None = None) -> Array:
    """log p(class | x), (n, k): computed in float64, returned as float32 if model and table are float32.

    ``untempered`` is the log posterior of families and prior, if a model computes it in a way of its own.
    """
    if untempered is None:
        untempered = log_normalize(log_joint(fitted, table, engine))[0]
    posterior = tempered_posterior(fitted, untempered)
    is_single = fitted.number_type == SINGLE and set(table.types()) == {SINGLE}
    with np.errstate(over="ignore"):  # what float32 cannot hold is -inf, the logarithm of 0
        return posterior.astype(SINGLE) if is_single else posterior


def lower_quantile(ascending: Array, share: float) -> float:
    """The conformal quantile of ascending scores: a new score is below it with probability at most ``share``."""
    rank = int(np.floor(share * (len(ascending) + 1)))
    return float(ascending[min(rank, len(ascending)) - 1]) if rank >= 1 else -np.inf


def _by_block(fitted: Fitted, table: Table, engine: Engine, function: OfJoint, joint: Joint) -> Array:
    """A function of the joint log densities (n, k) of each block of rows, concatenated."""
    parameters, nothing = fitted.learned(), np.zeros(table.n)
    source = encoded_source(fitted.binding.encode(table), fitted.model, nothing, nothing, nothing)
    return np.concatenate(engine.each(lambda block: function(joint(fitted.model, block, parameters)), source))
