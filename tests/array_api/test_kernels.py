"""The device version of each kernel returns what NumPy's does."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibayes.backends.device import gaussian_kernels
from calibayes.backends.device.array import DeviceArray, Placement
from calibayes.kernels import event_counts, level_counts
from calibayes.kernels import gaussian_density as numpy_gaussian
from calibayes.kernels import moments as numpy_moments
from calibayes.kernels import posterior as fused
from calibayes.kernels import posterior as logspace
from calibayes.kernels.dispatch import DEVICE_VERSIONS, on_host

RNG = np.random.default_rng(0)
N, D, K = 70, 5, 3
X, MEAN, WEIGHTS = RNG.normal(size=(N, D)), RNG.normal(size=(K, D)), RNG.normal(size=(N, K))
VARIANCE = RNG.random((K, D)) + 0.5
FACTORS = np.eye(D) + 0.2 * RNG.normal(size=(K, D, D))
COVARIANCE = FACTORS @ FACTORS.transpose(0, 2, 1)
WHITENER, LOG_DETERMINANT = numpy_gaussian.whiteners(COVARIANCE)
LABELS, WEIGHT, HELD_OUT = RNG.integers(-1, K, N), RNG.integers(0, 2, N) * 1.0, RNG.integers(0, 2, N) * 1.0
LEVELS = np.array([3, 1, 4, 2, 5])
FIRST = level_counts.offsets(tuple(LEVELS))
CODES = np.stack([RNG.integers(-1, size + 1, N) for size in LEVELS], axis=1).astype(np.int8)
TABLE, LOG_JOINT, COUNTS = RNG.normal(size=(K, 15)), RNG.normal(size=(N, K)), RNG.integers(0, 4, (N, D)) * 1.0
LOG_JOINT[3] = -np.inf

CALLS = {
    "has_missing": (numpy_moments.has_missing, X),
    "as_floats": (numpy_moments.as_floats, X),
    "zeroth": (numpy_moments.zeroth, WEIGHTS),
    "power_sums": (numpy_moments.power_sums, X, MEAN[0], WEIGHTS),
    "up_to_second": (numpy_moments.up_to_second, X, MEAN[0], WEIGHTS),
    "sum_over_classes": (numpy_moments.sum_over_classes, WEIGHTS),
    "diagonal_log_density": (numpy_gaussian.diagonal_log_density, X, MEAN, VARIANCE),
    "full_gaussian": (numpy_gaussian.full_gaussian, X, MEAN, COVARIANCE, WHITENER, LOG_DETERMINANT),
    "linear_scores": (numpy_gaussian.linear_scores, X, MEAN[0], MEAN, MEAN[:, 0], VARIANCE[0]),
    "unexplained": (numpy_gaussian.unexplained, COVARIANCE),
    "whiteners": (numpy_gaussian.whiteners, COVARIANCE),
    "indicators": (logspace.indicators, LABELS, K),
    "label_weights": (logspace.label_weights, LABELS, WEIGHT, K),
    "log_normalize": (logspace.log_normalize, LOG_JOINT),
    "first_largest": (logspace.first_largest, LOG_JOINT),
    "assess": (logspace.assess, LOG_JOINT, LABELS, WEIGHT, HELD_OUT, 0.3, 0.1),
    "scores": (logspace.scores, WEIGHTS - 3.0, logspace.indicators(LABELS, K), WEIGHT),
    "without_negligible": (logspace.without_negligible, WEIGHTS * 1e-12),
    "look_up": (level_counts.look_up, CODES, TABLE, FIRST),
    "weighted_counts": (level_counts.weighted_counts, CODES, WEIGHTS, FIRST),
    "sums_by_column": (level_counts.sums_by_column, TABLE, FIRST),
    "fused_pass": (
        fused.fused_pass,
        *(CODES, TABLE, FIRST, MEAN[0, :K], LABELS, WEIGHT, HELD_OUT, 0.3, 0.1),
    ),
    "flag_counts": (level_counts.flag_counts, (X > 0) * 1.0, WEIGHTS),
    "flag_scores": (level_counts.flag_scores, (X > 0) * 1.0, MEAN, VARIANCE),
    "scores of events": (event_counts.scores, COUNTS, MEAN),
    "totals": (event_counts.totals, COUNTS, WEIGHTS),
    "log_multinomial_coefficients": (event_counts.log_multinomial_coefficients, COUNTS),
    "log_in_place": (event_counts.log_in_place, VARIANCE.copy()),
    "fortran_order": (event_counts.fortran_order, VARIANCE),
}
FURTHER = {
    "one covariance": (
        numpy_gaussian.full_gaussian,
        *(X, MEAN, COVARIANCE[:1], WHITENER[:1], LOG_DETERMINANT[:1]),
    ),
    "far, one covariance": (
        numpy_gaussian.full_gaussian,
        *(X, 1e5 * MEAN, COVARIANCE[:1], WHITENER[:1], LOG_DETERMINANT[:1]),
    ),
    "far means": (numpy_gaussian.full_gaussian, X, 1e5 * MEAN, COVARIANCE, WHITENER, LOG_DETERMINANT),
    "far means, variances": (numpy_gaussian.diagonal_log_density, X, 1e5 * MEAN, VARIANCE),
    "not definite": (numpy_gaussian.unexplained, COVARIANCE - 2.0 * np.eye(D)),
    "not finite": (numpy_gaussian.unexplained, np.where(np.eye(D) > 0, COVARIANCE, np.nan)),
    "objective only": (logspace.assess, LOG_JOINT, LABELS, WEIGHT, HELD_OUT, 1.0),
    "float32": (numpy_gaussian.diagonal_log_density, X.astype(np.float32), MEAN, VARIANCE),
}


def on_device(library, values):
    return DeviceArray(library.array(values), Placement(library.xp, library.device))


@pytest.fixture
def place(library):
    from array_api_compat import array_namespace

    return Placement(array_namespace(library.array([0.0])), library.device)


def leaves(result):
    """The arrays and numbers of a result, in a fixed order."""
    if isinstance(result, dict):
        return [leaf for name in sorted(result) for leaf in leaves(result[name])]
    if isinstance(result, tuple):
        return [leaf for part in result for leaf in leaves(part)]
    return [] if result is None else [on_host(result)]


@pytest.mark.parametrize("name", CALLS | FURTHER)
def test_results_are_those_of_numpy(place, name):
    kernel, x, *others = (CALLS | FURTHER)[name]
    expected = leaves(kernel(x.copy(), *others))
    found = leaves(kernel(DeviceArray(place.array(x), place), *others))
    assert len(found) == len(expected)
    for here, there in zip(found, expected, strict=True):
        assert_allclose(here, there, rtol=1e-10, atol=1e-10)


def test_every_device_version_is_compared():
    compared = {f"{kernel.__module__}.{kernel.__name__}" for kernel, *_ in CALLS.values()}
    assert compared == set(DEVICE_VERSIONS)


@pytest.mark.parametrize("share", [-1.0, 1.0])
@pytest.mark.parametrize("is_zero", [0.0, 0.9, 1.0])
def test_rows_of_weight_zero_are_left_out_without_effect(place, monkeypatch, share, is_zero):
    monkeypatch.setattr(gaussian_kernels, "MOST_WEIGHTED", share)
    weights = np.where(RNG.random((N, K)) < is_zero, 0.0, WEIGHTS)
    expected = numpy_moments.up_to_second(X, MEAN[0], weights)
    found = numpy_moments.up_to_second(
        DeviceArray(place.array(X), place), MEAN[0], DeviceArray(place.array(weights), place)
    )
    for here, there in zip(found, expected, strict=True):
        assert_allclose(on_host(here), there, rtol=1e-10, atol=1e-10)


def test_triangular_products_in_parts_of_the_columns(place, monkeypatch):
    x = DeviceArray(place.array(X), place)
    call = numpy_gaussian.full_gaussian, (MEAN, COVARIANCE, WHITENER, LOG_DETERMINANT)
    for module in (gaussian_kernels, gaussian_kernels):
        monkeypatch.setattr(gaussian_kernels, "FEWEST_COLUMNS", 1)
        assert module.column_parts(D) == [slice(0, 1), slice(1, 2), slice(2, 3), slice(3, 5)]
    assert_allclose(on_host(call[0](x, *call[1])), call[0](X, *call[1]), rtol=1e-10)
    weights = DeviceArray(place.array(WEIGHTS), place)
    found = numpy_moments.up_to_second(x, MEAN[0], weights)[2]
    assert_allclose(on_host(found), numpy_moments.up_to_second(X, MEAN[0], WEIGHTS)[2], atol=1e-10)


def test_a_kernel_without_a_device_version_says_so(place):
    with pytest.raises(TypeError, match="minimum_and_maximum cannot be computed with arrays on a device"):
        numpy_moments.minimum_and_maximum(DeviceArray(place.array(X), place))


# -- NumPy's vocabulary --------------------------------------------------------------------------------------------

MATRIX, VECTOR, MASK = X[:K, :K] + 3.0 * np.eye(K), MEAN[:, 0], np.array([True, False, True])
EXPRESSIONS = {
    "operators": lambda a, b, m: -(((a + 1 - b) * 2 / (abs(b) + 1.0)) ** 2),
    "reflected": lambda a, b, m: (2 - a) + (1.0 / (abs(a) + 1.0)) + 3 * a,
    "products": lambda a, b, m: a @ a.T @ b,
    "comparisons": lambda a, b, m: (a < 0) | (a >= 1) & (a != 2) | ~(a <= b) | (a == 0) | (a > 3),
    "masks and numbers": lambda a, b, m: a * m + (m > 0),
    "rows": lambda a, b, m: a[m],
    "positions": lambda a, b, m: a[np.flatnonzero(m), 1:],
    "newaxis": lambda a, b, m: a[:, None, :2] - a[..., 0, None, None],
    "where": lambda a, b, m: np.where(m, a, 0),
    "extremes": lambda a, b, m: np.maximum(a, 0.0) + np.minimum(b, a) + a.max(axis=0) - a.min() + np.max(a),
    "sums": lambda a, b, m: (
        a.sum(axis=0, keepdims=True) + np.sum(m) + a.mean(axis=1) + np.mean(a) + np.sum(a, axis=1)
    ),
    "any and all": lambda a, b, m: (a > 0).any(axis=0) & np.all(a < 9, axis=0) & np.any(m),
    "shapes": lambda a, b, m: np.reshape(np.swapaxes(np.stack([a, a]), 0, 1), (K, -1)) + a.ravel()[0],
    "broadcast": lambda a, b, m: (
        np.broadcast_to(a[0], (2, K)).copy() + np.concatenate([b, a[1]]).reshape((2, K))
    ),
    "diagonals": lambda a, b, m: (
        np.diag(b) + np.diag(a) + np.diagonal(a) + np.trace(np.stack([a, a]), axis1=1, axis2=2)[0]
    ),
    "functions": lambda a, b, m: np.log(np.exp(a)) + np.sqrt(np.square(a)) + np.expm1(a) + np.copysign(a, b),
    "finite": lambda a, b, m: np.isfinite(a) & ~np.isnan(a),
    "algebra": lambda a, b, m: np.linalg.solve(a, a @ a) + np.linalg.slogdet(a)[1],
    "tensordot": lambda a, b, m: np.tensordot(b, np.stack([a, a, a]), axes=1),
    "log sum": lambda a, b, m: np.logaddexp.reduce(a, axis=1, keepdims=True) + np.logaddexp.reduce(a, axis=1),
    "positions of extremes": lambda a, b, m: np.argmax(a, axis=1) + np.argmin(a, axis=1),
    "types": lambda a, b, m: a.astype(np.float32).astype(np.float64) - a,
    "scalar": lambda a, b, m: np.atleast_1d(a.sum()) + len(a) + float(a[0, 0]) + a.ndim + a.size,
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_in_the_vocabulary_of_numpy(place, name):
    function = EXPRESSIONS[name]
    expected = function(MATRIX, VECTOR, MASK)
    array, vector, mask = (DeviceArray(place.array(values), place) for values in (MATRIX, VECTOR, MASK))
    for others in ((vector, mask), (VECTOR, MASK)):  # NumPy arrays in the expression are copied to the device
        found = function(array, *others)
        assert isinstance(found, DeviceArray)
        assert found.dtype.kind == expected.dtype.kind
        assert_allclose(found.to_host(), expected, rtol=1e-12, atol=1e-6 if name == "types" else 1e-12)


def test_what_has_no_counterpart_raises(place):
    array = DeviceArray(place.array(MATRIX), place)
    for call in (np.linalg.eigh, np.sort, np.cosh, np.asarray):
        with pytest.raises(TypeError, match=r"arrays? on a device"):
            call(array)
