"""Trees against brute force: all trees, all rows, all completions of missing values."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2_contingency
from sklearn.feature_selection import mutual_info_classif

from calibayes.core.protocols import Layout
from calibayes.families import (
    InCells,
    InformativeEdges,
    OneTree,
    PerClass,
    SignificantEdges,
    Tree,
    tree_structures,
)
from calibayes.kernels import level_pairs

K, N, LEVELS = 2, 300, (2, 3, 4, 2, 3)
D = len(LEVELS)


def rows(seed=0, n=N):
    """Five dependent columns; the dependences differ between the two classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, n)
    columns = [rng.integers(0, LEVELS[0], n)]
    for j in range(1, D):
        source = columns[rng.integers(0, j)] + labels
        columns.append(np.where(rng.random(n) < 0.5, source % LEVELS[j], rng.integers(0, LEVELS[j], n)))
    return np.stack(columns, axis=1), labels


def bound(**options):
    layout = Layout(("a", "b"), tuple("vwxyz"), levels=LEVELS)
    return Tree(**options).bind(layout)


def prepared(family, codes, weights):
    return family.prepare(family.structure_statistics(codes, weights))


def all_trees(d=D):
    """The edges of all d^(d - 2) trees."""
    for edges in combinations(list(combinations(range(d), 2)), d - 1):
        reached = {0}
        for _ in range(d):
            reached |= {b for a, b in edges if a in reached} | {a for a, b in edges if b in reached}
        if len(reached) == d:
            yield edges


def log_likelihood_of(edges, codes, weight):
    """Maximum log likelihood of a tree with these edges on rows of one class: entropies of its nodes and edges."""

    def plain(table):
        table = table[table > 0]
        return float(np.sum(table * np.log(table)))

    def single(j):
        return np.bincount(codes[:, j], weight)

    def pair(i, j):
        return np.bincount(codes[:, i] * 10 + codes[:, j], weight)

    total = weight.sum()
    nodes = sum(plain(single(j)) - plain(np.array([total])) for j in range(D))
    return nodes + sum(
        plain(pair(i, j)) - plain(single(i)) - plain(single(j)) + plain(np.array([total])) for i, j in edges
    )


def edges_of(parents):
    return tuple(sorted((min(j, p), max(j, p)) for j, p in enumerate(parents) if p >= 0))


@pytest.mark.parametrize("seed", range(6))
def test_the_tree_has_maximum_likelihood(seed):
    codes, labels = rows(seed)
    weights = np.eye(K)[labels] * np.random.default_rng(seed).uniform(0.5, 2.0, N)[:, None]
    trees = list(all_trees())
    assert len(trees) == 125
    by_class = np.array([[log_likelihood_of(edges, codes, w) for w in weights.T] for edges in trees])

    one = prepared(bound(), codes, weights)
    assert edges_of(one.structure[0]) == trees[int(np.argmax(by_class.sum(axis=1)))]
    best = float(np.sum(weights * one.log_density(codes, one.parameters(one.statistics(codes, weights)))))
    assert best == pytest.approx(by_class.sum(axis=1).max(), rel=1e-12)

    per_class = prepared(bound(search=PerClass()), codes, weights)
    assert [edges_of(p) for p in per_class.structure] == [trees[i] for i in np.argmax(by_class, axis=0)]
    best = float(
        np.sum(
            weights * per_class.log_density(codes, per_class.parameters(per_class.statistics(codes, weights)))
        )
    )
    assert best == pytest.approx(by_class.max(axis=0).sum(), rel=1e-12)


