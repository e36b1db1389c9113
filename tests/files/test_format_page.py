"""docs/format.md is true: its examples are what `save` writes, and its formulas give the predictions."""

import json
import re
import runpy
from collections import Counter, OrderedDict
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import calibayes
from calibayes.datasets import load_penguins
from calibayes.encoders import Dense, Grid, Levels
from calibayes.encoders.dense import AsinhScaled, Indicators
from calibayes.families import KernelDensity
from calibayes.files import codec, container, model_file
from calibayes.files import container as strict_json
from calibayes.files.codec import Reader, Writer
from calibayes.files.container import FORMAT_VERSION
from calibayes.files.model_file import READS, WRITES, pandas_writes
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_frame
from tests.files import plain_reader
from tests.files.headers import document_of, header_of
from tests.files.plain_reader import read

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
EXAMPLES = re.findall(r"^\| `(\$\w+)`.*\| `(\{.*\})` \|$", PAGE, flags=re.MULTILINE)
PARTS = re.findall(r"<!-- document: (.*?) -->\n```json\n(.*?)```", PAGE, flags=re.DOTALL)
TENSORS = {
    "fitted_.parameters.columns.mean": np.ones(2),
    "wide": np.ones((2, 3)),
    "days": np.arange(3),
    "numbers": np.ones(2),
    "key": np.arange(624, dtype=np.uint32),
}
"""The tensors that the examples of tags name."""


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The file of the page."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.py").write_text(CODE[0], encoding="utf-8")
    runpy.run_path(str(tmp_path / "page.py"))
    return tmp_path / "model.safetensors"


def saved(model, folder):
    calibayes.save(model, folder / "model.safetensors")
    return folder / "model.safetensors"


def test_the_header_is_that_of_the_file(path):
    shown = json.loads(re.search(r"<!-- header -->\n```json\n(.*?)```", PAGE, flags=re.DOTALL)[1])
    header, _ = header_of(path)
    assert list(shown.pop("__metadata__")) == list(header.pop("__metadata__"))
    assert list(shown.items()) == list(header.items())


@pytest.mark.parametrize(("place", "shown"), PARTS, ids=[place for place, _ in PARTS])
def test_parts_of_the_document_are_those_of_the_file(place, shown, path):
    node = document_of(path)
    for key in place.split("."):
        node = node[key]
    assert json.loads(shown) == node


def test_values_of_tensors_are_those_of_the_file(path):
    header, content = header_of(path)
    lines = re.findall(r"^\| `(fitted_\S+)` \| (-?\d.*) \|$", PAGE, flags=re.MULTILINE)
    assert len(lines) == 3
    for name, values in lines:
        first, last = header[name]["data_offsets"]
        assert np.frombuffer(content[first:last]) == pytest.approx(
            [float(v) for v in values.split(",")], abs=1e-6
        )


def test_the_reader_is_the_one_that_is_tested(path):
    assert Path(plain_reader.__file__).read_text(encoding="utf-8") == CODE[1]
    assert '    predict_proba(read("model.safetensors"), [[1.2], [None]])' in PAGE
    predicted = plain_reader.predict_proba(read("model.safetensors"), [[1.2], [None]])
    expected = calibayes.load(path).predict_proba([[1.2], [np.nan]])
    assert np.abs(predicted - expected).max() < 1e-12


def test_every_tag_has_an_example():
    assert {tag for tag, _ in EXAMPLES} == set(READS)


def assert_part(shown, written):
    """What is shown is in what is written; names of tensors depend on the place."""
    if isinstance(shown, dict):
        for key in shown.keys() - {"$tensor"}:
            assert_part(shown[key], written[key])
    else:
        assert shown == written


@pytest.mark.parametrize(("tag", "example"), EXAMPLES, ids=[tag for tag, _ in EXAMPLES])
def test_examples_of_tags_are_read_and_written(tag, example):
    reader, node = Reader(READS, TENSORS), json.loads(example)
    assert tag in node
    first = reader.read({"$type": "Fixed", "length": 0.1, "$id": 0}, "first")
    value, writer = reader.read(node, "example"), Writer({**WRITES, **pandas_writes()})
    if tag == "$same":
        assert value is first
        assert writer.write((first, value), "values")[1] == node
    elif tag == "$random_state":
        assert list(writer.write(value, "example")) == [tag]
    else:
        assert_part(node, writer.write(value, "model.example"))


