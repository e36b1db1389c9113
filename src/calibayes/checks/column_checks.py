"""CB003: one column alone predicts the class almost without error (target leakage).

Often such a column was recorded after the class was known. The rows are divided into two stratified halves. A column is divided
into cells: at most 32 quantile ranges of a number, at most 1,000 levels otherwise, and one cell for missing values. The most
frequent class of each cell in one half is the prediction for the other half, and vice versa. The error is compared with that of
always predicting the most frequent class. A column is reported if it removes 98 % of those errors, and at least 90 % with 99 %
confidence (upper limit of the Wilson interval of its error), so that a few rows are not enough.
"""

from __future__ import annotations

import datetime
import re
from numbers import Number

import numpy as np
import pandas as pd
from scipy import stats

from calibayes.analysis.two_sample_tests import holm
from calibayes.checks.check import Evidence, clause, percent, quoted
from calibayes.checks.subject import ExaminedColumn, Subject, cells_of
from calibayes.core.notices import listed
from calibayes.core.protocols import Array
from calibayes.tables.conversion import DISTINCT_SHARE, ROWS_TO_TELL
from calibayes.tables.dates import formats_of

REMOVED, SURELY_REMOVED = 0.98, 0.90
"""Share of the errors of the most frequent class that a column must remove, and its lower confidence limit."""
DEVIATIONS = 2.5758
"""Quantile of the normal distribution for 99 %, two-sided."""


def find_class_in_one_column(subject: Subject) -> Evidence | None:
    """Evidence of columns that predict the class nearly without error."""
    tested = subject.codes[subject.halves >= 0]  # the only row of a class is never predicted
    base = float(1.0 - np.bincount(tested).max() / len(tested)) if len(tested) else 0.0
    if base == 0.0:
        return None
    errors = {column.name: held_out_error(column, subject) for column in subject.columns}
    found = {name: error for name, error in errors.items() if _removes(error, base, len(tested))}
    if not found:
        return None
    name, error = min(found.items(), key=lambda item: item[1])
    return Evidence(
        f"Column {name!r} alone predicts the class of {percent(1 - error)} of the held-out rows correctly; always predicting the "
        f"most frequent class is correct for {percent(1 - base)}. Check whether {quoted(list(found))} would be known at the time "
        "of prediction.",
        tuple(found),
        {"error of the most frequent class": base, **{f"error of {name}": found[name] for name in found}},
    )


def _removes(error: float, base: float, n: int) -> bool:
    return error <= (1 - REMOVED) * base and wilson_upper(error, n) <= (1 - SURELY_REMOVED) * base


def wilson_upper(share: float, n: int) -> float:
    """Upper end of the Wilson interval of a share of n rows."""
    square = DEVIATIONS**2 / n
    spread = DEVIATIONS * np.sqrt(share * (1 - share) / n + square / (4 * n))
    return float((share + square / 2 + spread) / (1 + square))


def held_out_error(column: ExaminedColumn, subject: Subject) -> float:
    """Share of rows whose class is not the most frequent one of their cell in the other half."""
    wrong = 0
    for half in (0, 1):
        test = subject.halves == half
        predicted = _predictions(column, subject.codes, ~test, subject.k)
        wrong += int((predicted[test] != subject.codes[test]).sum())
    return wrong / max(int((subject.halves >= 0).sum()), 1)


def _predictions(column: ExaminedColumn, codes: Array, training: Array, k: int) -> Array:
    """The most frequent class of the training rows in the cell of each row, (n,); of all of them in an empty cell."""
    cells, size = cells_of(column, training)
    counts = np.bincount(cells[training] * k + codes[training], minlength=size * k).reshape(size, k)
    overall = counts.sum(axis=0)
    by_cell = np.where(counts.any(axis=1), counts.argmax(axis=1), overall.argmax())
    return np.asarray(by_cell[cells])


# -- CB008: columns with the same value in all rows, or without any value ------------------------------------


def find_constant_columns(subject: Subject) -> Evidence | None:
    """Evidence of columns whose cells are all equal, or all missing, in every row."""
    found = subject.confirmed(is_constant)
    if not found:
        return None
    empty = [column.name for column in found if not column.known]
    names = tuple(column.name for column in found)
    columns = clause(names, "Column {} has", "Columns {} have")
    note = f" ({quoted(empty)}: all cells are missing)" if empty else ""
    return Evidence(
        f"{columns} the same value in all {subject.total_rows:,} rows{note}.",
        names,
        {"constant columns": len(names), "of them all missing": len(empty)},
    )


def is_constant(column: ExaminedColumn) -> bool:
    """Whether all cells are equal, or all are missing."""
    return not column.known or (len(column.levels) == 1 and column.known == len(column.values))


