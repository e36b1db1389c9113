"""TreeAugmentedNB: exact arithmetic whatever the tree, tables of mixed columns, bad input, edges and their picture."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

import calibayes as cb
from calibayes.core.named_arrays import map_leaves
from calibayes.datasets import load_penguins
from calibayes.encoders import AdaptiveBins, ByColumnType, Levels
from calibayes.estimators import tree_augmented
from calibayes.families import (
    AllEdges,
    InCells,
    InformativeEdges,
    SignificantEdges,
    Tree,
    TreeCovariance,
    tree_structures,
)
from calibayes.plots import plot_tree
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.table import Table

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OPTIONS = [
    {},
    {"per_class": True},
    {"edges": AllEdges()},
    {"edges": InformativeEdges(0.02), "per_class": True},
]
TREES = pytest.mark.parametrize("options", OPTIONS, ids=str)


def words(n=400, seed=0, gaps=0.0):
    """Dependent columns of strings; the first rows and the last class have other dependences."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    a = (rng.integers(0, 3, n) + (rng.random(n) < 0.4) * y) % 3
    b = np.where(rng.random(n) < 0.5, (a + y) % 4, rng.integers(0, 4, n))
    c = np.where(rng.random(n) < 0.6, (b + (y == 0)) % 5, rng.integers(0, 5, n))
    source = np.where(np.arange(n) < 90, a, np.where(y == 2, c, b))
    e = np.where(rng.random(n) < 0.7, source % 4, rng.integers(0, 4, n))
    columns = zip("abce", (a, b, c, e), strict=True)
    X = pd.DataFrame({name: np.array(list("pqrst"), dtype=object)[codes] for name, codes in columns})
    return X.mask(rng.random(X.shape) < gaps, None), np.array(["x", "y", "z"])[y]


def close(left, right):
    map_leaves(lambda p, q: assert_allclose(p, q, rtol=1e-9, atol=1e-9), left, right)


@TREES
@pytest.mark.parametrize("rule", ["ml", "map"])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
class TestExactArithmetic:
    def test_rows_in_parts_are_rows_at_once(self, options, rule, gaps):
        X, y = words(gaps=gaps)
        whole = cb.TreeAugmentedNB(rule=rule, **options).fit(X, y)
        parts = cb.TreeAugmentedNB(rule=rule, **options)
        trees = set()
        for rows in (slice(0, 90), slice(90, 96), slice(96, 200), slice(200, None)):
            parts.partial_fit(X[rows], y[rows], classes=["x", "y", "z"])
            trees.add(parts.fitted_.model.structure)
        assert len(trees) > 1  # further rows changed the tree
        assert parts.edges_ == whole.edges_
        close(parts.parameters_, whole.parameters_)
        close(parts.data_statistics_, whole.data_statistics_)

    def test_levels_in_later_rows(self, options, rule, gaps):
        X, y = words(gaps=gaps)
        late = X["c"].eq("t").to_numpy(dtype=bool) | X["a"].eq("p").to_numpy(dtype=bool)
        order = np.argsort(late, kind="stable")
        X, y, cut = X.iloc[order], y[order], int((~late).sum())
        whole = cb.TreeAugmentedNB(rule=rule, **options).fit(X, y)
        parts = cb.TreeAugmentedNB(rule=rule, **options).partial_fit(
            X[:cut], y[:cut], classes=["x", "y", "z"]
        )
        close(parts.partial_fit(X[cut:], y[cut:]).parameters_, whole.parameters_)

    def test_models_are_added_and_rows_forgotten(self, options, rule, gaps):
        X, y = words(gaps=gaps)
        whole = cb.TreeAugmentedNB(rule=rule, **options).fit(X, y)
        north, south = (clone(whole).fit(X[rows], y[rows]) for rows in (slice(0, 90), slice(90, None)))
        assert north.fitted_.model.structure != whole.fitted_.model.structure
        close(north.merge(south).parameters_, whole.parameters_)
        close(whole.forget(X[:90], y[:90]).parameters_, south.parameters_)

    def test_folds_in_one_pass_are_folds_the_long_way(self, options, rule, gaps):
        X, y = words(gaps=gaps)
        X.loc[3, "a"] = "once"  # a level of one row: its fold has never seen it
        weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
        model = cb.TreeAugmentedNB(rule=rule, **options)
        folds = StratifiedKFold(4, shuffle=True, random_state=0)
        quick = cb.cross_validate_closed_form(model, X, y, cv=folds, sample_weight=weight)
        for train, test in folds.split(X, y):
            slow = clone(model).fit(X.iloc[train], y[train], sample_weight=weight[train])
            assert_allclose(
                quick.log_probability[test], slow.predict_log_proba(X.iloc[test]), rtol=1e-8, atol=1e-8
            )


