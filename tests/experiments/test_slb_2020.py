"""The experiments of slb-2020: random networks, folds and tables."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.naive_bayes import GaussianNB

from calibayes import LogDensityFeatures
from calibayes.dependence import HSIC
from calibayes.reproduction.catalog import select_experiments
from calibayes.reproduction.claims import not_significantly_worse
from calibayes.reproduction.experiment import Settings, task_key
from calibayes.reproduction.papers.slb_2020 import FoldTable, NetworkFigure, NetworkTable
from calibayes.reproduction.procedures import BalancedFolds, Cleaning, DataEntry, balanced_error
from calibayes.reproduction.result_tables import box_summary, published_table
from calibayes.reproduction.simulations import (
    COLUMNS,
    ROOTS,
    Forests,
    KernelDensityBayes,
    Networks,
    NetworkTrials,
    SpanningTrees,
    sample,
)


def test_every_table_has_its_published_rows():
    assert [experiment.name for _, experiment in select_experiments("slb-2020")] == [
        "4",
        "4-balanced",
        "1",
        "2",
        "3",
        *(f"figure-{number}" for number in range(1, 13)),
    ]
    assert [len(published_table("slb-2020", name)) for name in "1234"] == [20, 40, 20, 16]
    assert published_table("slb-2020", "4")["climate"]["SLB"] == 25.2


def test_graphs_are_in_topological_order():
    rng = np.random.default_rng(0)
    for sampler, parent_count in ((Forests(), 1), (Networks(), 3)):
        for graph in sampler.graphs(rng):
            earlier = set()
            for node, parents in graph:
                assert set(parents) <= earlier
                assert len(parents) in (0, parent_count)
                earlier.add(node)
            assert len(earlier) == COLUMNS


def test_a_third_of_the_nodes_is_shared():
    first, second = Networks(shared=1 / 3).graphs(np.random.default_rng(0))
    same = sum(a == b for a, b in zip(first[ROOTS:], second[ROOTS:], strict=True))
    assert 3 <= same <= 5
    independent = Networks().graphs(np.random.default_rng(0))
    assert sum(a == b for a, b in zip(independent[0][ROOTS:], independent[1][ROOTS:], strict=True)) <= 2


@pytest.mark.parametrize("complex", [False, True])
def test_the_parent_is_the_mean_of_its_child(complex):
    rows = sample([(0, []), (1, [0])], 20_000, complex, np.random.default_rng(0))
    noise = rows[:, 1] - rows[:, 0]
    assert_allclose(noise.mean(), 0, atol=0.05)
    # half Student's t with 5 degrees of freedom, variance 5/3; half two normals one apart, variance 2
    assert_allclose(noise.var(), 0.5 * 5 / 3 + 0.5 * 2 if complex else 1, rtol=0.05)


def test_balanced_errors_are_means_over_classes():
    assert balanced_error(np.array([1, 0, 0, 0, 1]), np.array([0, 0, 0, 0, 1])) == (0.25 + 1) / 2
    errors = BalancedFolds(DataEntry("penguins", "penguins"), Cleaning(), GaussianNB(), seed=0).run()[
        "balanced"
    ]
    assert len(errors) == 5
    assert max(errors) < 0.1


def test_signed_ranks_keep_the_best_and_those_not_significantly_worse():
    rng = np.random.default_rng(0)
    base = rng.random(15)
    assert not_significantly_worse(
        {"worse": base + 0.1 + 0.01 * rng.random(15), "best": base, "like": base[::-1]}
    ) == [
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


def test_network_and_fold_tables_make_reports():
    models = {"NB": GaussianNB()}
    table = NetworkTable(
        "slb-2020", "1", "forests", {"normal": Forests()}, models, training_rows=(200,), trials=2
    )
    settings = Settings()
    results = {task_key(task): task.run() for task in table.tasks(settings)}
    assert [row.label for row in table.report(results, settings).rows] == [
        "normal balanced 200",
        "normal imbalanced 200",
    ]
    assert table.tasks(Settings(datasets=("iris",))) == []
    folds = FoldTable("slb-2020", "4", "no data set", (), models)
    assert folds.report({}, settings).rows == ()


def test_the_twelve_figures_are_the_conditions_of_two_tables():
    """A figure has the errors of its condition, and shares the computed results with its table."""
    figures = [experiment for _, experiment in select_experiments("slb-2020") if "figure" in experiment.name]
    settings = Settings(trials=3)
    keys = [{task_key(task) for task in figure.tasks(settings)} for figure in figures]
    tables = [select_experiments("slb-2020", name)[0][1] for name in "12"]
    assert set().union(*keys) == {task_key(task) for table in tables for task in table.tasks(settings)}
    assert sum(map(len, keys)) == len(set().union(*keys))
    models = {"one": GaussianNB(), "two": GaussianNB(var_smoothing=1.0)}
    table = NetworkTable(
        "slb-2020", "1", "forests", {"complex": Forests(complex=True)}, models, (200, 400), 3
    )
    figure = NetworkFigure("slb-2020", "figure-4", "boxes", table, "complex imbalanced")
    results = {task_key(task): task.run() for task in figure.tasks(settings)}
    report = figure.report(results, settings)
    assert [row.label for row in report.rows][::4] == ["200 rows, mean", "400 rows, mean"]
    errors = figure.results_by_group(results, settings)["complex imbalanced 400"][0]["error"]["two"]
    assert_allclose(report.rows[6].pairs["two"].ours, 100 * np.median(errors))
    assert list(report.figures[0].numbers.panels) == ["200 rows", "400 rows"]


def test_boxes_are_summarized_as_matplotlib_does():
    cbook = pytest.importorskip("matplotlib.cbook")
    sample = np.random.default_rng(0).standard_t(2, size=60)
    (box,) = cbook.boxplot_stats(sample)
    expected = [box["whislo"], box["q1"], box["med"], box["q3"], box["whishi"], *sorted(box["fliers"])]
    assert len(expected) > 5
    assert_allclose(box_summary(sample), expected)


def test_trials_are_reproducible():
    errors = NetworkTrials(Networks(), (("NB", GaussianNB()),), 200, 0.5, (0, 1)).run()["error"]["NB"]
    assert errors == NetworkTrials(Networks(), (("NB", GaussianNB()),), 200, 0.5, (0, 1)).run()["error"]["NB"]
    assert errors[0] != errors[1]