# -- CB004: a column whose values are all different, such as a key or a row number ---------------------------
#
# A column of text is an identifier if at least 95 % of its known values are distinct, unless they are dates or numbers; estimators
# leave such columns out by the same criterion. Integers are compared with chance: n values drawn from a range of R integers have at
# least n (n - 1) / (2 R) equal pairs in expectation, and no equal pair with a probability of at most about exp(-n (n - 1) / (2 R)).
# A column is an identifier if no value occurs twice although 12 equal pairs are expected (probability below 1e-5).

EXPECTED_PAIRS = 12.0
MEASURED = (Number, datetime.date, datetime.timedelta, pd.Period)
"""Types of cells that models treat as numbers."""


def find_identifiers(subject: Subject) -> Evidence | None:
    """Evidence of identifier columns."""
    found = subject.confirmed(is_identifier)
    if not found:
        return None
    names, first = tuple(column.name for column in found), found[0]
    columns = clause(names, "Column {} has", "Columns {} have")
    return Evidence(
        f"{columns} a different value in (nearly) every row: {first.name!r} has {len(first.levels):,} distinct values in "
        f"{first.known:,} rows. Such a column does not help to predict new rows.",
        names,
        {f"distinct values of {column.name}": len(column.levels) for column in found[:20]},
    )


def is_identifier(column: ExaminedColumn) -> bool:
    """Whether nearly all texts, or all integers of a column, are distinct, and more often than by chance."""
    if column.known < ROWS_TO_TELL:
        return False
    if column.is_text:
        return len(column.levels) >= DISTINCT_SHARE * column.known and not are_measured(column.levels)
    return column.values.dtype.kind in "fiu" and _numbers_the_rows(column)


def are_measured(values: Array) -> bool:
    """Whether the objects in a column are all numbers or dates, or all texts of dates in one format."""
    if all(isinstance(value, str) for value in values):
        return bool(formats_of(list(values)))
    return all(isinstance(value, MEASURED) for value in values)


def _numbers_the_rows(column: ExaminedColumn) -> bool:
    known = column.values[~column.missing].astype(np.float64)
    if len(column.levels) < len(known) or not (np.isfinite(known).all() and (known == np.rint(known)).all()):
        return False
    size = float(known.max() - known.min()) + 1.0
    return bool(len(known) * (len(known) - 1) / (2.0 * size) >= EXPECTED_PAIRS)


# -- CB014: columns that are equal, or hold the same information in other units or words ---------------------
#
# Two columns of numbers are the same if one is a monotone function of the other (equal or reversed ranks), two columns of levels if
# their levels correspond one to one and occur at least twice on average (levels that occur once correspond to any others). Naive
# Bayes counts the evidence of such columns twice.

LEAST_ROWS = 20


def find_equal_columns(subject: Subject) -> Evidence | None:
    """Evidence of groups of equal columns."""
    groups: dict[bytes, list[str]] = {}
    for column in subject.columns:
        if subject.n >= LEAST_ROWS and len(column.levels) > 1 and _can_repeat(column):
            groups.setdefault(_content(column), []).append(column.name)
    equal = [names for names in groups.values() if len(names) > 1]
    if not equal:
        return None
    first = equal[0]
    return Evidence(
        f"Columns {quoted(first)} hold the same information in all {subject.n:,} rows that were examined"
        + (f"; there are {len(equal)} such groups of columns" if len(equal) > 1 else "")
        + ". Naive Bayes counts the evidence of such columns more than once.",
        tuple(name for names in equal for name in names),
        {"groups of equal columns": len(equal), "columns": sum(map(len, equal))},
    )


def _can_repeat(column: ExaminedColumn) -> bool:
    """Whether an equal column would be unlikely by chance."""
    is_rare = column.numbers is None and 2 * len(column.levels) > column.known
    return not is_rare and not is_identifier(column)


def _content(column: ExaminedColumn) -> bytes:
    """Bytes that are equal for columns that hold the same information."""
    if column.numbers is None:
        return b"levels" + bytes(column.codes.astype(np.int64))
    return b"numbers" + bytes(_ranks(column.numbers))


def _ranks(numbers: Array) -> Array:
    """Ranks of the distinct numbers, -1 if missing; reversed columns have equal ranks.

    Of the ranks and the reversed ranks, those are returned that are smaller in the first row in which they differ.
    """
    known = np.isfinite(numbers)
    values, ranks = np.unique(numbers[known], return_inverse=True)
    ranks = ranks.reshape(-1)
    reverse = len(values) - 1 - ranks
    differing = np.flatnonzero(ranks != reverse)
    chosen = reverse if len(differing) and reverse[differing[0]] < ranks[differing[0]] else ranks
    codes = np.full(len(numbers), -1, dtype=np.int64)
    codes[known] = chosen
    return codes