@TREES
def test_weights_are_repetitions(options):
    X, y = words()
    times = np.random.default_rng(5).integers(0, 3, len(y))
    weighted = cb.TreeAugmentedNB(**options).fit(X, y, sample_weight=times)
    repeated = cb.TreeAugmentedNB(**options).fit(X.loc[X.index.repeat(times)], np.repeat(y, times))
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rule", ["ml", "map", "rc", "tm", "dfe", "gdt", "em", "gd"])
@TREES
def test_every_rule_learns(options, rule):
    X, y = words(gaps=0.05)
    model = cb.TreeAugmentedNB(rule=rule, max_iter=8, **options).fit(X, y)
    assert model.score(X, y) > 0.55
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert_allclose(model.explain(X).contributions.sum(axis=1), model.explain(X).log_odds)


def test_calibration_decides_better_than_likelihood():
    X, y = words(3000)
    likely, calibrated = (cb.TreeAugmentedNB(rule=rule).fit(X[:1500], y[:1500]) for rule in ("ml", "rc"))
    assert calibrated.history_["objective"][-1] > calibrated.history_["objective"][0]
    assert calibrated.score(X[1500:], y[1500:]) >= likely.score(X[1500:], y[1500:]) - 0.005


class TestMixedTables:
    def test_kinds_are_in_the_schema(self):
        penguins = load_penguins()
        model = cb.TreeAugmentedNB(kinds={"year": "categorical", "body_mass_g": "gaussian"})
        model.fit(penguins.data, penguins.target)
        kinds = {column.name: column.kind for column in model.schema_.columns}
        assert kinds["island"] == kinds["year"] == kinds["sex"] == "categorical"
        assert kinds["body_mass_g"] == "gaussian"
        assert kinds["bill_length_mm"] == "binned"
        assert "body_mass_g" not in {name for edge in model.edges_ for name in edge[:2]}
        assert model.score(penguins.data, penguins.target) > 0.97

    @pytest.mark.parametrize(
        "options", [{}, {"discretize": AdaptiveBins(), "bandwidth": InCells(2.0)}], ids=str
    )
    def test_generative_uses(self, options):
        penguins = load_penguins()
        model = cb.TreeAugmentedNB(**options).fit(penguins.data, penguins.target)
        rows, classes = model.sample(50, y="Gentoo", given={"sex": "male"}, random_state=0)
        assert set(rows["sex"]) == {"male"}
        assert set(classes) == {"Gentoo"}
        assert np.isfinite(model.score_samples(rows)).all()
        filled = model.fill(penguins.data)
        assert not filled.isna().to_numpy().any()

    def test_densities_integrate_to_one_in_the_units_of_the_columns(self):
        rng = np.random.default_rng(0)
        y = np.arange(400) % 2
        x = rng.normal(size=400) * 10 + 30 * y
        X = np.column_stack([x, x + rng.normal(size=400) * 5])
        model = cb.TreeAugmentedNB(rule="ml", discretize="quantile", n_bins=6).fit(X, y)
        assert len(model.edges_) == 1
        low, high = X.min(axis=0), X.max(axis=0)
        points = rng.uniform(low, high, size=(100_000, 2))
        volume = np.prod(high - low)
        assert np.exp(model.score_samples(points)).mean() * volume == pytest.approx(1.0, abs=0.05)
        scaled = cb.TreeAugmentedNB(rule="ml", discretize="quantile", n_bins=6).fit(X * 100, y)
        assert_allclose(scaled.score_samples(X * 100), model.score_samples(X) - 2 * np.log(100), rtol=1e-9)

    def test_gaussian_trees_are_a_shape(self):
        penguins = load_penguins()
        family = cb.families.Gaussian(TreeCovariance(), prior="auto")
        model = cb.GenerativeClassifier(families=[("sizes", family, cb.numeric)])
        assert model.fit(penguins.data, penguins.target).score(penguins.data, penguins.target) > 0.97
        reasons = model.explain(penguins.data)
        assert reasons.names == ("class prior", *penguins.data.columns)
        left_out = ~np.isin(penguins.data.columns, penguins.data.select_dtypes("number").columns)
        assert left_out.sum() == 2
        assert_array_equal(reasons.contributions[:, 1:][:, left_out], 0.0)


