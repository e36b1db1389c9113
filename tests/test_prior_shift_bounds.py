"""Bounds of estimated class frequencies, against simulations with exact posteriors."""

import numpy as np
import pytest

from benchmarks.trust.prior_shift_bounds import informed_frequencies, log_odds_deviation
from calibayes.analysis.prior_shift_tests import LabeledSample, estimated_frequencies
from calibayes.model.training_rows import HeldOut

EVEN, MOVED = np.array([0.5, 0.3, 0.2]), np.array([0.75, 0.15, 0.1])
"""The odds of the first class are multiplied by 3."""
CENTERS = np.array([0.0, 1.5, 3.0])


def rows(n, frequencies, rng):
    """Log posteriors under the frequencies `EVEN`, and classes, of rows with other frequencies."""
    codes = rng.choice(3, n, p=frequencies)
    joint = np.log(EVEN) - (CENTERS[codes][:, None] + rng.normal(size=(n, 1)) - CENTERS) ** 2 / 2
    return joint - np.logaddexp.reduce(joint, axis=1)[:, None], codes


def sample(n, rng):
    log_posterior, codes = rows(n, EVEN, rng)
    return LabeledSample.of(HeldOut(log_posterior, codes, np.ones(n), np.arange(n), ""))


def test_estimates_vary_by_the_bound():
    rng, log_odds = np.random.default_rng(0), []
    for _ in range(150):
        held_out, (new, _) = sample(600, rng), rows(400, MOVED, rng)
        first = estimated_frequencies(held_out.ratios(new), held_out.frequencies)[0]
        ratio = np.log(held_out.frequencies[0] / (1 - held_out.frequencies[0]))
        log_odds.append(np.log(first / (1 - first)) - ratio)
    assert np.std(log_odds) == pytest.approx(log_odds_deviation(held_out, new, MOVED, 0), rel=0.25)


def test_equal_posteriors_have_no_information():
    held_out = sample(100, np.random.default_rng(0))
    assert log_odds_deviation(held_out, np.tile(np.log(EVEN), (50, 1)), MOVED, 0) == np.inf


def test_informed_frequencies_are_those_of_the_rows():
    rng = np.random.default_rng(1)
    held_out = sample(3000, rng)
    for frequencies in (EVEN, MOVED):
        found = informed_frequencies(held_out, rows(3000, frequencies, rng)[0], 3)
        np.testing.assert_allclose(found, frequencies, atol=0.03)
    few = informed_frequencies(held_out, rows(3, MOVED, rng)[0], 3)
    np.testing.assert_allclose(few, held_out.frequencies, atol=0.05)
