"""Trees that are grown by calibration, as an estimator: accuracy, settings, explanations, decisions, summary."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_hastie_10_2
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

import calibayes as cb
from calibayes.datasets import load_penguins
from calibayes.kernels import forests
from calibayes.kernels.tree_growth import forest_scores
from calibayes.model.checked_rows import new_table
from tests.estimators.trees.data import interaction, rising
from tests.kernel_versions import numpy_only

ABILITIES = ("sample", "score_samples", "fill", "outlier_threshold")


def quick(**options):
    return cb.CalibratedTrees(**{"max_trees": 30, **options})


@pytest.fixture(scope="module")
def model():
    return quick().fit(*interaction())


def test_interactions_of_three_columns_are_found():
    """On average over seeds, which choose the rows that are held out."""
    X, y = interaction(seed=1)
    assert cb.NaiveBayes().fit(*interaction()).score(X, y) < 0.6
    assert np.mean([quick(random_state=seed).fit(*interaction()).score(X, y) for seed in range(6)]) > 0.88


def hastie():
    return make_hastie_10_2(2000, random_state=0)


@pytest.mark.parametrize(
    "load", [lambda: load_breast_cancer(return_X_y=True), hastie, lambda: load_iris(return_X_y=True)]
)
def test_held_out_log_loss_is_not_worse_than_that_of_other_boosted_trees(load):
    X, y = load()
    losses = {}
    for name, model in (("ours", cb.CalibratedTrees()), ("theirs", HistGradientBoostingClassifier())):
        losses[name] = [
            log_loss(
                y[test], clone(model).fit(X[train], y[train]).predict_proba(X[test]), labels=np.unique(y)
            )
            for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(X, y)
        ]
    assert np.mean(losses["ours"]) < 1.1 * np.mean(losses["theirs"])


def test_one_split_is_a_step_of_newton_by_hand():
    """One column of two values, one tree, full rate: log odds + (observed - expected) / sum of P (1 - P)."""
    rng = np.random.default_rng(0)
    x = np.repeat([0.0, 1.0], [400, 600])
    y = (rng.random(1000) < np.where(x, 0.7, 0.4)).astype(int)
    model = cb.CalibratedTrees(max_trees=1, max_leaves=2, rate=1.0, prior=1e-6).fit(x[:, None], y)
    assert model.n_trees_ == 1
    share = y.mean()
    found = model.decision_function([[0.0], [1.0]])
    for value in (0, 1):
        # A tenth of the rows of each class is held out: the step is that of the others, 1 row in 100 uncertain.
        rows = y[x == value]
        step = np.sum(rows - share) / (len(rows) * share * (1 - share))
        assert found[value] == pytest.approx(np.log(share / (1 - share)) + step, abs=0.06)


def test_the_posterior_is_that_of_the_grown_trees(model):
    X, _ = interaction(seed=2)
    leaves = model.leaves_
    columns = leaves.bytes.encode(new_table(model, X))
    scores = forest_scores(columns, leaves.forest, leaves.log_factor, leaves.log_start)
    assert_allclose(model.predict_log_proba(X), log_softmax(scores, axis=1), atol=1e-10)


def test_held_out_losses_are_reported(model):
    losses = model.held_out_log_loss_
    assert model.n_trees_ == np.argmin(losses)
    _, counts = np.unique(interaction()[1], return_counts=True)
    shares = counts / counts.sum()
    assert losses[0] == pytest.approx(-np.sum(shares * np.log(shares)), abs=0.02)


# -- laws ---------------------------------------------------------------------------------------------------------------


def test_order_of_rows_does_not_matter(model):
    X, y = interaction()
    order = np.random.default_rng(0).permutation(len(y))
    expected = model.predict_proba(X)
    assert_allclose(quick().fit(X.iloc[order], y[order]).predict_proba(X), expected, atol=1e-9)


def test_a_row_of_weight_two_is_the_row_twice():
    X, y = interaction(300)
    weight = 1.0 + (np.arange(300) % 4 == 0)
    twice = np.repeat(np.arange(300), weight.astype(int))
    one = quick().fit(X, y, weight).predict_proba(X)
    assert_allclose(quick().fit(X.iloc[twice], y[twice]).predict_proba(X), one, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-200, 1 / 300, 0.37, 2.0, 1e6, 1e90])
def test_only_ratios_of_weights_matter(unit):
    X, y = interaction(300)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 300)
    expected = quick(max_trees=10).fit(X, y, weight).predict_proba(X)
    assert_allclose(quick(max_trees=10).fit(X, y, unit * weight).predict_proba(X), expected, atol=1e-9)
    same = quick(max_trees=10).fit(X, y).predict_proba(X)
    assert_allclose(quick(max_trees=10).fit(X, y, np.full(300, unit)).predict_proba(X), same, atol=1e-9)


def test_same_bits_for_any_number_of_jobs_and_the_same_trees_in_numpy(monkeypatch):
    X, y = interaction(300)
    expected = quick(max_trees=8).fit(X, y)
    monkeypatch.setattr(forests, "MANY_CELLS", 0)
    for jobs in (2, 3):
        model = quick(max_trees=8, n_jobs=jobs).fit(X, y)
        assert model.predict_log_proba(X).tobytes() == expected.predict_log_proba(X).tobytes()
    with numpy_only():
        model = quick(max_trees=8).fit(X, y)
    for name, array in vars(expected.leaves_.forest).items():
        assert np.array_equal(getattr(model.leaves_.forest, name), array), name
    assert_allclose(model.predict_log_proba(X), expected.predict_log_proba(X), atol=1e-9)


def test_class_weights_are_row_weights():
    X, y = interaction(300)
    weighted = quick(class_weight={"yes": 3.0, "no": 1.0}).fit(X, y)
    by_row = quick().fit(X, y, np.where(y == "yes", 3.0, 1.0))
    assert weighted.predict_proba(X)[:, 1].mean() > quick().fit(X, y).predict_proba(X)[:, 1].mean() + 0.05
    assert np.abs(weighted.predict_proba(X) - by_row.predict_proba(X)).mean() < 0.1
    balanced = quick(class_weight="balanced").fit(X, y)
    assert balanced.data_statistics_["class_prior"]["count"] == pytest.approx([150.0, 150.0])


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_seed_chooses_the_held_out_rows(seed):
    X, y = interaction(600)
    one, two = (quick(random_state=seed).fit(X, y).predict_proba(X) for _ in range(2))
    assert np.array_equal(one, two)
    assert np.array_equal(one, quick().fit(X, y).predict_proba(X)) == (seed is None)


# -- tables -------------------------------------------------------------------------------------------------------------


def test_missing_and_unseen_values_have_a_posterior(model):
    X, _ = interaction(20)
    new = X.assign(text="unseen", a=np.nan)
    nothing = pd.DataFrame(np.nan, index=range(3), columns=X.columns).astype({"text": object})
    for rows in (new, nothing):
        found = model.predict_proba(rows)
        assert np.isfinite(found).all()
        assert_allclose(found.sum(axis=1), 1.0)


def test_missing_values_that_decide_are_found():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 2)), rng.integers(0, 2, 400)
    X[(y == 1) & (rng.random(400) < 0.9), 0] = np.nan
    model = quick().fit(X, y)
    assert model.predict_proba([[np.nan, 0.0]])[0, 1] > 0.95


def test_empty_constant_and_identical_columns_do_no_harm(model):
    X, y = interaction()
    more = X.assign(empty=np.nan, none=None, one=1.0, again=X["a"])
    found = quick().fit(more, y)
    assert np.mean(found.predict(more) == model.predict(X)) > 0.95
    alone = quick().fit(more[["empty", "one"]], y)
    assert alone.leaves_.forest.leaves == (1,)
    assert_allclose(alone.predict_proba(more[["empty", "one"]])[0], [np.mean(y == c) for c in ("no", "yes")])


def test_texts_dates_and_many_classes():
    penguins = load_penguins()
    model = quick().fit(penguins.data, penguins.target)
    assert model.score(penguins.data, penguins.target) > 0.98
    X, _ = interaction(600)
    y = np.minimum(np.floor((X["a"].to_numpy() + 2.5) * 2.4), 11).clip(0)
    assert quick(max_trees=10).fit(X, y).score(X, y) > 0.8


# -- explanations and decisions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [interaction, lambda: (load_penguins().data, load_penguins().target)])
def test_contributions_add_up_to_the_log_odds(make):
    X, y = make()
    model = quick().fit(X, y)
    explained = model.explain(X[:50])
    log_posterior = model.predict_log_proba(X[:50])
    chosen, other = (np.searchsorted(model.classes_, part) for part in (explained.chosen, explained.other))
    rows = np.arange(50)
    log_odds = log_posterior[rows, chosen] - log_posterior[rows, other]
    assert explained.names == ("class prior", *X.columns)
    assert_allclose(explained.contributions.sum(axis=1), log_odds, atol=1e-9)


def test_contributions_are_zero_on_average_over_the_training_rows(model):
    X, _ = interaction()
    explained = model.explain(X, against="no")
    signs = np.where(
        np.asarray(explained.chosen) == "yes", 1.0, -1.0
    )  # as contributions to the log odds of "yes"
    contributions = explained.contributions * signs[:, None]
    assert_allclose(contributions[:, 1:].mean(axis=0), 0.0, atol=1e-9)
    assert_allclose(contributions[:, 0], model.decision_function(X).mean(), atol=1e-9)
    sizes = np.abs(contributions[:, 1:]).mean(axis=0)
    assert min(sizes[[0, 1, 4]]) > 2 * max(sizes[[2, 3]])


def test_costs_and_other_class_frequencies(model):
    X, y = interaction()
    careful = quick(costs=[[0, 1], [9, 0]]).fit(X, y)
    assert np.mean(careful.predict(X) == "yes") > np.mean(model.predict(X) == "yes")
    shifted = model.with_priors({"no": 0.9, "yes": 0.1})
    frequency = np.mean(y == "yes")
    moved = np.log(0.1 / 0.9) - np.log(frequency / (1 - frequency))
    assert_allclose(shifted.decision_function(X), model.decision_function(X) + moved, atol=1e-9)
    with pytest.raises(ValueError, match="priors of this model were replaced"):
        shifted.forget(X[:3], y[:3])
    assert model.decide(X, least_posterior=0.9).mask.any()
    with pytest.raises(ValueError, match="for a model with `score_samples`"):
        model.decide(X, least_density=-10.0)


@pytest.mark.parametrize("ability", ABILITIES)
def test_what_leaves_cannot_give_is_not_there(model, ability):
    assert not hasattr(model, ability)
    assert not hasattr(cb.CalibratedTrees(), ability)
    with pytest.raises(AttributeError, match=r"leaves of trees, not the columns: .* such as KernelNB"):
        getattr(model, ability)


def test_the_summary_says_how_many_trees_and_their_loss(model):
    lines = str(model.summary()).splitlines()
    assert lines[0].startswith("CalibratedTrees: 2 classes, 5 columns")
    assert lines[1].startswith(f"{model.n_trees_} trees of ")
    assert f"log loss {model.held_out_log_loss_.min():.4g} on held-out rows" in lines[1]
    few = quick().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert "no rows held out" in str(few.summary())


def test_progress_is_shown(capsys):
    quick(verbose=1, max_trees=10, patience=20).fit(*interaction(200))
    shown = capsys.readouterr()
    assert (shown.out + shown.err).count("tree 10, log loss") == 1  # every tenth


# -- settings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_trees": 0}, "max_trees must be a whole number from 1 to 100000, got 0"),
        ({"max_trees": 2.5}, "max_trees must be a whole number"),
        ({"max_trees": 10**6}, "max_trees must be a whole number from 1 to 100000, got 1000000"),
        ({"max_leaves": 1}, "max_leaves must be a whole number from 2 to 127, got 1"),
        ({"max_leaves": 128}, "max_leaves must be a whole number from 2 to 127, got 128"),
        ({"max_leaves": "many"}, "max_leaves must be a whole number"),
        ({"rate": 0.0}, "rate must .*0.0"),
        ({"rate": 1.5}, "rate must .*1.5"),
        ({"rate": np.nan}, "rate must .*nan"),
        ({"prior": 0.0}, "prior must .*0.0"),
        ({"prior": -1.0}, "prior must .*-1.0"),
        ({"prior": np.inf}, "prior must .*inf"),
        ({"prior": "flat"}, "prior must .*'flat'"),
        ({"least_variance": 0.0}, "least_variance must .*0.0"),
        ({"patience": 0}, "patience must be a whole number from 1 to 100000, got 0"),
        ({"training": cb.TrainingOptions()}, "has no training options"),
        ({"rule": "ml", "max_iter": 3}, "rule='ml' would replace"),
        ({"rule": "map"}, "rule='map' would replace"),
        ({"rule": "em"}, "rule='em' would replace"),
        ({"max_iter": -1}, "max_iter must be a whole number from 0 on"),
        ({"stop": "soon", "max_iter": 1}, "stop must be one of"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"monotone": "a"}, "monotone must be a mapping of columns to 1 or -1, got 'a'"),
        ({"monotone": {"a": 2}}, "monotone must be a mapping of columns to 1 or -1"),
        ({"monotone": {"a": 0}}, "monotone must be a mapping of columns to 1 or -1"),
        ({"monotone": {"a": 1.0}}, "monotone must be a mapping of columns to 1 or -1"),
        ({"monotone": {"a": True}}, "monotone must be a mapping of columns to 1 or -1"),
        ({"monotone": {"z": 1}}, "'z'"),
        ({"monotone": {17: 1}}, "17"),
        ({"monotone": {"text": 1}}, "column 'text' is not numeric: it has no order"),
        ({"monotone": {"a": 1}, "max_iter": 2}, "with monotone use max_iter=0"),
    ],
)
def test_invalid_settings_are_named(options, message):
    X, y = interaction(60)
    with pytest.raises(ValueError, match=message):
        cb.CalibratedTrees(**options).fit(X, y)


def test_monotone_needs_two_classes():
    X, y = load_wine(return_X_y=True)
    with pytest.raises(ValueError, match="monotone needs two classes, and there are 3"):
        quick(monotone={0: 1}).fit(X, y)


def grid_of(X, column):
    """Rows with each of 60 values of a column, (60 * n rows)."""
    values = np.linspace(-1.2, 1.2, 60)
    moved = pd.concat([X.assign(**{column: value}) for value in values], ignore_index=True)
    return moved, (60, len(X))


@pytest.mark.parametrize("seed", range(2))
def test_monotone_columns_never_turn(seed):
    X, y = rising(seed=seed)
    model = quick(monotone={"up": 1, 1: -1}).fit(X, y)
    free = quick(prior=0.1).fit(X, y)
    for column, sign in (("up", 1), ("down", -1)):
        rows, shape = grid_of(X[:40].assign(free=X["free"][:40]), column)
        rises = np.diff(model.decision_function(rows).reshape(shape), axis=0)
        assert (sign * rises >= -1e-9).all()
        assert (sign * rises > 1e-3).any()
        turns = np.diff(free.decision_function(rows).reshape(shape), axis=0)
        assert (sign * turns < -1e-3).any()
    assert model.score(*rising(seed=9)) > 0.7


@pytest.mark.parametrize("rule", ["rc", "gd", "tm"])
def test_a_rule_calibrates_all_leaves_after_the_growth(rule):
    X, y = interaction()
    plain, calibrated = (quick(max_trees=5, rule=rule, max_iter=n, stop=None).fit(X, y) for n in (0, 4))
    losses = [log_loss(y, model.predict_proba(X)) for model in (plain, calibrated)]
    assert losses[1] <= losses[0]
    assert len(calibrated.history_["log_loss"]) >= 2
    assert calibrated.history_["log_loss"][0] == pytest.approx(losses[0], rel=1e-6)


def test_the_summary_of_a_tree_that_is_not_split():
    model = cb.CalibratedTrees().fit(np.ones((60, 1)), np.arange(60) % 2)
    assert "1 tree of 1 leaf, log loss" in model.summary()
