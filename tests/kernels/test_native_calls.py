"""A sample of the random calls of `native_calls`; `check.py --attack` makes many more."""

import itertools

import pytest

from calibayes.kernels.dispatch import native_kernels
from tests.kernels.native_calls import outcomes

pytestmark = pytest.mark.skipif(
    native_kernels.module is None, reason="the native kernels are not built or disabled"
)
CALLS = 1_200


def test_random_calls_end_in_a_result_or_an_exception() -> None:
    counts = outcomes(itertools.count(), CALLS)
    assert counts["result"] > CALLS / 20
    assert counts["ValueError"] > CALLS / 20