def test_the_log_ratio_of_forests_is_linear_in_log_densities():
    """Lemma 1 of slb-2020, with frequencies as densities: edges have the coefficient 1, columns 1 - degree."""
    codes, labels = rows(n=4000)
    codes[:, 1] = np.random.default_rng(1).integers(0, LEVELS[1], len(codes))  # without an edge
    onehot = np.eye(K)[labels]
    family = bound(search=PerClass(InformativeEdges(0.02)))
    family = family.prepare(family.structure_statistics(codes, onehot))
    found = family.log_density(codes, family.parameters(family.statistics(codes, onehot)))
    forests = [edges_of(parents) for parents in family.structure]
    assert 0 < min(map(len, forests)) < D - 1

    def frequency(c, columns):
        inside = codes[labels == c][:, columns]
        return np.array([np.mean((inside == row).all(axis=1)) for row in codes[:, columns]])

    terms = np.zeros((K, len(codes)))
    with np.errstate(divide="ignore"):
        for c, edges in enumerate(forests):
            degree = np.bincount(np.ravel(edges), minlength=D)
            terms[c] = sum(np.log(frequency(c, list(edge))) for edge in edges)
            terms[c] += sum((1 - degree[j]) * np.log(frequency(c, [j])) for j in range(D))
    seen = np.isfinite(terms).all(axis=0)
    assert seen.mean() > 0.5
    np.testing.assert_allclose((found[:, 1] - found[:, 0])[seen], (terms[1] - terms[0])[seen], atol=1e-9)


def test_parameters_are_shares_of_direct_counts():
    codes, labels = rows()
    family = prepared(bound(), codes, np.eye(K)[labels])
    found = np.exp(family.parameters(family.statistics(codes, np.eye(K)[labels]))["log_probability"])
    [tree] = family.class_trees
    for j, (parent, table) in enumerate(zip(tree.tables.parents, tree.tables.split(found), strict=True)):
        for c, a, b in product(range(K), range(table.shape[1]), range(table.shape[2])):
            above = (labels == c) & ((parent < 0) | (codes[:, parent] == a))
            share = np.mean(codes[above, j] == b)
            assert table[c, a, b] == pytest.approx(share, abs=2e-12)


def test_back_off_adds_pseudo_rows_of_the_class():
    """Friedman, Geiger and Goldszmidt's smoothing, written out."""
    codes, labels = rows()
    family = prepared(bound(alpha=0.5, back_off=5.0), codes, np.eye(K)[labels])
    found = np.exp(family.parameters(family.statistics(codes, np.eye(K)[labels]))["log_probability"])
    [tree] = family.class_trees
    j = next(j for j, parent in enumerate(tree.tables.parents) if parent >= 0)
    parent, r = tree.tables.parents[j], LEVELS[j]
    for c, a, b in product(range(K), range(LEVELS[parent]), range(r)):
        in_class = labels == c
        share = (np.sum(codes[in_class, j] == b) + 0.5) / (in_class.sum() + 0.5 * r)
        above = in_class & (codes[:, parent] == a)
        count = np.sum(codes[above, j] == b) + 0.5 / LEVELS[parent] + 5.0 * share
        assert tree.tables.split(found)[j][c, a, b] == pytest.approx(
            count / (above.sum() + 0.5 * r / LEVELS[parent] + 5.0)
        )


@pytest.mark.parametrize("levels", [(2, 3, 4, 2, 3), (30, 2, 9, 5, 40)])
@pytest.mark.parametrize("count", [level_pairs.count_by_products, level_pairs.count_by_bins])
def test_pairs_are_counted_one_by_one(levels, count):
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(-1, r, 3000) for r in levels], axis=1)
    weight = rng.normal(size=len(codes))
    kept = level_pairs.column_pairs(levels, 300)
    found = count(codes, weight, levels, kept)
    assert len(kept.left) == 10 if max(levels) < 10 else len(kept.left) < 10
    for number, (i, j) in enumerate(zip(kept.left, kept.right, strict=True)):
        table = np.zeros((levels[i], levels[j]))
        both = (codes[:, i] >= 0) & (codes[:, j] >= 0)
        np.add.at(table, (codes[both, i], codes[both, j]), weight[both])
        assert_allclose(found[kept.first[number] : kept.first[number + 1]], table.ravel(), atol=1e-10)


