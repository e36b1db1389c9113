"""Structures by search against brute force: all forests of four columns, every step, folds, ties, missing parents."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibayes.core.protocols import Layout
from calibayes.estimators import structure_search
from calibayes.estimators.structure_search import EncodedRows
from calibayes.families import (
    AllEdges,
    ConditionalLikelihood,
    GivenTree,
    KDependence,
    SoftError,
    Tree,
)
from calibayes.families.tree_structures import Information, structure_named

K, LEVELS = 3, (2, 3, 4, 3)
D = len(LEVELS)
ALPHA, BACK_OFF = 0.7, 2.0
LOSSES = pytest.mark.parametrize("loss", [ConditionalLikelihood, SoftError])
LAYOUT = Layout(tuple("abc"), tuple("vwxy"), levels=LEVELS)


def rows(seed=0, n=150, folds=1, gaps=0.0):
    """Columns of which some depend on another one and the class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, n)
    columns = [rng.integers(0, LEVELS[0], n)]
    for j in range(1, D):
        source = columns[rng.integers(0, j)] * (1 + labels)
        columns.append(np.where(rng.random(n) < 0.6, source % LEVELS[j], rng.integers(0, LEVELS[j], n)))
    codes = np.where(rng.random((n, D)) < gaps, -1, np.stack(columns, axis=1))
    return EncodedRows(codes, labels, rng.uniform(0.5, 2.0, n), rng.permutation(n) % folds)


def family(most=1):
    options = {"alpha": ALPHA, "back_off": BACK_OFF, "edges": AllEdges()}
    return KDependence(max_parents=most, **options).bind(LAYOUT)


def share(others, j, level, c, above):
    """p(level | class, levels of the parents) by direct counts: pseudo-rows are distributed as with one parent fewer."""
    chosen = (others.labels == c) & (others.codes[:, j] >= 0)
    for parent, code in above:
        chosen = chosen & (others.codes[:, parent] == code)
    cells = np.prod([LEVELS[parent] for parent, _ in above])
    backed = BACK_OFF * share(others, j, level, c, above[:-1]) if above else 0.0
    count = others.weight[chosen & (others.codes[:, j] == level)].sum()
    total = others.weight[chosen].sum() + ALPHA * LEVELS[j] / cells + (BACK_OFF if above else 0.0)
    return (count + ALPHA / cells + backed) / total


class Definition:
    """The loss of all rows, each predicted with the rows outside its fold, from the definition."""

    def __init__(self, loss, given):
        self.loss, self.given, self.known = loss, given, {}
        outside = [given.fold != number for number in range(given.fold.max() + 1)]
        if len(outside) == 1:
            outside = [np.ones(len(given.labels), dtype=bool)]
        self.others = [EncodedRows(*(part[rows] for part in given)) for rows in outside]

    def term(self, fold, row, j, parents, c):
        """log p(column | parents, class); parents from the first missing one on are left out."""
        is_known = [row[parent] >= 0 for parent in parents]
        above = tuple((p, int(row[p])) for i, p in enumerate(parents) if all(is_known[: i + 1]))
        key = (fold, j, int(row[j]), c, above)
        if key not in self.known:
            self.known[key] = (
                0.0 if row[j] < 0 else np.log(share(self.others[fold], j, int(row[j]), c, above))
            )
        return self.known[key]

    def __call__(self, parents):
        total, given = 0.0, self.given
        priors = [[others.weight[others.labels == c].sum() for c in range(K)] for others in self.others]
        for i, (row, fold) in enumerate(zip(given.codes, given.fold, strict=True)):
            joint = np.log(priors[fold]) + [
                sum(self.term(fold, row, j, of_column, c) for j, of_column in enumerate(parents))
                for c in range(K)
            ]
            log_posterior = joint[given.labels[i]] - np.logaddexp.reduce(joint)
            total += given.weight[i] * float(self.loss().of(log_posterior))
        return total


def is_forest(parents):
    for j in range(D):
        seen = {j}
        while parents[j]:
            [j] = parents[j]
            if j in seen:
                return False
            seen.add(j)
    return True


def forests():
    """All forests of four columns, as the parents of each."""
    choices = [[(), *((p,) for p in range(D) if p != j)] for j in range(D)]
    return [parents for parents in product(*choices) if is_forest(parents)]


def with_arc_more(parents, structures):
    """The structures with one arc more and all others kept."""
    return [
        other
        for other in structures
        if sum(map(len, other)) == sum(map(len, parents)) + 1
        and all(more[: len(few)] == few for few, more in zip(parents, other, strict=True))
    ]


def greedy(losses):
    """The structure that the search must find, among those whose losses are given."""
    parents = ((),) * D
    while better := with_arc_more(parents, losses):
        best = min(better, key=losses.get)
        if losses[best] >= losses[parents]:
            break
        parents = best
    return parents


@LOSSES
@pytest.mark.parametrize("seed", range(3))
def test_each_arc_is_the_best_of_all_by_brute_force(seed, loss):
    given, structures = rows(seed, n=80), forests()
    loss_of = Definition(loss, given)
    assert len(structures) == 125  # rooted forests of 4 nodes: (4 + 1) ** 3
    losses = {parents: loss_of(parents) for parents in structures}
    found = structure_search.searched_parents(family(), given, loss(1), structure_search.tree_arcs)
    assert found == greedy(losses)
    assert losses[found] < losses[((),) * D]
    assert losses[found] <= np.quantile(list(losses.values()), 0.1)  # not far from the best forest of all


@LOSSES
def test_rows_of_a_fold_are_predicted_with_the_others(loss):
    given = rows(7, n=60, folds=3)
    loss_of = Definition(loss, given)
    losses = {parents: loss_of(parents) for parents in forests()}
    found = structure_search.searched_parents(family(), given, loss(3), structure_search.tree_arcs)
    assert found == greedy(losses)