def test_mappings_are_read_as_dicts():
    for kind in (OrderedDict, Counter, MappingProxyType):
        for content in ({"b": 1, "a": 2}, {2: "b", 1: "a"}):
            value = Reader(READS, {}).read(Writer(WRITES).write(kind(content), "mapping"), "mapping")
            assert type(value) is dict
            assert list(value.items()) == list(content.items())


def test_the_types_of_tensors_and_the_limits_are_named():
    assert all(f"`{name}`" in PAGE for name in container.TYPES)
    assert (container.DIGITS.start, container.DIGITS.stop) == (34, 98)
    text = " ".join(PAGE.split())
    assert f"{container.MOST_HEADER_BYTES:,} bytes" in text
    assert f"{strict_json.MOST_VALUES:,} values" in text
    assert f"{strict_json.MOST_VALUES:,} entries" in text
    assert f"{strict_json.MOST_DEPTH} levels" in text
    assert f"{container.MOST_AXES} axes" in text
    assert f"A tuple of {codec.SHORTEST:,} or more entries" in text
    assert model_file.MOST_BYTES == 2**33
    assert f"`format_version` ({FORMAT_VERSION})" in PAGE


# -- the formulas ----------------------------------------------------------------------------------------------------


def posterior(log_joint):
    scores = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    "model", [calibayes.LinearDiscriminantAnalysis(), calibayes.QuadraticDiscriminantAnalysis()], ids=repr
)
def test_the_formula_of_discriminant_analysis(model, tmp_path):
    X, y = load_iris(return_X_y=True)
    X[::3, 1] = np.nan
    fitted = read(saved(model.fit(X, y), tmp_path))
    p = fitted["parameters"]["columns"]
    is_tied = fitted["model"]["families"]["columns"]["shape"]["$type"] == "Tied"
    assert p["log_determinant"].shape == ((1,) if is_tied else (3,))
    log_joint = np.empty((len(X), 3))
    for n, row in enumerate(X):
        known = ~np.isnan(row)
        for c in range(3):
            g = 0 if is_tied else c
            W, log_determinant = p["whitener"][g], p["log_determinant"][g]
            if not known.all():
                part = p["covariance"][g][np.ix_(known, known)]
                W, log_determinant = np.linalg.inv(np.linalg.cholesky(part)), np.linalg.slogdet(part)[1]
            distance = np.sum((W @ (row - p["mean"][c])[known]) ** 2)
            log_joint[n, c] = -0.5 * (log_determinant + known.sum() * np.log(2 * np.pi) + distance)
    log_joint += fitted["parameters"]["class_prior"]["log_probability"]
    assert np.abs(posterior(log_joint) - model.predict_proba(X)).max() < 1e-10


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (calibayes.KernelNB(), "log_density"),
        (calibayes.NaiveBayes(discretize="kmeans"), "log_probability"),
        (calibayes.NaiveBayes(discretize="adaptive"), "log_probability"),
    ],
    ids=["KernelNB", "NaiveBayes, kmeans", "NaiveBayes, adaptive"],
)
def test_the_formula_of_bins(model, parameter, tmp_path):
    X, y = load_iris(return_X_y=True)
    X[::3, 1] = np.nan
    fitted = read(saved(model.fit(X, y), tmp_path))
    ((name, family),) = fitted["model"]["families"].items()
    encoder = fitted["binding"]["encoders"][name]
    first = np.cumsum([0, *family["layout"]["levels"]])
    X = np.vstack([X, *(np.resize(edges, (5, 4)) for edges in encoder["edges"]), X[:1] - 99, X[:1] + 99])
    log_joint = np.tile(fitted["parameters"]["class_prior"]["log_probability"], (len(X), 1))
    for j, (edges, values) in enumerate(zip(encoder["edges"], encoder["bin_values"], strict=True)):
        distinct = np.unique(X[:150, j][~np.isnan(X[:150, j])])
        assert np.array_equal(values, distinct) if len(distinct) == len(edges) - 1 else values is None
        assert encoder["distinct_counts"][j] == len(distinct)
        code = np.array([np.sum(edges[1:-1] <= value) for value in X[:, j]])
        log_joint += np.where(
            np.isnan(X[:, j]), 0, fitted["parameters"][name][parameter][:, first[j] + code]
        ).T
    assert np.abs(posterior(log_joint) - model.predict_proba(X)).max() < 1e-10


