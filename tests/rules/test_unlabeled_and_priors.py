"""Rows without a label under every rule that takes them, and the weight of the prior: laws, and written objectives."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from scipy.stats import norm

import calibayes as cb
from calibayes.core.named_arrays import add
from calibayes.engines import Serial
from calibayes.families import Dirichlet, NormalInverseWishart
from calibayes.learn import NoGain
from calibayes.learn.run import measure
from calibayes.rules import EM, GDT, MAP, RC
from tests.cases import FAMILIES
from tests.contract.tables import table
from tests.learn.training import begun, source_of
from tests.rules.test_identities import assert_trees_close, exact

TO_THE_END = {"stop": NoGain(1e-14), "max_iter": 1500}
TAKING = [EM(), RC(unlabeled=0.5), GDT(0.3, unlabeled=0.5), GDT(0.3, unlabeled=0.5, prior_weight=2.0)]
PRIOR = NormalInverseWishart(m1=3.0, m2=5.0)
MODELS = [
    cb.GaussianNB(prior=PRIOR),
    cb.LinearDiscriminantAnalysis(prior=PRIOR),
    cb.CategoricalNB(alpha=1.0),
    cb.BernoulliNB(alpha=1.0),
]


def small(n=60, every=3):
    """Two overlapping classes and three columns of numbers; only each third row has a label."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) * (1.0 + y[:, None]) + 1.2 * y[:, None]
    X[:, 2] += X[:, 0]
    return X, y, np.where(np.arange(n) % every == 0, y, np.nan)


def columns_for(model, X):
    """The columns in the form that the model reads."""
    if isinstance(model, cb.CategoricalNB):
        return np.clip(np.round(X), -2, 2).astype(int) + 2
    return (X > 0).astype(int) if isinstance(model, cb.BernoulliNB) else X


def with_rule(model, rule, **options):
    return type(model)(**{**model.get_params(deep=False), "rule": rule, **options})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize(
    ("rule", "plain"),
    [(RC(unlabeled=0.7), RC()), (GDT(0.3, unlabeled=0.7), GDT(0.3)), (GDT(0.3, prior_weight=0.3), GDT(0.3))],
    ids=["rc", "gdt", "prior"],
)
def test_without_unlabeled_rows_nothing_changes(model, rule, plain):
    X, y, _ = small()
    X = columns_for(model, X)
    models = [with_rule(model, one).fit(X, y).predict_log_proba(X) for one in (rule, plain)]
    assert_array_equal(*models)


@pytest.mark.parametrize(
    ("rule", "plain"), [(RC(unlabeled=0.7), RC()), (GDT(0.3, unlabeled=0.7), GDT(0.3))], ids=["rc", "gdt"]
)
def test_a_wide_table_has_a_temperature_with_and_without_unlabeled_rows(rule, plain):
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 60)) + 0.4 * y[:, None]
    models = [cb.GaussianNB(rule=one).fit(X, y) for one in (rule, plain)]
    assert models[0].fitted_.temperature == models[1].fitted_.temperature > 1.0
    assert_array_equal(*(model.predict_log_proba(X) for model in models))
    some = cb.GaussianNB(rule=rule).fit(X, np.where(np.arange(40) < 20, y, np.nan))
    assert some.fitted_.temperature > 1.0


