"""With `keep_summary`, `partial_fit` on any division of the rows is `fit` on all of them."""

import dataclasses
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import calibayes as cb
from calibayes import families as f
from calibayes.core.named_arrays import map_leaves
from calibayes.encoders import InformedBins, Levels, MissingAsLevel, PrincipalComponents, QuantileBins
from calibayes.tables import summary

KEEP = cb.TrainingOptions(keep_summary=True)
N, CLASSES = 300, ["a", "b", "c"]


def rows():
    """Numbers, integers, dates, text, booleans and missing values, sorted so that the first rows are unlike the others."""
    rng, codes = np.random.default_rng(7), np.arange(N) % 3
    size = np.sort(rng.lognormal(size=N))
    table = pd.DataFrame(
        {
            "size": size,
            "tied": np.round(rng.normal(codes) * 2) / 2,
            "count": rng.poisson(1 + 4 * size),
            "city": rng.choice([f"city {i}" for i in range(12)], N, p=np.arange(12, 0, -1) / 78),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.round(100 * size) + codes, "D"),
            "flag": rng.random(N) < 0.3,
        }
    )
    table.loc[rng.random(N) < 0.1, ["tied"]] = np.nan
    table.loc[rng.random(N) < 0.1, ["city"]] = None
    return table, np.array(CLASSES)[codes]


def divisions(seed):
    """Ends of random parts of the rows; the first one shows what is a date."""
    rng = np.random.default_rng(seed)
    return [0, *np.sort(rng.choice(np.arange(30, N), 4, replace=False)), N]


MODELS = {
    **{name: cb.NaiveBayes(discretize=name) for name in ("kmeans", "quantile", "uniform", "mdl", "adaptive")},
    "informed": cb.NaiveBayes(discretize=InformedBins(few=8, parts=4)),
    "kernel bins": cb.KernelNB(),
    "kernel grid": cb.KernelNB(binning="grid"),
    "rare": cb.NaiveBayes(rare_levels=12.0),
    "frequent": cb.KernelNB(max_levels=4),
    "kinds": cb.NaiveBayes(
        kinds={"size": "gaussian", "count": "categorical", "tied": "binned"}, max_levels=6, n_bins=4
    ),
    "no text": cb.NaiveBayes(kinds={"city": "identifier", "day": "identifier"}, discretize="quantile"),
    "by hand": cb.GenerativeClassifier(
        families=[
            ("numbers", f.Categorical(alpha=0.5), ["size", "tied"], QuantileBins(7)),
            ("cities", f.KernelDensity(), ["city"], Levels(most=3)),
            ("counts", f.Poisson(), ["count"]),
        ]
    ),
}


def in_parts(model, X, y, ends, weight=None):
    for low, high in pairwise(ends):
        part = None if weight is None else weight[low:high]
        model.partial_fit(X[low:high], y[low:high], classes=CLASSES, sample_weight=part)
    return model


def assert_same_value(left, right):
    """Equal objects, numbers to 1e-10."""
    assert type(left) is type(right)
    if isinstance(left, np.ndarray):
        assert left.dtype == right.dtype
        compare = assert_array_equal if left.dtype.kind in "OU" else assert_allclose
        compare(left, right, **({} if left.dtype.kind in "OU" else {"rtol": 1e-10, "atol": 1e-10}))
    elif isinstance(left, tuple | list):
        assert len(left) == len(right)
        for pair in zip(left, right, strict=True):
            assert_same_value(*pair)
    elif dataclasses.is_dataclass(left):
        for part in dataclasses.fields(left):
            assert_same_value(getattr(left, part.name), getattr(right, part.name))
    else:
        assert left == right


def assert_same_model(left, right, X):
    for name, encoder in right.fitted_.binding.encoders.items():
        if encoder.data_dependence:
            assert_same_value(left.fitted_.binding.encoders[name], encoder)
    for name in set(right.data_statistics_) - {"gaussian"}:  # moments are about another center
        map_leaves(
            lambda a, b: assert_allclose(a, b, rtol=1e-10, atol=1e-10),
            left.data_statistics_[name],
            right.data_statistics_[name],
        )
    assert_allclose(left.predict_log_proba(X), right.predict_log_proba(X), rtol=1e-9, atol=1e-9)
    assert str(left.fitted_.schema) == str(right.fitted_.schema)
    assert left.fitted_.extras["kept"].n == right.fitted_.extras["kept"].n