def test_the_formula_of_kernel_densities_on_a_grid(tmp_path):
    X, y = load_iris(return_X_y=True)
    X[::3, 1] = np.nan
    families = [("kernel", KernelDensity(), calibayes.every, Grid(points=20))]
    model = calibayes.GenerativeClassifier(families=families, rule="ml").fit(X, y)
    X[1:20, 0] -= 30
    X[20:60, 2] += 50
    fitted = read(saved(model, tmp_path))
    encoder, p = fitted["binding"]["encoders"]["kernel"], fitted["binding"]["encoders"]["kernel"]["points"]
    tables = np.split(fitted["parameters"]["kernel"]["log_density"], 4, axis=1)
    log_joint = np.tile(fitted["parameters"]["class_prior"]["log_probability"], (len(X), 1))
    for j, table in enumerate(tables):
        u = (X[:, j] - encoder["origin"][j]) / encoder["step"][j]
        for n in np.flatnonzero(~np.isnan(u)):
            if u[n] < 0:
                log_joint[n] += table[:, p] - 3 * np.log(1 - u[n] / (p - 1))
            elif u[n] > p - 1:
                log_joint[n] += table[:, p + 1] - 3 * np.log(u[n] / (p - 1))
            else:
                i = min(int(u[n]), p - 2)
                density = (1 - (u[n] - i)) * np.exp(table[:, i]) + (u[n] - i) * np.exp(table[:, i + 1])
                log_joint[n] += np.log(density)
    assert np.abs(posterior(log_joint) - model.predict_proba(X)).max() < 1e-10


def codes_of(levels, column):
    """The codes of a column and their number, by the formula of levels; -1 for a level that did not occur in training."""
    unpooled, has_other = levels.unpooled[0], len(levels.pooled[0]) > 0
    known, are_numbers = unpooled.tolist(), unpooled.dtype.kind in "iuf" and not has_other
    if are_numbers and all(v >= 0 and v == int(v) for v in known) and max(known) < len(known) + 1000:
        known = list(range(max(int(max(known)) + 1, levels.at_least or 0)))
    other = len(known) if has_other else -1
    return np.array([known.index(v) if v in known else other for v in column]), len(known) + has_other


@pytest.mark.parametrize(
    "column", [[0, 5, 2, 5], [0.0, 5.0, 2.5, 2.5], [3, 1200, 4, 3], [-1, 2, 3, 3], ["a", "b", "b", "c"]]
)
@pytest.mark.parametrize("options", [{}, {"at_least": 9}, {"rare": 2}, {"rare": 0.5}], ids=str)
def test_the_formula_of_levels(column, options):
    table = read_frame(pd.DataFrame({"column": column}))
    levels = Levels(**options).fit(summary_of(table, np.ones(4)), [0])
    new = [*column, "z"] if isinstance(column[0], str) else [*column, 1, 8, 77]
    codes, size = codes_of(levels, new)
    assert np.array_equal(codes, levels.encode(read_frame(pd.DataFrame({"column": new})))[:, 0])
    assert levels.layout() == {"levels": (size,)}


def of_part(part, columns):
    """The columns that a part of `Dense` gives."""
    missing = np.stack([column.isna() for column in columns], axis=1)
    if isinstance(part, AsinhScaled):
        limit = 1e300 * np.minimum(part.scale, 1)
        x = np.stack(columns, axis=1).astype(float)
        return np.arcsinh(np.clip(x - part.median, -limit, limit) / part.scale)
    if isinstance(part, Indicators):
        codes, size = codes_of(part.levels, columns[0])
        first = 1 if size == 2 or (part.drop_first and size > 1) else 0
        return np.where(missing, np.nan, codes[:, None] == np.arange(first, size))
    return missing.astype(float)