@pytest.mark.parametrize("rule", TAKING, ids=str)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_order_copies_and_weights_of_rows(model, rule):
    X, _, labels = small()
    X, order = columns_for(model, X), np.random.default_rng(1).permutation(60)
    weight = np.where(np.arange(60) % 4 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(60), weight.astype(int))
    options = {"stop": None, "max_iter": 10}
    fitted = [
        with_rule(model, rule, **options).fit(X, labels, weight),
        with_rule(model, rule, **options).fit(X[order], labels[order], weight[order]),
        with_rule(model, rule, **options).fit(X[rows], labels[rows]),
    ]
    first, *others = (one.predict_log_proba(X) for one in fitted)
    for other in others:
        assert_allclose(other, first, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("weighted", "plain"),
    [
        (EM(0.4), EM()),
        (RC(unlabeled=0.4), RC(unlabeled=1.0)),
        (GDT(0.3, unlabeled=0.4), GDT(0.3, unlabeled=1)),
    ],
    ids=["em", "rc", "gdt"],
)
def test_the_weight_of_unlabeled_rows_is_a_row_weight(weighted, plain):
    X, _, labels = small()
    weight = np.where(np.isnan(labels), 0.4, 1.0)
    # By default the prior has the mean of all rows by their weight, which the rule does not know.
    prior = NormalInverseWishart(m1=3.0, m2=5.0, mean=X.mean(axis=0), covariance=X.var(axis=0))
    options = {"prior": prior, "stop": None, "max_iter": 20}
    by_rule = cb.GaussianNB(rule=weighted, **options).fit(X, labels)
    by_row = cb.GaussianNB(rule=plain, **options).fit(X, labels, weight)
    assert by_rule.n_iter_ == by_row.n_iter_ > 1
    assert_allclose(by_rule.predict_log_proba(X), by_row.predict_log_proba(X), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_generative_training_is_expectation_maximization(model):
    X, _, labels = small()
    X = columns_for(model, X)
    rules = EM(0.7), GDT(1.0, unlabeled=0.7)
    em, gdt = (with_rule(model, rule, **TO_THE_END).fit(X, labels) for rule in rules)
    assert em.history_["objective"][-1] == pytest.approx(gdt.history_["objective"][-1], abs=1e-9)
    assert_allclose(em.predict_proba(X), gdt.predict_proba(X), atol=1e-4)


def gaussian_objective(theta, X, labels, lam, unlabeled, prior_weight, prior):
    """Of one Gaussian for each of two classes and each column, as the rule's documentation has it."""
    d = X.shape[1]
    mean, variance = theta[: 2 * d].reshape(2, d), np.exp(theta[2 * d : 4 * d]).reshape(2, d)
    log_prior_of_class = log_softmax(np.append(theta[-1], 0.0))
    joint = norm.logpdf(X[:, None], mean, np.sqrt(variance)).sum(axis=2) + log_prior_of_class
    known = ~np.isnan(labels)
    true = joint[known, labels[known].astype(int)]
    conditional = true - logsumexp(joint[known], axis=1)
    rows = lam * true.sum() + (1 - lam) * conditional.sum()
    rows += lam * unlabeled * logsumexp(joint[~known], axis=1).sum()
    log_prior = -0.5 * np.sum(prior.m2 * (np.log(variance) + prior.covariance / variance))
    log_prior -= 0.5 * np.sum(prior.m1 * (mean - prior.mean) ** 2 / variance)
    return rows + prior_weight * log_prior


@pytest.mark.parametrize(
    ("lam", "unlabeled", "prior_weight"),
    [
        (1.0, 1.0, 1.0),
        (0.5, 1.0, None),
        (0.5, 0.3, None),
        (0.3, 0.5, 1.0),
        (0.1, 0.0, 2.0),
        (0.0, 0.0, 1.0),
        (0.0, 0.0, 0.2),
    ],
)
def test_gaussian_classes_reach_the_maximum_of_the_written_objective(lam, unlabeled, prior_weight):
    X, y, labels = small()
    if not unlabeled:
        labels = y.astype(float)
    prior = NormalInverseWishart(m1=3.0, m2=5.0, mean=X.mean(axis=0), covariance=X.var(axis=0))
    rule = GDT(lam, unlabeled=unlabeled, prior_weight=prior_weight)
    model = cb.GaussianNB(prior=prior, rule=rule, var_smoothing=0.0, **TO_THE_END).fit(X, labels)
    share = lam if prior_weight is None else prior_weight

    def loss(theta):
        return -gaussian_objective(theta, X, labels, lam, unlabeled, share, prior)

    log_odds = [np.log(model.class_prior_[0] / model.class_prior_[1])]
    ours = np.concatenate([model.theta_.ravel(), np.log(model.var_).ravel(), log_odds])
    rows = np.sum(~np.isnan(labels)) + lam * unlabeled * np.sum(np.isnan(labels))
    assert -loss(ours) / rows == pytest.approx(model.history_["objective"].max(), rel=1e-9)
    best = minimize(loss, ours, method="BFGS", options={"gtol": 1e-7})
    assert loss(ours) - best.fun < 1e-5
    assert_allclose(ours, best.x, atol=0.02)
    start = cb.GaussianNB(prior=prior, rule=MAP()).fit(X[~np.isnan(labels)], labels[~np.isnan(labels)])
    theta = np.concatenate([start.theta_.ravel(), np.log(start.var_).ravel(), [0.0]])
    assert loss(ours) < minimize(loss, theta, method="BFGS").fun + 1e-4


@pytest.mark.parametrize(("lam", "prior_weight"), [(0.0, 3.0), (0.2, 1.0), (0.6, 4.0)])
def test_counts_reach_the_maximum_of_the_written_objective(lam, prior_weight):
    """Of three binary columns, where no count of the maximum would be negative."""
    X, y, _ = small()
    X = (X > 0).astype(int)
    rule = GDT(lam, prior_weight=prior_weight)
    models = [
        one(prior=Dirichlet(2.0), rule=rule, **TO_THE_END).fit(X, y)
        for one in (cb.CategoricalNB, cb.BernoulliNB)
    ]
    assert_allclose(models[0].predict_log_proba(X), models[1].predict_log_proba(X), rtol=1e-5)

    def loss(theta):
        log_p = -np.logaddexp(0.0, -theta[:6]).reshape(2, 3), -np.logaddexp(0.0, theta[:6]).reshape(2, 3)
        joint = X @ log_p[0].T + (1 - X) @ log_p[1].T + log_softmax(np.append(theta[6], 0.0))
        true = joint[np.arange(len(y)), y]
        conditional = true - logsumexp(joint, axis=1)
        return -(lam * true + (1 - lam) * conditional).sum() - prior_weight * np.sum(log_p)

    best = minimize(loss, np.zeros(7), method="BFGS", options={"gtol": 1e-8})
    assert -best.fun / len(y) == pytest.approx(models[1].history_["objective"].max(), rel=1e-6)


@pytest.mark.filterwarnings(
    "ignore:the objective of rule 'gdt' was still rising:sklearn.exceptions.ConvergenceWarning"
)
def test_a_heavier_prior_draws_the_parameters_towards_it():
    X, y, _ = small()
    target = np.full(3, 3.0)
    prior = NormalInverseWishart(m1=2.0, m2=5.0, mean=target, covariance=np.ones(3))
    distances = [
        np.abs(
            cb.GaussianNB(prior=prior, rule=GDT(0.0, prior_weight=w), **TO_THE_END).fit(X, y).theta_ - target
        )
        for w in (1.0, 3.0, 10.0)
    ]
    assert np.all(np.diff([distance.mean() for distance in distances]) < 0)


DIRECTIONS = [
    name for name, case in FAMILIES.items() if hasattr(case.family, "prior_direction") and not case.has_hidden
]


@pytest.mark.parametrize("name", DIRECTIONS)
def test_prior_direction_raises_the_log_prior(name):
    """A small step along it from the parameters of the rows, and none at all where the rows are the prior's."""
    case = exact(name)
    weights = np.eye(case.k)[np.arange(len(case.columns)) % case.k]
    family = case.family
    start = family.statistics(case.columns, weights)
    family = family.prepare(start)
    parameters = family.parameters(start)
    direction = family.prior_direction(parameters)
    step = 1e-4
    moved = {key: value + step * direction.get(key, 0.0) for key, value in start.items()}
    rise = family.log_prior(family.parameters(moved)) - family.log_prior(parameters)
    is_zero = all(np.allclose(value, 0.0) for value in direction.values())
    assert rise == 0.0 if is_zero else rise > 0.0


def test_unlabeled_rows_need_a_rule_that_takes_them():
    X, _, labels = small()
    for rule in ("rc", "gdt", GDT(0.5), RC()):
        with pytest.raises(ValueError, match=r"missing labels \(40 rows\).*GDT\(unlabeled=1\)"):
            cb.GaussianNB(rule=rule).fit(X, labels)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (GDT, {"unlabeled": -1}, r"unlabeled must be a finite number between 0 and 1e\+06, got -1"),
        (RC, {"unlabeled": np.nan}, r"unlabeled must be a finite number between 0 and 1e\+06, got nan"),
        (EM, {"unlabeled": 0}, "must be positive for EM"),
        (GDT, {"prior_weight": "1"}, "prior_weight must be a number, got str"),
        (GDT, {"prior_weight": True}, "prior_weight must be a number, got bool"),
    ],
)
def test_invalid_weights_are_refused(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_a_family_without_such_a_prior_is_refused():
    X, y = table(100)
    with pytest.raises(ValueError, match="a prior that is equivalent to pseudo-rows"):
        cb.TreeAugmentedNB(rule=GDT(0.5, prior_weight=1.0)).fit(X, y)


@pytest.mark.parametrize("rule", TAKING, ids=str)
@pytest.mark.parametrize("family", ["categorical", "gaussian-within", "poisson"])
def test_blocks_with_and_without_unlabeled_rows(family, rule):
    """They take different kernels; the sums over blocks are the same."""
    case = exact(family)
    source = source_of(case)
    source.labels[::3] = -1
    begun_run, _ = begun(case, rule, Serial(), source)
    block = source.parts()[0]()
    parts = [_rows_of(block, block.labels < 0), _rows_of(block, block.labels >= 0)]
    whole, *sums = (
        measure(part, begun_run.model, rule, begun_run.candidate.parameters) for part in (block, *parts)
    )
    assert_trees_close({"": whole["statistics"]}, {"": add(*(one["statistics"] for one in sums))}, 1e-9)
    for name in ("objective", "size"):
        assert whole[name] == pytest.approx(sum(one[name] for one in sums), rel=1e-10)


def _rows_of(block, mask):
    columns = {name: array[mask] for name, array in block.columns.items()}
    return replace(
        block,
        columns=columns,
        labels=block.labels[mask],
        weight=block.weight[mask],
        held_out=block.held_out[mask],
    )


def test_calibration_with_unlabeled_rows_starts_where_expectation_maximization_ends():
    X, _, labels = small()
    X = np.clip(np.round(X), -2, 2).astype(int) + 2
    options = {"alpha": 1.0, "max_iter": 64}
    em = cb.CategoricalNB(rule=EM(0.5), **options).fit(X, labels)
    rc = cb.CategoricalNB(rule=RC(unlabeled=0.5), **options).fit(X, labels)
    from_labels = cb.TrainingOptions(start="data")
    at_labels = cb.CategoricalNB(rule=RC(unlabeled=0.5), training=from_labels, **options).fit(X, labels)
    loss_of_em, loss_of_rc = em.history_["log_loss"][em.best_iter_], rc.history_["log_loss"]
    assert loss_of_rc[0] == pytest.approx(loss_of_em, rel=1e-12)
    assert abs(at_labels.history_["log_loss"][0] - loss_of_em) > 1e-3
    assert loss_of_rc[-1] < loss_of_rc[0]
    assert np.all(np.diff(loss_of_rc) <= 1e-15)
    assert_allclose(rc.history_["objective"], -loss_of_rc)


@pytest.mark.parametrize("rule", TAKING, ids=str)
def test_a_model_file_has_the_weights(rule, tmp_path):
    X, _, labels = small()
    model = cb.GaussianNB(prior=PRIOR, rule=rule, stop=None, max_iter=5).fit(X, labels)
    cb.save(model, tmp_path / "model.safetensors")
    loaded = cb.load(tmp_path / "model.safetensors")
    assert loaded.rule == rule
    assert_array_equal(loaded.predict_log_proba(X), model.predict_log_proba(X))


@pytest.mark.parametrize("rule", TAKING, ids=str)
def test_further_unlabeled_rows(rule):
    X, y, labels = small()
    model = cb.GaussianNB(prior=PRIOR, rule=rule)
    model.partial_fit(X[:30], labels[:30], classes=[0, 1]).partial_fit(X[30:], labels[30:])
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert model.score(X, y) > 0.6
