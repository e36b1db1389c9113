"""From the X, y and sample_weight of `fit` and `predict` to checked rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import narwhals.stable.v2 as nw
import numpy as np
from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from calibayes.core.notices import counted, listed, note_once
from calibayes.core.protocols import Array, Source
from calibayes.kernels.dispatch import map_ranges, native_kernels
from calibayes.model.delegates import feature
from calibayes.tables.conversion import IDENTIFIER, ColumnConversion, learn_conversion
from calibayes.tables.memory_summary import MemorySummary, summary_of
from calibayes.tables.origin import FromFrame
from calibayes.tables.read import (
    array_names,
    complex_numbers,
    is_streamed,
    object_array,
    read_array,
    read_frame,
    refuse_lazy,
)
from calibayes.tables.row_blocks import ArraySource
from calibayes.tables.summary import TableSummary, sample_of
from calibayes.tables.table import Table, TrainingTable, missing_mask, training_table

MOST_WEIGHT, LEAST_WEIGHT = 1e100, 1e-100
"""Largest sum of sample weights: sums of squares of the largest numbers, times it, are finite; and what the largest weight is at
least: products of smaller ones are 0."""


MAPPED_BYTES = 64
"""Approximate memory of a cell while a model predicts its row."""


class Reading(NamedTuple):
    """How labels and weights of training rows are read."""

    class_weight: Mapping[Any, float] | str | None = None
    unlabeled: bool = False
    """Whether rows without a label take part."""
    classes: Array | None = None
    """All classes, if they are known."""
    fewest_classes: int = 2
    reset: bool = True
    """Whether the columns are those of a first table, which the estimator notes."""
    most_weight: float = MOST_WEIGHT
    """Largest sum of the weights."""
    least_weight: float = LEAST_WEIGHT
    """One weight at least must not be below it."""


AS_GIVEN = Reading()
"""Every class and row that is given, without class weights."""


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

    def taken(self, keep: Array) -> Rows:
        """The rows where ``keep`` is true, in memory."""

    def mapped(self, function: Callable[[Table], Array]) -> Array:
        """A function of tables with a row of values for each of their rows, of all rows."""


@runtime_checkable
class NamesColumns(Protocol):
    """Optional ability of an estimator: parameters that say what some columns are."""

    def _given_columns(self, table: Table) -> dict[int, str]:
        """Position -> kind of the columns whose kind is given."""


@runtime_checkable
class ConvertsRows(Protocol):
    """Optional ability of an estimator: it reads tables with cells that no other one reads, such as lists."""

    def _readable(self, X: Any) -> Any:
        """What is passed as X, as a table whose cells hold one value."""


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

    def times(self, factor: Array) -> Rows:
        """The rows with their weights times class weights (n,), without those whose weight is zero then."""
        weighted = self._replace(weight=self.weight * factor, factor=factor)
        return weighted.only(read_weight(weighted.weight, len(factor)) > 0)

    @property
    def summary(self) -> TableSummary:
        """The summary of the rows, which encoders are fitted to."""
        if self.table.cache is None:
            return MemorySummary(self.table, self.weight, self.codes)
        return summary_of(self.table, self.weight, self.codes)

    def encoded(self, binding: Any) -> Mapping[str, Array]:
        """The encoded columns of each family of a column binding."""
        encoded: Mapping[str, Array] = binding.encode(self.table)
        return encoded

    def source(self, binding: Any, weight: Array, held_out: Array, **sizes: int) -> Source:
        """The encoded rows in blocks, with these weights."""
        return ArraySource(binding.encode(self.table), self.codes, weight, held_out, **sizes)

    def in_memory(self) -> Rows:
        """These rows."""
        return self

    def taken(self, keep: Array) -> Rows:
        """The rows where ``keep`` is true."""
        return self.only(keep)

    def mapped(self, function: Callable[[Table], Array]) -> Array:
        """A function of tables with a row of values for each of their rows, of all rows."""

        def of_rows(rows: slice) -> Array:
            return function(self.table.rows(np.arange(rows.start, rows.stop)).with_cache())

        return np.concatenate(map_ranges(of_rows, self.table.n, MAPPED_BYTES * len(self.table.names)))

    def described(self) -> TrainingTable:
        """Size and columns of the table, as it was given."""
        return training_table(self.table, int(np.count_nonzero(self.codes >= 0)))


def read_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """The table, its columns checked against those of the first one, which ``reset`` replaces.

    Sets ``n_features_in_`` and, for named columns, ``feature_names_in_`` of the estimator, as scikit-learn does. Unless
    ``reset``, columns are converted as those of the first table were.
    """
    if reset and native_kernels.is_missing:
        note_once(native_kernels.advice)
    X = estimator._readable(X) if isinstance(estimator, ConvertsRows) else X
    if isinstance(X, Table):
        _match_names(estimator, X, reset=reset)
        table = X
    elif nw.dependencies.is_into_dataframe(X):
        table = _frame_table(estimator, X, reset=reset)
    else:
        # NumPy would turn numbers beside strings of a list into strings.
        rows = object_array(X) if isinstance(X, list | tuple) else X
        if getattr(getattr(rows, "dtype", None), "kind", "") == "c":
            raise complex_numbers(rows, "X")
        if not isinstance(rows, np.ndarray):
            _refuse_elsewhere(estimator, rows)
        sparse = "csr" if get_tags(estimator).input_tags.sparse else False
        options = {"reset": reset, "dtype": None, "ensure_all_finite": False, "accept_sparse": sparse}
        array = validate_data(estimator, rows, **options)
        table = read_array(array, getattr(estimator, "feature_names_in_", None))
    conversion = None if reset else getattr(estimator, "conversion_", None)
    if conversion is None or table.conversion is not None:
        return table
    return conversion.apply(table) if conversion.converters else replace(table, conversion=conversion)


def convert(estimator: Any, table: Table) -> Table:
    """The training table with its columns converted; sets ``conversion_`` of the estimator.

    Estimators of levels, or of counts and flags, read columns as they are. Those of numbers alone read dates as numbers.
    """
    if table.conversion is None:
        given = estimator._given_columns(table) if isinstance(estimator, NamesColumns) else {}
        tags = get_tags(estimator).input_tags
        is_matrix = not isinstance(table.content, tuple) and table.content.dtype.kind in "fiub"
        reads_levels = tags.categorical or (tags.sparse and not tags.string)
        if reads_levels or (is_matrix and IDENTIFIER not in given.values()):
            table = replace(table, conversion=ColumnConversion(table.names, table.types()))
        else:
            sample = sample_of(table, np.broadcast_to(1.0, table.n), None).table
            table = learn_conversion(
                sample, given, levels=tags.string, has_kinds=hasattr(estimator, "kinds")
            ).apply(table)
    estimator.conversion_ = table.conversion
    return table


def _frame_table(estimator: Any, frame: Any, *, reset: bool) -> Table:
    """The table of a data frame, whose names are checked by scikit-learn unless they are those of the training table."""
    known = None if reset else vars(estimator).get("feature_names_in_")
    if known is None or known.tolist() != list(getattr(frame, "columns", ())):
        validate_data(estimator, frame, reset=reset, skip_check_array=True)
    return read_frame(frame)


def is_dispatched(X: Any) -> bool:
    """Whether X is an array on a device, and scikit-learn is to compute there."""
    return bool(get_config()["array_api_dispatch"]) and bool(feature("device").is_on_device(X))


def refuse_on_device(estimator: Any) -> None:
    """Raises TypeError: the estimator does not compute on a device."""
    raise TypeError(f"{type(estimator).__name__} cannot read an X on a device. {feature('device').ADVICE}")


def _refuse_elsewhere(estimator: Any, X: Any) -> None:
    """Raises TypeError if the rows of X are not in memory."""
    if is_dispatched(X):
        refuse_on_device(estimator)
    refuse_lazy(X)
    # A kind of table (`calibayes.model.table_inputs.TableInput`) has the method.
    if is_streamed(X) or hasattr(X, "in_memory"):
        advice = "`fit`, predictions and `score` read them, for anything else pass a data frame or array"
        raise TypeError(f"the rows of a {type(X).__name__} are not in memory: {advice}")


def new_table(estimator: Any, X: Any) -> Table:
    """The table that a fitted estimator is to predict."""
    check_is_fitted(estimator)
    return read_table(estimator, X, reset=False)


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
    names, known = table.source_names, _known_names(estimator)
    if names != known:
        raise ValueError(f"the columns are not those of the training table: {_difference(names, known)}")


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
    parts = [f"{listed(unknown)} unknown"] * bool(unknown) + [f"{listed(lost)} missing"] * bool(lost)
    return "; ".join(parts) or f"they must be in the order {listed(known, most=len(known))}"


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


# -- Labels, classes and weights -------------------------------------------------------------------------------


class Target(NamedTuple):
    """Classes, and each row's label as a code."""

    classes: Array
    codes: Array
    """Position of each row's label among the classes; -1 without a label."""


