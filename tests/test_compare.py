"""Comparisons of models: what baselines are given, how results are ranked, and which model is taken."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import calibayes.compare as comparison
from calibayes.compare import BASELINES, DEFAULT, CalendarColumns, FoldResult, recommended
from calibayes.datasets import Dataset, load_penguins
from calibayes.report.ranking_facts import ranking_facts
from tests.report.test_one_account import FORMS, seasons


def error_of(name, X, y):
    half = len(y) // 2
    model = BASELINES[name](X[:half]).fit(X[:half], y[:half])
    return np.mean(model.predict(X[half:]) != y[half:]), model.predict_proba(X[half:])


@pytest.mark.parametrize("name", BASELINES)
def test_baselines_read_dates_as_days_and_calendar_however_they_are_written(name):
    X, y = seasons(600)
    majority = 1 - max(np.mean(y == label) for label in set(y))
    found = {form: error_of(name, X.assign(date=write(X["date"])), y) for form, write in FORMS.items()}
    error, posterior = found["dates"]
    assert error < majority - 0.05
    for other, other_posterior in found.values():
        assert other == error
        np.testing.assert_allclose(other_posterior, posterior, atol=1e-9)
    by_hand = pd.DataFrame(
        {
            "temperature": X["temperature"],
            "noise": X["noise"],
            "date": (X["date"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
            "date (month)": X["date"].dt.strftime("%b"),
            "date (weekday)": X["date"].dt.strftime("%a"),
        }
    )
    assert error_of(name, by_hand, y)[0] == error


def test_columns_of_baselines():
    n = 40
    X = pd.DataFrame(
        {
            "key": [f"k{j}" for j in range(n)],
            "wait": pd.to_timedelta(np.arange(n), unit="s"),
            "kind": pd.Categorical(["a", "b"] * (n // 2)),
            "whole": pd.array([None, *range(1, n)], dtype="Int64"),
            "exact": np.array([*map(float, range(n - 1)), None], dtype=object),
            "empty": np.full(n, np.nan),
            "flag": np.arange(n) % 3 == 0,
        },
        index=np.arange(n) + 7,
    )
    made = CalendarColumns().fit_transform(X)
    assert list(made) == ["wait", "kind", "whole", "exact", "flag"]
    assert made["wait"].tolist() == list(range(n))
    assert made["exact"].dtype == float
    assert made.index.tolist() == X.index.tolist()
    for name in ("kind", "whole", "flag"):
        pd.testing.assert_series_equal(made[name], X[name])
    late = CalendarColumns().fit(seasons(60)[0]).transform(seasons(60)[0].assign(date=pd.NaT)[:1])
    assert late["date"].isna().all()


@pytest.mark.parametrize("name", BASELINES)
def test_categories_of_baselines_are_categories_even_if_there_are_many(name):
    rng = np.random.default_rng(0)
    n, levels = 6000, 300
    towns = rng.permutation(levels)
    is_large = rng.random(levels) < 0.5
    place = rng.integers(0, levels, n)
    X = pd.DataFrame({"town": [f"t{towns[j]:03d}" for j in place], "x": rng.normal(size=n)})
    error, _ = error_of(name, X, np.where(is_large[place], "large", "small"))
    assert error < 0.12  # as ordered codes, the trees have 0.3


def results(losses, spread=0.01, seed=0):
    """Five folds of models with these mean log losses; the default's errors are the highest."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(0, 0.05, 5)
    return [
        FoldResult(
            *pair, 0.5 if pair == DEFAULT else 0.2, loss + shared[j] + spread * (-1) ** j, 0.1, 0.1, 1, 1.0
        )
        for pair, loss in losses.items()
        for j in range(5)
    ]


def test_results_are_ranked_by_log_loss():
    found = results({DEFAULT: 0.4, ("LDA", "ml"): 0.5, ("QDA", "rc"): 0.3})
    assert [each.model for each in comparison.rank_results(found)] == ["QDA", DEFAULT[0], "LDA"]


def noisy(mean, deviation, n, folds=5):
    rng = np.random.default_rng(n)
    losses = {DEFAULT: rng.normal(0.5, deviation, folds)}
    losses |= {("LDA", f"rule {j}"): rng.normal(mean, deviation, folds) for j in range(n)}
    return [
        FoldResult(*pair, 0.2, loss, 0.1, 0.1, 1, 1.0) for pair, values in losses.items() for loss in values
    ]


def test_the_default_is_kept_unless_another_model_is_better_beyond_doubt():
    for n in (1, 5, 17, 40):
        found = noisy(0.5, 0.02, n)  # no difference but chance
        assert recommended(found) == DEFAULT
        assert comparison.rank_results(found)[0].model in ("LDA", DEFAULT[0])
        assert len(comparison.not_distinguishable(found)) == n
        found = noisy(0.2, 0.01, n)
        best = comparison.rank_results(found)[0]
        assert recommended(found) == (best.model, best.rule) != DEFAULT
    better = results({DEFAULT: 0.4, ("LDA", "ml"): 0.35}, spread=0.0)
    assert recommended(better) == ("LDA", "ml")  # paired: folds differ, but by the same in both models
    assert recommended(results({("LDA", "ml"): 0.5, ("QDA", "ml"): 0.4, ("sklearn-HistGB", "-"): 0.1})) == (
        "QDA",
        "ml",
    )
    assert recommended(results({("sklearn-HistGB", "-"): 0.1})) is None
    infinite = results({DEFAULT: np.inf, ("LDA", "ml"): np.inf})
    assert recommended(infinite) == DEFAULT


def test_a_difference_is_found_by_chance_in_few_comparisons_only():
    """With all models equal, another one than the default is taken in at most 5 % of comparisons, however many there are."""
    taken = [recommended(noisy(0.5, 0.02, n)) != DEFAULT for n in range(1, 121)]
    assert np.mean(taken) <= stats.binom.ppf(0.999, 120, 0.05) / 120


def test_reports_and_commands_take_the_same_model():
    found = results({DEFAULT: 0.4, ("LDA", "ml"): 0.39, ("sklearn-HistGB", "-"): 0.38}, spread=0.0)
    facts = ranking_facts(found, 100, 100)
    assert facts.chosen == recommended(found)
    assert facts.close == len(comparison.not_distinguishable(found))
    assert [each.model for each in facts.methods] == ["sklearn-HistGB", "LDA", DEFAULT[0]]
    text = comparison.describe_best(found)
    assert text.startswith("Lowest log loss on held-out rows: sklearn-HistGB")


def test_ties_are_said():
    found = noisy(0.5, 0.02, 17)
    text = comparison.describe_best(found)
    assert "Not distinguishable from it on these folds: 17 of 17 others." in text
    if comparison.rank_results(found)[0].model != DEFAULT[0]:
        assert (
            "No other model of this package is better beyond doubt than the default, BayesClassifier." in text
        )


def test_predictions_of_a_fold_have_the_scores_of_its_result():
    penguins = load_penguins()
    data = Dataset("penguins", penguins.data, penguins.target)
    split = comparison.stratified_folds(np.asarray(data.target), 3, 0)[0]
    for model, rule in (("LDA", "ml"), ("sklearn-LogReg", "-")):
        result, log_posterior = comparison.fold_predictions(data, model, rule, split)
        truth = np.unique(data.target, return_inverse=True)[1][np.sort(split[1])]
        assert result.error == np.mean(log_posterior.argmax(axis=1) != truth)
        assert result.log_loss == pytest.approx(-log_posterior[np.arange(len(truth)), truth].mean())
