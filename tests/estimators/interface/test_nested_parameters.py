"""`rule__lam` and its kin in `get_params`, `set_params`, `clone` and a grid search."""

import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import calibayes as cb
from calibayes.families import ClassPrior, Dirichlet
from calibayes.learn import NoGain
from calibayes.rules import GDT, RC, Backtracking

X, y = load_iris(return_X_y=True)


def test_fields_of_immutable_parameters_are_listed():
    model = cb.NaiveBayes(rule=GDT(lam=0.3, step=Backtracking(start=0.2)), priors=ClassPrior(alpha=2.0))
    listed = model.get_params()
    assert listed["rule__lam"] == 0.3
    assert listed["rule__step__start"] == 0.2
    assert listed["priors__alpha"] == 2.0
    assert "rule__control" not in listed  # computed from step
    assert "priors__layout" not in listed  # added by training
    assert not [name for name in model.get_params(deep=False) if "__" in name]


def test_set_params_replaces_the_object():
    rule = GDT(lam=0.3)
    model = cb.NaiveBayes(rule=rule)
    assert model.set_params(rule__lam=0.7, max_iter=5) is model
    assert (model.rule, model.max_iter) == (GDT(lam=0.7), 5)
    assert rule.lam == 0.3


def test_an_object_and_its_parameters_are_set_together():
    model = cb.GaussianNB().set_params(rule__step__start=0.1, rule__step=Backtracking(), rule=RC())
    assert model.rule == RC(Backtracking(start=0.1))


def test_stops_and_training_options_are_reached():
    model = cb.GaussianNB(stop=NoGain(), training=cb.TrainingOptions(batch_size=10))
    field = next(name for name in model.get_params() if name.startswith("stop__"))
    assert model.set_params(**{field: model.get_params()[field]}).stop == NoGain()
    assert model.set_params(training__batch_size=20).training.batch_size == 20


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (cb.TradeOffCV(cb.NaiveBayes(rule=GDT())), "estimator__rule__lam"),
        (make_pipeline(StandardScaler(), cb.GaussianNB(rule=GDT())), "gaussiannb__rule__lam"),
    ],
)
def test_nested_estimators_are_reached(model, name):
    assert model.set_params(**{name: 0.25}).get_params()[name] == 0.25
    assert clone(model).get_params()[name] == 0.25


def test_grid_search_over_a_parameter_of_the_rule():
    search = GridSearchCV(cb.NaiveBayes(rule=GDT()), {"rule__lam": [0.1, 0.5]}, cv=2).fit(X, y)
    assert search.best_estimator_.rule.lam == search.best_params_["rule__lam"]


def test_a_grid_search_fits_what_direct_parameters_fit():
    grid = {"rule__lam": [0.1, 0.5]}
    nested = GridSearchCV(cb.GaussianNB(rule=GDT()), grid, cv=2).fit(X, y)
    direct = GridSearchCV(cb.GaussianNB(), {"rule": [GDT(lam) for lam in grid["rule__lam"]]}, cv=2).fit(X, y)
    assert nested.cv_results_["mean_test_score"].tolist() == direct.cv_results_["mean_test_score"].tolist()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"rule__gain": 1}, r"rule=GDT\(.*\) has the parameters lam, step"),
        ({"rule": "gdt", "rule__lam": 0.1}, "rule='gdt' has no parameters that can be set"),
        ({"rule__step__start": 0.1}, "rule__step=None has no parameters that can be set"),
        ({"rules__lam": 0.1}, "Invalid parameter 'rules'"),
        ({"rule__control": None}, "Invalid parameter rule__control"),
        ({"rule__lam": 7.0}, "lam must lie between 0 and 1"),
    ],
)
def test_unknown_names_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        cb.NaiveBayes(rule=GDT()).set_params(**parameters)


def test_values_without_fields_are_left_alone():
    assert "priors__alpha" not in cb.NaiveBayes(priors=Dirichlet).get_params()  # a class, not an object
