"""The closed registry is complete, its names are distinct, and every annotation in it is understood."""

import dataclasses
import inspect
from typing import get_args

import pytest

from calibayes import dependence, encoders, engines, families, learn, rules
from calibayes.files.registry import ESTIMATORS, FOREIGN, FUNCTIONS, VALUES
from calibayes.files.value_objects import field_names, field_types, fits
from tests.contract.test_scikit_learn import ESTIMATORS as PUBLIC

BASES = {"ColumnDensity", "Density"}
"""Base classes of families that users write: such a model cannot be saved."""
OF_TRAINING = {
    "Dask",
    "DataSums",
    "Entry",
    "PairStatistics",
    "Plan",
    "Progress",
    "Run",
    "RunSnapshot",
    "Trained",
}
"""What exists while a model is trained, and in no saved model."""


def public_values():
    for package in (families, rules, learn, encoders, dependence, engines):
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isclass(value) and not getattr(value, "_is_protocol", False):
                yield name, value


def test_every_public_class_is_registered():
    missing = {name for name, value in public_values() if VALUES.get(name) is not value}
    assert missing == OF_TRAINING | BASES


def test_every_estimator_is_registered():
    assert {type(estimator) for estimator in PUBLIC} <= {entry.cls for entry in ESTIMATORS.values()}


def test_names_are_distinct():
    names = [*VALUES, *ESTIMATORS, *FOREIGN, *FUNCTIONS]
    assert len(set(names)) == len(names)
    for known in (VALUES, FOREIGN, FUNCTIONS):
        assert all(value.__name__ == name for name, value in known.items())


def parts(annotation):
    """An annotation and those inside it."""
    yield annotation
    for inner in get_args(annotation):
        if not isinstance(inner, str | list | type(...)):
            yield from parts(inner)


@pytest.mark.parametrize("cls", VALUES.values(), ids=lambda cls: cls.__name__)
def test_values_are_immutable_and_their_annotations_understood(cls):
    if dataclasses.is_dataclass(cls):
        assert cls.__dataclass_params__.frozen
    for name in field_names(cls):
        for part in parts(field_types(cls)[name]):
            assert fits(object(), part) in (True, False)
