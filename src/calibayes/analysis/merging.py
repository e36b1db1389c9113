"""Exact arithmetic on closed-form models: models of disjoint rows are added, rows are removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.abilities import CountStatistics
from calibayes.core.named_arrays import add, map_leaves, subtract
from calibayes.core.protocols import Engine, ModelArrays
from calibayes.encoders.encoder import ImputesTraining
from calibayes.families.joint_model import PRIOR
from calibayes.learn import DataSums, data_sums
from calibayes.model.checked_rows import Rows
from calibayes.model.estimator import holding, require_sums
from calibayes.model.fitted import ROUNDING, Fitted
from calibayes.model.recipe import Assembly, layouts_of, recoded, training_options

WITHOUT_EFFECT = (
    *("random_state", "engine", "n_jobs", "verbose", "max_iter", "stop", "costs"),
    *("training", "callbacks", "start", "batch_size", "checkpoint"),
)
"""Parameters and training options without influence on a closed form, so that merged models may differ in them."""


def merge(left: Fitted, right: Fitted) -> Fitted:
    """The model of the rows of both. Levels are united, moments moved to one center.

    Raises ValueError if classes, columns or bins differ, or if a model is no sum over rows.
    """
    for fitted in (left, right):
        require_additive(fitted)
    if not np.array_equal(left.classes, right.classes):
        raise ValueError(f"different classes: {left.classes.tolist()} and {right.classes.tolist()}")
    if left.binding.names != right.binding.names or left.binding.chosen != right.binding.chosen:
        raise ValueError("different columns, or columns of different kinds")
    if ("privacy" in left.extras) != ("privacy" in right.extras):
        raise ValueError("a private model can be merged only with a private one of other rows")
    binding, moved_left, moved_right = left.binding.unite(right.binding)
    layouts, names = layouts_of(binding, left.classes)
    model = left.model.bind(layouts, names).sharing_centers(right.model)
    parts = (
        recoded(fitted.model.families, fitted.model.moved(fitted.data_statistics, model), moved, layouts)
        for fitted, moved in ((left, moved_left), (right, moved_right))
    )
    merged = replace(left, binding=binding, model=model, n_iter=left.n_iter + right.n_iter)
    return merged.with_extra("receipts", ()).closed_form(add(*parts))


def merge_models(self: Any, other: Any) -> Any:
    """The model of the rows of both, exactly as if trained on all of them: for ML and MAP.

    Both must have the same parameters, classes, columns and bins of numbers. Levels are united, and moments moved to one
    center. Private models must be of different rows: then their sum has the same privacy account.
    """
    if type(self) is not type(other):
        raise ValueError(f"a {type(self).__name__} cannot be merged with a {type(other).__name__}")
    for model in (self, other):
        check_is_fitted(model, "fitted_")
    require_same_parameters(self.get_params(deep=False), other.get_params(deep=False))
    for model in (self, other):
        require_sums(model)
    merged = merge(self.fitted_, other.fitted_)
    return holding(self, merged, training_table_=self.training_table_ + other.training_table_)


def forget(fitted: Fitted, rows: Rows, engine: Engine) -> Fitted:
    """The model without these rows, as if they had never been part of the training.

    Raises ValueError if the rows cannot have been part of it, or if the model is no sum over rows.
    """
    require_additive(fitted)
    removed = sums_of_rows(fitted, rows, engine)
    if removed.hidden:
        raise ValueError(
            "rows with something hidden (components of a mixture, missing values under a full covariance) "
            "have no additive statistics and cannot be removed"
        )
    return fitted.closed_form(difference(fitted, removed.statistics))


def sums_of_rows(fitted: Fitted, rows: Rows, engine: Engine) -> DataSums:
    """The sums over rows under the encoders of a fitted model."""
    source = Assembly(fitted.binding, fitted.model, fitted.classes).source(rows)
    return data_sums(fitted.model, source, engine, len(fitted.classes))


def require_additive(fitted: Fitted) -> None:
    """Raises ValueError unless the model is a closed form of sums over rows."""
    fitted.require_changeable()
    if not fitted.rule.is_closed_form:
        raise ValueError(
            f"rule {fitted.rule.name!r} has no closed form: only ML and MAP models are sums over their rows"
        )
    if (kept := fitted.extras.get("kept")) is not None and kept.columns:
        raise ValueError(
            "a model that keeps counts of the values of its columns (keep_summary) can be extended by partial_fit alone: "
            "to merge models or to forget rows, fit with keep_summary=False"
        )
    if not fitted.is_additive:
        raise ValueError(
            "something hidden (components of a mixture, missing values under a full covariance) was replaced "
            "by its expectation: the model is no sum over rows"
        )


def require_retrainable(fitted: Fitted, training: Any, missing_cells: int) -> None:
    """Raises ValueError if a model cannot be trained again with its encoders, so as to forget rows."""
    reason = ""
    if training_options(training).validation_fraction is not None:
        reason = "which rows were held out (validation_fraction) depends on all rows"
    if missing_cells and any(isinstance(e, ImputesTraining) for e in fitted.binding.encoders.values()):
        reason = "missing cells of the training rows were imputed from all rows"
    if reason:
        raise ValueError(f"rows of this model cannot be forgotten: {reason}; fit again without the rows")


def difference(fitted: Fitted, removed: ModelArrays) -> ModelArrays:
    """Data statistics without some rows. Raises ValueError if a count becomes negative."""
    before = fitted.data_statistics
    # what the subtraction leaves of equal numbers is rounding
    exact = lambda now, before: np.where(np.abs(now) <= ROUNDING * np.abs(before), 0.0, now)
    left: ModelArrays = map_leaves(exact, subtract(before, removed), before)
    statistics, families = fitted.model.statistics_of(left), fitted.model.families.items()
    counted = [(name, family) for name, family in families if isinstance(family, CountStatistics)]
    counts = [left[PRIOR]["count"], *(family.cells(statistics[name]) for name, family in counted)]
    if any((count < 0).any() for count in counts):
        raise ValueError(
            "there are more rows to forget than were learned: these cannot all have been part of the training"
        )
    return left


def require_same_parameters(left: Mapping[str, Any], right: Mapping[str, Any]) -> None:
    """Raises ValueError, naming parameters and training options that differ and matter to a closed form."""
    left, right = _with_options(left), _with_options(right)
    differ = [name for name in left if name not in WITHOUT_EFFECT and not _equal(left[name], right[name])]
    if differ:
        raise ValueError(f"models with different parameters cannot be merged: {', '.join(differ)}")


def _with_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor parameters and, beside them, the training options."""
    return {**parameters, **training_options(parameters["training"]).get_params(deep=False)}


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.array_equal(left, right)
    try:
        return bool(left == right) or repr(left) == repr(right)
    except ValueError:  # they contain arrays
        return repr(left) == repr(right)
