"""Damaged families are refused; what the laws cannot damage for all families alike (`testing/verification_laws.py`)."""

from dataclasses import replace
from functools import partial
from inspect import isabstract

import numpy as np
import pytest

from calibayes import families
from calibayes.core.abilities import Structured, Verifiable, VerifiableStructure
from calibayes.core.protocols import Layout
from calibayes.families import (
    ClassPrior,
    Complement,
    Full,
    Gaussian,
    Inflated,
    NormalInverseWishart,
    Product,
    Tied,
    TreeCovariance,
)
from calibayes.families.covariance_shapes import (
    FixedCovariance,
    Ridge,
    TowardsIdentity,
    TowardsSphere,
    VarianceSmoothing,
    WeightedTied,
)
from calibayes.families.tree_structures import cells_of_pairs
from calibayes.kernels.level_pairs import column_pairs
from calibayes.model.binding import FAMILY_METHODS
from tests.cases import CLASSES, FAMILIES, K, gaussian, gaussian_tree

LAYOUT = Layout(CLASSES, ("x0", "x1"))
CELLS = Layout(CLASSES, ("x0", "x1"), levels=(4, 5), ordered=(2, 3), log_volume=np.zeros(9))


@pytest.mark.parametrize("name", FAMILIES)
def test_all_families_are_verifiable(name):
    family = FAMILIES[name].family
    assert isinstance(family, Verifiable)
    assert isinstance(family, Structured) == isinstance(family, VerifiableStructure)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (replace(CELLS, levels=(4,)), "levels must have 2 entries, got 1"),
        (replace(CELLS, ordered=(2, 3, 4)), "ordered must have 2 entries, got 3"),
        (replace(CELLS, gappy=(True,)), "gappy must have 2 entries, got 1"),
        (replace(CELLS, levels=(0, 9)), "a column without any level"),
        (replace(CELLS, levels=(-1, 10)), "a column without any level"),
        (replace(CELLS, levels=(10**12, 5)), r"log_volume must have shape \(1000000000005\)"),
        (replace(CELLS, ordered=(5, 3)), "5 of 4 levels"),
        (replace(CELLS, ordered=(-1, 3)), "-1 of 4 levels"),
        (replace(CELLS, ordered=(4, 3), gappy=(True, False)), "4 of 4 levels"),
        (replace(CELLS, ordered=(3, 3), gridded=True), "two cells beyond its points"),
        (replace(LAYOUT, ordered=(0, 0)), "without levels"),
        (replace(LAYOUT, center=np.zeros(3)), "center must have shape"),
        (replace(LAYOUT, center=np.array([0.0, np.inf])), "center contains NaN or infinity"),
        (replace(LAYOUT, variance=np.array([1.0, -1.0])), "variance contains numbers below 0"),
        (replace(LAYOUT, seeds=(np.zeros((1, 3)),)), "seeds must have shape"),
        (replace(LAYOUT, seeds=(np.zeros((0, 2)),)), "without any component"),
        (replace(LAYOUT, seeds=(np.zeros((1, 2)),) * 4), "more classes than there are"),
    ],
)
def test_damaged_layouts_are_refused(layout, message):
    with pytest.raises(ValueError, match=message):
        layout.verify()


def test_valid_layouts_pass():
    for layout in (
        LAYOUT,
        CELLS,
        replace(CELLS, gridded=True),
        replace(CELLS, gappy=(True, True)),
        Layout((), ()),
    ):
        layout.verify()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parents": ((1, 0, -1, -1),) * K}, "a cycle"),
        ({"parents": ((0, -1, -1, -1),) * K}, "a cycle"),
        ({"parents": ((-1, 2, 3, 1),) * K}, "a cycle"),
        ({"parents": ((-1, 9, -1, -1),) * K}, "outside of 4 columns"),
        ({"parents": ((-1, -2, -1, -1),) * K}, "outside of 4 columns"),
        ({"parents": ((-1, -1, -1),) * K}, "must have 4 entries"),
        ({"parents": ((-1, -1, -1, -1),) * 2}, "must have 3 entries"),
        ({"parents": None}, "parents is missing"),
        ({"max_cells": 3}, "more than 3 cells"),
        ({"widths": None}, "widths must be an array"),
        ({"widths": np.ones((K, 4))}, "unordered levels"),
        ({"prepared_pseudo_counts": -np.ones((K, 10))}, "prepared_pseudo_counts"),
    ],
)
def test_damaged_trees_are_refused(changes, message):
    family = FAMILIES["tree-smoothed"].prepared()
    family.verify()
    with pytest.raises(ValueError, match=message):
        replace(family, **changes).verify()


