"""k-dependence Bayes against brute force: parents from the definitions, all rows, all completions of missing values."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.core.protocols import Layout
from calibayes.families import InformativeEdges, KDependence, SignificantEdges, k_dependence
from calibayes.families.counts import LEAST_SHARE
from calibayes.families.k_dependence import cells_of_triples
from calibayes.kernels import level_pairs, networks
from tests.cases import FAMILIES

K, N, LEVELS = 2, 400, (2, 3, 4, 2, 3)
D = len(LEVELS)


def rows(seed=0, n=N):
    """Five columns, the last three of which depend on two others and the class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, n)
    columns = [(rng.integers(0, 2, n) + (rng.random(n) < 0.2) * labels) % 2, rng.integers(0, 3, n)]
    for j in range(2, D):
        source = columns[j - 1] + columns[j - 2] * (1 + labels)
        columns.append(np.where(rng.random(n) < 0.6, source % LEVELS[j], rng.integers(0, LEVELS[j], n)))
    return np.stack(columns, axis=1), labels


def bound(**options):
    return KDependence(**options).bind(Layout(("a", "b"), tuple("vwxyz"), levels=LEVELS))


def prepared(family, codes, weights):
    return family.prepare(family.structure_statistics(codes, weights))


def fitted(seed=0, **options):
    codes, labels = rows(seed)
    family = prepared(bound(**options), codes, np.eye(K)[labels])
    return family, family.parameters(family.statistics(codes, np.eye(K)[labels])), codes, labels


def conditional_information(left, right, given):
    """Mutual information in nats of two columns given a third, from the definition."""
    total = 0.0
    for g in np.unique(given):
        chosen = given == g
        for a, b in product(np.unique(left), np.unique(right)):
            joint = np.mean(chosen & (left == a) & (right == b))
            if joint > 0:
                margins = np.mean(chosen & (left == a)) * np.mean(chosen & (right == b))
                total += joint * np.log(joint * np.mean(chosen) / margins)
    return total


def parents_by_definition(codes, labels, most):
    """Sahami's search, in which the second parent is chosen given the first, among the columns joined to it."""
    constant = np.zeros(len(labels), dtype=int)
    order = sorted(range(D), key=lambda j: -conditional_information(codes[:, j], labels, constant))
    parents = {}
    for place, j in enumerate(order):
        earlier = order[:place]
        parents[j] = ()
        if earlier:
            first = max(earlier, key=lambda i: conditional_information(codes[:, i], codes[:, j], labels))
            parents[j] = (first,)
            joined = [i for i in earlier if i in parents[first] or first in parents[i]]
            if most == 2 and joined:
                given = labels * 10 + codes[:, first]
                second = max(joined, key=lambda i: conditional_information(codes[:, i], codes[:, j], given))
                parents[j] = (first, second)
    return tuple(parents[j] for j in range(D))


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("seed", range(5))
def test_parents_are_those_of_the_definition(seed, most):
    family, _, codes, labels = fitted(seed, max_parents=most)
    assert family.structure == parents_by_definition(codes, labels, most)
    assert max(len(parents) for parents in family.structure) == most


def test_probabilities_are_shares_of_direct_counts():
    family, parameters, codes, labels = fitted()
    arrays = family.tables.arrays(np.exp(parameters["log_probability"]))
    for j, (parents, table) in enumerate(zip(family.structure, arrays, strict=True)):
        for c, *levels in product(range(K), *(range(LEVELS[i]) for i in (*parents, j))):
            above = (labels == c) & (codes[:, list(parents)] == levels[:-1]).all(axis=1)
            share = np.mean(codes[above, j] == levels[-1]) if above.any() else 1.0 / LEVELS[j]
            # Empty cells have the least share, which the others lack.
            assert table[(c, *levels)] == pytest.approx(share, abs=LEAST_SHARE * LEVELS[j])


def test_the_density_is_the_product_over_the_columns():
    family, parameters, codes, _ = fitted(alpha=0.5)
    arrays = family.tables.arrays(np.exp(parameters["log_probability"]))
    for row, found in zip(codes[:20], family.log_density(codes[:20], parameters), strict=True):
        for c in range(K):
            tables = zip(family.structure, arrays, strict=True)
            terms = [table[(c, *row[list(parents)], row[j])] for j, (parents, table) in enumerate(tables)]
            assert np.exp(found[c]) == pytest.approx(np.prod(terms))


