"""The probabilities of a fitted classifier as expressions of the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.abilities import AllowsMissing
from calibayes.ensemble.fitted_ensemble import FREQUENCIES, FittedEnsemble
from calibayes.estimators.joint_kernel import JointKernelClassifier
from calibayes.export import expressions as ex
from calibayes.export.encoders import encode_columns, leaves, table_columns
from calibayes.export.family_densities import log_densities, sums_of_entries
from calibayes.families.joint_model import PRIOR
from calibayes.model.fitted import Fitted

ADVICE = (
    "Export a model of another kind: naive Bayes, TreeAugmentedNB, AODE, discriminant analysis, a PosteriorMixture of such "
    "models, or BayesClassifier(keep_rows=False)"
)
LEAST_PROBABILITY = 1e-300
"""Added to probabilities before their logarithm."""
LEAST_SCORE = -1e300
"""The score of a class of probability 0."""


def model_expressions(model: Any) -> ex.ModelExpressions:
    """The probabilities of a fitted classifier of this package.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If the model cannot be written as expressions; the message says why.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from calibayes.export.model_expressions import model_expressions
    >>> model = GaussianNB().fit([[1.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"])
    >>> expressions = model_expressions(model)
    >>> expressions.classes, len(expressions.probabilities)
    (('a', 'b'), 2)
    """
    check_is_fitted(model)
    try:
        written = probabilities(_fitted_state(model))
        _refuse_unusable_names(ex.column_names(written))
        return ex.ModelExpressions(tuple(map(str, model.classes_)), written)
    except TypeError as error:
        raise TypeError(f"{type(model).__name__} cannot be exported: {error}") from error


def _refuse_unusable_names(names: Sequence[str]) -> None:
    """Raises TypeError if a column has a name that no column of a database and no input of a graph can have."""
    for name in names:
        if not name or "\0" in name:
            problem = "has a zero character" if name else "is empty"
            raise TypeError(f"the name of column {name!r} {problem}: rename it and train again")


def _fitted_state(model: Any) -> Any:
    """The fitted state of an estimator, or of its ``estimator_``; the estimator itself if it has none."""
    return getattr(getattr(model, "estimator_", model), "fitted_", model)


@singledispatch
def probabilities(fitted: Any) -> tuple[ex.Expression, ...]:
    """p(class | x) of each class from the fitted state of a model. Raises TypeError if there is no such expression."""
    raise TypeError(f"it is no generative model of families over columns. {ADVICE}")


@probabilities.register
def _(fitted: JointKernelClassifier) -> tuple[ex.Expression, ...]:
    raise TypeError(f"its densities are sums over the training rows, which it keeps. {ADVICE}")


@probabilities.register
def _(fitted: Fitted) -> tuple[ex.Expression, ...]:
    scores, refused = class_scores(fitted)
    divided = [score / fitted.temperature for score in scores] if fitted.temperature != 1.0 else scores
    return ex.softmax(divided, refused)


@probabilities.register
def _(fitted: FittedEnsemble) -> tuple[ex.Expression, ...]:
    members = [_member(name, model, fitted.weights[name]) for name, model in fitted.models.items()]
    frequencies = fitted.weights[FREQUENCIES] * fitted.class_frequencies
    pairs = zip(zip(*members, strict=True) if members else [()] * len(frequencies), frequencies, strict=True)
    averages = [ex.total(list(parts), float(constant)) for parts, constant in pairs]
    if fitted.grown is not None:
        averages = _with_trees(averages, fitted)
    if fitted.priors is None:
        return tuple(averages)
    shifted = [
        ex.Once(p * float(np.exp(change))) for p, change in zip(averages, fitted.prior_shift, strict=True)
    ]
    return ex.normalize(shifted)


def _with_trees(averages: Sequence[ex.Expression], fitted: FittedEnsemble) -> list[ex.Expression]:
    """The weighted average of the members' average and of the posteriors of the trees (see `GrownTrees`)."""
    grown: Any = fitted.grown
    member = next(iter(fitted.models.values()))
    conversion = getattr(member, "estimator_", member).conversion_  # of the one table of all members
    table = table_columns(conversion, conversion.types)
    columns, conditions = encode_columns(grown.bytes, table)
    refused = [ex.store(conditions)] if conditions else []
    members = [ex.Once(p) for p in averages]
    starts = [ex.Once(ex.Function("log", p + LEAST_PROBABILITY) * grown.share) for p in members]
    parts = [[p * (1.0 - grown.weight)] for p in members]
    for forest, log_factor in zip(grown.forests, grown.log_factors, strict=True):
        scores = sums_of_entries(log_factor, forest.leaves, leaves(forest, columns))
        posterior = ex.softmax([a + b for a, b in zip(starts, scores, strict=True)], refused)
        for terms, p in zip(parts, posterior, strict=True):
            terms.append(p * (grown.weight / len(grown.forests)))
    return [ex.total(terms) for terms in parts]


def _member(name: str, model: Any, weight: float) -> list[ex.Expression]:
    """The weighted probabilities of a member of an average."""
    try:
        return [p * weight for p in probabilities(_fitted_state(model))]
    except TypeError as error:
        raise TypeError(f"its member {name!r} ({type(model).__name__}) is no expression: {error}") from error


def class_scores(fitted: Fitted) -> tuple[list[ex.Expression], list[ex.Condition]]:
    """log p(x, class) of each class, up to a common term, and conditions under which `predict_proba` raises an error."""
    parameters, binding = fitted.learned(), fitted.binding
    table = table_columns(binding.conversion, binding.types)
    by_class: list[list[ex.Expression]] = [[] for _ in fitted.classes]
    refused: list[ex.Condition] = []
    for name, family in fitted.model.families.items():
        columns, conditions = encode_columns(binding.encoders[name], table)
        if not isinstance(family, AllowsMissing):
            conditions = [*conditions, ex.AnyTrue(tuple(map(ex.IsMissing, columns)))]
        refused += [ex.store(conditions)] if conditions else []
        for terms, term in zip(by_class, log_densities(family, parameters[name], columns), strict=True):
            terms.append(term)
    pairs = zip(by_class, parameters[PRIOR]["log_probability"].tolist(), strict=True)
    with_prior = [
        ex.total(terms, prior) if np.isfinite(prior) else ex.Constant(LEAST_SCORE) for terms, prior in pairs
    ]
    return with_prior, refused
