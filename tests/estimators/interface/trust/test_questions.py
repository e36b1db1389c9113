"""Gains of questions against enumeration of all cells and against SciPy's quadrature; questionnaires end and are right."""

from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats

from calibayes import (
    AODE,
    BernoulliNB,
    CalibratedTrees,
    CategoricalNB,
    GaussianNB,
    GenerativeClassifier,
    JointKernelClassifier,
    KDependenceBayes,
    LinearDiscriminantAnalysis,
    MixtureDiscriminantAnalysis,
    NaiveBayes,
    PoissonNB,
    QuadraticDiscriminantAnalysis,
    TreeAugmentedNB,
)
from calibayes.analysis.questions import unknown_cells
from calibayes.datasets import load_penguins
from calibayes.encoders import Levels, MissingAsLevel
from calibayes.families import Categorical
from calibayes.trust import Questionnaire

COSTS = np.array([[0.0, 5.0], [1.0, 0.0]])
LEVELS = 3


def dependent_levels(n=300):
    """Two classes, columns of three levels: informative, dependent on it, and irrelevant."""
    rng = np.random.default_rng(3)
    y = (rng.random(n) < 0.4).astype(int)
    first = np.where(rng.random(n) < 0.6, y, rng.integers(0, LEVELS, n))
    second = np.where(rng.random(n) < 0.5, first, rng.integers(0, LEVELS, n))
    return np.column_stack([first, second, rng.integers(0, LEVELS, n)]), y


def entropy(p):
    p = p[p > 0]
    return -(p * np.log(p)).sum()


def enumerated_gain(model, row, j, loss):
    """The gain of column j from the probabilities of all complete rows that agree with the known cells."""
    choices = [range(LEVELS) if np.isnan(cell) else [int(cell)] for cell in row]
    complete = np.array(list(product(*choices)))
    joint = np.exp(model.predict_joint_log_proba(complete))
    by_answer = np.array([joint[complete[:, j] == v].sum(axis=0) for v in choices[j]]) / joint.sum()
    before = by_answer.sum(axis=0)
    after = sum(part.sum() * loss(part / part.sum()) for part in by_answer)
    return loss(before) - after


@pytest.mark.parametrize("estimator", [CategoricalNB, TreeAugmentedNB, KDependenceBayes])
@pytest.mark.parametrize("rule", ["ml", "rc"])
@pytest.mark.parametrize("costs", [None, COSTS], ids=["nats", "costs"])
def test_gains_are_those_of_all_complete_rows(estimator, rule, costs):
    X, y = dependent_levels()
    model = estimator(rule=rule).fit(X.astype(str) if estimator is not CategoricalNB else X, y)

    def loss(p):
        return entropy(p) if costs is None else (p @ costs).min()

    rows = np.array([[np.nan, np.nan, np.nan], [np.nan, 1, 2], [0, np.nan, np.nan], [2, 1, np.nan]])
    as_text = np.where(np.isnan(rows), None, np.nan_to_num(rows).astype(int).astype(str).astype(object))
    found = model.questions(rows if estimator is CategoricalNB else as_text, costs=costs)
    reader = model if estimator is CategoricalNB else TextRows(model)
    for i, j in zip(*np.nonzero(np.isnan(rows)), strict=True):
        assert found.gain[i, j] == pytest.approx(enumerated_gain(reader, rows[i], j, loss), abs=1e-12)
    np.testing.assert_array_equal(np.isnan(found.gain), ~np.isnan(rows))


class TextRows:
    """A model of text cells, called with integers."""

    def __init__(self, model):
        self.model = model

    def predict_joint_log_proba(self, codes):
        return self.model.predict_joint_log_proba(codes.astype(str))


def test_a_column_that_has_nothing_to_do_with_the_class_gains_nothing():
    X = np.array(list(product(range(2), range(3), range(2))) * 4)
    y = X[:, 0]
    found = CategoricalNB(rule="ml").fit(X, y).questions(np.full((1, 3), np.nan))
    assert found.gain[0, 1] == pytest.approx(0.0, abs=1e-15)
    assert found.best == ["x0"]
    assert found.gain[0, 0] > 0.4
    assert found.loss[0] == pytest.approx(np.log(2))


def numbers(n=400):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, n)
    mixing = np.array([[1.0, 0.9, 0.0], [0.0, 0.3, 0.5], [0.0, 0.0, 1.0]])
    return rng.normal(size=(n, 3)) @ mixing * (1 + y[:, None]) + np.eye(3)[y], y


