"""Trees that are grown on the members of an ensemble."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax

import calibayes as cb
from calibayes import BayesClassifier, SkippedMemberWarning
from calibayes.ensemble import bayes as ensemble_bayes
from calibayes.ensemble import many_rows, standard_members, training
from calibayes.kernels.tree_growth import forest_scores
from calibayes.model.checked_rows import new_table

MEMBERS = ["tied", "kernel", "trees"]


def parity(n=600, seed=0, noise=0.05):
    """Two classes decided by the signs of three numbers together: no two columns say anything about them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=list("abcd"))
    X["place"] = rng.choice(["north", "south", None], n, p=[0.5, 0.4, 0.1])
    odd = (X[["a", "b", "c"]] > 0).sum(axis=1).to_numpy() % 2
    flipped = rng.random(n) < noise
    return X, np.where(flipped, 1 - odd, odd)


@pytest.fixture(scope="module")
def grown():
    return BayesClassifier(families=MEMBERS).fit(*parity())


def test_trees_find_what_no_member_can_see(grown):
    X, y = parity(seed=1)
    alone = BayesClassifier(families=MEMBERS[:-1]).fit(*parity())
    assert alone.score(X, y) < 0.6
    assert grown.score(X, y) > 0.8
    assert grown.out_of_fold_log_loss_ < alone.out_of_fold_log_loss_ - 0.1
    assert abs(grown.out_of_fold_error_ - (1 - grown.score(X, y))) < 0.1


def test_the_posterior_is_that_of_the_definition(grown):
    X, _ = parity(50, seed=1)
    trees, table = grown.trees_, new_table(grown, X)
    members = sum(grown.weights_[name] * model.predict_proba(X) for name, model in grown.models_.items())
    members = members + grown.weights_["class frequencies"] * grown.class_prior_
    columns = trees.bytes.encode(table)
    parts = zip(trees.forests, trees.log_factors, strict=True)
    forests = [
        softmax(forest_scores(columns, *part, trees.share * np.log(members)), axis=1) for part in parts
    ]
    expected = trees.weight * np.mean(forests, axis=0) + (1 - trees.weight) * members
    assert_allclose(grown.predict_proba(X), expected, atol=1e-12)
    assert len(trees.forests) == 5
    assert trees.share == training.SHARE


def test_growth_is_the_default_from_five_hundred_rows_on():
    X, y = parity(500)
    assert hasattr(BayesClassifier(cv=2).fit(X, y), "trees_")
    assert not hasattr(BayesClassifier(cv=2).fit(X[:499], y[:499]), "trees_")
    assert not hasattr(BayesClassifier(families=["tied"], cv=2).fit(X, y), "trees_")


def test_unknown_members_are_named_with_the_trees():
    with pytest.raises(ValueError, match=r"the members are near, .*, trees"):
        BayesClassifier(families=["tress"]).fit(*parity(50))
    with pytest.raises(ValueError, match="nothing to average"):
        BayesClassifier(families=["trees"]).fit(*parity(50))


def test_members_learn_from_some_rows_and_trees_from_all(monkeypatch):
    X, y = parity(900)
    for module in (training, ensemble_bayes, many_rows):
        monkeypatch.setattr(module, "MEMBER_ROWS", 300)
    model = BayesClassifier(families=MEMBERS).fit(X, y)
    assert 300 <= model.density_.data_statistics_["class_prior"]["count"].sum() <= 310
    assert 300 <= model.tried_rows_ <= 310
    assert [float(mass.sum()) for mass in first_trees(model)] == [900] * 5
    assert abs(len(model.held_out_.codes) - 450) <= 50  # a tenth for each of five forests
    monkeypatch.setattr(ensemble_bayes, "ONE_FOREST", 900)
    single = BayesClassifier(families=MEMBERS).fit(X, y)
    assert len(single.trees_.forests) == 1
    assert 300 <= single.tried_rows_ <= 310
    assert float(first_trees(single)[0].sum()) == 900
    Z, z = parity(seed=1)
    assert min(model.score(Z, z), single.score(Z, z)) > 0.75