def test_information_is_that_of_scikit_learn_and_its_test_that_of_scipy():
    codes, _ = rows()
    kept = level_pairs.column_pairs(LEVELS, 100)
    tables = level_pairs.weighted_pairs(codes, np.ones((N, 1)), LEVELS, kept)
    information = level_pairs.pair_information(tables, kept, LEVELS)
    for number, (i, j) in enumerate(zip(kept.left, kept.right, strict=True)):
        nats = mutual_info_classif(codes[:, [i]], codes[:, j], discrete_features=True)
        assert information.gain[0, number] / N == pytest.approx(nats[0], abs=1e-10)
        table = tables[0, kept.first[number] : kept.first[number + 1]].reshape(LEVELS[i], LEVELS[j])
        test = chi2_contingency(table, correction=False, lambda_="log-likelihood")
        assert 2 * information.gain[0, number] == pytest.approx(test.statistic, abs=1e-8)
        assert information.freedom[0, number] == test.dof
        alone = level_pairs.PairInformation(*(part[0, [number]] for part in information))
        assert SignificantEdges(0.01).allowed(alone)[0] == (test.pvalue <= 0.01)


def test_forests_have_the_significant_or_informative_edges():
    codes, labels = rows(n=2000)
    labels = np.random.default_rng(1).permutation(labels)
    codes[:, 4] = np.random.default_rng(2).integers(0, LEVELS[4], len(codes))
    whole, tested, none = (
        prepared(bound(search=OneTree(*edges)), codes, np.eye(K)[labels]).structure[0]
        for edges in ((), (SignificantEdges(),), (InformativeEdges(10.0),))
    )
    assert set(edges_of(tested)) == {edge for edge in edges_of(whole) if 4 not in edge}
    assert none == (-1,) * D


def completions(codes):
    """All completions of the missing values of a row."""
    gaps = np.flatnonzero(codes < 0)
    for levels in product(*(range(LEVELS[j]) for j in gaps)):
        row = codes.copy()
        row[gaps] = levels
        yield row


@pytest.mark.parametrize("search", [OneTree(), PerClass(), PerClass(SignificantEdges())])
def test_missing_values_are_summed_over_in_every_pattern(search):
    codes, labels = rows()
    family = prepared(bound(search=search, alpha=0.5), codes, np.eye(K)[labels])
    parameters = family.parameters(family.statistics(codes, np.eye(K)[labels]))
    gaps = np.array(list(product([False, True], repeat=D)))
    holed = np.where(gaps, -1, codes[: len(gaps)])
    posterior = np.random.default_rng(0).dirichlet(np.ones(K), len(holed))
    filled = family.fill(holed, parameters, posterior)
    for row, found, share, cells in zip(
        holed, family.log_density(holed, parameters), posterior, filled, strict=True
    ):
        ways = np.array(list(completions(row)))
        density = np.exp(family.log_density(ways, parameters))
        assert_allclose(np.exp(found), density.sum(axis=0), rtol=1e-10)
        within = density / density.sum(axis=0) @ share  # probability of each way, classes weighted
        for j in np.flatnonzero(row < 0):
            assert cells[j] == np.argmax(np.bincount(ways[:, j], within))
        assert_array_equal(cells[row >= 0], row[row >= 0])


def test_samples_given_known_values_have_their_conditional_probabilities():
    codes, labels = rows()
    family = prepared(bound(alpha=0.5), codes, np.eye(K)[labels])
    parameters = family.parameters(family.statistics(codes, np.eye(K)[labels]))
    given = np.tile([-1, 2, -1, -1, 1], (40_000, 1))
    drawn = family.sample(parameters, np.ones(len(given), dtype=int), np.random.default_rng(0), given)
    ways = np.array(list(completions(given[0])))
    probability = np.exp(family.log_density(ways, parameters))[:, 1]
    found = [np.mean((drawn == way).all(axis=1)) for way in ways]
    assert_allclose(found, probability / probability.sum(), atol=0.01)