@pytest.mark.parametrize("search", [cb.families.OneTree(), cb.families.PerClass()])
def test_gaussian_trees_are_exact_in_parts(search):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 4))
    X[:, 1:] += X[:, :-1] * np.where(y == 1, 1.0, -0.5)[:, None]
    X[:40, 3] += 3 * X[:40, 0]  # the first rows have another tree
    families = [("columns", cb.families.Gaussian(TreeCovariance(search)), cb.every)]
    model = cb.GenerativeClassifier(families=families, rule="ml")
    whole = clone(model).fit(X, y)
    parts = clone(model).partial_fit(X[:40], y[:40], classes=[0, 1])
    assert (
        parts.fitted_.model.families["columns"].shape.parents
        != whole.fitted_.model.families["columns"].shape.parents
    )
    parts.partial_fit(X[40:], y[40:])
    assert_allclose(parts.predict_log_proba(X), whole.predict_log_proba(X), rtol=1e-8, atol=1e-8)
    rest = clone(model).fit(X[40:], y[40:])
    assert_allclose(whole.forget(X[:40], y[:40]).predict_log_proba(X), rest.predict_log_proba(X), atol=1e-8)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    quick = cb.cross_validate_closed_form(model, X, y, cv=folds)
    for train, test in folds.split(X, y):
        slow = clone(model).fit(X[train], y[train])
        assert_allclose(quick.log_probability[test], slow.predict_log_proba(X[test]), atol=1e-8)


class TestJoined:
    def table(self):
        return Table(
            ("age", "town", "size"),
            (
                np.array([1.0, 2.0, np.nan, 4.0, 9.0, 9.0]),
                np.array(["n", "s", None, "s", "n", "n"], dtype=object),
                np.array([10, 20, 30, 40, 50, 60]),
            ),
        )

    def test_columns_keep_their_order(self):
        joined = ByColumnType().fit(summary_of(self.table(), np.ones(6)), [0, 1, 2])
        codes = joined.encode(self.table())
        assert_array_equal(codes[:, 1], [0, 1, -1, 1, 0, 0])
        assert codes[2, 0] == -1
        assert joined.layout()["levels"] == (4, 2, 5)
        assert joined.layout()["ordered"] == (4, 0, 5)
        assert len(joined.layout()["log_volume"]) == 11
        assert joined.remarks()[1] == "2 levels"
        age, town, size = joined.decode(np.where(codes < 0, 0, codes), None)
        assert_array_equal(town, ["n", "s", "n", "s", "n", "n"])
        assert age[4] == 9.0
        assert abs(size[0] - 10) < 10

    def test_parts_determine_dependence_and_levels(self):
        joined = ByColumnType().fit(summary_of(self.table(), np.ones(6)), [2, 1])
        assert "bins of numbers" in joined.data_dependence
        assert joined.extend(self.table())[1] is None
        more = Table(("age", "town", "size"), (np.ones(1), np.array(["e"], dtype=object), np.array([10])))
        grown, codes = joined.extend(more)
        assert grown.layout()["levels"] == (5, 3)
        assert_array_equal(codes[1], [1, 2])
        assert_array_equal(codes[0], np.arange(5))
        assert [None if c is None else len(c) for c in joined.unite(grown)[1:]] == [2, None]
        fewer, codes = joined.restricted_to(np.array([1.0, 1, 1, 1, 1, 0, 1]))
        assert fewer.layout()["levels"] == (5, 1)
        assert_array_equal(codes[1], [-1, 0])

    def test_a_table_of_one_kind(self):
        assert len(ByColumnType().fit(summary_of(self.table(), np.ones(6)), [1]).parts) == 1
        assert (
            ByColumnType(others=Levels()).fit(summary_of(self.table(), np.ones(6)), [1]).data_dependence == ""
        )


