"""From the X, y and sample_weight of `fit` and `predict` to checked rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from calibayes.core.notices import note_once
from calibayes.core.protocols import Array, Engine, Source
from calibayes.kernels.dispatch import native_kernels
from calibayes.model.delegates import feature
from calibayes.model.door import in_memory, refuse_on_device
from calibayes.model.labels import (
    MOST_WEIGHT,
    check_total_weight,
    class_factors,
    read_target,
    read_weight,
    require_labels,
)
from calibayes.tables.conversion import ColumnConversion, learn_conversion
from calibayes.tables.kinds import OpenedTable, is_streamed
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.origin import FromFrame
from calibayes.tables.read import array_names, object_array, read_array, read_frame, refuse_lazy
from calibayes.tables.sources import ArraySource
from calibayes.tables.summary import TableSummary, sample_of
from calibayes.tables.table import Table
from calibayes.tables.training_table import TrainingTable, training_table


class TrainingRows(Protocol):
    """Training rows with positive weight, in memory (`Rows`) or read in passes (`StreamedRows`)."""

    @property
    def codes(self) -> Array:
        """Class codes, (n,), -1 for a row without a label."""

    @property
    def weight(self) -> Array: ...

    @property
    def factor(self) -> Array | float:
        """Class weights, by which the sample weights were multiplied, (n,)."""

    @property
    def summary(self) -> TableSummary:
        """The summary of the rows, which encoders are fitted to."""

    def only(self, keep: Array) -> Self:
        """The rows where ``keep`` is true."""

    def described(self) -> TrainingTable:
        """Size and columns of the table, as it was given."""

    def encoded(self, binding: Any) -> Mapping[str, Any]:
        """The encoded columns of each family of a column binding: arrays, or what slices of rows can be read from."""

    def source(self, binding: Any, weight: Array, held_out: Array, **sizes: int) -> Source:
        """The encoded rows in blocks, with these weights; ``sizes`` are those of an `ArraySource`."""

    def in_memory(self) -> Rows:
        """The rows in memory, for what is no sum over rows."""


class Rows(NamedTuple):
    """Training rows with positive weight, in memory."""

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
        return Rows(self.table.rows(keep), self.codes[keep], self.weight[keep], self.positions[keep], factor)

    @property
    def summary(self) -> TableSummary:
        """The summary of the rows, which encoders are fitted to."""
        return summary_of(self.table, self.weight, self.codes)

    def encoded(self, binding: Any) -> Mapping[str, Array]:
        """The encoded columns of each family of a column binding."""
        return binding.encode(self.table)

    def source(self, binding: Any, weight: Array, held_out: Array, **sizes: int) -> Source:
        """The encoded rows in blocks, with these weights."""
        return ArraySource(self.encoded(binding), self.codes, weight, held_out, **sizes)

    def in_memory(self) -> Rows:
        """These rows."""
        return self

    def described(self) -> TrainingTable:
        """Size and columns of the table, as it was given."""
        return training_table(self.table, int(np.count_nonzero(self.codes >= 0)))


def read_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """The table, its columns checked against those of the first one, which ``reset`` replaces.

    Sets ``n_features_in_`` and, for named columns, ``feature_names_in_`` of the estimator, as scikit-learn does. Unless
    ``reset``, columns are converted as those of the first table were.
    """
    table = _read_columns(estimator, X, reset=reset)
    conversion = None if reset else getattr(estimator, "conversion_", None)
    return table if conversion is None or table.conversion is not None else conversion.apply(table)


def convert(estimator: Any, table: Table) -> Table:
    """The training table with its columns converted; sets ``conversion_`` of the estimator.

    Estimators of levels, or of counts and flags, read columns as they are. Those of numbers alone read dates as numbers.
    """
    if table.conversion is None:
        tags = get_tags(estimator).input_tags
        if tags.categorical or (tags.sparse and not tags.string):
            table = ColumnConversion(table.names, table.types()).apply(table)
        else:
            given = estimator.given_columns(table) if hasattr(estimator, "given_columns") else {}
            sample = sample_of(table, np.broadcast_to(1.0, table.n), None).table
            table = learn_conversion(sample, given, levels=tags.string).apply(table)
    estimator.conversion_ = table.conversion
    return table


def _read_columns(estimator: Any, X: Any, *, reset: bool) -> Table:
    if reset and native_kernels.is_missing:
        note_once(native_kernels.advice)
    if isinstance(X, OpenedTable) and get_tags(estimator).array_api_support:
        X = X.host
    refuse_on_device(estimator, X)
    if isinstance(X, Table):
        _match_names(estimator, X, reset=reset)
        return X
    refuse_lazy(X)
    if not isinstance(X, np.ndarray) and is_streamed(X):
        raise TypeError(
            f"the rows of a {type(X).__name__} are not in memory: `fit`, predictions and `score` read them, for anything else "
            "pass a data frame or array"
        )
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
    fewest_classes: int = 2,
    reset: bool = True,
    most_weight: float = MOST_WEIGHT,
) -> tuple[Array, Rows]:
    """Classes and rows. Rows of weight zero are left out. Raises ValueError if weights sum to more than ``most_weight``.

    With ``reset``, sets ``training_table_`` of the estimator.
    """
    require_labels(estimator, y)
    table = read_table(estimator, X, reset=reset)
    target = read_target(y, unlabeled=unlabeled, classes=classes, fewest_classes=fewest_classes)
    check_consistent_length(target.codes, np.empty(table.n))
    weight = read_weight(sample_weight, table.n)
    rows = Rows(table, target.codes, weight, np.arange(table.n)).only(weight > 0)
    if reset:
        rows = rows._replace(table=convert(estimator, rows.table))
    if class_weight is not None:
        factors = class_factors(class_weight, target.classes, rows.codes, rows.weight)
        rows = rows._replace(weight=rows.weight * factors, factor=factors)
        rows = rows.only(read_weight(rows.weight, len(rows.weight)) > 0)
    check_total_weight(rows.weight, most_weight)
    if reset:
        estimator.training_table_ = rows.described()
    return target.classes, rows


def rows_of(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    engine: Engine | None = None,
    *,
    class_weight: Mapping[Any, float] | str | None,
    **options: Any,
) -> tuple[Array, TrainingRows]:
    """Classes and training rows. Those of files and streams are read in passes by an engine, or without one into memory."""
    if engine is not None and is_streamed(X):
        return feature("streams").streamed_rows(
            estimator, X, y, sample_weight, class_weight, engine, **options
        )
    return training_rows(estimator, *in_memory(X, y, sample_weight), class_weight, **options)


def set_training_table(estimator: Any, table: Table) -> None:
    """Note columns and size of a training table, as `fit` on it would."""
    set_names(estimator, table)
    estimator.training_table_ = training_table(table)


def set_names(estimator: Any, table: Table) -> None:
    """Note the columns of a training table, as `fit` on it would; names are texts, and columns of an array have none."""
    names = table.source_names
    estimator.n_features_in_, estimator.conversion_ = len(names), table.conversion
    labels = table.origin.labels if isinstance(table.origin, FromFrame) else names
    if names != array_names(len(names)) and all(isinstance(label, str) for label in labels):
        estimator.feature_names_in_ = np.array(names, dtype=object)


def _match_names(estimator: Any, table: Table, *, reset: bool) -> None:
    if reset:
        set_names(estimator, table)
        return
    known = _known_names(estimator)
    if table.source_names != known:
        raise ValueError(
            f"the columns are not those of the training table: {_difference(table.source_names, known)}"
        )


def _known_names(estimator: Any) -> tuple[str, ...]:
    """Names of the training columns; `feature_names_in_` is missing, as in scikit-learn, if they were no strings."""
    if hasattr(estimator, "feature_names_in_"):
        return tuple(estimator.feature_names_in_)
    if hasattr(estimator, "training_table_"):
        return tuple(estimator.training_table_.columns)
    return array_names(getattr(estimator, "n_features_in_", 0))


def _difference(names: tuple[str, ...], known: tuple[str, ...]) -> str:
    """How names differ from the known ones. Another order is refused, as scikit-learn does for data frames."""
    unknown = [name for name in names if name not in known]
    lost = [name for name in known if name not in names]
    parts = [f"{', '.join(unknown)} unknown"] * bool(unknown) + [f"{', '.join(lost)} missing"] * bool(lost)
    return "; ".join(parts) or f"they must be in the order {', '.join(known)}"


# -- Training rows that a fitted model keeps: which estimators do, and how many ------------------------------


def keeps_rows(estimator: Any) -> bool:
    """Whether the fitted model contains training rows; those estimators have the attribute ``kept_rows_``."""
    return hasattr(type(estimator), "kept_rows_") and getattr(estimator, "keep_rows", True)


def kept_row_count(model: Any) -> int:
    """Number of training rows in a fitted model."""
    return int(model.kept_rows_) if hasattr(type(model), "kept_rows_") else 0


def kept_rows_line(counts: Mapping[str, int]) -> str:
    """The line of a summary that says how many training rows are kept, and by which members of an ensemble.

    >>> kept_rows_line({"near": 344, "tied": 0})
    'training rows kept in the model: 344 (near)'
    """
    keeping = [name for name, count in counts.items() if count and name]
    members = f" ({', '.join(keeping)})" if keeping else ""
    return f"training rows kept in the model: {max(counts.values(), default=0)}{members}"
