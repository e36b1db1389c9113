"""The probabilities of a fitted classifier as expressions of the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.abilities import AllowsMissing
from calibayes.core.protocols import Array
from calibayes.estimators.generative.fitted import Fitted
from calibayes.export.columns import TableColumn, table_columns
from calibayes.export.encoders import encoded, is_incomplete
from calibayes.export.expressions import (
    Condition,
    Constant,
    Expression,
    ModelExpressions,
    softmax,
    stored,
    total,
)
from calibayes.export.families import log_densities
from calibayes.families.model import PRIOR

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
    fitted = getattr(model, "fitted_", None)
    try:
        return ModelExpressions(tuple(map(str, model.classes_)), probabilities(fitted))
    except TypeError as error:
        raise TypeError(f"{type(model).__name__} cannot be exported: {error}") from error


@singledispatch
def probabilities(fitted: Any) -> tuple[Expression, ...]:
    """p(class | x) of each class from the fitted state of a model. Raises TypeError if there is no such expression."""
    raise TypeError("it is no generative model of families over columns, nor an average of such models")


@probabilities.register
def _(fitted: Fitted) -> tuple[Expression, ...]:
    scores, refused = class_scores(fitted)
    divided = [score / fitted.temperature for score in scores] if fitted.temperature != 1.0 else scores
    return softmax(divided, refused)


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
