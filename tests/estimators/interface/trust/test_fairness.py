"""Thresholds by group against a search of all thresholds; decisions, errors and intervals."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from calibayes import GaussianNB, NaiveBayes
from calibayes.analysis.fairness import best_points, points_of, wilson_interval
from calibayes.datasets import load_penguins
from calibayes.trust import UncertainRatesWarning, fair_thresholds

COSTS = np.array([[0.0, 1.0], [3.0, 0.0]])


def loans(n=3000, seed=0):
    """A feature that is lower in group b, of which fewer repay."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b"], n, p=[0.7, 0.3])
    y = np.where(rng.random(n) < np.where(groups == "a", 0.6, 0.4), "repaid", "failed")
    X = rng.normal(size=(n, 2)) + 1.0 * (y == "repaid")[:, None] - 0.8 * (groups == "b")[:, None]
    return X, y, groups


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = loans()
    return GaussianNB(rule="ml").fit(X, y)


def fair(model, seed=1, n=3000, **options):
    X, y, groups = loans(n, seed)
    return fair_thresholds(model, X, y, groups, positive="repaid", **options), (X, y, groups)


def enumerated(score, group, counted, loss, tolerance):
    """Least loss of all thresholds whose rates differ by at most the tolerance."""
    options = []
    for g in np.unique(group):
        mine = group == g
        found = []
        for threshold in [np.inf, *np.unique(score[mine])]:
            accepted = score[mine] >= threshold
            rate = (counted[mine] * accepted).sum() / counted[mine].sum()
            found.append((rate, np.where(accepted, loss[mine, 1], loss[mine, 0]).sum()))
        options.append(found)
    return min(
        sum(loss for _, loss in combination)
        for combination in product(*options)
        if max(r for r, _ in combination) - min(r for r, _ in combination) <= tolerance + 1e-9
    )