def of_dense(encoder, frame):
    """The rows of a data frame by the formula of `Dense`."""
    r = np.hstack([of_part(part, [frame.iloc[:, j] for j in columns]) for columns, part in encoder.parts])
    r[:, encoder.indicated] = np.nan_to_num(r[:, encoder.indicated], nan=0.0)
    return (r[:, encoder.varying] - encoder.mean) / encoder.deviation


def mixed_columns():
    """Numbers and levels: with many and few missing values, constant, two levels, rare ones, whole numbers as levels."""
    rng, n = np.random.default_rng(0), 400
    frame = pd.DataFrame(
        {
            "plain": rng.normal(size=n),
            "tiny": rng.normal(size=n) * 1e-250,
            "gaps": rng.normal(size=n),
            "one gap": rng.exponential(size=n),
            "constant": np.ones(n),
            "two": rng.choice(["a", "b"], n),
            "three": rng.choice(["a", "b", "c"], n),
            "rare": [f"level {i}" if i < 10 else "usual" for i in range(n)],
            "codes": pd.Categorical(rng.choice([0, 2, 5], n)),
        }
    )
    frame.loc[::5, ["gaps", "three"]] = None
    frame.loc[7, ["one gap", "two"]] = None
    return frame


@pytest.mark.parametrize("drop_first", [False, True])
def test_the_formula_of_mixed_columns(drop_first):
    frame = mixed_columns()
    encoder = (
        Dense(drop_first).fit(summary_of(read_frame(frame), np.ones(len(frame))), range(9)).for_new_rows()
    )
    new = frame[:50].copy()
    new.loc[0, ["two", "three", "rare"]] = ["new", "new", "level 99"]
    new.loc[1, ["plain", "tiny"]] = [1e100, 1e100]
    new.loc[2, :] = None
    expected = encoder.encode(read_frame(new))
    assert np.isnan(expected).any()
    assert not encoder.varying.all()
    assert np.array_equal(np.isnan(of_dense(encoder, new)), np.isnan(expected))
    assert np.nanmax(np.abs(of_dense(encoder, new) - expected)) < 1e-12


def test_the_formula_of_the_kernel_classifier(tmp_path):
    penguins = load_penguins()
    model = calibayes.JointKernelClassifier().fit(penguins.data, penguins.target)
    density = calibayes.load(saved(model, tmp_path)).density_
    rows, centers = of_dense(density.encoder, penguins.data) * density.scale, density.centers
    sums = np.add.reduceat(centers.weight, centers.ends[:-1])
    prior = sums / sums.sum()
    for row, expected in zip(rows, model.predict_proba(penguins.data), strict=True):
        D = np.nansum((row - centers.rows) ** 2, axis=1)
        P, N = {-1: prior, -2: prior}, D.min()
        for s in range(model.bandwidth_step_ + 1):
            kernels = centers.weight * np.exp(-(D - N) * 2.0**s / (2 * density.square))
            S = np.add.reduceat(kernels, centers.ends[:-1])
            m = model.prior_rows_ * np.exp(min(2.0**s * N / (2 * density.square), 600))
            P[s] = (m * P[s - 2] + S + 0.01 * prior) / (m + S.sum() + 0.01)
        assert np.abs(P[model.bandwidth_step_] - expected).max() < 1e-8


@pytest.mark.parametrize("priors", [None, [0.2, 0.3, 0.5]])
def test_the_formula_of_ensembles(priors):
    X, y = load_penguins(return_X_y=True)
    model = calibayes.BayesClassifier().fit(X, y)
    model = model if priors is None else model.with_priors(priors)
    fitted = model.fitted_
    members = sum(fitted.weights[name] * member.predict_proba(X) for name, member in fitted.models.items())
    average = members + fitted.weights["class frequencies"] * fitted.class_frequencies
    if fitted.priors is not None:
        average = average * fitted.priors / fitted.class_frequencies
    average /= average.sum(axis=1, keepdims=True)
    assert np.abs(average - model.predict_proba(X)).max() < 1e-12