def test_the_density_of_binned_numbers_is_in_their_units():
    """Cells of width w have 1/w of the density."""
    codes, labels = rows()
    volume = np.random.default_rng(0).normal(size=sum(LEVELS))
    plain = prepared(bound(), codes, np.eye(K)[labels])
    wide = plain.bind(Layout(("a", "b"), tuple("vwxyz"), levels=LEVELS, log_volume=volume))
    wide = prepared(wide, codes, np.eye(K)[labels])
    parameters = plain.parameters(plain.statistics(codes, np.eye(K)[labels]))
    holed = np.where(np.arange(codes.size).reshape(codes.shape) % 7 == 3, -1, codes)
    first = np.concatenate([[0], np.cumsum(LEVELS)[:-1]])
    expected = np.where(holed < 0, 0.0, volume[np.maximum(holed, 0) + first]).sum(axis=1)
    difference = plain.log_density(holed, parameters) - wide.log_density(holed, parameters)
    assert_allclose(difference, np.repeat(expected[:, None], K, axis=1), atol=1e-10)


def test_graphs_have_32_bit_indices_which_every_scipy_accepts(monkeypatch):
    spanning_tree, types = tree_structures.csgraph.minimum_spanning_tree, []

    def noted(graph):
        types.extend([graph.indices.dtype, graph.indptr.dtype])
        return spanning_tree(graph)

    monkeypatch.setattr(tree_structures.csgraph, "minimum_spanning_tree", noted)
    codes, labels = rows()
    prepared(bound(), codes, np.eye(K)[labels])
    assert set(types) == {np.dtype(np.int32)}


def test_smoothing_shares_counts_with_neighbors_and_keeps_their_sum():
    codes, labels = rows()
    layout = Layout(
        ("a", "b"), tuple("vwxyz"), levels=LEVELS, ordered=LEVELS, log_volume=np.zeros(sum(LEVELS))
    )
    sharp, soft = (
        prepared(Tree(bandwidth=InCells(width)).bind(layout), codes, np.eye(K)[labels])
        for width in (0.0, 0.7)
    )
    [tree] = soft.class_trees
    statistics = soft.statistics(codes, np.eye(K)[labels])
    tables = [tree.tables.split(np.exp(f.parameters(statistics)["log_probability"])) for f in (sharp, soft)]
    for before, after in zip(*tables, strict=True):
        assert_allclose(after.sum(axis=2), 1.0)
        if before.shape[2] > 2:
            assert after.std() < before.std()


def test_bandwidths_are_computed_once_for_each_column_in_order():
    calls = []

    class Wide:
        def width_in_cells(self, counts, log_volume, dimension=1):
            calls.append((counts, log_volume, dimension))
            return np.array([0.5, 1.5])

    codes, labels = rows()
    volume = np.arange(sum(LEVELS), dtype=float)
    layout = Layout(("a", "b"), tuple("vwxyz"), levels=LEVELS, ordered=(2, 3, 3, 0, 0), log_volume=volume)
    family = prepared(Tree(bandwidth=Wide()).bind(layout), codes, np.eye(K)[labels])
    assert len(calls) == 2  # two cells have nothing to smooth
    (w, w_volume, dimension), (x, x_volume, _) = calls
    assert dimension == 2
    assert_array_equal(w, [[np.sum((codes[:, 1] == v) & (labels == c)) for v in range(3)] for c in range(K)])
    assert_array_equal(w_volume, [2.0, 3.0, 4.0])
    assert x.shape == (K, 3)  # the last cell of four is not ordered
    assert_array_equal(x_volume, [5.0, 6.0, 7.0])
    assert_array_equal(family.widths[:, 1], [0.5, 1.5])
    assert_array_equal(family.widths[:, [0, 3, 4]], 0.0)
