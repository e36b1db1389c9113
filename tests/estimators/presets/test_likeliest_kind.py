"""The kind "auto": the density of the highest held-out likelihood, the same for any order of rows, copies, and files."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import calibayes as cb
from calibayes.core.notices import discarded_warnings
from calibayes.estimators.likeliest_kind import (
    FOLDS,
    fitted_log_probabilities,
    held_out_log_likelihood,
    rows_of,
)
from calibayes.estimators.tabular import CANDIDATES, density_of
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array
from tests.seeds import generator

N = 3000
Y = np.arange(N) % 2


def table(n=N):
    rng, y = generator(70), Y[:n]
    return pd.DataFrame(
        {
            "gaussian": rng.normal(y, 1.0),
            "exponential": rng.exponential(1.0 + 2.0 * y),
            "gamma": rng.gamma(3.0 + 2.0 * y, 1.0),
            "lognormal": rng.lognormal(y, 0.8),
            "negative_binomial": rng.negative_binomial(2.0 + y, 0.2),
            "kernel": np.where(rng.random(n) < 0.5, rng.normal(-6.0, 1.0, n), rng.normal(6.0, 0.3, n)),
        }
    )


def kinds_of(model):
    return {column.name: column.kind for column in model.schema_.columns}


@pytest.mark.parametrize("estimator", [cb.NaiveBayes, cb.KernelNB, cb.GenerativeClassifier])
def test_it_finds_the_density_that_values_were_drawn_from(estimator):
    X = table()
    model = estimator(kinds="auto", rule="ml").fit(X, Y)
    chosen = kinds_of(model)
    assert chosen.pop("exponential") in ("exponential", "gamma")  # the one is a case of the other
    assert all(kind == name for name, kind in chosen.items())
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_it_can_be_given_for_single_columns():
    X = table(400)
    model = cb.NaiveBayes(kinds={"lognormal": "auto", "gamma": "gaussian"}, rule="ml").fit(X, Y[:400])
    chosen = kinds_of(model)
    assert chosen["lognormal"] == "lognormal"
    assert chosen["gamma"] == "gaussian"
    assert {chosen[name] for name in ("gaussian", "exponential", "kernel")} == {"kernel"}
    assert model.schema_["lognormal"].reason == "numbers"
    assert model.schema_["gamma"].reason == "given"


def test_a_density_competes_only_where_it_has_all_values():
    X = table()
    for name, value in {
        "exponential": -1e-3,
        "gamma": 0.0,
        "lognormal": 0.0,
        "negative_binomial": 2.5,
    }.items():
        X[name] = X[name].astype(float)
        X.loc[7, name] = value
    chosen = kinds_of(cb.NaiveBayes(kinds="auto", rule="ml").fit(X, Y))
    assert chosen["exponential"] in ("kernel", "gaussian")
    assert chosen["gamma"] not in ("gamma", "lognormal")
    assert chosen["lognormal"] not in ("gamma", "lognormal")
    assert chosen["negative_binomial"] != "negative_binomial"


def test_order_copies_and_files_do_not_change_the_choice(tmp_path):
    X, y = table(600), Y[:600]
    counts, order = generator(71).integers(1, 4, 600), generator(72).permutation(600)
    X = X.mask(generator(73).random(X.shape) < 0.1)
    rows = X.assign(label=np.array(["a", "b"])[y], weight=counts)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = cb.NaiveBayes(kinds="auto", rule="ml")
    expected = kinds_of(model.fit(X, rows["label"], sample_weight=counts))
    again = rows.iloc[order]
    assert kinds_of(model.fit(again[X.columns], again["label"], sample_weight=again["weight"])) == expected
    copies = rows.loc[rows.index.repeat(counts)]
    assert kinds_of(model.fit(copies[X.columns], copies["label"])) == expected
    streamed = model.fit(tmp_path / "rows.csv", "label", sample_weight="weight")
    assert kinds_of(streamed) == expected


def test_the_likelihood_is_that_of_fits_to_the_other_folds():
    x = table()["gamma"].to_numpy()[:200]
    rows = rows_of(summary_of(read_array(x[:, None]), np.ones(200), Y[:200]).column(0))
    np.testing.assert_array_equal(np.sort(rows.x), np.sort(x))
    expected = 0.0
    for fold in range(FOLDS):
        for c in (0, 1):
            known, new = (
                rows.x[(rows.codes == c) & is_in] for is_in in (rows.fold != fold, rows.fold == fold)
            )
            expected += stats.norm(known.mean(), known.std()).logpdf(new).sum()
    expected += 200 * np.log(np.diff(np.sort(x)).min())
    found = held_out_log_likelihood(rows, *density_of("gaussian"))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_probabilities_and_densities_are_comparable_on_whole_numbers():
    """A normal density of large variance gives a whole number nearly the probability that rounded values have."""
    x = np.round(generator(74).normal(50.0, 9.0, 400))
    rows = rows_of(summary_of(read_array(x[:, None]), np.ones(400), Y[:400]).column(0))
    scores = {kind: held_out_log_likelihood(rows, *density_of(kind)) / 400 for kind in CANDIDATES}
    assert abs(scores["gaussian"] + np.log(9.0) + 0.5 * np.log(2.0 * np.pi) + 0.5) < 0.1
    assert abs(scores["negative_binomial"] - scores["gaussian"]) < 0.1
    assert abs(scores["kernel"] - scores["gaussian"]) < 0.3


@pytest.mark.parametrize("kind", CANDIDATES)
def test_values_of_a_class_have_at_most_probability_1(kind):
    """Counts with many zeros, and a class of a single value, at which densities without a limit would be too high."""
    values, counts = np.arange(1.0, 12.0), np.zeros((11, 2))
    counts[:, 0], counts[3, 1] = 40.0 * 0.6 ** np.arange(11), 50.0
    with discarded_warnings():
        total = np.exp(fitted_log_probabilities(values, counts, *density_of(kind))).sum(axis=0)
    assert (total < 1.0 + 1e-9).all()
    assert total[0] > 0.5


def test_counts_with_many_zeros_are_not_taken_for_waiting_times():
    X = pd.DataFrame({"n": generator(75).negative_binomial(2, 0.4, 600)})
    assert kinds_of(cb.NaiveBayes(kinds="auto").fit(X, Y[:600])) == {"n": "negative_binomial"}


@pytest.mark.parametrize("labels", [["a"] * 4 + ["b"] * 4, list("abcdefgh")])
def test_few_rows_keep_the_default(labels):
    X = pd.DataFrame({"x": [0.1, 0.5, 2.0, 9.0, 1.0, 1.5, 7.0, 30.0]})
    assert kinds_of(cb.NaiveBayes(kinds="auto").fit(X, labels)) == {"x": "kernel"}


def test_a_saved_model_is_the_same(tmp_path):
    X, y = table(300), Y[:300]
    model = cb.NaiveBayes(kinds="auto").fit(X, y)
    cb.save(model, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert kinds_of(loaded) == kinds_of(model)
    assert loaded.kinds == "auto"


def test_what_needs_sums_over_rows_is_refused():
    X, y = table(300), Y[:300]
    model = cb.NaiveBayes(kinds="auto", rule="ml").fit(X, y)
    message = "the kind 'auto' is chosen by all rows at once: give the kinds that `schema_` shows"
    for call in (
        lambda: cb.NaiveBayes(kinds="auto", rule="ml").partial_fit(X, y, classes=[0, 1]),
        lambda: model.merge(model),
        lambda: model.forget(X[:3], y[:3]),
        lambda: cb.cross_validate_closed_form(cb.GenerativeClassifier(kinds="auto", rule="ml"), X, y),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    given = cb.NaiveBayes(kinds=kinds_of(model), rule="ml").partial_fit(X, y, classes=[0, 1])
    assert np.isfinite(given.predict_proba(X)).all()


def test_wrong_kinds_are_errors():
    X, y = table(300).assign(word=np.where(Y[:300], "u", "v")), Y[:300]
    with pytest.raises(ValueError, match="column 'word' cannot be 'auto': it holds text, not numbers"):
        cb.NaiveBayes(kinds={"word": "auto"}).fit(X, y)
    with pytest.raises(ValueError, match="kinds must be a mapping from columns to kinds, got 'best'"):
        cb.NaiveBayes(kinds="best").fit(X, y)
    assert kinds_of(cb.NaiveBayes(kinds="auto").fit(X, y))["word"] == "categorical"