def require_labels(estimator: Any, y: Any) -> None:
    """Raise ValueError if there are no labels."""
    if y is None:
        problem = "requires y to be passed, but the target y is None: give the label of each row of X"
        raise ValueError(f"{type(estimator).__name__} {problem}")


def read_target(y: Any, unlabeled: bool, classes: Array | None = None, fewest_classes: int = 2) -> Target:
    """Classes and codes. None, NaN and NA are missing labels, which only some rules accept."""
    try:
        values = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            f"y must have one label for each row, got a {type(y).__name__} whose entries have different lengths"
        ) from error
    if values.dtype.kind == "c":
        raise complex_numbers(values, "y")
    if values.ndim != 1:
        values = column_or_1d(values, warn=True)
    unknown = missing_mask(values) if values.dtype.kind in "fOmM" else np.zeros(len(values), dtype=bool)
    if unknown.any() and not unlabeled:
        refuse_missing_labels(int(np.count_nonzero(unknown)))
    known = values[~unknown] if unknown.any() else values
    if known.dtype.kind == "f" and not np.isfinite(known).all():
        raise ValueError("Input y contains infinity")
    if len(known) == 0 and classes is None:
        raise ValueError("the target has no labels at all")
    known = _narrowed(known) if known.dtype.kind == "O" else known
    if known.dtype.kind not in "biu" and len(known):  # integers are always class labels
        check_classification_targets(known)
    labels, inverse = distinct(known)
    if classes is None:
        classes = labels
    elif unknown_labels := labels[~np.isin(labels, classes)].tolist():
        problem = f"do not exist in the initial classes {classes.tolist()}"
        raise ValueError(f"The target label(s) {unknown_labels} in y {problem}")
    if len(classes) < fewest_classes:
        only = classes.tolist()[0]
        raise ValueError(f"y has only one class, {only!r}: a classifier needs at least two classes")
    places = np.asarray(np.searchsorted(classes, labels))
    if len(known) == len(values):
        return Target(classes, inverse if len(labels) == len(classes) else places[inverse])
    codes = np.full(len(values), -1)
    codes[~unknown] = places[inverse]
    return Target(classes, codes)


