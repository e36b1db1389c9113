"""Values and annotations."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pytest

from calibayes.core.protocols import Rule
from calibayes.files.value_objects import fits
from calibayes.rules import ML


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (1, int),
        (1, float),
        (np.float64(1.5), float),
        (None, int | None),
        ((1, 2), tuple[int, ...]),
        ((1, "a"), tuple[int, str]),
        ([1.0, 2], Sequence[float]),
        ({"a": (1,)}, Mapping[str, tuple[int, ...]]),
        ("auto", Literal["auto"] | None),
        (len, Callable[[Any], int]),
        (np.dtype(float), np.dtype[Any]),
        (np.zeros(2), np.ndarray),
        (ML(), Rule),
        (object(), Any),
    ],
)
def test_fits(value, annotation):
    assert fits(value, annotation)


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (True, int),
        (True, float),
        (1, bool),
        (1.0, int),
        ("1", float),
        ([1], tuple[int, ...]),
        ((1, "a"), tuple[int, ...]),
        ((1,), tuple[int, str]),
        ("ab", Sequence[str]),
        ({1: "a"}, Mapping[str, str]),
        ("other", Literal["auto"]),
        (1, Callable[[Any], int]),
        ("float64", np.dtype[Any]),
        ([1.0], np.ndarray),
        (ML, Rule),
        ({}, Rule),
        (0, None),
    ],
)
def test_does_not_fit(value, annotation):
    assert not fits(value, annotation)