@LOSSES
@pytest.mark.parametrize("gaps", [0.0, 0.15])
def test_losses_of_networks_are_those_of_the_definition(loss, gaps):
    given = rows(3, n=70, folds=2, gaps=gaps)
    terms = structure_search.ColumnTerms(family(2), given, np.arange(70))
    search = structure_search.GreedySearch(terms, loss(2), np.zeros(D, dtype=np.uint64))
    for parents in [((),) * D, ((), (0,), (1, 0), (1,)), ((1,), (), (1, 0), (2, 1))]:
        for size in (1, 2):
            terms.require((j, of_column[:size]) for j, of_column in enumerate(parents))
        joint = terms.log_prior(None) + sum(terms.known[j, p] for j, p in enumerate(parents))
        assert search.total(joint) == pytest.approx(Definition(loss, given)(parents), rel=1e-9)


@LOSSES
def test_the_loss_is_that_of_the_fitted_tree(loss):
    given = rows(5)
    found = structure_search.searched_parents(family(), given, loss(1), structure_search.tree_arcs)
    tree = GivenTree(tuple(next(iter(p), -1) for p in found))
    made = Tree(alpha=ALPHA, back_off=BACK_OFF, search=tree).bind(LAYOUT)
    weights = np.eye(K)[given.labels] * given.weight[:, None]
    made = made.prepare(made.structure_statistics(given.codes, weights))
    assert made.structure == (tree.columns,) * K
    joint = made.log_density(given.codes, made.parameters(made.statistics(given.codes, weights)))
    joint = joint + np.log(weights.sum(axis=0))
    log_posterior = joint[np.arange(len(joint)), given.labels] - np.logaddexp.reduce(joint, axis=1)
    assert given.weight @ loss().of(log_posterior) == pytest.approx(Definition(loss, given)(found), rel=1e-9)


@LOSSES
@pytest.mark.parametrize("most", [1, 2])
def test_parents_of_networks_are_earlier_and_joined(loss, most):
    given = rows(11, n=90)
    loss_of = Definition(loss, given)
    weights = np.eye(K)[given.labels] * given.weight[:, None]
    bound = family(most)
    sums = bound.structure_statistics(given.codes, weights)
    arcs = structure_search.ordered_arcs(bound, sums, bound.candidates(sums))
    parents = ((),) * D
    while trials := list(arcs.next_trials(parents)):
        structures = [tuple(p if j == i else q for i, q in enumerate(parents)) for j, p in trials]
        losses = [loss_of(other) for other in structures]
        if min(losses) >= loss_of(parents):
            break
        parents = structures[int(np.argmin(losses))]
    found = structure_search.searched_parents(bound, given, loss(1), structure_search.ordered_arcs)
    assert found == parents
    place = {column: number for number, column in enumerate(arcs.order)}
    for j, of_column in enumerate(found):
        assert len(of_column) <= most
        assert all(place[parent] < place[j] for parent in of_column)
        if len(of_column) == 2:
            first, second = of_column
            assert second in found[first] or first in found[second]
    assert max(map(len, found)) == most


@LOSSES
def test_the_order_of_columns_and_rows_does_not_matter(loss):
    given = rows(2, n=120, folds=3)
    copied = np.concatenate([given.codes, given.codes[:, :1]], axis=1)  # the first column stands twice
    rng = np.random.default_rng(0)
    losses = set()
    for _ in range(6):
        columns, order = rng.permutation(D + 1), rng.permutation(120)
        levels = tuple(np.array([*LEVELS, LEVELS[0]])[columns].tolist())
        bound = family().bind(Layout(tuple("abc"), tuple("vwxyz"), levels=levels))
        shuffled = EncodedRows(
            copied[order][:, columns], given.labels[order], given.weight[order], given.fold[order]
        )
        found = structure_search.searched_parents(bound, shuffled, loss(3), structure_search.tree_arcs)
        names = [frozenset((columns[j] % D, columns[p] % D)) for j, of in enumerate(found) for p in of]
        losses.add(frozenset(names))
    assert len(losses) == 1


def test_few_terms_score_fewer_rows(monkeypatch):
    given = rows(4, n=150)
    monkeypatch.setattr(structure_search, "MOST_TERMS", 60 * K * D * (D - 1))
    terms = []
    original = structure_search.ColumnTerms

    def noted(*arguments):
        terms.append(original(*arguments))
        return terms[0]

    monkeypatch.setattr(structure_search, "ColumnTerms", noted)
    structure_search.searched_parents(family(), given, SoftError(1), structure_search.tree_arcs)
    assert len(terms[0].scored) == 60
    all_rows = original(family(), given, np.arange(150))
    for trial in ((1, ()), (2, (1,))):
        all_rows.require([trial])
        assert_allclose(terms[0].known[trial], all_rows.known[trial][:, :60])  # all rows are counted


@pytest.mark.parametrize("folds", [0, -1, 2.5, "many", None])
def test_impossible_folds_are_refused(folds):
    with pytest.raises(ValueError, match="folds must be a whole number"):
        ConditionalLikelihood(folds)


def test_short_names():
    assert structure_named("information") == Information()
    assert structure_named("soft_error") == SoftError()
    assert structure_named(SoftError(2)) == SoftError(2)
    with pytest.raises(ValueError, match="structure must be one of 'information'"):
        structure_named("likelihood")


@pytest.mark.parametrize("columns", [(0, 1), (1, 0), (5, -1), (-2, 0)])
def test_given_trees_are_forests(columns):
    with pytest.raises(ValueError, match="parents contains"):
        GivenTree(columns).verify()
