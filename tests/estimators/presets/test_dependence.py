"""KDependenceBayes and AODE: exact arithmetic, every rule, mixed and wide tables, bad input."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

import calibayes as cb
from calibayes.core.named_arrays import map_leaves
from calibayes.datasets import load_penguins
from calibayes.estimators import aode, tree_augmented
from calibayes.estimators import aode as k_dependence
from calibayes.families import AllEdges, SignificantEdges

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
MODELS = pytest.mark.parametrize(
    "estimator",
    [
        cb.KDependenceBayes(max_parents=1),
        cb.KDependenceBayes(),
        cb.KDependenceBayes(edges=AllEdges(), back_off=1.0),
        cb.AODE(),
        cb.AODE(least_rows=50.0),
    ],
    ids=str,
)


def words(n=400, seed=0, gaps=0.0):
    """Columns of strings of which some depend on two others; the first rows have other dependences."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    a = (rng.integers(0, 3, n) + (rng.random(n) < 0.4) * y) % 3
    b = np.where(rng.random(n) < 0.5, (a + y) % 4, rng.integers(0, 4, n))
    c = np.where(rng.random(n) < 0.6, (a * b + y) % 5, rng.integers(0, 5, n))
    source = np.where(np.arange(n) < 90, a, b + c * y)
    e = np.where(rng.random(n) < 0.7, source % 4, rng.integers(0, 4, n))
    columns = zip("abce", (a, b, c, e), strict=True)
    X = pd.DataFrame({name: np.array(list("pqrst"), dtype=object)[codes] for name, codes in columns})
    return X.mask(rng.random(X.shape) < gaps, None), np.array(["x", "y", "z"])[y]


def close(left, right):
    map_leaves(lambda p, q: assert_allclose(p, q, rtol=1e-9, atol=1e-9), left, right)