def boxes(n, seed):
    """Two classes; the members see little of what decides, whether rows lie in boxes of three columns each."""
    rng, places = np.random.default_rng(seed), np.random.default_rng(99)
    X, scores = rng.random((n, 12)), np.zeros((n, 2))
    for number in range(12):
        columns, low = places.choice(12, 3, replace=False), 0.5 * places.random(3)
        inside = (X[:, columns] > low) & (X[:, columns] < low + 0.5)
        scores[:, number % 2] += 2.5 * inside.all(axis=1)
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def test_the_default_is_not_worse_than_trees_alone_where_only_trees_can_learn():
    (X, y), (Z, z) = boxes(12_000, 0), boxes(20_000, 1)
    models = BayesClassifier(families=MEMBERS), cb.CalibratedTrees()
    losses = [-model.fit(X, y).predict_log_proba(Z)[np.arange(len(z)), z] for model in models]
    difference = losses[0] - losses[1]
    assert difference.mean() < 2 * difference.std() / np.sqrt(len(z))


def test_a_single_forest_learns_from_rows_of_every_class(monkeypatch):
    for module in (training, ensemble_bayes, many_rows):
        monkeypatch.setattr(module, "MEMBER_ROWS", 300)
    monkeypatch.setattr(ensemble_bayes, "ONE_FOREST", 6000)
    Z, z = with_rare_class(500, 250, seed=1)
    rare, found = z == 2, []
    for seed in range(3):  # without any of the ten rows the class would never be predicted
        model = BayesClassifier(families=MEMBERS, random_state=seed).fit(*with_rare_class(6000, 10))
        assert len(model.trees_.forests) == 1
        found.append((model.predict(Z)[rare] == 2).mean())
        assert (model.predict(Z)[~rare] == 2).mean() < 0.05
    assert np.mean(found) > 0.6


def with_rare_class(n, rare, seed=0):
    """`parity` with a third class of few rows, far away in one column."""
    X, y = parity(n, seed)
    X.loc[: rare - 1, "d"] += 5.0
    return X, np.where(np.arange(n) < rare, 2, y)


def test_members_that_learn_from_all_rows_are_left_out_if_these_are_too_many(monkeypatch):
    X, y = parity(900)
    for module in (training, ensemble_bayes, many_rows):
        monkeypatch.setattr(module, "MEMBER_ROWS", 300)
    monkeypatch.setattr(standard_members, "MOST_PAIRS", 500 * X.shape[1] ** 2)
    some = BayesClassifier(families=["kernel", "tree", "trees"]).fit(X, y)
    assert some.skipped_ == {}
    with pytest.warns(cb.SkippedMemberWarning, match="'tree' is left out"):
        every = BayesClassifier(families=["kernel", "tree", "trees"], cv=3).fit(X, y)
    assert every.tried_rows_ == 900


def weigh_trees(monkeypatch, share):
    """Let the weight of the trees beside the members be chosen as if held-out rows gave them this share."""
    weight_of_trees = training._weight

    def chosen(*given):
        with monkeypatch.context() as inside:
            inside.setattr(training, "mixture_weights", lambda *_: np.array([1 - share, share]))
            return weight_of_trees(*given)

    monkeypatch.setattr(training, "_weight", chosen)


def test_members_learn_from_all_rows_if_trees_are_left_out(monkeypatch):
    for module in (training, ensemble_bayes, many_rows):
        monkeypatch.setattr(module, "MEMBER_ROWS", 300)
    weigh_trees(monkeypatch, 0.1)
    X, y = parity(900)
    y = (X["a"] + X["b"] > 0).astype(int)
    model = BayesClassifier(families=MEMBERS).fit(X, y)
    assert not hasattr(model, "trees_")
    used = next(iter(model.models_.values()))
    assert used.data_statistics_["class_prior"]["count"].sum() == pytest.approx(900)


def first_trees(model):
    """The weights in the leaves of the first tree of each forest."""
    parts = zip(model.trees_.forests, model.trees_.masses, strict=True)
    return [mass[: forest.leaves[0]] for forest, mass in parts]


def test_the_result_is_the_same_for_any_number_of_threads_and_order_of_rows(grown):
    X, y = parity()
    Z, _ = parity(seed=1)
    threads = BayesClassifier(families=MEMBERS, n_jobs=2).fit(X, y)
    assert_array_equal(threads.predict_proba(Z), grown.predict_proba(Z))
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = BayesClassifier(families=MEMBERS).fit(X.iloc[order], y[order])
    assert_allclose(shuffled.predict_proba(Z), grown.predict_proba(Z), atol=1e-9)


