"""Exact samples of the discrete Gaussian distribution (Canonne, Kamath and Steinke 2020).

Only whole numbers are drawn and compared, so that the distribution is the stated one to the last bit: the noise of
floating-point samplers tells about the sum that it is added to (Mironov 2012).
"""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np

from calibayes.core.protocols import Array


def noise(variance: Fraction, shape: tuple[int, ...], source: random.Random) -> Array:
    """Independent samples with a variance parameter, as integers; ``source`` draws whole numbers."""
    drawn = [discrete_gaussian(variance, source) for _ in range(math.prod(shape))]
    return np.array(drawn, dtype=np.int64).reshape(shape)


def discrete_gaussian(variance: Fraction, source: random.Random) -> int:
    """A whole number z with probability proportional to exp(-z^2 / (2 variance))."""
    p, q = variance.numerator, variance.denominator
    scale = math.isqrt(p // q) + 1
    while True:
        z = discrete_laplace(scale, source)
        if _happens_exp((abs(z) * q * scale - p) ** 2, 2 * p * q * scale**2, source):
            return z


def discrete_laplace(scale: int, source: random.Random) -> int:
    """A whole number z with probability proportional to exp(-abs(z) / scale)."""
    while True:
        remainder = source.randrange(scale)
        if not _happens_exp(remainder, scale, source):
            continue
        multiple = 0
        while _happens_exp(1, 1, source):
            multiple += 1
        size, is_negative = remainder + scale * multiple, bool(source.randrange(2))
        if size or not is_negative:
            return -size if is_negative else size


def _happens_exp(numerator: int, denominator: int, source: random.Random) -> bool:
    """True with probability exp(-numerator / denominator)."""
    whole, rest = divmod(numerator, denominator)
    return all(_happens_exp_of_fraction(1, 1, source) for _ in range(whole)) and _happens_exp_of_fraction(
        rest, denominator, source
    )


def _happens_exp_of_fraction(numerator: int, denominator: int, source: random.Random) -> bool:
    """True with probability exp(-numerator / denominator), for a fraction of at most 1: von Neumann's method."""
    trials = 1
    while source.randrange(denominator * trials) < numerator:
        trials += 1
    return trials % 2 == 1
