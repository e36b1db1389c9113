"""The probabilities of a fitted classifier as expressions of the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.abilities import AllowsMissing
from calibayes.core.protocols import Array
from calibayes.estimators.ensemble.fitted import FREQUENCIES, FittedEnsemble
from calibayes.estimators.generative.fitted import Fitted
from calibayes.estimators.joint_kernel.classifier import JointKernelClassifier
from calibayes.export.columns import TableColumn, table_columns
from calibayes.export.encoders import encoded, is_incomplete
from calibayes.export.expressions import (
    Condition,
    Constant,
    Expression,
    ModelExpressions,
    Once,
    softmax,
    stored,
    total,
)
from calibayes.export.families import log_densities
from calibayes.families.model import PRIOR

ADVICE = (
    "Export a model of another kind: naive Bayes, TreeAugmentedNB, AODE, discriminant analysis, a PosteriorMixture of such "
    "models, or BayesClassifier(keep_rows=False)"
)
LEAST_SCORE = -1e300
"""The score of a class of probability 0."""


def model_expressions(model: Any) -> ModelExpressions:
    """The probabilities of a fitted classifier of this package.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If the model is not written as an expression; the message says why.

    Examples
    --------
    >>> import numpy as np
    >>> from calibayes import GaussianNB
    >>> from calibayes.export.evaluate import evaluate
    >>> from calibayes.export.model import model_expressions
    >>> X, y = np.array([[1.0], [2.0], [5.0], [7.0]]), [0, 0, 1, 1]
    >>> model = GaussianNB().fit(X, y)
    >>> probabilities = model_expressions(model).probabilities
    >>> bool(np.allclose(evaluate(probabilities, {"x0": X[:, 0]}, 4), model.predict_proba(X)))
    True
    """
    check_is_fitted(model)
    try:
        return ModelExpressions(tuple(map(str, model.classes_)), probabilities(_fitted_state(model)))
    except TypeError as error:
        raise TypeError(f"{type(model).__name__} cannot be exported: {error}") from error


def _fitted_state(model: Any) -> Any:
    """The fitted value of an estimator, or of the one that it has chosen."""
    return getattr(getattr(model, "estimator_", model), "fitted_", model)


@singledispatch
def probabilities(fitted: Any) -> tuple[Expression, ...]:
    """p(class | x) of each class from the fitted state of a model. Raises TypeError if there is no such expression."""
    raise TypeError(f"it is no generative model of families over columns. {ADVICE}")


@probabilities.register
def _(fitted: JointKernelClassifier) -> tuple[Expression, ...]:
    raise TypeError(f"its densities are sums over the training rows, which it keeps. {ADVICE}")


@probabilities.register
def _(fitted: Fitted) -> tuple[Expression, ...]:
    scores, refused = class_scores(fitted)
    divided = [score / fitted.temperature for score in scores] if fitted.temperature != 1.0 else scores
    return softmax(divided, refused)


@probabilities.register
def _(fitted: FittedEnsemble) -> tuple[Expression, ...]:
    if fitted.grown is not None:
        raise TypeError(
            f"trees are grown on the average of its members, with split points in bytes. {ADVICE}"
        )
    members = [_member(name, model, fitted.weights[name]) for name, model in fitted.models.items()]
    frequencies = fitted.weights[FREQUENCIES] * fitted.class_frequencies
    pairs = zip(zip(*members, strict=True) if members else [()] * len(frequencies), frequencies, strict=True)
    averages = [total(list(parts), float(constant)) for parts, constant in pairs]
    if fitted.priors is None:
        return tuple(averages)
    shifted = [
        Once(p * float(np.exp(change))) for p, change in zip(averages, fitted.prior_shift, strict=True)
    ]
    whole = Once(total(shifted))
    return tuple(p / whole for p in shifted)


def _member(name: str, model: Any, weight: float) -> list[Expression]:
    """The weighted probabilities of a member of an average."""
    try:
        return [p * weight for p in probabilities(_fitted_state(model))]
    except TypeError as error:
        raise TypeError(f"its member {name!r} ({type(model).__name__}) is no expression: {error}") from error


def class_scores(fitted: Fitted) -> tuple[list[Expression], list[Condition]]:
    """log p(x, class) of each class up to a term that all share, and when `predict_proba` would raise an error."""
    parameters, binding = fitted.learned(), fitted.binding
    table = table_columns(binding.conversion, binding.types)
    by_class: list[list[Expression]] = [[] for _ in fitted.classes]
    refused: list[Condition] = []
    for name, family in fitted.model.families.items():
        columns, conditions = _family_columns(family, binding.encoders[name], table)
        refused += [stored(conditions)] if conditions else []
        for terms, term in zip(by_class, log_densities(family, parameters[name], columns), strict=True):
            terms.append(term)
    return _with_prior(by_class, parameters[PRIOR]["log_probability"]), refused


def _family_columns(
    family: Any, encoder: Any, table: Sequence[TableColumn]
) -> tuple[list[Expression], list[Condition]]:
    """The encoded columns of a family; rows with missing values are refused if it does not support them."""
    columns, refused = encoded(encoder, table)
    if not isinstance(family, AllowsMissing):
        refused = [*refused, is_incomplete(columns)]
    return columns, refused


def _with_prior(by_class: Sequence[Sequence[Expression]], log_prior: Array) -> list[Expression]:
    return [
        total(terms, prior) if np.isfinite(prior) else Constant(LEAST_SCORE)
        for terms, prior in zip(by_class, log_prior.tolist(), strict=True)
    ]
