"""Passes over arrays on a device: `python benchmarks/scale/device.py` prints a table; `--quick` uses small sizes on the CPU.

Needs PyTorch. Measured are passes of risk-based calibration (RC) of quadratic discriminant analysis and of naive Bayes, the
distance of the parameters from NumPy's, and scikit-learn's own array API checks on the device. Times are those of the
passes (`history_`) and of the whole fit, which also encodes the rows on the host.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import partial

os.environ["SCIPY_ARRAY_API"] = "1"  # scikit-learn asks for it before its array API support is switched on

import numpy as np
import sklearn
import torch
from sklearn.utils import estimator_checks

import calibayes
from calibayes import CategoricalNB, QuadraticDiscriminantAnalysis
from calibayes.backends.device import gaussian_kernels
from calibayes.learn import LastState
from calibayes.rules import RC

ELLIPSES, LEVELS, COMPARED = "70000x512x10", "10000000x100x8x10", "20000x64x10"
QUICK = {"ellipses": "3000x32x4", "levels": "20000x10x8x4", "compared": "2000x16x4"}
PASSES = 64
CHECKED = [
    "GaussianNB",
    "LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis",
    "GenerativeLogisticRegression",
    "CategoricalNB",
    "BernoulliNB",
    "MultinomialNB",
    "ComplementNB",
]


def sizes(text):
    """Whole numbers separated by x."""
    return tuple(int(part) for part in text.split("x"))


def ellipses(n, d, k, device, seed=0):
    """Gaussian classes of similar covariances and near means, with a tenth of the labels at random."""
    generator = torch.Generator(device=device).manual_seed(seed)
    draw = partial(torch.randn, generator=generator, device=device, dtype=torch.float64)
    labels = torch.randint(k, (n,), generator=generator, device=device)
    roots = torch.eye(d, device=device, dtype=torch.float64) + 0.3 / d**0.5 * draw(k, d, d)
    means = 0.3 * draw(k, d)
    rows = torch.empty(n, d, device=device, dtype=torch.float64)
    for c in range(k):
        chosen = labels == c
        rows[chosen] = draw(int(chosen.sum()), d) @ roots[c].T + means[c]
    return rows, noisy(labels, k, generator)


def levels(n, d, size, k, device, seed=0):
    """Codes below ``size`` in each of d columns, which depend a little on the class, as bytes."""
    generator = torch.Generator(device=device).manual_seed(seed)
    labels = torch.randint(k, (n,), generator=generator, device=device)
    codes = torch.empty(n, d, device=device, dtype=torch.uint8)
    shifts = torch.randint(size, (k, d), generator=generator, device=device, dtype=torch.uint8)
    for j in range(d):
        drawn = torch.randint(size, (n,), generator=generator, device=device, dtype=torch.uint8)
        is_shifted = torch.rand(n, generator=generator, device=device) < 0.1
        codes[:, j] = torch.where(is_shifted, shifts[labels, j], drawn)
    return codes, noisy(labels, k, generator)


def noisy(labels, k, generator):
    """Labels, a tenth of them drawn at random."""
    drawn = torch.randint(k, labels.shape, generator=generator, device=labels.device)
    is_drawn = torch.rand(labels.shape, generator=generator, device=labels.device) < 0.1
    return torch.where(is_drawn, drawn, labels)


def fitted(model, X, y):
    """The model fitted on the device, and seconds of the fit."""
    synchronize(X.device)
    began = time.perf_counter()
    with warnings.catch_warnings(), sklearn.config_context(array_api_dispatch=True):
        warnings.simplefilter("ignore")
        model.fit(X, y)
    synchronize(X.device)
    return model, time.perf_counter() - began


def synchronize(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def quadratic(passes):
    """Quadratic discriminant analysis by so many passes of RC, none of whose steps is rejected."""
    return QuadraticDiscriminantAnalysis(rule=RC(step=0.1), max_iter=passes - 1, stop=None)


def ceilings(device, d=4096):
    """float64 matrix products in TFLOP/s and copies in GB/s."""
    left = torch.rand(d, d, device=device, dtype=torch.float64)
    products = seconds(lambda: left @ left, device)
    target = torch.empty_like(left)
    copies = seconds(lambda: target.copy_(left), device)
    return 2 * d**3 / products / 1e12, 2 * left.nbytes / copies / 1e9


def seconds(function, device, rounds=5):
    """Best time of a function after a first call."""
    function()
    times = []
    for _ in range(rounds):
        synchronize(device)
        began = time.perf_counter()
        function()
        synchronize(device)
        times.append(time.perf_counter() - began)
    return min(times)


def quadratic_rows(shape, device, passes):
    """Table rows of quadratic discriminant analysis: all rows in the second moments, and undecided rows only."""
    X, y = ellipses(*shape, device)
    fitted(
        quadratic(2), X[: len(X) // 10], y[: len(X) // 10]
    )  # the libraries of the device are loaded at first use
    usual = gaussian_kernels.MOST_WEIGHTED
    for name, share in (("all rows", -1.0), ("undecided rows only", usual)):
        gaussian_kernels.MOST_WEIGHTED = share
        model, total = fitted(quadratic(passes), X, y)
        history = model.history_
        yield (
            f"QDA {'x'.join(map(str, shape))}, {int(history['passes'][-1])} RC passes, {name}",
            f"{history['seconds'][-1]:.3f} s",
            f"whole fit {total:.2f} s, error {history['error'][0]:.4f} to {history['error'][-1]:.4f}",
        )
    gaussian_kernels.MOST_WEIGHTED = usual


def level_rows(shape, device, passes):
    """The table row of naive Bayes over levels."""
    X, y = levels(*shape, device)
    model, total = fitted(CategoricalNB(rule=RC(step=0.1), max_iter=passes, stop=None), X, y)
    times = np.diff(model.history_["seconds"])
    yield (
        f"naive Bayes {'x'.join(map(str, shape))}, one RC pass",
        f"{np.median(times):.3f} s",
        f"of {len(times)} passes, slowest {times.max():.3f} s, whole fit {total:.1f} s",
    )


def difference_rows(shape, device, passes):
    """The largest relative difference of statistics and parameters from those of NumPy."""
    X, y = ellipses(*shape, device, seed=1)
    codes, labels = levels(shape[0], shape[1], 8, shape[2], device, seed=1)
    options = {"max_iter": passes - 1, "stop": LastState()}
    models = QuadraticDiscriminantAnalysis(**options), CategoricalNB(**options)
    for model, rows, classes in zip(models, (X, codes), (y, labels), strict=True):
        here = fitted(model, rows, classes)[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            other = sklearn.clone(model).set_params(n_jobs=-1).fit(rows.cpu().numpy(), classes.cpu().numpy())
        parts = [relative_difference(getattr(here, name), getattr(other, name)) for name in TREES]
        name = (
            f"{type(model).__name__} {'x'.join(map(str, shape))}, {here.best_iter_} RC steps with line search"
        )
        yield (
            name,
            "",
            f"relative difference from NumPy: statistics {parts[0]:.1e}, parameters {parts[1]:.1e}",
        )


TREES = ("statistics_", "parameters_")


def relative_difference(left, right):
    """Largest difference between named arrays, as a share of the largest entry of the array."""
    pairs = [(left[part][name], right[part][name]) for part in left for name in left[part]]
    return max(float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-300)) for a, b in pairs)


def check_rows(device):
    """The table row of scikit-learn's array API checks."""
    name = None if device.type == "cpu" else device.type
    passed = failed = 0
    for estimator in (getattr(calibayes, estimator)() for estimator in CHECKED):
        for check in checks(name, type(estimator).__name__):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    check(type(estimator).__name__, estimator)
                    passed += 1
                except (AssertionError, AttributeError, TypeError, ValueError) as error:
                    failed += 1
                    print(f"{type(estimator).__name__}: {type(error).__name__}: {error}")
    yield f"scikit-learn's array API checks on {device}", "", f"{passed} passed, {failed} failed"


