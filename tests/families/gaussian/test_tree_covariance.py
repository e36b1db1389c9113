"""Gaussians with the covariance of a tree against brute force over all trees."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from calibayes.core.protocols import Layout
from calibayes.families import Gaussian, OneTree, PerClass, TreeCovariance
from calibayes.families.tree_structures import topological_order
from calibayes.testing import FamilyCase
from tests.families.tree.test_tree import K, all_trees, edges_of


def numbers(seed=0, n=400, d=4):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % K
    mixing = rng.normal(size=(K, d, d)) * 0.6 + np.eye(d)
    return np.einsum("nd,nde->ne", rng.normal(size=(n, d)), mixing[labels]) + labels[:, None], labels


@pytest.mark.parametrize("search", [OneTree(), PerClass()])
@pytest.mark.parametrize("seed", range(3))
def test_a_gaussian_tree_is_the_most_likely_one(search, seed):
    x, labels = numbers(seed)
    layout = Layout(("a", "b"), tuple("wxyz"), center=x.mean(axis=0), variance=x.var(axis=0))
    family = Gaussian(TreeCovariance(search)).bind(layout)
    family = family.prepare(family.statistics(x, np.eye(K)[labels]))
    parameters = family.parameters(family.statistics(x, np.eye(K)[labels]))

    def likelihood(edges, c):
        """Of a tree of bivariate and univariate Gaussians: edges over the product of their nodes."""
        class_rows = x[labels == c]
        mean, covariance = class_rows.mean(axis=0), np.cov(class_rows.T, bias=True)
        density = sum(
            multivariate_normal(mean[[i, j]], covariance[np.ix_([i, j], [i, j])]).logpdf(
                class_rows[:, [i, j]]
            )
            for i, j in edges
        )
        degree = np.bincount(np.ravel(edges), minlength=4)
        return np.sum(density) - sum(
            (degree[j] - 1) * multivariate_normal(mean[j], covariance[j, j]).logpdf(class_rows[:, j]).sum()
            for j in range(4)
        )

    by_class = np.array([[likelihood(edges, c) for c in range(K)] for edges in all_trees(4)])
    best = by_class.sum(axis=1).max() if search == OneTree() else by_class.max(axis=0).sum()
    found = np.sum(np.eye(K)[labels] * family.log_density(x, parameters))
    assert found == pytest.approx(best, rel=1e-10)
    for precision, parents in zip(np.linalg.inv(parameters["covariance"]), family.shape.parents, strict=True):
        apart = [pair for pair in combinations(range(4), 2) if pair not in edges_of(parents)]
        assert_allclose([precision[pair] for pair in apart], 0.0, atol=1e-10)


def test_terms_of_a_gaussian_tree_are_regressions_on_the_parent():
    x, labels = numbers()
    layout = Layout(("a", "b"), tuple("wxyz"), center=x.mean(axis=0), variance=x.var(axis=0))
    case = FamilyCase(Gaussian(TreeCovariance()).bind(layout), x, K)
    family = case.prepared()
    parameters = family.parameters(case.start())
    order = np.array(topological_order(family.shape.parents[0]))
    terms = family.conditional_terms(x, parameters, order)
    for j, parent in enumerate(family.shape.parents[0]):
        class_rows = x[labels == 1]
        target = class_rows[:, j]
        given = np.column_stack([np.ones(len(class_rows)), *([class_rows[:, parent]] if parent >= 0 else [])])
        left = target - given @ np.linalg.lstsq(given, target, rcond=None)[0]
        expected = -0.5 * (left**2 / np.var(left) + np.log(2 * np.pi * np.var(left)))
        assert_allclose(terms[labels == 1, 1, j], expected, atol=1e-8)


def test_a_gaussian_tree_does_not_depend_on_the_units_of_the_columns():
    """Not even if products of their variances overflow."""
    x, labels = numbers()

    def parents(columns):
        layout = Layout(("a", "b"), tuple("wxyz"), center=columns.mean(axis=0), variance=columns.var(axis=0))
        family = Gaussian(TreeCovariance(PerClass())).bind(layout)
        return family.prepare(family.statistics(columns, np.eye(K)[labels])).shape.parents

    assert parents(x * np.array([1e90, 1e-90, 1e100, 1.0])) == parents(x)