@pytest.mark.parametrize("tolerance", [0.0, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sizes", [(6, 9), (5, 7, 8)])
def test_the_search_finds_the_best_of_all_thresholds(tolerance, seed, sizes):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    score = rng.integers(0, 7, len(group)).astype(float)  # with ties
    loss = rng.random((len(group), 2))
    counted = rng.integers(1, 4, len(group)).astype(float) if seed % 2 else np.ones(len(group))
    points = []
    for g in range(len(sizes)):
        mine = group == g
        share = counted[mine] / counted[mine].sum()
        points.append(points_of(score[mine], share, loss[mine, 1], loss[mine, 0]))
    chosen = best_points(points, tolerance)
    rates = [p.rate[i] for p, i in zip(points, chosen, strict=True)]
    assert max(rates) - min(rates) <= tolerance + 1e-9
    total = sum(p.loss[i] for p, i in zip(points, chosen, strict=True))
    assert total == pytest.approx(enumerated(score, group, counted, loss, tolerance), abs=1e-12)
    for g, (p, i) in enumerate(zip(points, chosen, strict=True)):
        mine = group == g
        accepted = score[mine] >= p.threshold[i]
        assert np.where(accepted, loss[mine, 1], loss[mine, 0]).sum() == pytest.approx(p.loss[i])


@pytest.mark.parametrize("criterion", ["equal_opportunity", "demographic_parity"])
@pytest.mark.parametrize("costs", [None, COSTS], ids=["error", "costs"])
def test_rates_are_those_of_the_decisions(fitted, criterion, costs):
    found, (X, y, groups) = fair(fitted, criterion=criterion, costs=costs)
    decided = found.decide(fitted, X, groups)
    counted = y == "repaid" if criterion == "equal_opportunity" else np.ones(len(y), dtype=bool)
    for i, group in enumerate(found.groups):
        members = counted & (groups == group)
        assert found.rate_after[i] == pytest.approx(np.mean(decided[members] == "repaid"))
        before = fitted.decide(X, costs=costs).data
        assert found.rate_before[i] == pytest.approx(np.mean(before[members] == "repaid"))
        assert found.rows[i] == members.sum()
    assert found.gap_before > 0.1
    assert found.gap_after <= 0.02 + 1e-12
    truth, chosen = (y == "repaid").astype(int), (decided == "repaid").astype(int)
    cost = np.mean(decided != y) if costs is None else COSTS[truth, chosen].mean()
    assert found.loss_after == pytest.approx(cost)
    assert found.loss_after < 0.5


def test_a_criterion_costs_and_a_wide_tolerance_does_not(fitted):
    strict, _ = fair(fitted, criterion="demographic_parity", tolerance=0.01)
    wide, _ = fair(fitted, criterion="demographic_parity", tolerance=1.0)
    assert wide.loss_after <= min(strict.loss_after, wide.loss_before)
    assert strict.loss_after > wide.loss_after
    assert strict.thresholds["a"] > strict.thresholds["b"]
    assert strict.cost_ratios["a"] == pytest.approx(1 / strict.thresholds["a"] - 1)


def test_rates_hold_on_new_rows_within_their_uncertainty(fitted):
    found, _ = fair(fitted, criterion="equal_opportunity", n=20_000)
    X, y, groups = loans(20_000, seed=9)
    decided = found.decide(fitted, X, groups)
    rates = [np.mean(decided[(groups == g) & (y == "repaid")] == "repaid") for g in ("a", "b")]
    assert abs(rates[0] - rates[1]) < 0.05
    before = [np.mean(fitted.predict(X)[(groups == g) & (y == "repaid")] == "repaid") for g in ("a", "b")]
    assert abs(before[0] - before[1]) > 0.2


def test_held_out_predictions_of_the_training_rows_are_used():
    X, y, groups = loans(600)
    model = GaussianNB(rule="ml").fit(X, y)
    found = fair_thresholds(
        model, None, None, groups, criterion="demographic_parity", positive="failed", tolerance=0.1
    )
    record = model.held_out_
    accepted = record.log_posterior[:, 0] - record.log_posterior[:, 1] >= [
        found.log_odds[found.groups.index(group)] for group in groups[record.rows]
    ]
    for i, group in enumerate(found.groups):
        assert found.rate_after[i] == pytest.approx(accepted[groups[record.rows] == group].mean())
    assert found.gap_after <= 0.1 + 1e-12


def test_weights_count_as_repeated_rows(fitted):
    X, y, groups = loans(3000, seed=2)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    options = {"criterion": "equal_opportunity", "positive": "repaid", "tolerance": 0.05}
    weighted = fair_thresholds(fitted, X, y, groups, sample_weight=weight, **options)
    repeated = fair_thresholds(
        fitted, *(np.repeat(part, weight, axis=0) for part in (X, y, groups)), **options
    )
    np.testing.assert_allclose(weighted.log_odds, repeated.log_odds)
    assert weighted.loss_after == pytest.approx(repeated.loss_after)


def test_the_interval_is_the_one_of_scipy():
    for accepted, n in ((0, 20), (7, 30), (200, 250)):
        expected = stats.binomtest(accepted, n).proportion_ci(method="wilson")
        np.testing.assert_allclose(wilson_interval(np.array([accepted / n]), np.array([n]))[0], expected)


def test_few_rows_are_an_error_and_uncertain_rates_a_warning(fitted):
    X, y, groups = loans(200)
    groups = groups.astype(object)
    groups[:10] = "c"
    with pytest.raises(ValueError, match="group 'c' has 10 rows, fewer than 20"):
        fair_thresholds(fitted, X, y, groups, criterion="demographic_parity", positive="repaid")
    with pytest.warns(UncertainRatesWarning, match="group 'b' is known to"):
        fair(fitted, n=200, criterion="demographic_parity")


def test_errors_say_what_to_do(fitted):
    found, (X, y, groups) = fair(fitted, criterion="demographic_parity")
    options = {"criterion": "demographic_parity", "positive": "repaid"}
    with pytest.raises(ValueError, match="no threshold was found for group z"):
        found.decide(fitted, X[:2], ["a", "z"])
    with pytest.raises(ValueError, match="missing: leave these rows out"):
        found.decide(fitted, X[:2], np.array(["a", None], dtype=object))
    with pytest.raises(ValueError, match="criterion must be one of"):
        fair_thresholds(fitted, X, y, groups, criterion="justice", positive="repaid")
    with pytest.raises(ValueError, match="positive must be one of the classes"):
        fair_thresholds(fitted, X, y, groups, criterion="demographic_parity", positive="yes")
    with pytest.raises(ValueError, match="one for each row"):
        fair_thresholds(fitted, X, y, groups[:5], **options)
    with pytest.raises(ValueError, match="one group only"):
        fair_thresholds(fitted, X, y, ["a"] * len(y), **options)
    with pytest.raises(ValueError, match="give both X and y"):
        fair_thresholds(fitted, X, None, groups, **options)
    penguins, species = load_penguins(return_X_y=True)
    three = NaiveBayes(rule="ml").fit(penguins, species)
    with pytest.raises(ValueError, match="for two classes, the model has 3"):
        fair_thresholds(three, penguins, species, "sex", criterion="demographic_parity", positive="Gentoo")
    with pytest.raises(ValueError, match="the thresholds are for the classes"):
        found.decide(three, penguins, "sex")


def test_the_model_is_not_changed_and_the_result_prints(fitted):
    before = fitted.predict_proba(loans()[0])
    found, _ = fair(fitted, criterion="equal_opportunity")
    np.testing.assert_array_equal(before, fitted.predict_proba(loans()[0]))
    lines = str(found).splitlines()
    assert lines[0] == "equal_opportunity for 'repaid', tolerance 0.02"
    assert lines[-2].startswith("gap ")
    assert len(lines) == 6