# -- CB010 and CB011: columns that are mostly missing, and missing cells that depend on the class ------------
#
# A column is mostly missing if more than 80 % of its cells are. The share of missing cells is compared between the classes by
# Fisher's exact test for two classes, by a chi-square test for more, adjusted for the number of columns (Holm). Columns are reported
# if the p-value is below 0.001 and the shares of two classes with at least 20 rows differ by a tenth or more.

MOSTLY = 0.8
LEVEL = 0.001
LEAST_DIFFERENCE = 0.1
CLASS_ROWS = 20


def look_for_mostly_missing(subject: Subject) -> Evidence | None:
    """Evidence of columns with few known cells."""
    shares = {column.name: 1 - column.known / subject.n for column in subject.columns}
    found = {name: share for name, share in shares.items() if MOSTLY < share < 1.0}
    if not found:
        return None
    names = sorted(found, key=lambda name: -found[name])
    columns = clause(names, "Column {} is", "Columns {} are")
    return Evidence(
        f"{columns} missing in more than {percent(MOSTLY)} of the rows ({names[0]!r} in {percent(found[names[0]])}).",
        tuple(names),
        {f"missing share of {name}": found[name] for name in names[:20]},
    )


def look_for_informative_gaps(subject: Subject) -> Evidence | None:
    """Evidence of columns whose missing cells depend on the class."""
    large = np.flatnonzero(np.bincount(subject.codes, minlength=subject.k) >= CLASS_ROWS)
    with_gaps = [column for column in subject.columns if 0 < column.known < subject.n]
    counts = {column.name: _counts(column, subject)[large] for column in with_gaps}
    shares = {name: cells[:, 1] / cells.sum(axis=1) for name, cells in counts.items()}
    p_values = zip(counts, holm(np.array([_p_value(cells) for cells in counts.values()])), strict=True)
    found = [name for name, p in p_values if p < LEVEL and np.ptp(shares[name]) >= LEAST_DIFFERENCE]
    if not found:
        return None
    found.sort(key=lambda name: -np.ptp(shares[name]))
    first, classes = shares[found[0]], [subject.classes[i] for i in large]
    low, high = int(np.argmin(first)), int(np.argmax(first))
    columns = clause(found, "column {}", "columns {}")
    return Evidence(
        f"In {columns}, the share of missing cells depends on the class: {found[0]!r} is missing in "
        f"{percent(first[high])} of the rows of class {classes[high]!r} and in {percent(first[low])} of class {classes[low]!r}.",
        tuple(found),
        {f"difference of {name}": float(np.ptp(shares[name])) for name in found[:20]},
    )


def _counts(column: ExaminedColumn, subject: Subject) -> Array:
    """Number of known and missing cells in each class, (k, 2)."""
    cells = np.bincount(2 * subject.codes + column.missing, minlength=2 * subject.k)
    return cells.reshape(-1, 2).astype(np.float64)


def _p_value(counts: Array) -> float:
    if len(counts) < 2 or not counts.any(axis=0).all():
        return 1.0
    test = stats.fisher_exact if len(counts) == 2 else stats.chi2_contingency
    return float(test(counts)[1])


# -- CB016: numbers such as -999 or 99999 that may be codes for missing values -------------------------------
#
# The smallest or largest number of a column is reported if it occurs in at least three rows and 0.2 % of them, and either
#
# - its digits are all nines or all eights, and it is farther from the nearest other number than all others are from each other, or
# - it is -1, and all others are non-negative integers, some of them above ten.

CODE_ROWS, CODE_SHARE = 3, 0.002
LEAST_VALUES = 3
"""Least number of other distinct values: columns with fewer are flags or small scales."""
LARGEST_COUNT = 10
"""With a code of -1, the largest number must be above this one."""


def find_missing_codes(subject: Subject) -> Evidence | None:
    """Evidence of numbers that may be codes for missing values."""
    found = {column.name: codes for column in subject.columns if (codes := missing_codes(column))}
    if not found:
        return None
    pairs = [(name, *pair) for name, codes in found.items() for pair in codes]
    described = [f"{code:g} in {percent(share)} of {name!r}" for name, code, share in pairs]
    return Evidence(
        f"Numbers that are far from all others and may be codes for missing values: {listed(described, 5)}.",
        tuple(found),
        {f"share of {codes[0][0]:g} in {name}": codes[0][1] for name, codes in list(found.items())[:20]},
    )


