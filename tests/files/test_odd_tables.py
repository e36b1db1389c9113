"""Tables, labels and names that are unusual come back like all others."""

import datetime
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import HashingVectorizer

import calibayes as cb
from tests.files.cases import assert_same_bits, counts, outputs

rng = np.random.default_rng(0)
N = 60
x = rng.normal(size=N)
LEVELS = {
    "intervals": pd.cut(x, 4),
    "dates": pd.Categorical(pd.to_datetime(["2020-01-01", "2021-01-01"])[np.arange(N) % 2]),
    "zoned dates": pd.Categorical(
        pd.to_datetime(["2020-01-01", "2021-07-01"]).tz_localize("Europe/Paris")[np.arange(N) % 2]
    ),
    "durations": pd.Categorical(pd.to_timedelta(["1h", "2h"])[np.arange(N) % 2]),
    "periods": pd.Categorical(pd.period_range("2020-01", periods=3, freq="M")[np.arange(N) % 3]),
    "moments": pd.Categorical(
        [datetime.time(8 + n % 2) for n in range(N)], [datetime.time(8), datetime.time(9)]
    ),
    "fractions": pd.Categorical([Fraction(n % 3, 3) for n in range(N)]),
    "decimals": pd.Categorical([Decimal(n % 3) / 7 for n in range(N)]),
    "identifiers": pd.Categorical([uuid.UUID(int=n % 4) for n in range(N)]),
}


def assert_comes_back(model, X, path):
    cb.save(model, path)
    assert_same_bits(outputs(cb.load(path), X), outputs(model, X))
    assert cb.files.describe_file(path).rows == len(X)


@pytest.mark.parametrize("estimator", [cb.NaiveBayes(), cb.TreeAugmentedNB(), cb.JointKernelClassifier()])
@pytest.mark.parametrize("kind", LEVELS)
@pytest.mark.filterwarnings("ignore")
def test_levels(kind, estimator, tmp_path):
    X = pd.DataFrame({"age": LEVELS[kind], "z": x})
    assert_comes_back(estimator.fit(X, x > 0), X, tmp_path / "model")


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series([np.str_("cat"), np.str_("dog")], dtype=object).to_numpy(),
        np.array([1, 2], dtype=">i8"),
        np.array([1, 2], dtype="m8[s]"),
        np.array(["2020-01-01", "2021-01-01"], dtype="M8[ns]"),
        np.array([False, True]),
        np.array(["x" * 5000, "\ud800"]),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore")
def test_labels(labels, tmp_path):
    X, _ = counts()
    for estimator in (cb.GaussianNB(), cb.JointKernelClassifier()):
        assert_comes_back(estimator.fit(X, labels[np.arange(len(X)) % 2]), X, tmp_path / "model")


@pytest.mark.filterwarnings("ignore")
def test_names(tmp_path):
    names = ["", "$id", "a.b[0]", "日本", "new\nline", "\x1b[31m", "x" * 10_000]
    X = pd.DataFrame(rng.normal(size=(N, len(names))), columns=names)
    assert_comes_back(cb.NaiveBayes().fit(X, x > 0), X, tmp_path / ("日" * 70 + ".safetensors"))


def test_a_hundred_thousand_columns(tmp_path):
    """The width of a hashed vocabulary: names and types of so many columns take few bytes."""
    texts = ["good day", "bad day", "good good", "bad bad"]
    X = HashingVectorizer(n_features=2**17, alternate_sign=False).transform(texts)
    model = cb.MultinomialNB(rule="ml").fit(X, [1, 0, 1, 0])
    cb.save(model, tmp_path / "model")
    found = cb.load(tmp_path / "model")
    assert found.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    description = cb.files.describe_file(tmp_path / "model")
    assert description.file_size - description.tensor_size < 20_000
