"""Models as expressions, evaluated with NumPy, predict what the models predict."""

import numpy as np
import pytest

import calibayes
from calibayes.export.evaluate import evaluate
from calibayes.export.expressions import (
    MISSING,
    Bin,
    Constant,
    Entry,
    Filled,
    NumberCode,
    NumberColumn,
    Once,
    TextCode,
    TextColumn,
    Where,
    log_sum_exp,
    softmax,
)
from calibayes.export.model import model_expressions
from calibayes.export.traversal import once_in_order
from tests.export.tables import as_columns
from tests.golden.stored_cases import CASES, path_of, stored
from tests.golden.stored_tables import table_from_json

X = NumberColumn("x")
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
        (Bin(X, (0.0, 0.5, 2.0)), [0, 2, np.nan, 3, np.nan]),
        (NumberCode(X, (-1.0, 2.0), 5.0), [0, 5, np.nan, 1, np.nan]),
        (Entry((3.0, np.nan, 4.0), Bin(X, (0.0, 1.0))), [3, np.nan, np.nan, 4, np.nan]),
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


@pytest.mark.parametrize(("version", "case"), [pytest.param(*entry, id=entry[1]["file"]) for entry in CASES])
def test_expressions_predict_what_a_stored_model_predicts(version, case):
    model, table = (
        calibayes.load(path_of(version, case)),
        table_from_json(stored(version, f"{case['table']}.json")),
    )
    try:
        probabilities = model_expressions(model).probabilities
    except TypeError as error:
        assert "cannot be exported: " in str(error)
        return
    found = evaluate(probabilities, as_columns(table), table.shape[0])
    predicted = model.predict_proba(table)
    precision = 1e-6 if predicted.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, predicted, rtol=0, atol=precision)
