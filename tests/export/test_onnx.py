"""Models as ONNX, computed by onnxruntime, predict what the models predict."""

import datetime
import sys

import numpy as np
import pandas as pd
import pytest
from packaging.version import Version
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError

import calibayes
from calibayes import (
    BayesClassifier,
    CategoricalNB,
    GaussianNB,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    NaiveBayes,
    PosteriorMixture,
    QuadraticDiscriminantAnalysis,
)
from calibayes.datasets import load_penguins
from calibayes.export import expressions as ex
from calibayes.export.model_expressions import model_expressions
from calibayes.export.onnx import feeds, to_onnx
from calibayes.export.onnx.graph_model import Rendering
from calibayes.export.onnx.inputs import Graph, Inputs, UsedColumns
from tests.export.cases import CASES, case
from tests.export.evaluate import evaluate
from tests.golden.stored_cases import CASES as STORED
from tests.golden.stored_cases import path_of, stored
from tests.golden.stored_tables import table_from_json

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
PENGUINS = load_penguins()
NEWEST = max((version for version, _ in STORED), key=Version)


def run(model, inputs):
    """The outputs of an ONNX model, by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def refusal(export, model):
    """Why a model cannot be exported; None if it can."""
    try:
        export(model)
    except TypeError as error:
        return str(error)
    return None


def assert_same_predictions(model, X, missing="", precision=1e-9):
    exported = to_onnx(model, missing)
    outputs = run(exported, feeds(exported, X))
    np.testing.assert_allclose(outputs["probabilities"], model.predict_proba(X), rtol=0, atol=precision)
    # Where two classes are equally probable, rounding decides.
    least, most = np.sort(model.predict_proba(X), axis=1)[:, [-2, -1]].T
    is_decided = (most - least > 1e-9) | (getattr(model, "costs", None) is not None)
    expected, found = model.predict(X)[is_decided], outputs["label"][is_decided].tolist()
    assert found == (expected.tolist() if expected.dtype.kind in "ifb" else [*map(str, expected)])
    return exported


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
def test_onnx_predicts_what_the_model_predicts(name):
    model, rows = case(name)
    if (reason := refusal(model_expressions, model)) is not None or "dates" in name:
        assert refusal(to_onnx, model) == reason or "time zone Europe/Berlin" in refusal(to_onnx, model)
        return
    assert_same_predictions(model, rows, missing="?")


@pytest.mark.parametrize(
    "name", ["gaussian", "naive Bayes", "tree", "LDA, dense", "trees", "average of models"]
)
def test_batches_of_no_row_and_of_one_row(name):
    model, rows = case(name)
    exported = to_onnx(model, "?")
    inputs = feeds(exported, rows)
    expected = run(exported, inputs)
    for n in (0, 1):
        outputs = run(exported, {key: values[:n] for key, values in inputs.items()})
        assert outputs["label"].tolist() == expected["label"][:n].tolist()
        assert outputs["probabilities"].shape == (n, len(model.classes_))
        np.testing.assert_allclose(outputs["probabilities"], expected["probabilities"][:n], atol=1e-12)


@pytest.mark.parametrize(
    ("version", "entry"),
    [pytest.param(*entry, id=entry[1]["file"]) for entry in STORED if entry[0] == NEWEST],
)
def test_onnx_predicts_what_a_stored_model_predicts(version, entry):
    model = calibayes.load(path_of(version, entry))
    table = table_from_json(stored(version, f"{entry['table']}.json"))
    if (reason := refusal(model_expressions, model)) is not None:
        assert "cannot be exported: " in reason
        assert refusal(to_onnx, model) == reason
        return
    is_single = model.predict_proba(table).dtype == np.float32
    assert_same_predictions(model, table, precision=1e-6 if is_single else 1e-9)


def test_missing_values_and_unseen_levels():
    model = NaiveBayes(rule="ml").fit(PENGUINS.data, PENGUINS.target)
    table = PENGUINS.data.mask(np.random.default_rng(0).random(PENGUINS.data.shape) < 0.4)
    table.loc[::7, "island"] = "Atlantis"
    exported = assert_same_predictions(model, table)
    kinds = {value.name: value.type.tensor_type.elem_type for value in exported.graph.input}
    assert kinds["island"] == onnx.TensorProto.STRING
    assert kinds["bill_length_mm"] == onnx.TensorProto.DOUBLE


@pytest.mark.parametrize(
    "model",
    [GaussianNB(rule="ml"), LinearDiscriminantAnalysis(rule="ml"), QuadraticDiscriminantAnalysis(rule="ml")],
)
@pytest.mark.filterwarnings("ignore:the covariance is full:UserWarning")
def test_wide_models_have_few_operations(model):
    X, y = load_digits(return_X_y=True)
    X = X + np.random.default_rng(0).normal(size=X.shape)
    exported = assert_same_predictions(model.fit(X, y), X[::10])
    assert len(exported.graph.node) < 200
    assert [(value.name, len(value.type.tensor_type.shape.dim)) for value in exported.graph.input] == [
        ("X", 2)
    ]


def test_an_array_is_one_input_and_a_frame_one_for_each_column():
    X, y = load_iris(return_X_y=True)
    exported = to_onnx(GaussianNB(rule="ml").fit(X, y))
    assert [value.name for value in exported.graph.input] == ["X"]
    frame = pd.DataFrame(X, columns=["a b", "label", "é", "t0"])
    exported = to_onnx(GaussianNB(rule="ml").fit(frame, y))
    assert [value.name for value in exported.graph.input] == ["a b", "label", "é", "t0"]
    assert [value.name for value in exported.graph.output] == ["label_", "probabilities"]
    found = run(exported, feeds(exported, frame))["probabilities"]
    np.testing.assert_allclose(found, GaussianNB(rule="ml").fit(X, y).predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "labels", [np.array([3, 7]), np.array(["no", "yes"]), np.array([False, True]), np.array([1.0, 2.0])]
)
def test_labels_of_any_type(labels):
    X = np.array([[0.0], [1.0], [3.0], [4.0]])
    assert_same_predictions(GaussianNB(rule="ml").fit(X, labels[[0, 0, 1, 1]]), X)


def test_costs_choose_the_label():
    X, y = load_iris(return_X_y=True)
    costs = np.array([[0.0, 1.0, 1.0], [50.0, 0.0, 1.0], [1.0, 9.0, 0.0]])
    model = GaussianNB(rule="ml", costs=costs).fit(X, y)
    assert (model.predict(X) != GaussianNB(rule="ml").fit(X, y).predict(X)).any()
    assert_same_predictions(model, X)


def test_refused_rows_have_no_probabilities():
    model = MultinomialNB(rule="ml").fit([[1, 0], [0, 2]], [0, 1])
    found = run(to_onnx(model), {"X": np.array([[1.0, 1.0], [-1.0, 0.0], [1e101, 0.0]])})["probabilities"]
    assert np.isnan(found).all(axis=1).tolist() == [False, True, True]


def test_the_marker_of_missing_texts():
    table = pd.DataFrame({"t": ["", "a", None, "b", "a", ""]})
    model = CategoricalNB(rule="ml").fit(table, [0, 1, 0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"has the level ''.*to_onnx\(missing=\.\.\.\)"):
        to_onnx(model)
    assert_same_predictions(model, table, missing="?")


def test_dates_and_booleans():
    days = pd.date_range("2024-01-31", periods=60, freq="17D")
    table = pd.DataFrame(
        {"day": days, "is_open": np.arange(60) % 3 == 0, "wait": pd.to_timedelta(np.arange(60), "h")}
    )
    table.loc[::9, "day"] = pd.NaT
    model = NaiveBayes(rule="ml").fit(table, np.where(np.arange(60) % 4 < 2, "a", "b"))
    assert_same_predictions(model, table)


@pytest.mark.parametrize("zone", ["UTC", datetime.timezone(-datetime.timedelta(hours=3))])
def test_times_of_utc_or_a_fixed_offset(zone):
    rng = np.random.default_rng(0)
    times = pd.Timestamp("2024-01-31", tz="UTC") + pd.to_timedelta(rng.integers(0, 9000, 200), unit="h")
    table = pd.DataFrame({"seen": times.tz_convert(zone), "size": rng.normal(size=200)})
    y = np.where(rng.random(200) < 0.9, table["seen"].dt.hour < 12, rng.random(200) < 0.5)
    assert_same_predictions(NaiveBayes(rule="ml").fit(table, y), table)


def test_columns_of_an_array_with_text_are_inputs_even_if_only_numbers_are_read():
    X = np.array([[0.5, "same"], [1.0, "same"], [2.5, "same"], [3.5, "same"]], dtype=object)
    model = LinearDiscriminantAnalysis(rule="ml", encoder="dense").fit(X, [0, 1, 0, 1])
    exported = assert_same_predictions(model, X)
    assert [value.name for value in exported.graph.input] == ["x0"]


@pytest.mark.parametrize("columns", [None, ["a", "b"], ["text", "b"]])
def test_class_frequencies_alone_are_exported(columns):
    """The first column is an input, for the number of rows. Each row stands in both classes: no member can gain."""
    X, y = np.repeat(np.random.default_rng(0).normal(size=(20, 2)), 2, axis=0), np.arange(40) % 2
    table = X if columns is None else pd.DataFrame(X, columns=columns)
    if columns is not None and "text" in columns:
        table["text"] = np.where(X[:, 0] > 0, "u", "v")
    model = PosteriorMixture(models=[("member", NaiveBayes(rule="ml"))], cv=2).fit(table, y)
    assert not model.models_
    exported = assert_same_predictions(model, table)
    assert [value.name for value in exported.graph.input] == (["X"] if columns is None else columns[:1])


def test_feeds_of_a_table_with_other_columns():
    X, y = load_iris(return_X_y=True)
    of_frame = to_onnx(GaussianNB(rule="ml").fit(pd.DataFrame({"a": X[:, 0]}), y))
    with pytest.raises(ValueError, match="no column 'a'; its columns are b, c"):
        feeds(of_frame, pd.DataFrame({"b": [1.0], "c": [2.0]}))
    of_array = to_onnx(GaussianNB(rule="ml").fit(X, y))
    with pytest.raises(ValueError, match="a matrix of 4 columns, but the table has 3"):
        feeds(of_array, X[:, :3])
    one = to_onnx(GaussianNB(rule="ml").fit(X[:, :1], y))
    for rows in (X[:5, :1], X[:5, :1].astype(np.float32), pd.DataFrame({"any name": X[:5, 0]})):
        assert feeds(one, rows)["X"].dtype == np.float64
        assert feeds(one, rows)["X"].shape == (5, 1)


def test_a_column_of_one_bin_leaves_no_unused_constants():
    exported = to_onnx(NaiveBayes(rule="ml").fit(np.full((6, 1), 3.0), [0, 1] * 3))
    used = {name for node in exported.graph.node for name in node.input}
    assert {constant.name for constant in exported.graph.initializer} <= used
    np.testing.assert_allclose(run(exported, {"X": np.array([[3.0], [np.nan]])})["probabilities"], 0.5)


def test_booleans_some_of_which_are_missing():
    table = pd.DataFrame({"flag": [True, None, False, True, False, None] * 5, "size": np.arange(30.0) % 7})
    model = LinearDiscriminantAnalysis(rule="ml", encoder="dense").fit(table, np.arange(30) % 2)
    exported = assert_same_predictions(model, table)
    assert {value.type.tensor_type.elem_type for value in exported.graph.input} == {onnx.TensorProto.DOUBLE}


def test_what_cannot_be_exported():
    X, y = load_iris(return_X_y=True)
    model = calibayes.JointKernelClassifier().fit(X, y)
    with pytest.raises(TypeError, match=r"JointKernelClassifier cannot be exported: .* training rows"):
        to_onnx(model)
    with pytest.raises(NotFittedError):
        to_onnx(BayesClassifier())


def test_the_package_onnx_is_named_if_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install onnx"):
        to_onnx(GaussianNB(rule="ml").fit([[0.0], [1.0]], [0, 1]))


# -- single nodes ----------------------------------------------------------------------------------------------------

A, B = ex.NumberColumn("a"), ex.NumberColumn("b")
ONE, OTHER = ex.Once(A + 1.0), ex.Once(B * 2.0)
NUMBERS = {
    "a": np.array([-1.0, 0.5, np.nan, 2.0, np.inf, 3.0]),
    "b": np.array([2.0, np.nan, 0.0, 1.0, 7.0, 3.0]),
}
EXPRESSIONS = [
    A,
    B,
    ex.Constant(4.0),
    ex.MISSING,
    ex.BinCode(A, (0.0, 0.5, 2.0)),
    ex.BinCode(B, (1.0,)),
    ex.NumberCode(A, (-1.0, 2.0), 5.0),
    ex.NumberCode(B, (0.0, 7.0)),
    ex.TableEntry((3.0, np.nan, 4.0), ex.BinCode(A, (0.0, 1.0))),
    ex.Filled(A, B),
    ex.Where(A < B, A, ex.Constant(9.0)),
    ex.Where(ex.AllTrue((A < B, ex.IsMissing(B))), A, ex.Constant(1.0)),
    ex.Where(ex.AnyTrue((A < B, ex.IsMissing(B))), A, ex.Constant(1.0)),
    ex.Where(ex.IsBeyond(A), ex.Constant(1.0), ex.Constant(0.0)),
    ex.Function("floor", A / 0.7),
    # Sums with terms in common, of which each is missing with its own terms alone.
    ex.total([ONE * 3.0, OTHER * -1.0], 0.5),
    ex.total([ONE * 2.0, ONE], 0.25),
    ex.total([OTHER, OTHER * 5.0]),
    ex.total([A * B, ex.Filled(A, ex.Constant(0.0))], 2.0),
    ex.Greatest((ex.Filled(A, ex.Constant(0.0)), ex.Filled(B, ex.Constant(0.0)))),
    ex.log_sum_exp([ex.Once(ex.Filled(A, ex.Constant(0.0))), ex.Once(ex.Filled(B, ex.Constant(0.0)))]),
]


def rendered(expressions):
    graph = Graph(["a", "b"])
    inputs = Inputs(graph, None, "", UsedColumns([A, B]))
    inputs.numbers(["a", "b"])
    tensor = Rendering(graph, inputs).outputs(expressions)
    graph.add("Identity", tensor, output="y")
    value = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.DOUBLE, ["n", len(expressions)])
    model = graph.model("test", inputs.values(), [value], {})
    return run(model, {name: column[:, None] for name, column in NUMBERS.items()})["y"]


def test_nodes_are_computed_as_with_numpy():
    np.testing.assert_allclose(rendered(EXPRESSIONS), evaluate(EXPRESSIONS, NUMBERS, 6), atol=1e-15)


@pytest.mark.parametrize("expression", EXPRESSIONS[4:], ids=lambda node: type(node).__name__)
def test_a_node_by_itself(expression):
    np.testing.assert_allclose(rendered([expression]), evaluate([expression], NUMBERS, 6), atol=1e-15)
