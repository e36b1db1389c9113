"""Summary of the table: classes, and for each column its kind, missing and distinct values, and distribution by class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from calibayes.core.notices import counted
from calibayes.core.protocols import Array
from calibayes.datasets.loading import data_frame
from calibayes.encoders.schema import NUMERIC, content_type, default_kind
from calibayes.model.table_inputs import in_memory
from calibayes.report.markup import number, shortened
from calibayes.report.values import ClassCount, ColumnFacts, Picture, TableFacts
from calibayes.tables.conversion import known_converters
from calibayes.tables.dates import Converter
from calibayes.tables.read import object_array, read_frame
from calibayes.tables.table import Table, missing_mask

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ReportRows:
    """Rows with a label.

    Attributes
    ----------
    given : array or data frame
        In the form that the model reads.
    frame : pandas.DataFrame
        The same rows; all column names are strings.
    labels : (n,) array
    unlabeled : int
        Number of rows without a label, which are left out.
    positions : (n,) array
        Positions of the rows in the table that was given.
    """

    given: Any
    frame: pd.DataFrame
    labels: Array
    unlabeled: int
    positions: Array

    def __len__(self) -> int:
        return len(self.labels)

    def table_rows(self, rows: Array) -> Any:
        """Some rows, in the form that the model reads."""
        return self.given.iloc[rows] if hasattr(self.given, "iloc") else self.given[rows]

    def only(self, rows: Array) -> ReportRows:
        """Some of the rows."""
        labels, positions = self.labels[rows], self.positions[rows]
        return ReportRows(self.table_rows(rows), self.frame.iloc[rows], labels, self.unlabeled, positions)

    def sample(self, most: int, seed: int) -> ReportRows:
        """At most so many random rows, in their order."""
        return self.only(np.sort(np.random.default_rng(seed).permutation(len(self))[:most]))

    def with_columns(self, names: list[str]) -> ReportRows:
        """The rows with these columns only."""
        frame = self.frame[names]
        return replace(self, given=frame, frame=frame)


def labeled_rows(X: Any, y: Any, *, as_frame: bool = True) -> ReportRows:
    """Rows of a table and their labels; with ``as_frame`` the model reads them as a data frame with column names.

    Raises ValueError if X and y have different lengths, there are fewer than two classes, or two columns have the same name.
    """
    X, y, _ = in_memory(X, y)
    frame, labels = _frame(X), _labels(y)
    if len(frame) != len(labels):
        raise ValueError(
            f"the table has {counted(len(frame), 'row')}, but there are {counted(len(labels), 'label')}: give one label for "
            "each row"
        )
    read_frame(frame)  # refuses a table without rows or columns, or with two columns of one name
    known = np.flatnonzero(~missing_mask(labels))
    if len(set(labels[known].tolist())) < 2:
        raise ValueError("a report needs labeled rows of at least two classes: check y")
    given = frame if as_frame or isinstance(X, Table) else _indexable(X)
    rows = ReportRows(given, frame, labels, len(labels) - len(known), np.arange(len(labels)))
    return rows.only(known) if rows.unlabeled else rows


def _indexable(X: Any) -> Any:
    """A table whose rows can be selected by their positions."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    return object_array(X) if isinstance(X, list | tuple) else X


def _frame(X: Any) -> Any:
    """A pandas data frame whose column names are strings and whose index is the position of the row."""
    import pandas as pd

    if isinstance(X, Table):
        return data_frame(X)
    if hasattr(X, "tocsr"):
        made = pd.DataFrame.sparse.from_spmatrix(X)
    elif hasattr(X, "to_pandas"):
        made = X.to_pandas()
    else:
        made = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X).infer_objects()
    is_unnamed = not hasattr(X, "columns") and not hasattr(X, "column_names")
    names = [f"x{j}" if is_unnamed else str(name) for j, name in enumerate(made.columns)]
    return made.set_axis(names, axis=1).reset_index(drop=True)