def missing_codes(column: ExaminedColumn) -> list[tuple[float, float]]:
    """Numbers of a column that may be codes for missing values, and their shares of the known cells."""
    if column.values.dtype.kind not in "fiu" or column.numbers is None:
        return []
    known = column.numbers[np.isfinite(column.numbers)]
    values, rows = np.unique(known, return_counts=True)
    if len(values) <= LEAST_VALUES:
        return []
    least = max(CODE_ROWS, CODE_SHARE * len(known))
    ends = ((float(values[0]), rows[0], values[1:]), (float(values[-1]), rows[-1], values[:-1]))
    frequent = [(end, float(count / len(known)), others) for end, count, others in ends if count >= least]
    return [(end, share) for end, share, others in frequent if _looks_like_a_code(end, others)]


def _looks_like_a_code(end: float, others: Array) -> bool:
    if end == -1:
        return bool(others[0] >= 0 and others[-1] > LARGEST_COUNT and (others == np.rint(others)).all())
    if not re.fullmatch(r"-?(9+|8+)(\.9+)?", f"{end:.10g}"):
        return False
    with np.errstate(over="ignore"):  # numbers near the largest one
        return bool(np.abs(others - end).min() > others[-1] - others[0])


# -- CB017: columns of text whose cells are numbers, possibly with a few words among them --------------------
#
# A column is reported if at least 90 % of its distinct values are numbers, and at least ten. Digits with leading zeros, such as
# postal codes, do not count as numbers.

NUMBER = re.compile(r"[+-]?(?!0\d)(\d+([.,]\d+)?|\d{1,3}(,\d{3})+(\.\d+)?|[.,]\d+)([eE][+-]?\d+)?\s*%?")
LEAST_NUMBERS = 10
LEAST_SHARE = 0.9
MOST_LEVELS = 2_000
"""Most distinct values that are examined."""


def find_numbers_as_text(subject: Subject) -> Evidence | None:
    """Evidence of columns of text that hold numbers."""
    texts = [column for column in subject.columns if column.is_text]
    found = {column.name: words for column in texts if (words := other_words(column)) is not None}
    if not found:
        return None
    columns = clause(list(found), "Column {} holds", "Columns {} hold")
    words = [word for name in found for word in found[name]]
    mixed = f", mixed with {quoted(words, 3)}" if words else ""
    first = next(column for column in texts if column.name in found)
    return Evidence(
        f"{columns} numbers as text{mixed} ({first.name!r}: {len(first.levels):,} distinct values). "
        "Models treat each of them as a separate category without order.",
        tuple(found),
        {f"other words in {name}": ", ".join(found[name][:5]) or "none" for name in list(found)[:20]},
    )


def other_words(column: ExaminedColumn) -> list[str] | None:
    """Distinct values that are not numbers, if nearly all others are; else None."""
    texts = [str(value).strip() for value in np.asarray(column.levels)[:MOST_LEVELS]]
    others = [text for text in texts if not NUMBER.fullmatch(text)]
    numbers = len(texts) - len(others)
    return others if numbers >= max(LEAST_NUMBERS, LEAST_SHARE * len(texts)) else None


# -- CB015: columns with so many rare levels that many new rows have a level that does not occur in training
#
# The share of new rows with an unseen level is estimated by the share of rows whose level occurs once (Good 1953, after Turing).
# Columns are reported if it is 5 % or more. Identifiers are reported by CB004 instead.

LEVEL_SHARE = 0.05
LEVEL_ROWS = 50


def find_rare_levels(subject: Subject) -> Evidence | None:
    """Evidence of columns with many levels that occur once, confirmed in all rows."""
    suspects = [j for j, column in enumerate(subject.columns) if unseen_share(column) >= LEVEL_SHARE]
    columns = {j: subject.columns[j] if subject.is_complete else subject.whole(j) for j in suspects}
    shares = {column.name: unseen_share(column) for column in columns.values()}
    found = {name: share for name, share in shares.items() if share >= LEVEL_SHARE}
    if not found:
        return None
    names = sorted(found, key=lambda name: -found[name])
    rare = clause(names, "Column with many rare levels: {}", "Columns with many rare levels: {}")
    return Evidence(
        f"About {percent(found[names[0]])} of new rows are expected to have a level of {names[0]!r} that no training row has. "
        f"{rare}.",
        tuple(names),
        {f"share of new rows, {name}": found[name] for name in names[:20]},
    )


def unseen_share(column: ExaminedColumn) -> float:
    """Expected share of new rows whose level was not seen; 0 for numbers, dates, identifiers, and columns with few values."""
    if not column.is_text or column.known < LEVEL_ROWS or is_identifier(column):
        return 0.0
    share = float((column.level_rows == 1).sum() / column.known)
    return 0.0 if share >= LEVEL_SHARE and are_measured(column.levels) else share