def test_back_off_is_to_one_parent_fewer():
    """The pseudo-rows of a second parent are distributed as given the first, which has pseudo-rows of the class."""
    alpha, rate = 0.5, 5.0
    family, parameters, codes, labels = fitted(alpha=alpha, back_off=rate)
    j = next(j for j, parents in enumerate(family.structure) if len(parents) == 2)
    first, second = family.structure[j]
    size = LEVELS[j]
    table = family.tables.arrays(np.exp(parameters["log_probability"]))[j]

    def share(mask, expected, cells, backed):
        count = np.bincount(codes[mask, j], minlength=size) + alpha / cells + backed * expected
        return count / count.sum()

    for c, a, b in product(range(K), range(LEVELS[first]), range(LEVELS[second])):
        in_class = labels == c
        alone = share(in_class, 0.0, 1, 0.0)
        above = in_class & (codes[:, first] == a)
        with_first = share(above, alone, LEVELS[first], rate)
        both = above & (codes[:, second] == b)
        expected = share(both, with_first, LEVELS[first] * LEVELS[second], rate)
        assert_allclose(table[c, a, b], expected, rtol=1e-12)


def completions(codes):
    """All completions of the missing values of a row."""
    gaps = np.flatnonzero(codes < 0)
    for levels in product(*(range(LEVELS[j]) for j in gaps)):
        row = codes.copy()
        row[gaps] = levels
        yield row


@pytest.mark.parametrize("most", [1, 2])
def test_missing_values_are_summed_over_in_every_pattern(most):
    family, parameters, codes, _ = fitted(max_parents=most, alpha=0.5)
    gaps = np.array(list(product([False, True], repeat=D)))
    holed = np.where(gaps, -1, codes[: len(gaps)])
    posterior = np.random.default_rng(0).dirichlet(np.ones(K), len(holed))
    filled = family.fill(holed, parameters, posterior)
    densities = family.log_density(holed, parameters)
    for row, found, share, cells in zip(holed, densities, posterior, filled, strict=True):
        ways = np.array(list(completions(row)))
        density = np.exp(family.log_density(ways, parameters))
        assert_allclose(np.exp(found), density.sum(axis=0), rtol=1e-10)
        within = density / density.sum(axis=0) @ share  # probability of each way, classes weighted
        for j in np.flatnonzero(row < 0):
            assert cells[j] == np.argmax(np.bincount(ways[:, j], within))
        assert_array_equal(cells[row >= 0], row[row >= 0])


def test_few_rows_at_a_time_give_the_same_sums(monkeypatch):
    family, parameters, codes, _ = fitted(alpha=0.5)
    holed = np.where(np.random.default_rng(0).random(codes.shape) < 0.4, -1, codes)
    expected = family.log_density(holed, parameters)
    monkeypatch.setattr(networks, "CELLS_AT_A_TIME", 20)
    assert_allclose(family.log_density(holed, parameters), expected, rtol=1e-12)


def test_rows_whose_sums_need_too_much_memory_are_refused(monkeypatch):
    family, parameters, codes, _ = fitted(alpha=0.5)
    monkeypatch.setattr(networks, "MOST_CELLS", 10)
    child = next(j for j, parents in enumerate(family.structure) if len(parents) == 2)
    holed = np.where(np.arange(D) != child, -1, codes[:2])
    with pytest.raises(ValueError, match=r"missing values needs a table of \d+ cells.*max_parents=1"):
        family.log_density(holed, parameters)


def test_samples_given_known_values_have_their_conditional_probabilities():
    family, parameters, _, _ = fitted(alpha=0.5)
    for known in ([-1, 2, -1, -1, 1], [-1, -1, -1, 1, -1]):
        given = np.tile(known, (40_000, 1))
        drawn = family.sample(parameters, np.ones(len(given), dtype=int), np.random.default_rng(0), given)
        ways = np.array(list(completions(given[0])))
        probability = np.exp(family.log_density(ways, parameters))[:, 1]
        found = [np.mean((drawn == way).all(axis=1)) for way in ways]
        assert_allclose(found, probability / probability.sum(), atol=0.01)


