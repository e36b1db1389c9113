"""Tensors of every type, layout and device: the numbers of NumPy, or an error that says what to pass."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose

from calibayes import (
    BernoulliNB,
    CategoricalNB,
    GaussianNB,
    GenerativeLogisticRegression,
    LinearDiscriminantAnalysis,
    MultinomialNB,
    QuadraticDiscriminantAnalysis,
)

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 60)
COUNTS = RNG.integers(0, 4, (60, 4)) + Y[:, None]
MODELS = [
    GaussianNB(rule="ml"),
    LinearDiscriminantAnalysis(rule="ml"),
    QuadraticDiscriminantAnalysis(rule="ml"),
    GenerativeLogisticRegression(rule="ml"),
    CategoricalNB(rule="ml"),
    MultinomialNB(rule="ml"),
    BernoulliNB(rule="ml"),
]
TYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8")
TOLERANCE = {"float32": 1e-5}
"""float32 rows have a float32 posterior."""


@pytest.fixture(autouse=True)
def _dispatched():
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.fixture(params=MODELS, ids=lambda model: type(model).__name__)
def model(request):
    return sklearn.clone(request.param)


def posterior(model, X, y, **weights):
    return model.fit(X, y, **weights).predict_proba(X)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_has_the_numbers_of_numpy(library, model, name):
    if not hasattr(library.xp, name):
        pytest.skip(f"{library.xp.__name__} has no {name}")
    expected = posterior(sklearn.clone(model), COUNTS.astype(name), Y)
    found = library.numpy(posterior(model, library.array(COUNTS.astype(name)), library.array(Y)))
    assert_allclose(found, expected, rtol=0, atol=TOLERANCE.get(name, 1e-8))


def test_complex_numbers_are_refused(library, model):
    rows = library.array(COUNTS.astype(np.complex128))
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.fit(rows, library.array(Y))


def test_labels_and_weights_may_be_on_another_device(model):
    strict = pytest.importorskip("array_api_strict")
    here, there = strict.Device("device1"), strict.Device("device2")
    rows = strict.asarray(COUNTS * 1.0, device=here)
    given = {"sample_weight": strict.asarray(np.ones(60), device=there)}
    found = posterior(model, rows, strict.asarray(Y, device=there), **given)
    assert found.device == here
    with pytest.raises(ValueError, match="must use the same namespace and the same device"):
        model.predict(strict.asarray(COUNTS * 1.0, device=there))


def test_gradients_layouts_and_types_that_numpy_lacks(model):
    torch = pytest.importorskip("torch")
    numbers, labels = torch.as_tensor(COUNTS * 1.0), torch.as_tensor(Y)
    expected = posterior(sklearn.clone(model), COUNTS * 1.0, Y)
    single = posterior(sklearn.clone(model), COUNTS.astype(np.float32), Y)
    odd = {
        "gradient": (numbers.clone().requires_grad_(), labels, expected),
        "strides": (numbers.T.contiguous().T, labels, expected),
        "negative bit": (torch.complex(numbers, -numbers).conj().imag, labels, expected),
        "bfloat16": (numbers.bfloat16(), labels, single),
        "labels": (numbers, labels.bfloat16(), expected),
    }
    for name, (rows, y, right) in odd.items():
        found = posterior(sklearn.clone(model), rows, y)
        assert not found.requires_grad
        assert_allclose(found.numpy(), right, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning", "ignore:torch.quantize:UserWarning")
def test_tensors_without_readable_values_are_refused(model):
    torch = pytest.importorskip("torch")
    numbers, labels = torch.as_tensor(COUNTS * 1.0), torch.as_tensor(Y)
    odd = (
        numbers.to_sparse(),
        numbers.to_sparse_csr(),
        numbers.to("meta"),
        torch.quantize_per_tensor(numbers.float(), 1.0, 0, torch.qint8),
    )
    for rows in odd:
        with pytest.raises(
            ValueError, match=r"must be dense tensors that hold their values, got one of layout"
        ):
            model.fit(rows, labels)
    with pytest.raises(ValueError, match="must be dense tensors"):
        model.fit(numbers, labels.to("meta"))
    model.fit(numbers, labels)
    with pytest.raises(ValueError, match="must be dense tensors"):
        model.predict(odd[0])