def _labels(y: Any) -> Array:
    """Labels as an array, (n,)."""
    values = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)
    return values.reshape(-1) if values.ndim == 2 and values.shape[1] == 1 else values


PICTURES = 24
"""Most columns with a picture."""
READ_CELLS = 5_000_000
"""Most cells from which pictures and mutual information are computed."""
COUNTED_CELLS = 20_000_000
"""Most cells among which duplicate rows are counted."""
GROUPS = 6
"""Most classes with a separate color; all others share one."""
BINS, LEVELS, FEW = 24, 7, 12
"""Bins of a histogram, levels that are shown, and distinct numbers up to which numbers are shown as levels."""
INFORMATION_BINS = 10


def as_modeled(frame: Any, converters: Mapping[str, Converter]) -> tuple[Any, dict[str, dict[str, Array]]]:
    """The columns as a model reads them, and those that it derives: column -> part of the calendar -> levels.

    Text that is read as dates becomes dates, objects that are read as numbers become numbers.
    """
    table = read_frame(frame)
    columns: dict[str, Any] = {}
    derived: dict[str, dict[str, Array]] = {}
    for j, name in enumerate(table.names):
        converter = converters.get(name)
        values = table.column(j) if converter is None else converter.read(table, j)
        if not _is_number(frame.iloc[:, j]) and values.dtype.kind in "fiumM":
            columns[name] = values
        if converter is not None:
            derived[name] = {part: converter.levels(values, part) for part in converter.parts}
    return frame.assign(**columns) if columns else frame, derived