@pytest.mark.parametrize(
    "model", [GaussianNB(rule="ml"), QuadraticDiscriminantAnalysis(rule="ml")], ids=["naive", "full"]
)
def test_gains_of_numbers_are_those_of_scipy(model):
    X, y = numbers()
    model.fit(X, y)
    is_full = isinstance(model, QuadraticDiscriminantAnalysis)
    family = next(name for name in model.parameters_ if name != "class_prior")
    means = model.parameters_[family]["mean"]
    covariance = model.parameters_[family]["covariance" if is_full else "variance"]
    full = [c if is_full else np.diag(c) for c in covariance]
    row, j = np.array([0.4, np.nan, np.nan]), 1
    prior = np.exp(model.parameters_["class_prior"]["log_probability"])
    known = [stats.norm(m[0], np.sqrt(c[0, 0])).pdf(row[0]) for m, c in zip(means, full, strict=True)]
    posterior = prior * known / (prior * known).sum()
    conditional = [
        stats.norm(m[j] + c[j, 0] / c[0, 0] * (row[0] - m[0]), np.sqrt(c[j, j] - c[j, 0] ** 2 / c[0, 0]))
        for m, c in zip(means, full, strict=True)
    ]

    def loss_density(x):
        joint = posterior * [density.pdf(x) for density in conditional]
        return joint.sum() * entropy(joint / joint.sum()) if joint.sum() > 0 else 0.0

    after = integrate.quad(loss_density, -40, 40, limit=2000, points=[d.mean() for d in conditional])[0]
    found = model.questions(row[None])
    assert found.gain[0, j] == pytest.approx(entropy(posterior) - after, abs=1e-7)
    assert found.loss[0] == pytest.approx(entropy(posterior), abs=1e-12)


def any_table(model):
    rng = np.random.default_rng(0)
    if isinstance(model, PoissonNB | BernoulliNB):
        y = rng.integers(0, 2, 200)
        X = rng.poisson(1 + 2 * y[:, None], (200, 3)).astype(float)
        X = np.minimum(X, 1) if isinstance(model, BernoulliNB) else X
        rows = X[:12].copy()
        rows[rng.random(rows.shape) < 0.5] = np.nan
        return X, y, rows
    X, y = load_penguins(return_X_y=True)
    if isinstance(model, LinearDiscriminantAnalysis | MixtureDiscriminantAnalysis):
        X = X.select_dtypes("number").drop(columns="year")  # its three values could have a component each
    rows = X.iloc[::30].copy()
    return X, y, rows.mask(rng.random(rows.shape) < 0.5)


