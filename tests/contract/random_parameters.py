"""Random parameters of estimators, most of them valid, by the name of the parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calibayes import TrainingOptions
from calibayes.families import AllEdges, Dirichlet, NormalInverseWishart
from calibayes.learn import Bootstrap, SeveralStarts
from calibayes.rules import DFE, GD, GDT, RC, TM

INVALID = (-1, -0.5, 0, 2.5, np.nan, np.inf, "unknown", [], None, True)
"""Values that most parameters refuse."""
SHARE_INVALID = 0.04
"""Probability that a drawn parameter has one of these values."""
KEEP = ("engine", "verbose", "time_limit", "models", "estimator", "families", "covariance_estimator")
"""Parameters that keep their default."""

VALUES: dict[str, tuple[Any, ...]] = {
    "C": (1.0, (0.01, 1.0), 1e-4, 1e4),
    "alpha": (0.0, 1e-10, 0.5, 2.0, 1e6),
    "back_off": (0.0, 1e-3, 5.0, 1e6),
    "bandwidth": ("bins", "normal", "silverman", "sheather_jones", 0, 0.3),
    "bandwidth_step": (0.25, 0.5, 1.0),
    "bandwidths": ("plug_in", "normal"),
    "binarize": (0.0, 0.5, -3.0, None),
    "binning": ("adaptive", "grid"),
    "choice_rows": (None, 5, 2000),
    "class_weight": (None, "balanced"),
    "covariance": ("full", "diagonal", "spherical", "tied", "tied_diagonal", "tied_spherical", "tree"),
    "cv": (None, 2, 3),
    "density": (None, "kernel"),
    "discretize": ("kmeans", "quantile", "uniform", "mdl", "adaptive"),
    "edges": (AllEdges(),),
    "encoder": (None, "dense"),
    "fit_prior": (True, False),
    "floor": (1e-4, 1e-8, 0.1),
    "force_alpha": (True, False),
    "keep_rows": (True, False),
    "kept_rows": (None, 3, 2000),
    "lams": ((1.0, 0.0), (0.5,)),
    "leave_one_out": (True, False),
    "least_rows": (0.0, 2.0, 10.0),
    "least_variance": (1e-3, 1.0, 5.0),
    "loss": ("log", "hinge"),
    "max_cells": (4, 100, 10000),
    "max_components": (1, 2, 3),
    "max_iter": (0, 1, 3, 8),
    "max_leaves": (2, 3, 31, 128),
    "max_levels": (None, 1, 2, 5),
    "max_pairs": (None, 1, 5),
    "max_parents": (0, 1, 2, 3),
    "max_trees": (1, 2, 20),
    "measure": ("hsic", "pearson", "spearman", "mutual_information"),
    "min_categories": (None, 2, 8),
    "n_bins": (None, 1, 2, 5, 40),
    "n_components": (None, 1, 2, 3, "bic"),
    "n_jobs": (None, 1, 2, -1),
    "nested": (False, True),
    "norm": (True, False),
    "normal_scores": (True, False),
    "original_columns": (True, False),
    "patience": (1, 5, 20),
    "pair_bandwidths": ("product", "full"),
    "penalty": ("l1", "l2"),
    "per_class": (True, False),
    "prior": (None, "auto", Dirichlet(), Dirichlet(0.5), NormalInverseWishart(), 2.0),
    "prior_rows": (0.0, 0.5, 3.0, 1e4),
    "prior_weight": (0.0, 0.5, 3.0),
    "random_state": (None, 0, 1),
    "rare_levels": (0.0, 1.0, 3.0),
    "rate": (0.01, 0.1, 1.0),
    "reg": (0.0, 1e-6, 0.5),
    "reg_param": (0.0, 0.1, 1.0),
    "rule": (
        *("ml", "map", "rc", "tm", "gdt", "gd", "dfe", "em"),
        *(RC(step=0.5), GDT(lam=0.5), GD(step=0.01), DFE(step=0.5)),
        *(RC.paper(), TM.paper(invalid="by_class"), RC(invalid="stop"), DFE.paper()),
    ),
    "scoring": ("loss", "error", "balanced_error"),
    "selection": ("cv", "significant", None),
    "shrinkage": (None, 0.0, 0.3, 1.0, "auto"),
    "structure": ("information", "conditional_likelihood", "soft_error"),
    "solver": ("svd", "lsqr", "eigen"),
    "standardize": (True, False),
    "stop": (None, "objective"),
    "store_covariance": (True, False),
    "tol": (0.0, 1e-4, 0.5),
    "training": (
        TrainingOptions(batch_size=1),
        TrainingOptions(batch_size=5),
        TrainingOptions(validation_fraction=0.3),
        TrainingOptions(validation_fraction=0.5, refit=False),
        TrainingOptions(validation_fraction=0.3, temperature="auto"),
        TrainingOptions(temperature=3.0),
        TrainingOptions(start="random"),
        TrainingOptions(start="bootstrap"),
        TrainingOptions(start="likelihood"),
        TrainingOptions(start="random_parameters"),
        TrainingOptions(start=SeveralStarts.of(Bootstrap, 2)),
        TrainingOptions(keep_summary=True),
    ),
    "unlabeled": (0.0, 0.5),
    "var_smoothing": (0.0, 1e-9, 0.5, 1e3),
}
"""Valid values of parameters, at least of some estimators."""

SPECIAL_SCORING = {"TradeOffCV": ("log_loss", "error")}


def random_priors(rng: np.random.Generator, k: int) -> Any:
    shares = rng.dirichlet(np.ones(k))
    return (None, [1 / k] * k, shares.tolist(), shares, shares[:-1].tolist())[rng.integers(5)]


def random_costs(rng: np.random.Generator, k: int) -> Any:
    costs = rng.integers(0, 9, (k, k)) * (1 - np.eye(k))
    return (None, costs, costs.tolist(), costs[:-1], costs * 1e300)[rng.integers(5)]


def random_kinds(rng: np.random.Generator, d: int) -> Any:
    every = (
        "gaussian",
        "kernel",
        "binned",
        "poisson",
        "multinomial",
        "categorical",
        "bernoulli",
        "identifier",
    )
    columns = rng.permutation(d)[: rng.integers(1, d + 1)]
    return {int(j): every[rng.integers(len(every))] for j in columns}


def random_monotone(rng: np.random.Generator, d: int) -> Any:
    return {int(rng.integers(d)): int(rng.choice([-1, 1]))}


OF_THE_TABLE: dict[str, Callable[[np.random.Generator, int, int], Any]] = {
    "class_prior": lambda rng, d, k: random_priors(rng, k),
    "costs": lambda rng, d, k: random_costs(rng, k),
    "kinds": lambda rng, d, k: random_kinds(rng, d),
    "monotone": lambda rng, d, k: random_monotone(rng, d),
    "priors": lambda rng, d, k: random_priors(rng, k),
}
"""Parameters whose values depend on the numbers of columns and of classes."""


def random_parameters(rng: np.random.Generator, estimator: Any, d: int, k: int) -> dict[str, Any]:
    """Up to five parameters of an estimator; iterations are always few."""
    names = sorted(set(estimator.get_params(deep=False)) - set(KEEP))
    chosen = list(rng.permutation(names)[: rng.integers(0, 6)])
    drawn = {str(name): _value(rng, type(estimator).__name__, str(name), d, k) for name in chosen}
    few = {"max_iter": 5, "max_trees": 5, "random_state": 0}
    return {name: value for name, value in few.items() if name in names and name not in drawn} | drawn


def _value(rng: np.random.Generator, estimator: str, name: str, d: int, k: int) -> Any:
    if rng.random() < SHARE_INVALID:
        return INVALID[rng.integers(len(INVALID))]
    if name in OF_THE_TABLE:
        return OF_THE_TABLE[name](rng, d, k)
    values = SPECIAL_SCORING.get(estimator, VALUES[name]) if name == "scoring" else VALUES[name]
    return values[rng.integers(len(values))]
