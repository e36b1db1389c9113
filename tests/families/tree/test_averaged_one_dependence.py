"""Averaged one-dependence estimators against the definition of Webb, Boughton and Wang (2005)."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.core.protocols import Layout
from calibayes.families import AveragedOneDependence
from calibayes.families import one_dependence as module
from tests.cases import FAMILIES

K, N, LEVELS = 2, 300, (2, 3, 4, 1)
D = len(LEVELS)


def rows(seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, K, N)
    a = (rng.integers(0, 2, N) + (rng.random(N) < 0.3) * labels) % 2
    b = np.where(rng.random(N) < 0.5, a + labels, rng.integers(0, 3, N))
    c = np.where(rng.random(N) < 0.5, a + b, rng.integers(0, 4, N))
    return np.stack([a, b, c, np.zeros(N, dtype=int)], axis=1), labels


def fitted(**options):
    codes, labels = rows()
    family = AveragedOneDependence(**options).bind(Layout(("a", "b"), tuple("wxyz"), levels=LEVELS))
    family = family.prepare(family.structure_statistics(codes, np.eye(K)[labels]))
    return family, family.parameters(family.statistics(codes, np.eye(K)[labels])), codes, labels


def probability(codes, labels, j, level, c, given=None, alpha=0.0, back_off=0.0):
    """p(level of column j | class, level of another column), from counts."""
    in_class, size = labels == c, LEVELS[j]
    share = (np.sum(codes[in_class, j] == level) + alpha) / (in_class.sum() + alpha * size)
    if given is None:
        return share
    i, given_level = given
    above = in_class & (codes[:, i] == given_level)
    count = np.sum(codes[above, j] == level) + alpha / LEVELS[i] + back_off * share
    return count / (above.sum() + alpha * size / LEVELS[i] + back_off)


def density_by_definition(row, c, codes, labels, centers, **smoothing):
    """The mean over super-parents of p(super-parent | class) prod p(column | super-parent, class)."""
    parts = []
    for center in centers:
        part = probability(codes, labels, center, row[center], c, **smoothing)
        for j in set(range(D)) - {center}:
            part *= probability(codes, labels, j, row[j], c, (center, row[center]), **smoothing)
        parts.append(part)
    return np.mean(parts)


@pytest.mark.parametrize("smoothing", [{}, {"alpha": 0.5}, {"alpha": 0.5, "back_off": 5.0}], ids=str)
def test_the_density_is_that_of_the_definition(smoothing):
    family, parameters, codes, labels = fitted(**smoothing)
    assert family.super_parents == (0, 1, 2)  # a constant column is no super-parent
    every_row = np.array(list(product(*map(range, LEVELS))))
    found = np.exp(family.log_density(every_row, parameters))
    for row, density in zip(every_row, found, strict=True):
        expected = [density_by_definition(row, c, codes, labels, (0, 1, 2), **smoothing) for c in range(K)]
        assert_allclose(density, expected, rtol=1e-9, atol=1e-10)


def divided(gaps=0.0):
    family, parameters, codes, labels = fitted(alpha=0.5, divides_rows=True)
    rng = np.random.default_rng(1)
    return family, parameters, np.where(rng.random(codes.shape) < gaps, -1, codes), labels


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_rows_are_divided_by_the_posterior_of_the_super_parents(gaps, monkeypatch):
    family, parameters, codes, _ = divided(gaps)
    weights = np.random.default_rng(2).normal(size=(N, K))
    stars = [replace(family, super_parents=(center,)) for center in (0, 1, 2)]
    tables = np.split(parameters["log_probability"], family.stars.first[1:-1], axis=1)
    density = np.array(
        [
            np.exp(star.log_density(codes, {"log_probability": t}))
            for star, t in zip(stars, tables, strict=True)
        ]
    )
    shares = density / density.sum(axis=0)
    expected = [
        star.statistics(codes, 3 * weights * share)["count"]
        for star, share in zip(stars, shares, strict=True)
    ]
    found = family.statistics(codes, weights, parameters)["count"]
    assert_allclose(found, np.concatenate(expected, axis=1), atol=1e-9)
    monkeypatch.setattr(module, "SHARES_AT_A_TIME", 50)
    assert_allclose(family.statistics(codes, weights, parameters)["count"], found, atol=1e-9)


def test_statistics_of_divided_rows_are_the_gradient_of_the_conditional_likelihood():
    family, parameters, codes, labels = divided()
    onehot, table = np.eye(K)[labels], parameters["log_probability"]

    def conditional(table):
        log_density = family.log_density(codes, {"log_probability": table})
        log_posterior = log_density - np.logaddexp.reduce(log_density, axis=1, keepdims=True)
        return float(np.sum(onehot * log_posterior)), np.exp(log_posterior)

    posterior = conditional(table)[1]
    gradient = family.statistics(codes, onehot - posterior, parameters)["count"] / 3
    rng = np.random.default_rng(3)
    for c, cell in zip(rng.integers(0, K, 30), rng.integers(0, table.shape[1], 30), strict=True):
        change = np.zeros_like(table)
        change[c, cell] = 1e-5
        slope = (conditional(table + change)[0] - conditional(table - change)[0]) / 2e-5
        assert slope == pytest.approx(gradient[c, cell], abs=1e-5)


def test_super_parents_have_enough_rows_per_level():
    assert fitted(least_rows=100.0)[0].super_parents == (0, 1)
    assert fitted(least_rows=1e9)[0].super_parents == (0,)
    family, parameters, codes, labels = fitted(least_rows=1e9)
    expected = density_by_definition(codes[0], 1, codes, labels, (0,))
    assert np.exp(family.log_density(codes[:1], parameters))[0, 1] == pytest.approx(expected)


def completions(codes):
    gaps = np.flatnonzero(codes < 0)
    for levels in product(*(range(LEVELS[j]) for j in gaps)):
        row = codes.copy()
        row[gaps] = levels
        yield row


def test_missing_values_are_summed_over_in_every_pattern():
    """A missing super-parent is summed out too: leaving its star out would not give the density of the known cells."""
    family, parameters, codes, _ = fitted(alpha=0.5)
    gaps = np.array(list(product([False, True], repeat=D)))
    holed = np.where(gaps, -1, codes[: len(gaps)])
    posterior = np.random.default_rng(0).dirichlet(np.ones(K), len(holed))
    filled = family.fill(holed, parameters, posterior)
    densities = family.log_density(holed, parameters)
    for row, found, share, cells in zip(holed, densities, posterior, filled, strict=True):
        ways = np.array(list(completions(row)))
        density = np.exp(family.log_density(ways, parameters))
        assert_allclose(np.exp(found), density.sum(axis=0), rtol=1e-10)
        within = density / density.sum(axis=0) @ share
        for j in np.flatnonzero(row < 0):
            assert cells[j] == np.argmax(np.bincount(ways[:, j], within))
        assert_array_equal(cells[row >= 0], row[row >= 0])


def test_samples_given_known_values_have_their_conditional_probabilities():
    family, parameters, _, _ = fitted(alpha=0.5)
    given = np.tile([-1, 2, -1, -1], (40_000, 1))
    drawn = family.sample(parameters, np.ones(len(given), dtype=int), np.random.default_rng(0), given)
    ways = np.array(list(completions(given[0])))
    chances = np.exp(family.log_density(ways, parameters))[:, 1]
    found = [np.mean((drawn == way).all(axis=1)) for way in ways]
    assert_allclose(found, chances / chances.sum(), atol=0.01)


def test_columns_whose_pairs_are_not_counted_are_independent_given_the_class():
    family, parameters, codes, labels = fitted(max_cells=6)  # neither (0, 2) nor (1, 2)
    row = codes[0]
    x, y, z = (probability(codes, labels, j, row[j], 0) for j in range(3))
    y_given_x = probability(codes, labels, 1, row[1], 0, (0, row[0]))
    x_given_y = probability(codes, labels, 0, row[0], 0, (1, row[1]))
    expected = (x * y_given_x * z + y * x_given_y * z + z * x * y) / 3
    assert np.exp(family.log_density(codes[:1], parameters))[0, 0] == pytest.approx(expected)
    family, parameters, codes, labels = fitted(max_cells=0)
    assert family.super_parents == (0,)
    assert np.exp(family.log_density(codes[:1], parameters))[0, 0] == pytest.approx(x * y * z)


def test_tables_that_need_too_much_memory_are_refused(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_TABLES", 100)
    with pytest.raises(ValueError, match=r"all pairs of 4 columns, in both directions, .* smaller max_cells"):
        fitted()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"super_parents": ()}, "super_parents is missing"),
        ({"super_parents": (0, 9)}, "position"),
        ({"super_parents": (0, 0)}, "twice"),
        ({"super_parents": (0,)}, "prepared_pseudo_counts"),
        ({"prepared_pseudo_counts": None}, "prepared_pseudo_counts"),
    ],
)
def test_damaged_families_are_refused(changes, message):
    family = FAMILIES["one-dependence-back-off"].prepared()
    family.verify()
    with pytest.raises(ValueError, match=message):
        replace(family, **changes).verify()


@pytest.mark.parametrize("options", [{"least_rows": -1.0}, {"back_off": np.nan}])
def test_impossible_parameters_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        AveragedOneDependence(**options)