@MODELS
@pytest.mark.parametrize("gaps", [0.0, 0.1])
class TestExactArithmetic:
    def test_rows_in_parts_are_rows_at_once(self, estimator, gaps):
        X, y = words(gaps=gaps)
        whole = clone(estimator).set_params(rule="ml").fit(X, y)
        parts = clone(whole)
        for rows in (slice(0, 90), slice(90, 96), slice(96, 200), slice(200, None)):
            parts.partial_fit(X[rows], y[rows], classes=["x", "y", "z"])
        assert parts.fitted_.model.structure == whole.fitted_.model.structure
        close(parts.parameters_, whole.parameters_)
        close(parts.data_statistics_, whole.data_statistics_)

    def test_levels_in_later_rows(self, estimator, gaps):
        X, y = words(gaps=gaps)
        late = X["c"].eq("t").to_numpy(dtype=bool) | X["a"].eq("p").to_numpy(dtype=bool)
        order = np.argsort(late, kind="stable")
        X, y, cut = X.iloc[order], y[order], int((~late).sum())
        whole = clone(estimator).set_params(rule="ml").fit(X, y)
        parts = clone(whole).partial_fit(X[:cut], y[:cut], classes=["x", "y", "z"])
        close(parts.partial_fit(X[cut:], y[cut:]).parameters_, whole.parameters_)

    def test_models_are_added_and_rows_forgotten(self, estimator, gaps):
        X, y = words(gaps=gaps)
        whole = clone(estimator).set_params(rule="ml").fit(X, y)
        north, south = (clone(whole).fit(X[rows], y[rows]) for rows in (slice(0, 90), slice(90, None)))
        close(north.merge(south).parameters_, whole.parameters_)
        close(whole.forget(X[:90], y[:90]).parameters_, south.parameters_)

    def test_folds_in_one_pass_are_folds_the_long_way(self, estimator, gaps):
        X, y = words(gaps=gaps)
        model = clone(estimator).set_params(rule="ml")
        folds = StratifiedKFold(4, shuffle=True, random_state=0)
        quick = cb.cross_validate_closed_form(model, X, y, cv=folds)
        for train, test in folds.split(X, y):
            slow = clone(model).fit(X.iloc[train], y[train])
            found = slow.predict_log_proba(X.iloc[test])
            assert_allclose(quick.log_probability[test], found, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("rule", ["ml", "map", "rc", "tm", "dfe", "gdt", "em", "gd"])
@MODELS
def test_every_rule_learns(estimator, rule):
    X, y = words(gaps=0.05)
    model = clone(estimator).set_params(rule=rule, max_iter=8).fit(X, y)
    assert model.score(X, y) > 0.55
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    explained = model.explain(X[:30])
    assert_allclose(explained.contributions.sum(axis=1), explained.log_odds)


def test_calibration_raises_the_conditional_likelihood():
    X, y = words(1500)
    for model in (cb.KDependenceBayes(), cb.AODE()):
        objective = model.fit(X, y).history_["objective"]
        assert objective[model.best_iter_] > objective[0]


def test_two_parents_see_what_one_does_not():
    """The class is the parity of three columns."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(2000, 3))
    y = X.sum(axis=1) % 2
    X, y = X.astype(str).astype(object), np.where(rng.random(2000) < 0.05, 1 - y, y)
    two, one = (cb.KDependenceBayes(max_parents=most, edges=AllEdges()).fit(X, y) for most in (2, 1))
    assert two.score(X, y) > 0.9
    assert max(one.score(X, y), cb.AODE().fit(X, y).score(X, y)) < 0.6


@MODELS
class TestMixedTables:
    def test_kinds_are_in_the_schema(self, estimator):
        penguins = load_penguins()
        model = clone(estimator).set_params(kinds={"year": "categorical", "body_mass_g": "gaussian"})
        model.fit(penguins.data, penguins.target)
        kinds = {column.name: column.kind for column in model.schema_.columns}
        assert kinds["island"] == kinds["year"] == kinds["sex"] == "categorical"
        assert kinds["body_mass_g"] == "gaussian"
        assert kinds["bill_length_mm"] == "binned"
        assert model.score(penguins.data, penguins.target) > 0.96

    def test_generative_uses(self, estimator):
        penguins = load_penguins()
        model = clone(estimator).fit(penguins.data, penguins.target)
        rows, classes = model.sample(50, y="Gentoo", given={"sex": "male"}, random_state=0)
        assert set(rows["sex"]) == {"male"}
        assert set(classes) == {"Gentoo"}
        assert np.isfinite(model.score_samples(rows)).all()
        assert not model.fill(penguins.data).isna().to_numpy().any()

    def test_unseen_levels_and_empty_rows_have_the_posterior_of_the_prior(self, estimator):
        model = clone(estimator).fit(*words())
        strange = pd.DataFrame({name: ["never seen", None] for name in "abce"})
        prior = np.exp(model.class_log_prior_)
        assert_allclose(model.predict_proba(strange), [prior, prior], atol=1e-12)
        assert_allclose(model.score_samples(strange), 0.0, atol=1e-12)

    def test_one_column_is_naive_bayes(self, estimator):
        X, y = words()
        model = clone(estimator).set_params(rule="ml").fit(X[["b"]], y)
        plain = cb.NaiveBayes(rule="ml").fit(X[["b"]], y)
        assert_allclose(model.predict_proba(X[["b"]]), plain.predict_proba(X[["b"]]))


def wide(n=200, d=40):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, d))
    X[:, :4] += (2 * y - 1)[:, None]
    return pd.DataFrame(X).add_prefix("x"), y


@pytest.mark.parametrize(
    ("estimator", "module", "name"),
    [
        (cb.KDependenceBayes(max_parents=1), tree_augmented, "MOST_IN_TREE"),
        (cb.KDependenceBayes(), k_dependence, "MOST_IN_NETWORK"),
        (cb.AODE(), aode, "MOST_AVERAGED"),
    ],
    ids=str,
)
def test_of_many_columns_those_that_depend_on_the_class_are_joined(monkeypatch, estimator, module, name):
    X, y = wide()
    every = clone(estimator).fit(X, y)
    assert "without parent" not in str(every.schema_)
    monkeypatch.setattr(module, name, (8, 4))
    monkeypatch.setattr(tree_augmented, "LARGEST_TABLES", 100_000)
    model = clone(estimator).fit(X, y)
    alone = {line.split()[0] for line in str(model.schema_).splitlines() if "without parent" in line}
    assert len(alone) >= 32
    assert not alone & {"x0", "x1", "x2", "x3"}
    assert model.score(X, y) > 0.9
    assert np.isfinite(model.score_samples(X)).all()
    assert model.sample(3, random_state=0)[0].shape == (3, 40)


@pytest.mark.parametrize("estimator", [cb.KDependenceBayes(rule="ml"), cb.AODE(rule="ml")], ids=str)
def test_thousands_of_columns(estimator):
    X, y = wide(60, 4000)
    assert estimator.fit(X, y).score(X, y) > 0.9


def test_edges_and_super_parents():
    X, y = words(2000)
    model = cb.KDependenceBayes(rule="ml").fit(X, y)
    information = [edge.information for edge in model.edges_]
    assert information == sorted(information, reverse=True)
    children = [edge.child for edge in model.edges_]
    assert max(children.count(child) for child in children) == 2
    assert cb.AODE(rule="ml").fit(X, y).super_parents_ == list("abce")
    frequent = cb.AODE(rule="ml", least_rows=450.0).fit(X, y)
    assert frequent.super_parents_ == list("abe")
    named = X.assign(name=[f"row {i}" for i in range(len(X))])
    assert cb.AODE(rule="ml", kinds={"name": "categorical"}).fit(named, y).super_parents_ == list("abce")


@pytest.mark.parametrize(("rule", "divides"), [("ml", False), ("map", False), ("rc", True), ("gd", True)])
def test_aode_divides_rows_under_rules_with_steps(rule, divides):
    model = cb.AODE(rule=rule, max_iter=2, stop=None).fit(*words())
    assert model.fitted_.model.families["stars"].divides_rows == divides


def test_weights_are_repetitions():
    X, y = words()
    times = np.random.default_rng(5).integers(0, 3, len(y))
    for model in (cb.KDependenceBayes(), cb.AODE()):
        weighted = clone(model).fit(X, y, sample_weight=times)
        repeated = clone(model).fit(X.loc[X.index.repeat(times)], np.repeat(y, times))
        assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-7, atol=1e-9)


def test_members_of_an_ensemble():
    X, y = words(600)
    members = [("kdb", cb.KDependenceBayes()), ("aode", cb.AODE())]
    model = cb.BayesClassifier(families=["kernel", *members], cv=2).fit(X, y)
    assert set(model.weights_) >= {"kernel", "kdb", "aode"}
    assert_array_equal(model.predict_proba(X).shape, (600, 3))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (cb.KDependenceBayes(max_parents=3), "max_parents must be 1 or 2"),
        (cb.KDependenceBayes(max_parents=0), "max_parents"),
        (cb.KDependenceBayes(max_parents=1.5), "max_parents"),
        (cb.KDependenceBayes(edges=SignificantEdges), "edges must be"),
        (cb.KDependenceBayes(edges="all"), "edges must be"),
        (cb.KDependenceBayes(back_off=-1.0), "back_off"),
        (cb.KDependenceBayes(max_cells=0), "max_cells"),
        (cb.KDependenceBayes(n_bins=4), "n_bins needs discretize"),
        (cb.AODE(least_rows=-1.0), "least_rows"),
        (cb.AODE(back_off=np.inf), "back_off"),
        (cb.AODE(max_cells=0), "max_cells"),
        (cb.AODE(discretize="no"), "discretize must be"),
        (cb.AODE(bandwidth=-1.0), "bandwidth"),
        (cb.AODE(kinds={"a": "binned"}), "cannot be 'binned'"),
    ],
    ids=str,
)
def test_invalid_parameters_are_refused(estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(*words())