class TestBadInput:
    def test_one_column(self):
        X, y = words()
        model, plain = (kind(rule="ml").fit(X[["b"]], y) for kind in (cb.TreeAugmentedNB, cb.NaiveBayes))
        assert model.edges_ == []
        assert_allclose(model.predict_proba(X[["b"]]), plain.predict_proba(X[["b"]]))
        assert plot_tree(model).get_title("left") == "No column depends on another"

    def test_a_constant_column_has_no_edge(self):
        X, y = words()
        with_constant = X.assign(same="always")
        model = cb.TreeAugmentedNB(edges=AllEdges()).fit(with_constant, y)
        assert "same" not in {name for edge in model.edges_ for name in edge[:2]}
        assert_allclose(
            model.predict_proba(with_constant),
            cb.TreeAugmentedNB(edges=AllEdges()).fit(X, y).predict_proba(X),
            atol=1e-9,
        )

    def test_columns_of_thousands_of_levels_have_no_edge(self):
        X, y = words(6000)
        X["id"] = [f"row {i}" for i in range(len(X))]
        model = cb.TreeAugmentedNB(rule="ml", kinds={"id": "categorical"}).fit(X, y)
        assert "id" not in {name for edge in model.edges_ for name in edge[:2]}
        assert model.score(X, y) > 0.6

    def test_too_many_pairs_are_refused_by_the_family_and_reduced_by_the_estimator(self, monkeypatch):
        for module in (tree_structures, tree_augmented):
            monkeypatch.setattr(module, "LARGEST_TABLES", 2**22)
        monkeypatch.setattr(tree_augmented, "MOST_IN_TREE", (100, 60, 20))
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, 30, size=(500, 120)).astype(str).astype(object), np.arange(500) % 2
        tree = [("tree", Tree(), slice(None), Levels())]
        with pytest.raises(ValueError, match="fewer bins, pooled levels or a smaller max_cells help"):
            cb.GenerativeClassifier(families=tree, rule="ml").fit(X, y)
        assert cb.TreeAugmentedNB(rule="ml").fit(X, y).score(X, y) > 0.9

    def test_unseen_levels_and_empty_rows_have_the_posterior_of_the_prior(self):
        X, y = words()
        model = cb.TreeAugmentedNB().fit(X, y)
        strange = pd.DataFrame({name: ["never seen", None] for name in "abce"})
        prior = np.exp(model.class_log_prior_)
        assert_allclose(model.predict_proba(strange), [prior, prior], atol=1e-12)
        assert_allclose(model.score_samples(strange), 0.0, atol=1e-12)

    @TREES
    def test_a_class_without_rows_for_a_level(self, options):
        X, y = words()
        X.loc[y == "x", "b"] = "p"
        other = X.assign(b="q")
        model = cb.TreeAugmentedNB(**options).fit(X, y)
        assert (model.predict(other) != "x").all()
        strict = cb.TreeAugmentedNB(**options, alpha=0.0, back_off=0.0).fit(X, y)
        assert np.isfinite(strict.predict_log_proba(other)).all()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"edges": SignificantEdges}, "edges must be"),
            ({"edges": "all"}, "edges must be"),
            ({"back_off": -1.0}, "back_off"),
            ({"max_cells": 0}, "max_cells"),
            ({"discretize": "no"}, "discretize must be"),
            ({"kinds": {"a": "tree"}}, "unknown kind"),
            ({"kinds": {"a": "binned"}}, "cannot be 'binned'"),
            ({"alpha": -1.0}, "alpha"),
            ({"bandwidth": -1.0}, "bandwidth"),
        ],
    )
    def test_invalid_parameters_are_refused(self, options, message):
        with pytest.raises(ValueError, match=message):
            cb.TreeAugmentedNB(**options).fit(*words())

    @pytest.mark.parametrize(
        "make", [lambda: InformativeEdges(-1.0), lambda: SignificantEdges(0.0), lambda: Tree(back_off=np.nan)]
    )
    def test_invalid_components_are_refused(self, make):
        with pytest.raises(ValueError, match=r"InformativeEdges|SignificantEdges|back_off"):
            make()


def test_edges_are_sorted_by_information_and_drawn(tmp_path):
    X, y = words()
    model = cb.TreeAugmentedNB().fit(X, y)
    information = [edge.information for edge in model.edges_]
    assert information == sorted(information, reverse=True)
    axes = plot_tree(model)
    axes.figure.savefig(tmp_path / "tree.png")
    assert {text.get_text() for text in axes.texts} >= set("abce")
    assert len(axes.lines) == len(model.edges_) == 3
    per_class = cb.TreeAugmentedNB(per_class=True, edges=AllEdges()).fit(X, y)
    assert len(plot_tree(per_class, label="y").lines) == 3
    with pytest.raises(ValueError, match="give one of"):
        plot_tree(per_class)