def test_names_of_classes_do_not_matter(grown):
    X, y = parity()
    Z, _ = parity(seed=1)
    renamed = BayesClassifier(families=MEMBERS).fit(X, np.array(["z", "a"])[y])
    assert_allclose(renamed.predict_proba(Z)[:, ::-1], grown.predict_proba(Z), atol=1e-9)


def test_the_number_of_trees_is_bounded_if_bins_and_classes_are_many(monkeypatch):
    X, y = parity(300)
    whole = BayesClassifier(families=MEMBERS).fit(X, y)
    assert whole.skipped_ == {}
    sums = int(whole.trees_.bytes.sizes.sum())  # of one of two classes
    monkeypatch.setattr(training, "MOST_WORK", 7 * 5 * 31 * sums)
    with pytest.warns(
        SkippedMemberWarning, match="further trees are left out: growth ended after 7 trees: with"
    ):
        two = BayesClassifier(families=MEMBERS).fit(X, y)
    assert len(two.trees_.losses) == 1 + 7
    reason = two.skipped_["further trees"]
    assert f"{sums:,} bins and 2 classes" in reason
    assert f"further trees were left out: {reason}" in two.summary().splitlines()
    monkeypatch.setattr(training, "MOST_WORK", 7 * 5 * 31 * sums * 3)
    with pytest.warns(SkippedMemberWarning, match="after 7 trees: .* 3 classes"):
        three = BayesClassifier(families=MEMBERS).fit(X, np.where(X["d"] > 0.5, 2, y))
    assert len(three.trees_.losses) == 1 + 7
    assert len(whole.trees_.losses) > 1 + 7


@pytest.mark.parametrize(("share", "name"), [(0.6, "further trees"), (0.1, "trees")])
def test_a_growth_that_the_time_limit_ends_says_so(monkeypatch, share, name):
    rounds = []
    weigh_trees(monkeypatch, share)
    monkeypatch.setattr(training.ProgressReporter, "after_tree", lambda *given: rounds.append(given))
    monkeypatch.setattr(training.Deadline, "is_late", lambda *_, **__: len(rounds) >= 7)
    with pytest.warns(SkippedMemberWarning, match=f"{name}.* left out: the time limit was reached"):
        model = BayesClassifier(families=MEMBERS).fit(*parity(300))
    assert list(model.skipped_) == [name]
    assert len(rounds) == 7


def test_forests_without_a_tree_are_left_out():
    X, y = parity(300)
    model = BayesClassifier(families=MEMBERS, class_weight={0: 1e6, 1: 1.0}).fit(X, y)
    assert not hasattr(model, "trees_")
    assert model.skipped_ == {"trees": "no gain on held-out rows"}
    assert "trees were left out: no gain on held-out rows" in model.summary().splitlines()


def test_trees_without_a_gain_are_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    model = BayesClassifier(families=["tied", "trees"]).fit(X, y)
    alone = BayesClassifier(families=["tied"]).fit(X, y)
    if hasattr(model, "trees_"):
        assert model.trees_.weight <= 0.5
        assert model.out_of_fold_log_loss_ < alone.out_of_fold_log_loss_
    Z = rng.normal(size=(2000, 3))
    z = (Z[:, 0] + rng.normal(size=2000) > 0).astype(int)
    losses = [-np.mean(m.predict_log_proba(Z)[np.arange(2000), z]) for m in (model, alone)]
    assert losses[0] < losses[1] + 0.01


@pytest.mark.parametrize(("of_trees", "weight"), [(0.1, 0.0), (0.4, 0.4), (0.6, 1.0)])
def test_the_weight_of_the_trees(monkeypatch, of_trees, weight):
    weigh_trees(monkeypatch, of_trees)
    model = BayesClassifier(families=MEMBERS).fit(*parity(300))
    assert (model.trees_.weight if hasattr(model, "trees_") else 0.0) == weight
    if weight:
        shares = model.shares(parity(20, seed=1)[0])
        assert shares.shape == (20, len(model.models_) + 2)
        assert_allclose(shares.sum(axis=1), 1.0)