@pytest.mark.parametrize(("rule", "seed"), [("ml", 1), ("map", 2)])
@pytest.mark.parametrize("name", MODELS)
def test_partial_fit_in_parts_is_fit_on_all_rows(name, rule, seed):
    X, y = rows()
    model = clone(MODELS[name]).set_params(rule=rule, training=KEEP)
    together = clone(model).fit(X, y)
    assert_same_model(in_parts(clone(model), X, y, divisions(seed)), together, X)


@pytest.mark.parametrize("name", ["quantile", "kernel grid", "rare", "mdl"])
@pytest.mark.parametrize("whole_weights", [True, False])
def test_weighted_rows(name, whole_weights):
    X, y = rows()
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 4, N) if whole_weights else rng.exponential(size=N)
    model = clone(MODELS[name]).set_params(rule="ml", training=KEEP)
    together = clone(model).fit(X, y, sample_weight=weight)
    assert_same_model(in_parts(clone(model), X, y, divisions(4), weight), together, X)


def test_partial_fit_goes_on_from_a_fit():
    X, y = rows()
    model = cb.KernelNB(rule="ml", max_levels=3, training=KEEP)
    together = clone(model).fit(X, y)
    assert_same_model(clone(model).fit(X[:120], y[:120]).partial_fit(X[120:], y[120:]), together, X)


def test_partial_fit_goes_on_from_a_fit_to_a_file(tmp_path):
    X, y = rows()
    path = tmp_path / "rows.parquet"
    X[:120].assign(y=y[:120]).to_parquet(path, index=False)
    model = cb.NaiveBayes(rule="ml", max_levels=3, training=KEEP)
    together = clone(model).fit(X, y)
    assert_same_model(clone(model).fit(path, y="y").partial_fit(X[120:], y[120:]), together, X)


def test_without_the_option_the_first_rows_decide():
    X, y = rows()
    parts = in_parts(cb.NaiveBayes(rule="ml", discretize="quantile"), X, y, [0, 60, N])
    together = cb.NaiveBayes(rule="ml", discretize="quantile").fit(X, y)
    edges = [model.fitted_.binding.encoders["binned"].edges[0][-1] for model in (parts, together)]
    assert edges[0] < edges[1]
    assert "kept" not in parts.fitted_.extras


def test_integers_that_become_fractions():
    x = np.append(np.repeat([0, 1, 2], 20), np.repeat([0.5, 1.0, 7.0], 20)).reshape(-1, 1)
    y = np.tile(["a", "b"], 60)
    model = cb.GenerativeClassifier(
        families=[("x", f.Categorical(alpha=1.0), [0], Levels(rare=25))], rule="ml", training=KEEP
    )
    together = clone(model).fit(x, y)
    model.partial_fit(x[:60].astype(int), y[:60], classes=["a", "b"]).partial_fit(x[60:], y[60:])
    assert_same_model(model, together, x)


def test_parts_with_columns_that_are_all_missing():
    X, y = rows()
    X["category"] = pd.Categorical(np.random.default_rng(1).choice(["x", "y", "z"], N))
    X.loc[100:149, "tied"], X.loc[100:149, ["city", "category"]] = np.nan, None
    model = cb.KernelNB(rule="ml", max_levels=2, training=KEEP)
    assert_same_model(in_parts(clone(model), X, y, [0, 100, 120, 151, N]), clone(model).fit(X, y), X)


def test_a_class_that_occurs_later():
    X, y = rows()
    order = np.argsort(y == "c", kind="stable")
    X, y = X.iloc[order], y[order]
    model = cb.NaiveBayes(rule="ml", discretize="mdl", training=KEEP)
    assert_same_model(in_parts(clone(model), X, y, [0, 150, 290, N]), clone(model).fit(X, y), X)


def test_models_whose_encoders_do_not_depend_on_the_rows_keep_nothing():
    X, y = rows()
    X = X[["size", "count"]]
    model = in_parts(cb.GaussianNB(rule="ml", training=KEEP), X, y, divisions(5))
    assert not model.fitted_.extras["kept"].columns
    assert_allclose(
        model.predict_log_proba(X), cb.GaussianNB(rule="ml").fit(X, y).predict_log_proba(X), rtol=1e-9
    )