def checks(device, estimator):
    """scikit-learn's array API checks for a device of PyTorch."""
    options = {"array_namespace": "torch", "device_name": device}
    for dtype in ("float32", "float64"):
        yield partial(estimator_checks.check_array_api_input, dtype_name=dtype, **options)
    if (
        estimator != "ComplementNB"
    ):  # scikit-learn averages its accuracy of 29 / 30 in float32, and refuses that value
        yield partial(estimator_checks.check_array_api_input_and_values, check_sample_weight=True, **options)
    yield partial(estimator_checks.check_array_api_same_namespace, **options)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true", help="small sizes on the CPU")
    parser.add_argument("--ellipses", default=ELLIPSES, help="rows x columns x classes")
    parser.add_argument("--levels", default=LEVELS, help="rows x columns x levels x classes")
    parser.add_argument("--compared", default=COMPARED, help="rows x columns x classes")
    parser.add_argument("--passes", type=int, default=PASSES)
    options = parser.parse_args()
    if options.quick:
        parser.set_defaults(device="cpu", passes=8, **QUICK)
        options = parser.parse_args()
    device = torch.device(options.device)
    hardware = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    products, copies = ceilings(device, 512 if options.quick else 8192)
    print(
        f"{hardware}, PyTorch {torch.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}"
    )
    print(f"float64 matrix products {products:.1f} TFLOP/s, copies {copies:.0f} GB/s", flush=True)
    print("\n| what | passes | notes |\n| --- | ---: | --- |")
    for part in (
        quadratic_rows(sizes(options.ellipses), device, options.passes),
        level_rows(sizes(options.levels), device, 5),
        difference_rows(sizes(options.compared), device, min(options.passes, 20)),
        check_rows(device),
    ):
        for row in part:
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