@pytest.mark.parametrize("most", [0, 3, 6, 12, 100])
@pytest.mark.parametrize("levels", [(), (3,), (2, 4, 3, 1, 4, 4, 2), (1,) * 9])
def test_cells_of_pairs_are_those_of_the_listed_pairs(levels, most):
    assert cells_of_pairs(levels, most) == column_pairs(levels, most).first[-1]


@pytest.mark.parametrize("parents", [((1, 0, -1),) * K, ((-1, 0),) * K, ((-1, 0, 1),)])
def test_damaged_tree_covariances_are_refused(parents):
    family = gaussian_tree(TreeCovariance()).prepared()
    family.verify()
    with pytest.raises(ValueError, match="parents"):
        replace(family, shape=replace(family.shape, parents=parents)).verify()


@pytest.mark.parametrize(
    "changes",
    [
        {"m1": np.ones(2)},
        {"m2": -np.ones(K)},
        {"mean": np.array([0.0, np.nan])},
        {"covariance": np.eye(3)},
        {"covariance": np.ones(2)},
        {"covariance": -np.eye(2)},
    ],
)
def test_damaged_priors_are_refused(changes):
    family = gaussian(Full(), prior=NormalInverseWishart()).prepared()
    with pytest.raises(ValueError, match=r"m1|m2|prior"):
        replace(family, resolved=replace(family.resolved, **changes)).verify()


@pytest.mark.parametrize(
    "regularizer",
    [
        Ridge(1e-6, np.ones(3)),
        Ridge(1e-6, np.array([1.0, np.nan])),
        Inflated(2.0, Ridge(1e-6, np.ones(3))),
        FixedCovariance(np.eye(3)[None]),
        FixedCovariance(np.eye(2)),
        FixedCovariance(np.array([[[1.0, 2.0], [2.0, 1.0]]])),
    ],
)
def test_regularizers_of_other_columns_are_refused(regularizer):
    family = gaussian(Tied()).prepared()
    replace(family, regularizer=FixedCovariance(np.eye(2)[None])).verify()
    with pytest.raises(ValueError, match=r"variances|covariance"):
        replace(family, regularizer=regularizer).verify()


@pytest.mark.parametrize(
    "regularizer",
    [
        VarianceSmoothing(-1.0),
        VarianceSmoothing(1e-9, np.nan),
        TowardsIdentity(1.5),
        TowardsSphere(-0.5),
        Ridge(np.inf),
        Ridge(1e-6, np.array([-1.0])),
    ],
)
def test_impossible_regularizers_are_refused(regularizer):
    with pytest.raises(ValueError, match=r"share|epsilon|variances"):
        regularizer.verify()
    with pytest.raises(ValueError, match=r"share|epsilon|variances"):
        replace(gaussian(Tied()).prepared(), regularizer=regularizer).verify()


@pytest.mark.parametrize("weights", [(0.5, 0.5), (1.0, np.nan, 0.0), (1.5, -0.5, 0.0)])
def test_damaged_weights_of_classes_are_refused(weights):
    family = gaussian(WeightedTied((0.2, 0.3, 0.5))).prepared()
    family.verify()
    with pytest.raises(ValueError, match="weights"):
        replace(family, shape=WeightedTied(weights)).verify()


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("name", ["covariance", "whitener"])
def test_a_whitener_of_another_covariance_is_refused(name, scale):
    family, start = FAMILIES["gaussian-Full"].prepared(), FAMILIES["gaussian-Full"].start()
    parameters = family.parameters(start)
    with pytest.raises(ValueError, match="does not belong to covariance"):
        family.verify_parameters({**parameters, name: scale * parameters[name]})


@pytest.mark.parametrize("family", [name for name in FAMILIES if name.startswith(("gaussian", "mixture"))])
def test_negative_covariances_are_refused(family):
    """Also where the density would not show it, because it is computed from another parameter."""
    prepared = FAMILIES[family].prepared()
    parameters = prepared.parameters(FAMILIES[family].start())
    negated = {"variance", "covariance", "whitener"} & set(parameters)
    assert negated
    for name in negated:
        with pytest.raises(ValueError, match=r"variance|diagonal|covariance"):
            prepared.verify_parameters({**parameters, name: -parameters[name]})


def test_an_indefinite_covariance_is_refused():
    family, start = FAMILIES["gaussian-Full"].prepared(), FAMILIES["gaussian-Full"].start()
    parameters = family.parameters(start)
    covariance = parameters["covariance"].copy()
    covariance[0] = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.raises(ValueError, match="does not belong to covariance"):
        family.verify_parameters({**parameters, "covariance": covariance})
    covariance[0] = [[1.0, 0.5], [0.0, 1.0]]
    with pytest.raises(ValueError, match="covariance does not agree"):
        family.verify_parameters({**parameters, "covariance": covariance})


