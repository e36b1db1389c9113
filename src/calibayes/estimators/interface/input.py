"""From the X, y and sample_weight of `fit` and `predict` to checked rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from calibayes.core.protocols import Array
from calibayes.estimators.interface.targets import class_factors, read_target, read_weight
from calibayes.tables.read import array_names, object_array, read_array, read_frame
from calibayes.tables.table import Table


class Rows(NamedTuple):
    """Training rows with positive weight."""

    table: Table
    codes: Array
    """Class codes, -1 for a row without a label."""
    weight: Array
    positions: Array
    """Positions among the rows that were passed."""
    factor: Array | float = 1.0
    """Class weights, by which the sample weights were multiplied, (n,)."""

    def only(self, keep: Array) -> Rows:
        """The rows where ``keep`` is true, or at these positions."""
        if keep.dtype == np.bool_ and keep.all():
            return self
        factor = self.factor[keep] if isinstance(self.factor, np.ndarray) else self.factor
        return Rows(
            self.table.rows(keep), self.codes[keep], self.weight[keep], self.positions[keep], factor
        )


def read_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """The table, its columns checked against those of the first one, which ``reset`` replaces.

    Sets ``n_features_in_`` and, for named columns, ``feature_names_in_`` of the estimator, as scikit-learn does.
    """
    if isinstance(X, Table):
        _match_names(estimator, X, reset=reset)
        return X
    if nw.dependencies.is_into_dataframe(X):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return read_frame(X)
    if isinstance(X, list):
        X = object_array(X)  # NumPy would turn numbers beside strings into strings
    accepted = "csr" if get_tags(estimator).input_tags.sparse else False
    array = validate_data(
        estimator, X, reset=reset, dtype=None, ensure_all_finite=False, accept_sparse=accepted
    )
    return read_array(array, getattr(estimator, "feature_names_in_", None))


def new_table(estimator: Any, X: Any) -> Table:
    """The table that a fitted estimator is to predict."""
    check_is_fitted(estimator)
    return read_table(estimator, X, reset=False)


def training_rows(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    class_weight: Mapping[Any, float] | str | None = None,
    *,
    unlabeled: bool = False,
    classes: Array | None = None,
    reset: bool = True,
) -> tuple[Array, Rows]:
    """Classes and rows. Rows of weight zero are left out."""
    table = read_table(estimator, X, reset=reset)
    target = read_target(y, unlabeled=unlabeled, classes=classes)
    check_consistent_length(target.codes, np.empty(table.n))
    weight = read_weight(sample_weight, table.n)
    rows = Rows(table, target.codes, weight, np.arange(table.n)).only(weight > 0)
    if class_weight is not None:
        factors = class_factors(class_weight, target.classes, rows.codes, rows.weight)
        rows = rows._replace(weight=rows.weight * factors, factor=factors)
        rows = rows.only(read_weight(rows.weight, len(rows.weight)) > 0)
    return target.classes, rows


def set_names(estimator: Any, table: Table) -> None:
    """Note the columns of a training table, as `fit` on it would; columns of an array have no names."""
    estimator.n_features_in_ = len(table.names)
    if table.names != array_names(len(table.names)):
        estimator.feature_names_in_ = np.array(table.names, dtype=object)


def _match_names(estimator: Any, table: Table, *, reset: bool) -> None:
    if reset:
        set_names(estimator, table)
        return
    known = tuple(
        getattr(estimator, "feature_names_in_", array_names(getattr(estimator, "n_features_in_", 0)))
    )
    if table.names != known:
        raise ValueError(
            f"the columns are not those of the training table: {_difference(table.names, known)}"
        )


def _difference(names: tuple[str, ...], known: tuple[str, ...]) -> str:
    """How names differ from the known ones. Another order is refused, as scikit-learn does for data frames."""
    unknown = [name for name in names if name not in known]
    lost = [name for name in known if name not in names]
    parts = [f"{', '.join(unknown)} unknown"] * bool(unknown) + [f"{', '.join(lost)} missing"] * bool(lost)
    return "; ".join(parts) or f"they must be in the order {', '.join(known)}"