def table_facts(rows: ReportRows, model: Any = None) -> TableFacts:
    """Summary of the table; columns and their kinds are those of the ``model`` if it is given."""
    names, codes = np.unique(rows.labels.astype(str), return_inverse=True)
    sizes = np.bincount(codes, minlength=len(names))
    group, groups = _groups(names, sizes)
    d = rows.frame.shape[1]
    seen = np.random.default_rng(0).permutation(len(rows))[: max(READ_CELLS // d, 1000)]
    converters = known_converters(read_frame(rows.frame), getattr(model, "conversion_", None))
    treated = _treatment(rows, model, converters)
    frame, derived = as_modeled(rows.frame, converters)
    columns = [_column(frame.iloc[:, j], treated[j], derived, codes, seen, len(names)) for j in range(d)]
    order = sorted(range(d), key=lambda j: -columns[j].information)
    pictured = [
        _with_picture(columns[j], frame.iloc[seen, j], group[codes[seen]], len(groups))
        for j in order[:PICTURES]
    ]
    return TableFacts(
        rows=len(rows),
        unlabeled=rows.unlabeled,
        missing=sum(column.missing for column in columns),
        duplicates=_duplicates(rows.frame, rows.labels),
        classes=tuple(ClassCount(str(name), int(size)) for name, size in zip(names, sizes, strict=True)),
        groups=tuple(groups),
        columns=(*pictured, *(columns[j] for j in order[PICTURES:])),
        read_rows=len(seen),
    )


def _groups(names: Array, sizes: Array) -> tuple[Array, list[str]]:
    """The group of each class, (k,), and the names of the groups: frequent classes, then one group of all others."""
    if len(names) <= GROUPS:
        return np.arange(len(names)), [str(name) for name in names]
    frequent = np.sort(np.argsort(-sizes, kind="stable")[:GROUPS])
    group = np.full(len(names), GROUPS)
    group[frequent] = np.arange(GROUPS)
    return group, [*(str(name) for name in names[frequent]), f"{len(names) - GROUPS} other classes"]


def _treatment(
    rows: ReportRows, model: Any, converters: Mapping[str, Converter]
) -> list[tuple[str, str, str]]:
    """Name, kind and reason of each column: those of the model's schema, otherwise those that it would have."""
    known = {column.name: column for column in getattr(getattr(model, "schema_", None), "columns", ())}
    table, treated = read_frame(rows.frame), []
    for j, name in enumerate(table.names):
        converter = converters.get(name)
        kind, reason = default_kind(table, j), content_type(table, j)
        if name in known:
            kind, reason = known[name].kind, known[name].reason
        elif converter is not None:
            kind, reason = NUMERIC, converter.remark
        more = f"; also {', '.join(converter.parts)}" if converter is not None and converter.parts else ""
        treated.append((name, kind, reason + more))
    return treated


def _column(
    column: Any,
    treated: tuple[str, str, str],
    derived: Mapping[str, Mapping[str, Array]],
    codes: Array,
    seen: Array,
    k: int,
) -> ColumnFacts:
    """One column without its picture; the information of a date is the largest of its own and of its parts."""
    missing = missing_mask(np.asarray(column))
    cells = [_codes(column.iloc[seen], INFORMATION_BINS)]
    cells += [
        np.unique(part[seen].astype(str), return_inverse=True)[1]
        for part in derived.get(treated[0], {}).values()
    ]
    return ColumnFacts(
        *treated,
        missing=int(missing.sum()),
        distinct=int(_as_text(column).nunique() if column.dtype == object else column.nunique()),
        information=max(information(each, codes[seen], k) for each in cells),
        range=_range(column),
    )


def information(cells: Array, codes: Array, k: int) -> float:
    """Mutual information of cells and classes in bits, corrected for bias (Miller and Madow 1955), at least 0."""
    n = len(codes)
    # Pairs are counted by sorting: a table of all cells by all classes may be too large.
    joint, levels, classes = (
        np.unique(values, return_counts=True)[1] for values in (cells * k + codes, cells, codes)
    )
    bias = (len(joint) - len(levels) - len(classes) + 1) / (2 * n * np.log(2))
    plain = _entropy(levels / n) + _entropy(classes / n) - _entropy(joint / n)
    return float(max(plain - max(bias, 0.0), 0.0))


def _entropy(shares: Array) -> float:
    return float(-(shares * np.log2(shares)).sum())


def _as_text(column: Any) -> Any:
    return column.map(str, na_action="ignore")


def _is_number(column: Any) -> bool:
    return getattr(column.dtype, "kind", "O") in "fiumM"


def _is_date(column: Any) -> bool:
    return getattr(column.dtype, "kind", "O") in "mM"


def _numbers(column: Any) -> Array:
    """Numbers of a column, NaN where they are missing or infinite; dates as numbers."""
    if _is_date(column):
        known = column.notna().to_numpy()
        values = np.full(len(column), np.nan)
        values[known] = column[known].astype("int64").to_numpy()
        return values
    values = column.to_numpy(dtype=float, na_value=np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def _codes(column: Any, bins: int) -> Array:
    """Codes of quantile bins or of levels, (n,); 0 for missing values."""
    import pandas as pd

    if _is_number(column):
        values = _numbers(column)
        edges = _edges(values[~np.isnan(values)], bins)
        # A value that equals an edge, such as a frequent zero, has a separate code.
        places = np.searchsorted(edges, values, side="left") + np.searchsorted(edges, values, side="right")
        return np.where(np.isnan(values), 0, 1 + places)
    codes, levels = pd.factorize(_as_text(column))
    if len(levels) > len(column) // 2:  # mostly distinct, like identifiers: not informative about new rows
        return np.zeros(len(column), dtype=int)
    return np.asarray(codes + 1)


def _edges(known: Array, bins: int) -> Array:
    """Quantiles of numbers; if one value fills several bins, also the quantiles of all other values."""
    if not len(known):
        return known
    shares = np.linspace(0, 1, bins + 1)[1:-1]
    edges, repeats = np.unique(np.quantile(known, shares), return_counts=True)
    rest = known[known != edges[repeats.argmax()]] if repeats.max() > 1 else known
    return np.union1d(edges, np.quantile(rest, shares[::2])) if len(rest) else edges


def _range(column: Any) -> str:
    """Smallest, largest and median number as text; empty for levels."""
    values = _numbers(column) if _is_number(column) else np.zeros(0)
    values = values[~np.isnan(values)]
    if not len(values):
        return ""
    low, middle, high = (_written(column, value) for value in np.quantile(values, [0, 0.5, 1]))
    return f"{low} to {high}, median {middle}"


def _written(column: Any, value: float) -> str:
    """A number of a column as text: the day of a date, a duration, or a number."""
    import pandas as pd

    if not _is_date(column):
        return number(value)
    text = str(pd.Series([round(value)]).astype(column.dtype).iloc[0])
    return text[:10] if column.dtype.kind == "M" else text


def _duplicates(frame: Any, labels: Array) -> int | None:
    """Number of rows that equal an earlier row and its label; None in a table that is too large."""
    if frame.size > COUNTED_CELLS:
        return None
    import pandas as pd

    hashes = np.zeros(len(frame), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for j in range(frame.shape[1]):
            column = frame.iloc[:, j]
            plain = _as_text(column) if column.dtype == object else column
            hashes = hashes * np.uint64(31) + pd.util.hash_array(pd.factorize(plain)[0])
    return int(pd.DataFrame({"row": hashes, "label": labels.astype(str)}).duplicated().sum())


def _with_picture(facts: ColumnFacts, column: Any, groups: Array, k: int) -> ColumnFacts:
    """The column with the distribution of its values by class."""
    draw = _histogram if _is_number(column) and facts.distinct > FEW else _levels
    return replace(facts, picture=draw(column, groups, k))


def _histogram(column: Any, groups: Array, k: int) -> Picture | None:
    """Number of rows by class and bin; the outermost bins also count all values beyond them."""
    values = _numbers(column)
    known = ~np.isnan(values)
    low, high = np.quantile(values[known], [0.005, 0.995]) if known.any() else (0.0, 0.0)
    if known.any() and not high > low:
        low, high = values[known].min(), values[known].max()
    with np.errstate(over="ignore", invalid="ignore"):
        edges = np.linspace(low, high, BINS + 1)
    if not (np.isfinite(edges).all() and edges[-1] > edges[0]):
        return None
    place = np.clip(np.searchsorted(edges, values[known], side="right") - 1, 0, BINS - 1)
    counts = np.bincount(groups[known] * BINS + place, minlength=k * BINS).reshape(k, BINS)
    below, above = (values[known] < low).any(), (values[known] > high).any()
    first, last = _written(column, low), _written(column, high)
    return Picture(
        counts, edges=edges, ends=(f"≤ {first}" if below else first, f"≥ {last}" if above else last)
    )


def _level_name(column: Any, level: Any) -> str:
    if _is_date(column):
        return str(level).removesuffix(" 00:00:00")
    return f"{level:.6g}" if _is_number(column) else shortened(level, 40)


def _levels(column: Any, groups: Array, k: int) -> Picture | None:
    """Number of rows by class and level: the most frequent levels, all others together, and missing values."""
    import pandas as pd

    text = _as_text(column) if not _is_number(column) else column
    codes, levels = pd.factorize(text, sort=_is_number(column))
    if not len(levels):
        return None
    counts = np.bincount(groups[codes >= 0] * len(levels) + codes[codes >= 0], minlength=k * len(levels))
    counts = counts.reshape(k, len(levels))
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    most = LEVELS + (len(levels) == LEVELS + 1)
    top = order[:most] if not _is_number(column) or len(levels) > most else np.arange(len(levels))
    names = [_level_name(column, levels[j]) for j in top]
    parts = [counts[:, top]]
    if len(rest := order[len(top) :]):
        names.append(counted(len(rest), "other"))
        parts.append(counts[:, rest].sum(axis=1, keepdims=True))
    if (codes < 0).any():
        names.append("(missing)")
        parts.append(np.bincount(groups[codes < 0], minlength=k)[:, None])
    return Picture(np.concatenate(parts, axis=1), levels=tuple(names))
