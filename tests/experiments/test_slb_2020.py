"""The entry of slb-2020: its generators, folds and tables."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.naive_bayes import GaussianNB

from calibayes import LogDensityFeatures
from calibayes.dependence import HSIC
from calibayes.experiments import Settings, chosen
from calibayes.experiments.protocols.balanced_folds import BalancedFolds, balanced_error
from calibayes.experiments.protocols.data_entry import Cleaning, DataEntry
from calibayes.experiments.protocols.density_rivals import KernelDensityBayes, SpanningTrees
from calibayes.experiments.protocols.networks import COLUMNS, ROOTS, Forests, Networks, NetworkTrials, sample
from calibayes.experiments.published import published
from calibayes.experiments.results.cells import key
from calibayes.experiments.results.fold_table import FoldTable
from calibayes.experiments.results.network_table import NetworkTable
from calibayes.experiments.signed_ranks import not_worse


def test_every_table_is_there_with_its_published_rows():
    assert [experiment.name for _, experiment in chosen("slb-2020")] == ["4", "4-balanced", "1", "2", "3"]
    assert [len(published("slb-2020", name)) for name in "1234"] == [20, 40, 20, 16]
    assert published("slb-2020", "4")["climate"]["SLB"] == 25.2


def test_parents_come_first():
    rng = np.random.default_rng(0)
    for world, most in ((Forests(), 1), (Networks(), 3)):
        for graph in world.graphs(rng):
            seen = set()
            for node, parents in graph:
                assert set(parents) <= seen
                assert len(parents) in (0, most)
                seen.add(node)
            assert len(seen) == COLUMNS


def test_a_third_of_the_nodes_is_shared():
    first, second = Networks(shared=1 / 3).graphs(np.random.default_rng(0))
    same = sum(a == b for a, b in zip(first[ROOTS:], second[ROOTS:], strict=True))
    assert 3 <= same <= 5
    apart = Networks().graphs(np.random.default_rng(0))
    assert sum(a == b for a, b in zip(apart[0][ROOTS:], apart[1][ROOTS:], strict=True)) <= 2


@pytest.mark.parametrize("complex", [False, True])
def test_a_child_varies_about_its_parent(complex):
    rows = sample([(0, []), (1, [0])], 20_000, complex, np.random.default_rng(0))
    gap = rows[:, 1] - rows[:, 0]
    assert_allclose(gap.mean(), 0, atol=0.05)
    # half Student's t with 5 degrees of freedom, variance 5/3; half two normals one apart, variance 2
    assert_allclose(gap.var(), 0.5 * 5 / 3 + 0.5 * 2 if complex else 1, rtol=0.05)


def test_balanced_errors_are_means_over_classes():
    assert balanced_error(np.array([1, 0, 0, 0, 1]), np.array([0, 0, 0, 0, 1])) == (0.25 + 1) / 2
    found = BalancedFolds(DataEntry("penguins", "penguins"), Cleaning(), GaussianNB(), seed=0).run()
    assert len(found["balanced"]) == 5
    assert max(found["balanced"]) < 0.1


def test_signed_ranks_keep_the_best_and_its_like():
    rng = np.random.default_rng(0)
    base = rng.random(15)
    assert not_worse({"worse": base + 0.1 + 0.01 * rng.random(15), "best": base, "like": base[::-1]}) == [
        "best",
        "like",
    ]


def test_kernel_trees_find_the_edges_of_a_chain():
    rng = np.random.default_rng(0)
    rows = np.cumsum(rng.normal(size=(300, 4)), axis=1)
    model = LogDensityFeatures(measure=HSIC(), selection=SpanningTrees()).fit(rows, np.arange(300) % 2)
    edges = {tuple(pair) for pair in model.densities_.pairs.T.tolist()}
    assert edges == {(0, 1), (1, 2), (2, 3)}


def test_naive_bayes_and_trees_of_kernel_densities_decide():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 3)) + y[:, None]
    X[:, 2] = X[:, 1] * (2 * y - 1) + 0.3 * X[:, 2]
    naive, tree = (
        KernelDensityBayes(trees=trees).fit(X[:150], y[:150]).score(X[150:], y[150:])
        for trees in (False, True)
    )
    assert 0.6 < naive < tree


def test_the_tables_report():
    nothing = {"NB": GaussianNB()}
    table = NetworkTable(
        "slb-2020", "1", "forests", {"normal": Forests()}, nothing, training_rows=(200,), trials=2
    )
    settings = Settings()
    results = {key(cell): cell.run() for cell in table.cells(settings)}
    assert [row.label for row in table.report(results, settings).rows] == [
        "normal balanced 200",
        "normal imbalanced 200",
    ]
    assert table.cells(Settings(datasets=("iris",))) == []
    folds = FoldTable("slb-2020", "4", "none at hand", (), nothing)
    assert folds.report({}, settings).rows == ()


def test_trials_are_the_same_for_the_same_number():
    one = NetworkTrials(Networks(), (("NB", GaussianNB()),), 200, 0.5, (0, 1)).run()["error"]["NB"]
    assert one == NetworkTrials(Networks(), (("NB", GaussianNB()),), 200, 0.5, (0, 1)).run()["error"]["NB"]
    assert one[0] != one[1]