@pytest.mark.parametrize(
    "model",
    [
        NaiveBayes(),
        AODE(rule="ml"),
        TreeAugmentedNB(),
        LinearDiscriminantAnalysis(),
        MixtureDiscriminantAnalysis(rule="ml"),
        PoissonNB(),
        BernoulliNB(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_values_of_an_unknown_cell_have_probability_one(model):
    X, y, rows = any_table(model)
    cells = unknown_cells(model.fit(X, y), rows)
    for j in range(len(cells.names)):
        for positions, log_joint in cells.answers(j):
            total = np.logaddexp.reduce(log_joint, axis=1)
            np.testing.assert_allclose(total, cells.log_joint[positions], atol=1e-9)
    gain = model.questions(rows).gain
    assert (gain[~np.isnan(gain)] >= 0).all()
    np.testing.assert_array_equal(np.isnan(gain), cells.known)


def test_settled_decisions_stay_as_often_as_promised():
    """Rows whose decision is settled are completed by random rows of the model: few decisions change."""
    X, y = dependent_levels()
    model = CategoricalNB(rule="ml").fit(X, y)
    rows = np.array([[0, np.nan, np.nan], [1, np.nan, np.nan], [2, 2, np.nan], [0, 0, np.nan]])
    settled = model.questions(rows, unlikely=0.0).is_settled
    assert settled.any()
    assert not settled.all()
    for row, is_settled in zip(rows, settled, strict=True):
        choices = [range(LEVELS) if np.isnan(cell) else [int(cell)] for cell in row]
        decided = set(model.predict(np.array(list(product(*choices)))).tolist())
        assert (len(decided) == 1) == is_settled


def test_settled_decisions_with_costs_never_change():
    X, y = dependent_levels()
    model = CategoricalNB(rule="ml").fit(X, y)
    for costs in (COSTS, COSTS.T, np.array([[0.0, 1.0], [30.0, 0.0]])):
        rows = np.array([[v, np.nan, np.nan] for v in range(LEVELS)])
        settled = model.questions(rows, costs=costs, unlikely=0.0).is_settled
        for row, is_settled in zip(rows, settled, strict=True):
            complete = np.array(list(product([int(row[0])], range(LEVELS), range(LEVELS))))
            assert (len(set(model.decide(complete, costs=costs).data.tolist())) == 1) == is_settled


@pytest.mark.parametrize("unlikely", [0.0, 0.01])
def test_a_questionnaire_ends_and_knows_what_the_model_knows(unlikely):
    X, y = load_penguins(return_X_y=True)
    model = NaiveBayes(rule="ml").fit(X, y)
    complete = X.dropna().iloc[[5, 170, 300]]
    for _, row in complete.iterrows():
        asked = Questionnaire(model, unlikely=unlikely)
        while (column := asked.next()) is not None:
            assert column not in asked.answers
            asked.answer(column, row[column])
        assert asked.stopped_because
        assert asked.decision() == model.predict(complete.loc[[row.name]])[0]
        for column in X.columns:
            asked.answer(column, row[column])
        assert asked.next() is None
        np.testing.assert_allclose(asked.predict_proba(), model.predict_proba(complete.loc[[row.name]])[0])


def test_a_questionnaire_stops_where_asking_costs_more_than_it_gains():
    X, y = load_penguins(return_X_y=True)
    model = NaiveBayes(rule="ml").fit(X, y)
    dear = Questionnaire(model, costs=1 - np.eye(3), ask_costs=0.9)
    assert dear.next() is None
    assert "costs" in dear.stopped_because
    cheap_island = Questionnaire(model, ask_costs=dict.fromkeys(X.columns[1:], 9.0))
    assert cheap_island.next() == "island"
    cheap_island.answer("island", None)  # cannot be known
    assert cheap_island.next() is None
    assert "island" not in cheap_island.answers


def test_missing_values_that_were_learned_are_an_answer():
    """In a column with a level for missing values, unknown is not the same as missing."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = np.where(rng.random(400) < 0.1 + 0.8 * y, None, "a").astype(object)[:, None]
    families = [("levels", Categorical(alpha=1.0), [0], MissingAsLevel(Levels()))]
    model = GenerativeClassifier(families=families, rule="ml").fit(X, y)
    found = model.questions(np.array([[None]], dtype=object))
    np.testing.assert_allclose(found.loss, [np.log(2)], atol=0.01)  # not that of a row whose value is missing
    assert found.gain[0, 0] > 0.3


def test_errors_say_what_to_do():
    X, y = load_penguins(return_X_y=True)
    model = NaiveBayes(rule="ml").fit(X, y)
    with pytest.raises(ValueError, match="no column 'wings'; the columns are"):
        Questionnaire(model).answer("wings", 2)
    with pytest.raises(ValueError, match="'bill_length_mm' holds numbers, got 'long'"):
        Questionnaire(model, {"bill_length_mm": "long"})
    with pytest.raises(TypeError, match="JointKernelClassifier has no density of its columns"):
        JointKernelClassifier().fit(X, y).questions(X)
    with pytest.raises(ValueError, match="unlikely"):
        model.questions(X, unlikely=2.0)
    with pytest.raises(ValueError, match="costs must be a matrix of 3"):
        model.questions(X, costs=np.eye(2))
    found = (
        CalibratedTrees(max_trees=3)
        .fit(X, y)
        .questions(X.iloc[:2].mask(np.ones((2, X.shape[1]), dtype=bool)))
    )
    assert set(found.left_out) == set(X.columns)
    assert not found.is_settled.any()
    assert "cannot be asked for" in str(found)


def test_results_print_as_a_table():
    X, y = load_penguins(return_X_y=True)
    found = NaiveBayes(rule="ml").fit(X, y).questions(X.iloc[[0, 3]])
    first, complete, empty = str(found).splitlines()
    assert first.split()[:3] == ["row", "expected", "loss"]
    assert complete.split()[-1] == "yes"
    assert empty.split()[2] in X.columns
    assert found.best[0] is None
    assert list(found.overall().values()) == sorted(found.overall().values(), reverse=True)
