"""Models as expressions, evaluated with NumPy, predict what the models predict."""

import numpy as np
import pytest

from calibayes.export.encoders import CALENDAR
from calibayes.export.expressions import (
    MISSING,
    BinCode,
    Constant,
    Filled,
    NumberCode,
    NumberColumn,
    Once,
    TableEntry,
    TextCode,
    TextColumn,
    TimeColumn,
    Where,
    log_sum_exp,
    once_in_order,
    softmax,
)
from calibayes.export.family_densities import log_densities
from calibayes.tables.dates import CALENDAR as CALENDAR_LEVELS
from tests.cases import FAMILIES
from tests.export.evaluate import evaluate

X = NumberColumn("x")
UNWRITTEN = log_densities.dispatch(object)
NOT_WRITTEN = [
    name
    for name, case in FAMILIES.items()
    if log_densities.dispatch(type(case.family)) is UNWRITTEN or name.startswith("k-dependence-2")
]
NUMBERS = {"x": np.array([-1.0, 0.5, np.nan, 2.0, np.inf])}


def values(expression, columns=NUMBERS):
    return evaluate([expression], columns, 5)[:, 0]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (X, [-1, 0.5, np.nan, 2, np.nan]),
        (X * 2.0 - 1.0, [-3, 0, np.nan, 3, np.nan]),
        (Filled(X, Constant(7.0)), [-1, 0.5, 7, 2, 7]),
        (Where(X < 1.0, Constant(1.0), MISSING), [1, 1, np.nan, np.nan, np.nan]),
        (BinCode(X, (0.0, 0.5, 2.0)), [0, 2, np.nan, 3, np.nan]),
        (NumberCode(X, (-1.0, 2.0), 5.0), [0, 5, np.nan, 1, np.nan]),
        (TableEntry((3.0, np.nan, 4.0), BinCode(X, (0.0, 1.0))), [3, np.nan, np.nan, 4, np.nan]),
    ],
)
def test_missing_numbers_stay_missing(expression, expected):
    np.testing.assert_array_equal(values(expression), expected)


def test_text_has_the_position_of_its_level():
    column = {"t": np.array(["b", "a", None, "A", "b"], dtype=object)}
    np.testing.assert_array_equal(
        values(TextCode(TextColumn("t"), ("a", "b")), column), [1, 0, np.nan, np.nan, 1]
    )
    np.testing.assert_array_equal(
        values(TextCode(TextColumn("t"), ("a", "b"), 2.0), column), [1, 0, np.nan, 2, 1]
    )


def test_sums_of_exponentials_do_not_overflow():
    terms = [Constant(-2000.0), Constant(-2000.0 + np.log(3.0))]
    np.testing.assert_allclose(values(log_sum_exp(terms)), -2000.0 + np.log(4.0))
    np.testing.assert_allclose(evaluate(softmax(terms), NUMBERS, 5), [[0.25, 0.75]] * 5)


def test_what_is_computed_once_comes_in_layers():
    first = Once(X + 1.0)
    second, third = Once(first * first), Once(X * 3.0)
    layers = once_in_order([second + third, Once(second + first)])
    assert [len(layer) for layer in layers] == [2, 1, 1]
    assert layers[1] == [second]


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in NOT_WRITTEN])
def test_log_densities_are_those_of_the_family(name):
    """Up to a term that all classes share, with and without missing values."""
    case = FAMILIES[name]
    family, parameters = case.prepared(), case.prepared().parameters(case.start())
    inputs = [Once(NumberColumn(f"x{j}")) for j in range(case.columns.shape[1])]
    expressions = log_densities(family, parameters, inputs)
    for rows in case.tables():
        cells = np.where(rows < 0, np.nan, rows) if case.has_codes else rows
        columns = {f"x{j}": column for j, column in enumerate(cells.T)}
        found, expected = evaluate(expressions, columns, len(rows)), family.log_density(rows, parameters)
        np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NOT_WRITTEN)
def test_families_that_are_not_written_as_expressions_are_refused(name):
    case = FAMILIES[name]
    inputs = [Once(NumberColumn(f"x{j}")) for j in range(case.columns.shape[1])]
    with pytest.raises(TypeError, match=type(case.family).__name__ + "|two others"):
        log_densities(case.prepared(), case.prepared().parameters(case.start()), inputs)


@pytest.mark.parametrize("part", CALENDAR)
def test_parts_of_the_calendar_are_those_of_dates(part):
    dates = np.arange("1895-01-01T00:30", "2105-01-01", 3 * 3600, dtype="M8[s]").astype("M8[us]")[::7]
    position_of, _ = CALENDAR_LEVELS[part]
    found = evaluate([CALENDAR[part](Once(TimeColumn("t")))], {"t": dates}, len(dates))[:, 0]
    np.testing.assert_array_equal(found, position_of(dates))