@pytest.mark.parametrize("levels", [(2, 3, 4, 2, 3), (30, 2, 9, 5, 40), (3, 3)])
def test_triples_are_counted_one_by_one(levels):
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(-1, r, 3000) for r in levels], axis=1).astype(np.int8)
    weights = rng.normal(size=(len(codes), 2))
    counted = level_pairs.column_triples(levels, 2000)
    found = level_pairs.weighted_triples(codes, weights, levels, counted)
    small = [c for c in combinations(range(len(levels)), 3) if np.prod([levels[j] for j in c]) <= 2000]
    assert [tuple(columns) for columns in counted.columns.tolist()] == small
    assert cells_of_triples(levels, 2000) == found.shape[1]
    for columns in small:
        order = columns[::-1]
        table = np.zeros((2, *(levels[j] for j in order)))
        known = (codes[:, list(order)] >= 0).all(axis=1)
        for c in range(2):
            np.add.at(table[c], tuple(codes[known][:, j] for j in order), weights[known, c])
        assert_allclose(level_pairs.triple_table(found, counted, levels, order), table, atol=1e-10)


def test_the_largest_triples_are_left_out_if_all_need_too_much_memory(monkeypatch):
    family = bound()
    sizes = [int(np.prod([LEVELS[j] for j in c])) for c in combinations(range(D), 3)]
    assert sorted(np.diff(family.triples.first).tolist()) == sorted(sizes)
    few = sum(size for size in sizes if size <= 18)
    for most, largest in ((2 * few, 18), (2 * few - 1, 16), (0, 0)):
        monkeypatch.setattr(k_dependence, "LARGEST_TRIPLES", most)
        family = bound()
        assert sorted(np.diff(family.triples.first)) == sorted(size for size in sizes if size <= largest)
        codes, labels = rows()
        family.verify_structure_statistics(family.structure_statistics(codes, np.eye(K)[labels]))
    assert max(len(parents) for parents in prepared(family, codes, np.eye(K)[labels]).structure) == 1


def test_edges_without_information_are_left_out():
    codes, labels = rows(n=3000)
    codes[:, 4] = np.random.default_rng(2).integers(0, LEVELS[4], len(codes))
    every, tested, none = (
        prepared(bound(**options), codes, np.eye(K)[labels]).structure
        for options in ({}, {"edges": SignificantEdges()}, {"edges": InformativeEdges(10.0)})
    )
    assert tested[4] == ()
    assert every[4] != ()
    assert none == ((),) * D


def test_information_of_edges():
    family, _, codes, labels = fitted()
    sums = family.structure_statistics(codes, np.eye(K)[labels])
    edges = {(parent, child): nats for parent, child, nats in family.edges_with_information(sums)}
    assert set(edges) == {(parent, j) for j, parents in enumerate(family.structure) for parent in parents}
    j = next(j for j, parents in enumerate(family.structure) if len(parents) == 2)
    first, second = family.structure[j]
    assert edges[first, j] == pytest.approx(conditional_information(codes[:, first], codes[:, j], labels))
    given = labels * 10 + codes[:, first]
    assert edges[second, j] == pytest.approx(conditional_information(codes[:, second], codes[:, j], given))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parents": ((1,), (0,), (), (), ())}, "a cycle"),
        ({"parents": ((0,), (), (), (), ())}, "a cycle"),
        ({"parents": ((), (9,), (), (), ())}, "outside of 5 columns"),
        ({"parents": ((), (-1,), (), (), ())}, "outside of 5 columns"),
        ({"parents": ((), (), ())}, "must have 5 entries"),
        ({"parents": ((), (0,), (0, 1, 3), (), ())}, "not at most 2"),
        ({"parents": ((), (0, 0), (), (), ())}, "not at most 2"),
        ({"parents": None}, "parents is missing"),
        ({"max_cells": 3}, "more than 3 cells"),
        ({"prepared_pseudo_counts": None}, "prepared_pseudo_counts"),
    ],
)
def test_damaged_networks_are_refused(changes, message):
    family = FAMILIES["k-dependence-2-back-off"].prepared()
    family.verify()
    with pytest.raises(ValueError, match=message):
        replace(family, **changes).verify()


@pytest.mark.parametrize("options", [{"max_parents": 0}, {"max_parents": 3}, {"back_off": np.nan}])
def test_impossible_parameters_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        KDependence(**options)