def refuse_missing_labels(rows: int) -> None:
    """Raise ValueError if so many rows, above zero, have no label."""
    if rows:
        raise ValueError(
            f"Input y contains NaN or missing labels ({counted(rows, 'row')}): remove these rows, or use a generative "
            "classifier with rule='em', RC(unlabeled=1) or GDT(unlabeled=1), for example GaussianNB(rule='em'), which "
            "learns from them"
        )


MOST_COUNTED = 2**16
"""Integers that span no more than this are sorted by counting."""


def distinct(labels: Array) -> tuple[Array, Array]:
    """Distinct labels, ascending, and the position of each row's label among them."""
    if labels.dtype.kind in "iu" and len(labels):
        least, most = int(labels.min()), int(labels.max())
        if most - least < MOST_COUNTED:
            # Unsigned integers may be too large for a signed type before the least one is subtracted.
            kind = labels.dtype.type if labels.dtype.kind == "u" else np.int64
            above = (labels.astype(kind, copy=False) - kind(least)).astype(np.int64, copy=False)
            present = np.bincount(above) > 0
            found = [least + place for place in np.flatnonzero(present).tolist()]
            return np.array(found, dtype=labels.dtype), (np.cumsum(present) - 1)[above]
    values, inverse = np.unique(labels, return_inverse=True)
    return values, inverse


