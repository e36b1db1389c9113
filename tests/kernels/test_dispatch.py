"""Selection of the implementation: unsupported arrays, NumPy only, and the environment variable."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from calibayes import CategoricalNB
from calibayes.kernels import level_counts
from calibayes.kernels import posterior as fused
from calibayes.kernels.dispatch import native_kernels
from tests.kernel_versions import numpy_only


@pytest.mark.skipif(native_kernels.module is None, reason="the native kernels are not built or disabled")
def test_native_versions_decline_unsupported_arguments() -> None:
    module, first = native_kernels.module, level_counts.offsets((2, 2))
    flags = np.array([[True, False]])
    assert level_counts.weighted_counts.native(module, flags, np.ones((1, 1)), first) is NotImplemented
    assert level_counts.look_up.native(module, [[0, 1]], np.ones((1, 4)), first) is NotImplemented
    for k, d, levels in ((17, 2, 2), (2, 513, 50)):
        rows, starts = np.zeros((1, d), dtype=np.int8), level_counts.offsets((levels,) * d)
        other_arguments = np.zeros(k), np.zeros(1, dtype=int), np.ones(1), np.zeros(1), 0.0, 0.0
        result = fused.fused_pass.native(module, rows, np.zeros((k, levels * d)), starts, *other_arguments)
        assert result is NotImplemented


def test_a_model_is_the_same_without_native_kernels() -> None:
    rng = np.random.default_rng(1)
    rows, labels = rng.integers(0, 5, size=(500, 20)), rng.integers(0, 3, size=500)
    native = CategoricalNB(max_iter=5, stop=None).fit(rows, labels)
    with numpy_only():
        reference = CategoricalNB(max_iter=5, stop=None).fit(rows, labels)
    np.testing.assert_allclose(
        native.predict_joint_log_proba(rows), reference.predict_joint_log_proba(rows), rtol=1e-10
    )


FIT_TWICE_WITHOUT_EXTENSION = """
import sys, warnings
sys.modules["calibayes.kernels.native._native"] = None  # its import fails
warnings.simplefilter("error")
from calibayes import GaussianNB, show_versions
for _ in range(2):
    GaussianNB(rule="ml").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
show_versions()
"""


def run_with_setting(code: str, setting: str) -> subprocess.CompletedProcess[str]:
    """Run code in a new process with a value of CALIBAYES_NATIVE."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "CALIBAYES_NATIVE": setting},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("setting", "notes"), [("", 1), ("0", 0)])
def test_missing_kernels_are_noted_once_unless_they_are_switched_off(setting: str, notes: int) -> None:
    process = run_with_setting(FIT_TWICE_WITHOUT_EXTENSION, setting)
    assert process.returncode == 0, process.stderr
    assert process.stderr.count("The native kernels of calibayes are not built") == notes
    assert process.stdout.count("NATIVE KERNELS ARE MISSING") == notes


@pytest.mark.parametrize("setting", ["0", "baseline", "nonsense"])
def test_the_environment_variable_selects_the_kernels(setting: str) -> None:
    code = "from calibayes.kernels.dispatch import native_kernels; print(native_kernels.instruction_set)"
    process = run_with_setting(code, setting)
    if setting == "0" or find_spec("calibayes.kernels.native._native") is None:
        assert process.stdout.strip() == "None"
    elif setting == "nonsense":
        assert "must be 0 or one of baseline" in process.stderr
    else:
        assert process.stdout.strip() == setting