def test_too_many_distinct_numbers(monkeypatch):
    monkeypatch.setattr(summary, "MOST_DISTINCT", 100)
    X, y = rows()
    model = cb.NaiveBayes(rule="ml", discretize="quantile", kinds={"day": "identifier"}, training=KEEP)
    model.partial_fit(X[:60], y[:60], classes=CLASSES).partial_fit(X[60:90], y[60:90])
    edges = model.fitted_.binding.encoders["binned"].edges[0]
    assert edges[-1] == X["size"][89]
    with pytest.warns(UserWarning, match="column 'size' has too many distinct numbers"):
        model.partial_fit(X[90:150], y[90:150])
    model.partial_fit(X[150:], y[150:])
    assert_array_equal(model.fitted_.binding.encoders["binned"].edges[0], edges)
    assert model.data_statistics_["class_prior"]["count"].sum() == N
    with pytest.warns(UserWarning, match="too many distinct numbers"):
        clone(model).partial_fit(X, y, classes=CLASSES)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (cb.NaiveBayes(training=KEEP), "keep_summary=True is for rule='ml' and rule='map', got 'rc'"),
        (cb.TreeAugmentedNB(rule="ml", training=KEEP), r"\(Tree\) cannot be computed: use NaiveBayes"),
        (
            cb.NaiveBayes(rule="ml", training=cb.TrainingOptions(keep_summary="yes")),
            "keep_summary must be True or False, got 'yes'",
        ),
    ],
)
def test_what_cannot_keep_counts(model, message, method):
    X, y = rows()
    options = {"classes": CLASSES} if method == "partial_fit" else {}
    with pytest.raises(ValueError, match=message):
        getattr(clone(model), method)(X, y, **options)


def of_numbers(family, encoder):
    return cb.GenerativeClassifier(families=[("x", family, ["size", "count"], encoder)])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (of_numbers(f.Categorical(), MissingAsLevel()), "learns from the weights of all rows"),
        (of_numbers(f.Gaussian(), PrincipalComponents()), r"\(Gaussian\) cannot be computed"),
    ],
)
def test_encoders_that_learn_from_rows(model, message, method):
    X, y = rows()
    options = {"classes": CLASSES} if method == "partial_fit" else {}
    model = clone(model).set_params(rule="map", training=KEEP)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, y, **options)


def test_a_model_that_has_kept_nothing():
    X, y = rows()
    model = cb.NaiveBayes(rule="ml").fit(X, y).set_params(training=KEEP)
    with pytest.raises(ValueError, match="has not counted the values of its columns"):
        model.partial_fit(X, y)


def test_merge_and_forget_are_refused():
    X, y = rows()
    model = cb.NaiveBayes(rule="ml", training=KEEP).fit(X, y)
    for change in (lambda: model.merge(model), lambda: model.forget(X[:5], y[:5])):
        with pytest.raises(ValueError, match="fit with keep_summary=False"):
            change()


def test_a_saved_model_goes_on(tmp_path):
    X, y = rows()
    model = cb.NaiveBayes(rule="ml", max_levels=4, training=KEEP)
    together = clone(model).fit(X, y)
    cb.save(model.partial_fit(X[:100], y[:100], classes=CLASSES), tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors").partial_fit(X[100:], y[100:])
    assert_same_model(loaded, together, X)


def test_damaged_counts_are_refused():
    X, y = rows()
    fitted = cb.NaiveBayes(rule="ml", training=KEEP).fit(X, y).fitted_
    fitted.verify()
    kept = fitted.extras["kept"]
    key, sums = next(iter(kept.columns.items()))
    damaged = [
        dataclasses.replace(kept, columns={}),
        dataclasses.replace(kept, columns={**kept.columns, "99": sums}),
        dataclasses.replace(
            kept, columns={**kept.columns, key: dataclasses.replace(sums, weights=sums.weights[:, 1:])}
        ),
    ]
    for other in damaged:
        with pytest.raises(ValueError, match="kept sums"):
            fitted.with_extra("kept", other).verify()
    for changes in ({"n": 0}, {"n": 10}, {"weight": -1.0}, {"exceeding": "size"}):
        with pytest.raises(ValueError, match="kept sums"):
            dataclasses.replace(kept, **changes).verify()
    for changes in (
        {"values": sums.values[::-1]},
        {"rows": 0 * sums.rows},
        {"weights": -sums.weights},
        {"weights": sums.weights[1:]},
    ):
        with pytest.raises(ValueError, match=r"values|rows|weights"):
            dataclasses.replace(sums, **changes).verify()