def read_classes(classes: Any) -> Array:
    """The classes passed to `partial_fit`: distinct, ascending, none missing."""
    listed = np.asarray(classes)
    if listed.ndim != 1 or missing_mask(listed).any():
        raise ValueError(f"classes must be a list of labels, none of them missing, got {classes!r}")
    return np.unique(_narrowed(listed) if listed.dtype.kind == "O" else listed)


def _narrowed(labels: Array) -> Array:
    """Objects of one type as an array of that type. Raises ValueError if types are mixed, or hold several values."""
    for kind in set(map(type, labels)):
        if issubclass(kind, dict | list | set | tuple | np.ndarray):
            raise ValueError(f"y must have one label for each row, got a {kind.__name__} in some rows")
    kinds = sorted({type(label).__name__ for label in labels})
    strings = all(isinstance(label, str) for label in labels)
    if not strings and len(kinds) > 1:
        raise ValueError(f"Unknown label type: y mixes labels of types {', '.join(kinds)}")
    return labels if strings else np.array(labels.tolist())


def read_weight(sample_weight: Any, n: int) -> Array:
    """Sample weights as floats. Raises ValueError unless they are finite, not negative and not all zero."""
    if sample_weight is None:
        return np.ones(n)
    try:
        given = np.asarray(sample_weight)
        if given.dtype.kind == "c":
            raise complex_numbers(given, "sample_weight")
        weight = np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must have one number for each row: {error}") from error
    if weight.ndim == 0:
        weight = np.full(n, weight)
    if weight.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n,)}!")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity")
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(f"Negative values in data passed to `sample_weight`: row {row} has {weight[row]:g}")
    if not (weight > 0).any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight


def check_total_weight(weight: Array, most: float = MOST_WEIGHT, least: float = LEAST_WEIGHT) -> None:
    """Raise ValueError if weights sum to more than ``most``, or are all below ``least``."""
    if weight.max() < least:
        advice = "products of such weights are 0. Multiply all weights by a constant"
        raise ValueError(f"the largest sample weight is {weight.max():g}, below {least:g}: {advice}")
    if weight.max() > most / len(weight) and np.sum(weight / most) > 1:
        raise ValueError(
            f"the sum of the sample weights must not be above {most:g}, beyond which sums over rows overflow; the largest "
            f"weight is {weight.max():g}: divide all weights by a constant"
        )


def class_factors(class_weight: Any, classes: Array, codes: Array, weight: Array) -> Array:
    """The class weight of each row, (n,): 1 for a row without a label."""
    is_balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not is_balanced and not isinstance(class_weight, Mapping):
        raise ValueError(f"class_weight must be a dictionary or 'balanced', got {class_weight!r}")
    if is_balanced:
        mass = np.bincount(codes[codes >= 0], weight[codes >= 0], minlength=len(classes))
        factors = mass.sum() / (len(classes) * np.where(mass > 0, mass, 1.0))
    else:
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown:
            raise ValueError(f"class_weight names {unknown[0]!r}, which is not among the classes")
        factors = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    return np.where(codes < 0, 1.0, factors[codes])


def class_probabilities(priors: Any, classes: Array) -> Any:
    """Class probabilities in the order of the classes, (k,), from a mapping class -> probability; else unchanged."""
    if not isinstance(priors, Mapping):
        return priors
    labels = classes.tolist()
    listed = ", ".join(map(repr, labels))
    unknown = [label for label in priors if label not in labels]
    if unknown:
        raise ValueError(f"priors names {unknown[0]!r}, which is not among the classes {listed}")
    lacking = [label for label in labels if label not in priors]
    if lacking:
        raise ValueError(f"priors has no entry for class {lacking[0]!r}; the classes are {listed}")
    return [priors[label] for label in labels]


def class_frequencies(codes: Array, weight: Array, classes: Array) -> Array:
    """The share of each class in the total weight, (k,). Raises ValueError if a class has none."""
    mass = np.bincount(codes, weight, minlength=len(classes))
    if not (mass > 0).all():
        lost = ", ".join(repr(str(label)) for label in classes[~(mass > 0)])
        raise ValueError(f"class {lost} has no rows (or no weight), or none outside of one of the folds")
    return np.asarray(mass / mass.sum())
