"""Mixtures against scikit-learn's GaussianMixture class by class, and against the table of gdt-2004."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import train_test_split

from calibayes import GenerativeClassifier, LinearDiscriminantAnalysis, MixtureDiscriminantAnalysis, every
from calibayes.datasets import load_file
from calibayes.encoders import Clusters
from calibayes.families import Diagonal, Full, Gaussian, Mixture, Spherical
from calibayes.learn import LastState, NoGain
from calibayes.reproduction.papers.gdt_2004 import TABLE
from calibayes.reproduction.procedures import Cleaning
from calibayes.reproduction.result_tables import published_table
from calibayes.reproduction.simulations import SubsampleTrials
from calibayes.rules import GDT

COUNTS = (2, 3)
KINDS = {
    "full": (Full(), "covariance"),
    "diag": (Diagonal(), "variance"),
    "spherical": (Spherical(), "variance"),
}


def clumps(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y, which = np.repeat([0, 1], n), rng.integers(0, 3, 2 * n)
    X = rng.normal(size=(2 * n, 3)) @ rng.normal(size=(3, 3)) + 2.5 * rng.normal(size=(2, 3, 3))[y, which]
    return X, y


def fit_clone(shape, updates, X, y):
    families = [("x", Mixture(Gaussian(shape)), every, Clusters(COUNTS))]
    return GenerativeClassifier(families=families, rule="ml", max_iter=updates, stop=LastState()).fit(X, y)


def theirs(kind, start, own, X, updates):
    """scikit-learn's mixture of one class's rows, after as many steps from the same parameters."""
    form = start[KINDS[kind][1]][own]
    precisions = {
        "full": lambda: np.linalg.inv(form),
        "diag": lambda: 1 / form,
        "spherical": lambda: 1 / form[:, 0],
    }
    model = GaussianMixture(
        len(form),
        covariance_type=kind,
        reg_covar=0.0,
        tol=0.0,
        max_iter=updates,
        weights_init=np.exp(start["log_weight"][own]),
        means_init=start["mean"][own],
        precisions_init=precisions[kind](),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it has not converged, which nobody asked of it
        return model.fit(X)


@pytest.mark.parametrize("updates", [1, 5, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_expectation_maximization_is_that_of_scikit_learn(kind, updates):
    X, y = clumps()
    shape, form = KINDS[kind]
    start, end = fit_clone(shape, 0, X, y).parameters_["x"], fit_clone(shape, updates, X, y)
    ours, joint = end.parameters_["x"], end.fitted_.model.families["x"].log_density(X, end.parameters_["x"])
    for c, own in enumerate((slice(0, 2), slice(2, 5))):
        other = theirs(kind, start, own, X[y == c], updates)
        assert_allclose(np.exp(ours["log_weight"][own]), other.weights_, atol=1e-6)
        assert_allclose(ours["mean"][own], other.means_, atol=1e-6)
        found = ours[form][own][:, 0] if kind == "spherical" else ours[form][own]
        assert_allclose(found, other.covariances_, atol=1e-6)
        assert_allclose(joint[:, c], other.score_samples(X), rtol=1e-6)


def test_the_likelihood_rises_with_every_step():
    objective = fit_clone(Full(), 60, *clumps()).history_["objective"]
    assert (np.diff(objective) >= -1e-12).all()
    assert objective[-1] > objective[0] + 1e-3


def test_one_component_is_discriminant_analysis():
    X, y = clumps()
    for rule in ("ml", "rc", GDT(lam=0.4)):
        one = MixtureDiscriminantAnalysis(n_components=1, rule=rule).fit(X, y)
        assert_allclose(
            one.predict_proba(X), LinearDiscriminantAnalysis(rule=rule).fit(X, y).predict_proba(X), atol=1e-9
        )


def test_rows_with_missing_values_have_marginal_densities_and_are_filled_by_conditional_means():
    """Against direct sums over components, one row at a time."""
    X, y = clumps()
    model = MixtureDiscriminantAnalysis(n_components=COUNTS, covariance="full", rule="ml").fit(X, y)
    gaps = np.where(np.arange(X.size).reshape(X.shape) % 5 == 2, np.nan, X)[:40]
    joint, filled = model.predict_joint_log_proba(gaps), model.fill(gaps)
    for row, log_joint, whole in zip(gaps, joint, filled, strict=True):
        known = ~np.isnan(row)
        parts = [
            (
                np.log(prior)
                + np.log(w)
                + multivariate_normal.logpdf(row[known], m[known], v[np.ix_(known, known)]),
                m,
                v,
            )
            for prior, *own in zip(
                model.priors_, model.weights_, model.means_, model.covariances_, strict=True
            )
            for w, m, v in zip(*own, strict=True)
        ]
        logs = np.array([part[0] for part in parts])
        assert_allclose(log_joint, [logsumexp(logs[:2]), logsumexp(logs[2:])], atol=1e-9)
        means = [
            m[~known]
            + v[np.ix_(~known, known)] @ np.linalg.solve(v[np.ix_(known, known)], row[known] - m[known])
            for _, m, v in parts
        ]
        assert_allclose(whole[~known], np.exp(logs - logsumexp(logs)) @ np.array(means), atol=1e-9)


def test_samples_given_a_value_have_its_posterior_over_components():
    """Two distant clusters in each class: the given value identifies one."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 2)) + np.where(np.arange(400) % 4 < 2, 0.0, 9.0)[:, None]
    model = MixtureDiscriminantAnalysis(n_components=2, covariance="diagonal", rule="ml").fit(X, y)
    for value, middle in ((0.0, 0.0), (9.0, 9.0)):
        rows, _ = model.sample(300, given={0: value}, random_state=0)
        assert_allclose(rows[:, 1].mean(), middle, atol=0.3)
        assert rows[:, 1].std() < 1.3


