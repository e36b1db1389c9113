"""From what a person passes to `fit` and `predict` to checked rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, validate_data

from calibayes.core.protocols import Array
from calibayes.estimators.targets import Target, class_factors, read_target, read_weight
from calibayes.tables.origin import Origin, origin_of
from calibayes.tables.read import Table, array_names, as_cells, is_frame, read_array, read_frame


class Rows(NamedTuple):
    """Training rows that carry weight."""

    table: Table
    codes: Array
    weight: Array
    where: Array
    """Positions among the rows that were passed."""
    factor: Array | float = 1.0
    """What class weights have made of the weights that were passed, (n,)."""

    def only(self, keep: Array) -> Rows:
        if keep.dtype == np.bool_ and keep.all():
            return self
        factor = self.factor[keep] if isinstance(self.factor, np.ndarray) else self.factor
        return Rows(self.table.rows(keep), self.codes[keep], self.weight[keep], self.where[keep], factor)


class Reading(BaseEstimator):  # type: ignore[misc]
    """Reads tables and holds them to the columns of the first one."""

    _origin: Origin

    @property
    def _sparse(self) -> bool:
        """Whether sparse tables can be read."""
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._sparse
        return tags

    def _read(self, X: Any, *, reset: bool) -> Table:
        """The table, its columns checked against those of the first one."""
        if isinstance(X, Table):
            self._match_names(X, reset=reset)
            return X
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return read_frame(X)
        if isinstance(X, list):
            X = as_cells(X)  # NumPy would turn numbers beside strings into strings
        accepted = "csr" if self._sparse else False
        array = validate_data(
            self, X, reset=reset, dtype=None, ensure_all_finite=False, accept_sparse=accepted
        )
        return read_array(array, getattr(self, "feature_names_in_", None))

    def _match_names(self, table: Table, *, reset: bool) -> None:
        if reset:
            self.n_features_in_ = len(table.names)
            self.feature_names_in_ = np.array(table.names, dtype=object)
            return
        known = tuple(getattr(self, "feature_names_in_", array_names(getattr(self, "n_features_in_", 0))))
        if table.names != known:
            raise ValueError(
                f"the columns are not those of the training table: {_difference(table.names, known)}"
            )

    def _training_rows(
        self,
        given: tuple[Any, Any, Any],
        class_weight: Mapping[Any, float] | str | None,
        *,
        unlabeled: bool,
        classes: Array | None = None,
        reset: bool = True,
    ) -> tuple[Array, Rows]:
        """Classes and rows. A row of weight zero is as if it were not there."""
        X, y, sample_weight = given
        table = self._read(X, reset=reset)
        if reset:
            self._origin = origin_of(X)
        target: Target = read_target(y, unlabeled=unlabeled, classes=classes)
        check_consistent_length(target.codes, np.empty(table.n))
        weight = read_weight(sample_weight, table.n)
        rows = Rows(table, target.codes, weight, np.arange(table.n)).only(weight > 0)
        if class_weight is not None:
            factors = class_factors(class_weight, target.classes, rows.codes, rows.weight)
            rows = rows._replace(weight=rows.weight * factors, factor=factors)
            rows = rows.only(read_weight(rows.weight, len(rows.weight)) > 0)
        return target.classes, rows


def _difference(names: tuple[str, ...], known: tuple[str, ...]) -> str:
    """How names differ from the known ones. Another order is refused as scikit-learn asks of data frames."""
    strange = [name for name in names if name not in known]
    lost = [name for name in known if name not in names]
    said = [f"{', '.join(strange)} unknown"] * bool(strange) + [f"{', '.join(lost)} missing"] * bool(lost)
    return "; ".join(said) or f"they must be in the order {', '.join(known)}"