def test_shares_are_those_of_the_decided_class(grown):
    X, _ = parity(30, seed=1)
    part = replace(grown.fitted_, grown=replace(grown.trees_, weight=0.3))
    table = new_table(grown, X)
    best = part.log_posterior(table).argmax(axis=1)
    trees = np.exp(replace(part, grown=replace(grown.trees_, weight=1.0)).log_posterior(table))
    total = np.exp(part.log_posterior(table))
    rows = np.arange(30)
    assert_allclose(part.shares(table)[:, -1], 0.3 * trees[rows, best] / total[rows, best], rtol=1e-9)


def test_explanations_add_up_and_name_the_columns_that_decide(grown):
    X, _ = parity(20, seed=1)
    reasons = grown.explain(X)
    best = np.sort(grown.predict_log_proba(X), axis=1)
    assert_allclose(reasons.log_odds, best[:, -1] - best[:, -2], atol=1e-9)
    assert_allclose(reasons.contributions.sum(axis=1), reasons.log_odds, atol=1e-9)
    sizes = reasons.overall()
    assert min(sizes[name] for name in "abc") > max(sizes["d"], sizes["place"])


def test_shifted_priors_move_the_log_odds(grown):
    X, _ = parity(20, seed=1)
    shifted = grown.with_priors([0.9, 0.1])
    moved = grown.predict_log_proba(X) + np.log([0.9, 0.1]) - np.log(grown.class_prior_)
    assert_allclose(shifted.predict_log_proba(X), log_softmax(moved, axis=1), atol=1e-10)


def test_files_keep_every_bit(grown, tmp_path):
    X, _ = parity(20, seed=1)
    cb.save(grown, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors")
    assert_array_equal(loaded.predict_proba(X), grown.predict_proba(X))


@pytest.mark.parametrize(
    "change",
    [
        {"share": -0.1},
        {"share": np.nan},
        {"weight": 1.1},
        {"forests": ()},
        {"log_factors": ()},
        {"masses": ()},
        {"losses": np.zeros(0)},
    ],
    ids=str,
)
def test_trees_that_do_not_fit_are_refused(grown, change):
    with pytest.raises(ValueError, match=r"\w"):
        replace(grown.trees_, **change).verify()


def test_arrays_that_do_not_fit_are_refused(grown):
    trees = grown.trees_
    for change in (
        {"log_factors": tuple(part[:, :-1] for part in trees.log_factors)},
        {"log_factors": tuple(np.where(part == part.max(), np.inf, part) for part in trees.log_factors)},
        {"masses": tuple(-mass - 1 for mass in trees.masses)},
        {"bytes": replace(trees.bytes, indices=(0,))},
    ):
        with pytest.raises(ValueError, match=r"\w"):
            replace(trees, **change).verify()
    three = {"log_factors": tuple(np.vstack([part, part[:1]]) for part in trees.log_factors)}
    with pytest.raises(ValueError, match="other classes"):
        replace(grown.fitted_, grown=replace(trees, **three)).verify()


def test_the_summary_says_what_trees_are_grown_on(grown):
    text = str(grown.summary())
    assert f"5 forests of {grown.trees_.tree_count} trees, grown on 0.5 of the log posterior" in text


def test_trees_beyond_the_time_limit_are_left_out_with_a_warning():
    with pytest.warns(SkippedMemberWarning, match="'trees' is left out: the time limit"):
        model = BayesClassifier(families=["tied", "trees"], time_limit=0.0).fit(*parity(300))
    assert not hasattr(model, "trees_")
    assert model.skipped_ == {"trees": "the time limit was reached"}


def test_weights(grown):
    X, y = parity()
    doubled = BayesClassifier(families=MEMBERS).fit(X, y, sample_weight=np.full(len(y), 2.0))
    Z, _ = parity(seed=1)
    assert_allclose(doubled.predict_proba(Z), grown.predict_proba(Z), atol=1e-9)
    balanced = BayesClassifier(families=MEMBERS, class_weight={0: 1.0, 1: 20.0}).fit(X, y)
    assert balanced.predict(Z).mean() > grown.predict(Z).mean()
