"""Members of BayesClassifier against a plain implementation of their recipe, without components of the library."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, load_wine

from calibayes import BayesClassifier

TOTAL_STEPS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


def standardized(x, train):
    """asinh about the median in units of the interquartile range, then mean 0 and variance 1."""
    low, middle, high = (
        np.quantile(x[train], q, axis=0, method="averaged_inverted_cdf") for q in (0.25, 0.5, 0.75)
    )
    bent = np.arcsinh((x - middle) / ((high - low) / 1.35))
    return (bent - bent[train].mean(axis=0)) / bent[train].std(axis=0)


class PlainGaussian:
    """Sums of rows, products and classes; covariances shrunk towards what they were within classes at the start."""

    def __init__(self, z, y, k, tied, rows, diagonal):
        self.k, self.tied, self.rows = k, tied, rows
        self.statistics = self.sums(z, np.eye(k)[y])
        count, first, second = self.statistics
        within = sum(
            second[c] - count[c] * np.outer(first[c] / count[c], first[c] / count[c]) for c in range(k)
        )
        within /= len(y)
        lacking = np.maximum(0.1 - np.diag(within), 0.0)  # a tenth of the variance, which is 1
        self.target = (1 - diagonal) * within + np.diag(diagonal * np.diag(within) + 1e-6 + lacking)

    def sums(self, z, weights):
        return weights.sum(axis=0), weights.T @ z, np.einsum("nk,ni,nj->kij", weights, z, z)

    def log_posterior(self, z, statistics):
        count, first, second = statistics
        mean = first / count[:, None]
        scatter = second - count[:, None, None] * mean[:, :, None] * mean[:, None, :]
        size = count
        if self.tied:
            scatter = np.repeat(scatter.sum(axis=0, keepdims=True), self.k, axis=0)
            size = np.full(self.k, count.sum())
        joint = np.log(count / count.sum())[None].repeat(len(z), axis=0)
        for c in range(self.k):
            covariance = (scatter[c] + self.rows * self.target) / (size[c] + self.rows)
            away = z - mean[c]
            joint[:, c] -= 0.5 * np.sum(away @ np.linalg.inv(covariance) * away, axis=1)
            joint[:, c] -= 0.5 * np.linalg.slogdet(covariance)[1]
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)


def follow_path(model, z, y, stop):
    """Calibration steps up to a total step."""
    onehot = np.eye(model.k)[y]
    total_step, step, statistics = 0.0, 0.5, model.statistics
    log_posterior = model.log_posterior(z, statistics)
    while total_step < stop:
        direction = model.sums(z, onehot - np.exp(log_posterior))
        landing = next(t for t in TOTAL_STEPS if t > total_step)
        for _ in range(12):
            length = min(step, landing - total_step)
            proposed = tuple(s + length * d for s, d in zip(statistics, direction, strict=True))
            tried = model.log_posterior(z, proposed)
            if np.sum(tried * onehot) >= np.sum(log_posterior * onehot):
                break
            step = length / 2
        else:
            return statistics
        total_step, statistics, log_posterior = total_step + length, proposed, tried
        step = min(1.3 * step, 8.0)
    return statistics


@pytest.mark.parametrize(("name", "tied", "diagonal"), [("tied", True, 0.1), ("full", False, 0.5)])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_gaussian_members_follow_the_recipe(load, name, tied, diagonal):
    x, y = load(return_X_y=True)
    ours = BayesClassifier(families=[name]).fit(x, y)
    z = standardized(x, np.arange(len(y)))
    rows = 50.0 if tied else 20.0 * x.shape[1]
    model = PlainGaussian(z, y, 3, tied, rows, diagonal)
    statistics = follow_path(model, z, y, ours.paths_[name].stop)
    assert_allclose(
        ours.models_[name].predict_proba(x), np.exp(model.log_posterior(z, statistics)), atol=1e-8
    )


def test_total_step_and_weights_have_the_lowest_held_out_log_loss():
    """Fold by fold with the plain members: the same losses along the path, and weights that cannot be improved."""
    x, y = load_wine(return_X_y=True)
    folds = [
        (np.flatnonzero(np.arange(len(y)) % 3 != f), np.flatnonzero(np.arange(len(y)) % 3 == f))
        for f in range(3)
    ]
    ours = BayesClassifier(families=["tied", "full"], cv=folds).fit(x, y)
    best_predictions = []
    for name, tied, diagonal in (("tied", True, 0.1), ("full", False, 0.5)):
        path = ours.paths_[name]
        predictions = np.zeros((len(path.total_step), len(y), 3))
        for train, test in folds:
            z = standardized(x, train)
            model = PlainGaussian(z[train], y[train], 3, tied, 50.0 if tied else 20.0 * x.shape[1], diagonal)
            for number, total_step in enumerate(path.total_step):
                statistics = follow_path(model, z[train], y[train], total_step)
                predictions[number, test] = model.log_posterior(z[test], statistics)
        losses = -predictions[:, np.arange(len(y)), y].mean(axis=1)
        assert_allclose(path.log_loss, losses, rtol=1e-7)
        assert path.best == np.argmin(losses)
        best_predictions.append(predictions[path.best])
    frequencies = np.zeros((len(y), 3))
    for train, test in folds:
        frequencies[test] = np.log(np.bincount(y[train]) / len(train))
    true = np.exp(np.stack([*best_predictions, frequencies])[:, np.arange(len(y)), y])

    weights = np.array(list(ours.weights_.values()))
    held_out = -np.mean(np.log(weights @ true))
    assert ours.out_of_fold_log_loss_ == pytest.approx(held_out, rel=1e-6)
    assert (weights > 0).all()

    def unlikely(weights):
        return -np.log(weights @ true).sum() - 0.5 * np.log(weights).sum()

    even = np.linspace(0, 1, 41)[1:-1]
    others = [np.array([a, b, 1 - a - b]) for a in even for b in even if a + b < 1]
    assert unlikely(weights) <= min(map(unlikely, others))
    for move in np.random.default_rng(0).normal(size=(100, 3)):
        near = np.maximum(weights + 1e-3 * (move - move.mean()), 1e-9)
        assert unlikely(weights) <= unlikely(near / near.sum()) + 1e-9


def test_the_kernel_member_before_calibration():
    """Counts on bins, smoothed by a Gaussian over bin numbers, with three pooled rows: without calibration."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    x = np.round(rng.normal(size=120) + y, 1)
    levels = np.array(["a", "b", "c"])[rng.integers(0, 3, 120)]
    gaps = rng.random(120) < 0.1 + 0.2 * y
    table = np.array(
        [[None if gap else v, level] for v, level, gap in zip(x, levels, gaps, strict=True)], dtype=object
    )
    ours = BayesClassifier(families=["kernel"]).fit(table, y).density_
    values = np.unique(x[~gaps])
    b = len(values)
    counts = np.zeros((2, b + 1))
    np.add.at(counts, (y, np.where(gaps, b, np.searchsorted(values, x))), 1.0)
    h = 0.56 * b * ((~gaps).sum() / 2) ** (-1 / 3)
    kernel = np.exp(-0.5 * ((np.arange(b)[:, None] - np.arange(b)) / h) ** 2)
    kernel /= kernel.sum(axis=0)  # the count of a cell is distributed
    smoothed = np.concatenate([counts[:, :b] @ kernel.T, counts[:, b:]], axis=1)
    log_tables = [
        shrunk(smoothed),
        shrunk(np.array([[np.sum((levels == v) & (y == c)) for v in "abc"] for c in (0, 1)])),
    ]
    joint = np.log(0.5) + log_tables[0][:, np.where(gaps, b, np.searchsorted(values, x))].T
    joint = joint + log_tables[1][:, np.searchsorted(["a", "b", "c"], levels)].T
    expected = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    assert_allclose(ours.predict_proba(table), expected, atol=1e-10)


def shrunk(count):
    pooled = count.sum(axis=0) + 0.5
    count = count + 3.0 * pooled / pooled.sum()
    return np.log(count / count.sum(axis=1, keepdims=True))
