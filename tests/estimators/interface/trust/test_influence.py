"""Changes of the loss without rows against models that are fitted again without them."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from calibayes import (
    CategoricalNB,
    GaussianNB,
    GenerativeClassifier,
    JointKernelClassifier,
    LinearDiscriminantAnalysis,
    MixtureDiscriminantAnalysis,
    NaiveBayes,
    QuadraticDiscriminantAnalysis,
    TreeAugmentedNB,
    categorical,
    numeric,
)
from calibayes.datasets import load_penguins
from calibayes.families import Categorical, Diagonal, Gaussian
from calibayes.trust import Influence


def numbers():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order, :5], y[order]
    return X[:60], y[:60], X[60:], y[60:]


def levels():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 40)
    X = np.where(rng.random((80, 3)) < 0.6, y[:, None], rng.integers(0, 3, (80, 3)))
    order = rng.permutation(80)
    return X[order[:50]], y[order[:50]], X[order[50:]], y[order[50:]]


def refitted(model, X, y, X_test, y_test, keep, weight=None):
    """Log loss after a fit to some rows."""
    again = model.__class__(**model.get_params()).fit(
        X[keep], y[keep], None if weight is None else weight[keep]
    )
    return loss_of(again, X_test, y_test)


def loss_of(model, X_test, y_test):
    """Log loss; probabilities are not clipped."""
    codes = np.searchsorted(model.classes_, y_test)
    return -model.predict_log_proba(X_test)[np.arange(len(codes)), codes].mean()


CLOSED_FORMS = [
    (GaussianNB(rule="ml", var_smoothing=0), numbers),
    (LinearDiscriminantAnalysis(rule="ml"), numbers),
    (QuadraticDiscriminantAnalysis(rule="ml"), numbers),
    (CategoricalNB(rule="ml", min_categories=3), levels),
    (TreeAugmentedNB(rule="ml"), levels),
]


@pytest.mark.parametrize(("model", "table"), CLOSED_FORMS, ids=lambda value: type(value).__name__)
def test_closed_forms_are_exactly_those_of_fits_without_the_rows(model, table):
    X, y, X_test, y_test = table()
    X, X_test = (X.astype(str), X_test.astype(str)) if isinstance(model, TreeAugmentedNB) else (X, X_test)
    found = model.fit(X, y).influence(X, y, X_test, y_test)
    assert found.is_exact
    everything = np.ones(len(y), dtype=bool)
    before = refitted(model, X, y, X_test, y_test, everything)
    assert found.loss == pytest.approx(before, rel=1e-9)
    for i in range(0, len(y), 12):
        without = refitted(model, X, y, X_test, y_test, np.arange(len(y)) != i)
        assert found.values[i] == pytest.approx(without - before, abs=1e-9)
    assert found.values.shape == y.shape
    assert (found.values > 0).any()
    assert (found.values < 0).any()


def test_groups_and_weights_are_left_out_as_a_whole():
    X, y, X_test, y_test = numbers()
    model = GaussianNB(rule="ml", var_smoothing=0)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    groups = np.arange(len(y)) % 4
    found = model.fit(X, y, weight).influence(X, y, X_test, y_test, groups=groups, sample_weight=weight)
    before = refitted(model, X, y, X_test, y_test, np.ones(len(y), dtype=bool), weight)
    for group, value in found.by_group().items():
        without = refitted(model, X, y, X_test, y_test, groups != group, weight)
        assert value == pytest.approx(without - before, abs=1e-9)
    assert list(found.by_group().values()) == sorted(found.values)
    single = model.influence(X, y, X_test, y_test, sample_weight=weight)
    assert (single.values[weight == 0] == 0).all()
    assert (single.values[weight > 0] != 0).all()


def test_only_a_level_of_the_left_out_group_alone_makes_a_difference():
    """It keeps its place and its smoothing here, while a fit without the group does not know it."""
    X, y, X_test, y_test = (part.astype(str) for part in levels())
    groups = np.arange(len(y)) % 5
    X[groups == 2, 1] = np.where(X[groups == 2, 1] == "0", "of group 2", X[groups == 2, 1])
    model = CategoricalNB(rule="ml").fit(X, y)
    found = model.influence(X, y, X_test, y_test, groups=groups)
    refits = [refitted(model, X, y, X_test, y_test, groups != group) for group in found.groups]
    difference = np.abs(found.values + found.loss - refits)
    np.testing.assert_array_less(np.delete(difference, 2), 1e-12)
    assert difference[2] > 1e-4


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_calibrated_models_change_as_fits_without_a_group_do():
    X, y = load_penguins(return_X_y=True)
    families = [("numbers", Gaussian(Diagonal()), numeric), ("levels", Categorical(alpha=1.0), categorical)]
    model = GenerativeClassifier(families=families, max_iter=5)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))
    training, test = order[:240], order[240:]
    X_train, y_train = X.iloc[training], y.to_numpy()[training].copy()
    groups = np.arange(240) % 12
    wrong = groups < 3
    y_train[wrong] = rng.permutation(y_train[wrong])  # the labels of three sources are of no use
    model.fit(X_train, y_train)
    found = model.influence(X_train, y_train, X.iloc[test], y.to_numpy()[test], groups=groups)
    assert not found.is_exact
    refits = [
        loss_of(
            GenerativeClassifier(families=families, max_iter=5).fit(
                X_train[groups != group], y_train[groups != group]
            ),
            X.iloc[test],
            y.to_numpy()[test],
        )
        for group in found.groups
    ]
    np.testing.assert_allclose(found.values, np.array(refits) - found.loss, atol=1e-8)
    assert set(list(found.by_group())[:3]) == {0, 1, 2}


def test_hidden_components_are_approximated():
    X, y, X_test, y_test = numbers()
    model = MixtureDiscriminantAnalysis(rule="ml", max_iter=20).fit(X, y)
    found = model.influence(X, y, X_test, y_test, groups=np.arange(len(y)) % 5)
    assert not found.is_exact
    assert np.isfinite(found.values).all()


def test_a_class_without_rows_has_no_model():
    X, y, X_test, y_test = numbers()
    groups = np.where(y == 0, "first", "others")
    found = NaiveBayes(rule="ml").fit(X, y).influence(X, y, X_test, y_test, groups=groups)
    assert np.isnan(found.by_group()["first"])


def test_errors_say_what_to_do():
    X, y, X_test, y_test = numbers()
    model = QuadraticDiscriminantAnalysis(max_iter=3, stop=None).fit(X, y)
    with pytest.raises(ValueError, match="needs all rows of `fit`"):
        model.influence(X[:50], y[:50], X_test, y_test)
    with pytest.raises(ValueError, match="more rows to forget than were learned"):
        GaussianNB(rule="ml").fit(X[y < 2], y[y < 2]).influence(
            np.repeat(X[y < 2], 9, axis=0),
            np.repeat(y[y < 2], 9),
            X[y < 2],
            y[y < 2],
            groups=[0] * (9 * (y < 2).sum()),
        )
    with pytest.raises(ValueError, match="one for each row"):
        model.influence(X, y, X_test, y_test, groups=[1, 2])
    with pytest.raises(TypeError, match="JointKernelClassifier is no function of sums over rows"):
        JointKernelClassifier().fit(X, y).influence(X, y, X_test, y_test)


def test_results_print():
    shown = str(Influence(np.array([0.01, -0.02]), 0.5, ("north", "south"), is_exact=True)).splitlines()
    assert shown[0] == "log loss 0.5000 with all rows; changes are exact"
    assert shown[2].split() == ["south", "-0.020000"]