# -- gdt-2004, Table 1 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["Balls1", "Balls2"])
@pytest.mark.parametrize("name", ["vehicle", "diabetes", "australian"])
def test_balls_of_table_1(name, model, data_file):
    """Ten trials of two rows of the table; `calibayes reproduce gdt-2004 1` runs all trials of the paper."""
    data_file(name)
    [data] = [data for data in TABLE.data if data.entry.name == name]
    chosen = tuple((label, each) for label, each in TABLE.models[model] if label in ("GEN", "GDT0.25"))
    task = SubsampleTrials(
        data.entry, Cleaning(), chosen, data.training_rows, TABLE.directions, tuple(range(10)), data.costs
    )
    for label, loss in task.run()["loss"].items():
        row = f"{model} {label}"
        chance = 3.0 * np.std(loss, ddof=1) / np.sqrt(len(loss))
        assert (
            abs(np.mean(loss) - published_table("gdt-2004", "1")[row][data.entry.label])
            <= TABLE.spread(row) + chance
        )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings(
    "ignore::calibayes.SingularCovarianceWarning"
)  # two columns of one set are proportional
def test_calibration_decides_better_than_likelihood(data_file):
    """Held-out log loss and error, averaged over sets and splits."""
    losses = {"ml": [], "rc": []}
    for name in ("vehicle", "diabetes", "blood-transfusion"):
        data = load_file(data_file(name), "target")
        for seed in range(2):
            rows = np.arange(len(data.target))
            training, held = (
                np.isin(rows, part)
                for part in train_test_split(rows, stratify=data.target, random_state=seed)
            )
            for rule, found in losses.items():
                model = MixtureDiscriminantAnalysis(rule=rule, stop=NoGain(1e-3))
                model.fit(data.data[training], data.target[training])
                log_posterior = model.predict_log_proba(data.data[held])
                truth = np.searchsorted(model.classes_, data.target[held])
                loss = -log_posterior[np.arange(len(truth)), truth].mean()
                found.append([loss, np.mean(log_posterior.argmax(axis=1) != truth)])
    ml, rc = (np.array(losses[rule]) for rule in ("ml", "rc"))
    assert (rc.mean(axis=0) < ml.mean(axis=0)).all()
    assert np.mean(rc[:, 0] < ml[:, 0]) >= 0.75