def test_tied_variances_that_differ_are_refused():
    case = FAMILIES["gaussian-TiedDiagonal"]
    parameters = case.prepared().parameters(case.start())
    variance = parameters["variance"] * np.arange(1.0, K + 1)[:, None]
    with pytest.raises(ValueError, match="differs between classes"):
        case.prepared().verify_parameters({**parameters, "variance": variance})


def test_ill_conditioned_covariances_pass():
    """Columns of different units, and columns that are nearly determined by others."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(60, 3))
    for scales, share in (((1e-90, 1.0, 1e90), 1.0), ((1.0, 1.0, 1.0), 1e-5)):
        columns = np.column_stack([noise[:, 0], noise[:, 1], noise[:, 0] + share * noise[:, 2]]) * scales
        layout = Layout(("a",), ("x", "y", "z"), center=np.zeros(3), variance=columns.var(axis=0))
        family = Gaussian(Full()).bind(layout)
        statistics = family.statistics(columns, np.ones((60, 1)))
        family.verify_parameters(family.parameters(statistics))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": (np.zeros((1, 2)),) * 2}, "seeds must have 3 entries"),
        ({"seeds": (np.zeros((1, 2)),) * 3}, "classes of the components must have 3 entries"),
        ({"columns": ("a", "b")}, "other columns"),
    ],
)
def test_damaged_mixtures_are_refused(changes, message):
    family = FAMILIES["mixture-ragged"].prepared()
    family.verify()
    with pytest.raises(ValueError, match=message):
        replace(family, layout=replace(family.layout, **changes)).verify()


@pytest.mark.parametrize("norm", [False, True])
def test_weights_of_complement_naive_bayes(norm):
    case = FAMILIES["multinomial"]
    family = Complement(norm=norm).bind(case.layout)
    statistics = family.statistics(case.columns, case.labels())
    parameters = family.parameters(statistics)
    family.verify_parameters(parameters)
    family.verify_statistics(statistics)
    for damaged in (2.0 * parameters["weight"], -parameters["weight"], parameters["weight"][:2]):
        with pytest.raises(ValueError, match="weight"):
            family.verify_parameters({"weight": damaged})


@pytest.mark.parametrize(
    "prior",
    [
        ClassPrior(fixed=np.array([0.5, 0.5])),
        ClassPrior(fixed=np.array([0.5, 0.5, 0.5])),
        ClassPrior(fixed=np.array([1.0, 0.0, 0.0])),
        ClassPrior(alpha=np.nan),
        ClassPrior(alpha=-1.0),
    ],
)
def test_damaged_class_priors_are_refused(prior):
    with pytest.raises(ValueError, match=r"fixed|alpha"):
        replace(prior, layout=Layout(CLASSES, ())).verify()


def product(name="categorical"):
    family = FAMILIES[name].family
    return Product(ClassPrior(), {"x": family}).bind({"x": family.layout}, CLASSES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"families": {}}, "no family"),
        ({"families": {"class_prior": product().families["x"]}}, "no family, or one named 'class_prior'"),
        ({"prior": ClassPrior().bind(Layout(("a", "b"), ()))}, "different classes"),
        ({"least_cells": 10**12}, "least_cells"),
        ({"has_fused_pass": False}, "has_fused_pass"),
        ({"is_structured": True}, "is_structured"),
        ({"families": {"x": object()}}, "object cannot be verified"),
    ],
)
def test_damaged_models_are_refused(changes, message):
    product().verify()
    with pytest.raises(ValueError, match=message):
        replace(product(), **changes).verify()


def test_arrays_of_other_families_are_refused():
    case, model = FAMILIES["categorical"], product()
    prior = model.prior.statistics(case.labels())
    model.verify_statistics({"class_prior": prior, "x": case.start()})
    for damaged in ({"x": case.start()}, {"class_prior": prior, "y": case.start()}):
        with pytest.raises(ValueError, match="missing or unknown"):
            model.verify_statistics(damaged)


PUBLIC = [getattr(families, name) for name in families.__all__]
CONCRETE = [
    value for value in PUBLIC if not isabstract(value) and all(map(partial(hasattr, value), FAMILY_METHODS))
]
UNBOUND = [*(family() for family in CONCRETE), ClassPrior(), ClassPrior(fixed=[0.5, 0.5])]


@pytest.mark.parametrize("family", UNBOUND, ids=str)
def test_families_that_are_not_bound_pass(family):
    assert len(CONCRETE) >= 12
    family.verify()
