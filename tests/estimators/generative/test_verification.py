"""A fitted generative model whose parts do not fit together is refused."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

import calibayes as cb
from calibayes.encoders.numbers import Numbers
from tests.contract.tables import table


def fitted(rule="ml", **options):
    return cb.GaussianNB(rule=rule, **options).fit(*table(60)).fitted_


def damaged_arrays(trees, change):
    """Trees with one array of the family changed."""
    (family,) = [name for name in trees if name != "class_prior"]
    name = next(iter(trees[family]))
    return {**trees, family: {**trees[family], name: change(trees[family][name])}}


@pytest.mark.parametrize("field", ["data_statistics", "state", "statistics", "parameters"])
@pytest.mark.parametrize(
    "change", [lambda array: array[:1], lambda array: array * np.nan, lambda array: array.astype(object)]
)
def test_damaged_arrays_are_refused(field, change):
    model = fitted()
    model.verify()
    with pytest.raises(ValueError, match=r"must have shape|NaN|has the type"):
        replace(model, **{field: damaged_arrays(getattr(model, field), change)}).verify()


@pytest.mark.parametrize("field", ["data_statistics", "state", "statistics", "parameters"])
def test_arrays_without_the_class_prior_are_refused(field):
    model = fitted()
    arrays = {name: part for name, part in getattr(model, field).items() if name != "class_prior"}
    with pytest.raises(ValueError, match="'class_prior'"):
        replace(model, **{field: arrays}).verify()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes": np.array(["x", "x", "z"])}, "each once"),
        ({"classes": np.array(["z", "y", "x"])}, "ascending"),
        ({"classes": np.array([])}, "must be labels"),
        ({"classes": np.array([["x", "y", "z"]])}, "classes must have shape"),
        ({"classes": np.array([1, "b", None], dtype=object)}, "missing"),
        ({"classes": np.array([1, "b", "c"], dtype=object)}, "ascending"),
        ({"classes": np.array(["x", "y", "zz"])}, "other classes"),
        ({"classes": np.array(["x", "y"])}, "other classes"),
        ({"temperature": 0.0}, "temperature"),
        ({"temperature": np.nan}, "temperature"),
        ({"temperature": np.inf}, "temperature"),
        ({"n_iter": 0}, "n_iter"),
        ({"best_iter": 7}, "best_iter"),
        ({"best_iter": -1}, "best_iter"),
        ({"history": {"error": np.zeros(3), "log_loss": np.zeros(2)}}, "differ in length"),
        ({"history": {"error": np.zeros((2, 2))}}, "error must have shape"),
        ({"state": None}, "without a state"),
        ({"statistics": None}, "statistics of rule 'ml'"),
        ({"parameters": None}, "without a state, or the reverse"),
        ({"rule": cb.rules.GD()}, "statistics of rule 'gd'"),
    ],
)
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(fitted(), **changes).verify()


def test_the_state_of_gradient_descent_is_its_parameters():
    model = fitted("gd", max_iter=3)
    model.verify()
    with pytest.raises(ValueError, match="missing or unknown"):
        replace(model, state=model.data_statistics).verify()
    with pytest.raises(ValueError, match="statistics of rule 'gd'"):
        replace(model, statistics=model.data_statistics).verify()


def test_a_model_without_parameters_passes():
    X, y = table(60)
    model = cb.GaussianNB(rule="rc").partial_fit(X[:1], y[:1], classes=["x", "y", "z"]).fitted_
    assert model.parameters is None
    model.verify()


def test_a_layout_that_is_not_that_of_the_encoder_is_refused():
    model = fitted()
    [(name, family)] = model.model.families.items()
    layout = replace(family.layout, center=family.layout.center + 1.0)
    other = replace(model.model, families={name: replace(family, layout=layout)})
    with pytest.raises(ValueError, match="not that of its encoder"):
        replace(model, model=other).verify()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda name, b: {"chosen": {name: ()}}, "no columns"),
        (lambda name, b: {"chosen": {name: (0, 1, 2, 3, 9)}}, r"position \[9\] of 5"),
        (lambda name, b: {"chosen": {name: (0, 1, 2, 3, -1)}}, r"position \[-1\] of 5"),
        (lambda name, b: {"chosen": {name: (0, 1, 2, 3, 3)}}, "reads other columns"),
        (lambda name, b: {"chosen": {}}, "chosen columns"),
        (lambda name, b: {"encoders": {}}, "encoders"),
        (lambda name, b: {"families": {}}, "no family"),
        (lambda name, b: {"types": b.types[:2]}, "types must have 5 entries"),
        (lambda name, b: {"names": ("a", *b.names[1:])}, "other columns than those of the table"),
        (
            lambda name, b: {"encoders": {name: replace(b.encoders[name], indices=(0, 1, 2, 3, 9))}},
            "reads other columns",
        ),
    ],
)
def test_damaged_bindings_are_refused(changes, message):
    binding = fitted().binding
    (name,) = binding.families
    assert isinstance(binding.encoders[name], Numbers)
    with pytest.raises(ValueError, match=message):
        replace(binding, **changes(name, binding)).verify()


def test_a_model_without_any_rows_has_no_parameters():
    X, y = table(60)
    model = cb.GaussianNB(rule="ml").fit(X, y).forget(X, y)
    assert "no rows" in model.fitted_.lacking
    with pytest.raises(ValueError, match="not enough rows have been seen yet"):
        model.predict(X)


@pytest.mark.parametrize(("error", "is_valid"), [(1e-15, True), (1e-3, False)])
def test_the_layout_of_another_processor_is_equal_to_rounding(error, is_valid):
    """Logarithms of the widths of bins are computed again from their edges."""
    X, y = table(60)
    model = cb.NaiveBayes(discretize="kmeans", rule="ml").fit(X, y).fitted_
    (name, family), *_ = model.model.families.items()
    layout = replace(family.layout, log_volume=family.layout.log_volume * (1 + error))
    moved = replace(model.model, families={name: replace(family, layout=layout)})
    with nullcontext() if is_valid else pytest.raises(ValueError, match="layout"):
        replace(model, model=moved).verify()
