"""What a differentially private training is given instead of taking it from the rows, and the account of what it spent."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, repeat
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from calibayes.core.protocols import Array
from calibayes.core.verify import require, require_instance, require_number

# -- Zero-concentrated differential privacy (zCDP) and the (epsilon, delta) that it implies ------------------

MOST_ORDER = 1e9
"""Largest Renyi order that is tried."""


def delta_of(rho: float, epsilon: float) -> float:
    """The least delta of rho-zCDP at an epsilon (Canonne, Kamath and Steinke 2020).

    It is the minimum over orders a > 1 of exp((a - 1) (a rho - epsilon)) (1 - 1/a)^a / (a - 1); the bound holds at every
    order, so a minimum that is missed costs accuracy, not privacy.
    """
    if rho == 0:
        return 0.0

    def log_bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        order = 1.0 + excess
        return excess * (order * rho - epsilon) + order * math.log1p(-1.0 / order) - math.log(excess)

    limits = (math.log(1e-9), math.log(MOST_ORDER))
    best = minimize_scalar(log_bound, bounds=limits, method="bounded", options={"xatol": 1e-9})
    return float(min(math.exp(min(best.fun, 0.0)), 1.0))


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho, up to a share of 1e-9, whose zCDP implies (epsilon, delta)."""
    low, high = 0.0, epsilon + 1.0
    while delta_of(high, epsilon) <= delta:
        high *= 2.0
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle, epsilon) <= delta else (low, middle)
    return low


# -- What a differentially private training is given instead of taking it from the rows, and the account of what it spent

MECHANISM = "discrete Gaussian noise on whole-number sums over rows"
NEIGHBORS = "one row added or removed"

ONLY_FIT = (
    "privacy is for one `fit` of a generative classifier: partial_fit, cross-validation in one pass, trees and members of "
    "ensembles read the rows without noise"
)


@dataclass(frozen=True)
class Privacy:
    """Differentially private training, for ``TrainingOptions(privacy=Privacy(...))`` (docs/privacy.md).

    What is given here must come from knowledge of the field, never from the rows: it is part of the model.

    Parameters
    ----------
    epsilon, delta : float
        The promise: no set of models is more than exp(epsilon) times as probable, plus delta, with a row as without it.
    classes : sequence of labels
        All classes.
    bounds : mapping or (low, high), optional
        Column, by name or position, -> the range of its numbers; or one range of all columns. Numbers outside are clipped.
    levels : mapping or sequence, optional
        Column, by name or position, -> its levels; or those of all columns. Other values count as missing.
    missing : sequence of columns, optional
        Columns with Gaussian densities in which cells may be missing. Their number of known cells is one more sum, on
        which a part of the privacy is spent.
    seed : int, optional
        Fixed noise, for tests alone: who knows the seed can subtract the noise. By default the noise comes from the
        operating system's cryptographic generator.

    Examples
    --------
    >>> from calibayes import GaussianNB, TrainingOptions
    >>> from sklearn.datasets import load_iris
    >>> privacy = Privacy(epsilon=5.0, delta=1e-6, classes=[0, 1, 2], bounds=[0, 10])
    >>> model = GaussianNB(rule="ml", training=TrainingOptions(privacy=privacy)).fit(*load_iris(return_X_y=True))
    >>> model.privacy_account_.epsilon
    5.0
    """

    epsilon: float
    delta: float
    classes: Sequence[Any]
    bounds: Mapping[Any, Sequence[float]] | Sequence[float] = field(default_factory=dict)
    levels: Mapping[Any, Sequence[Any]] | Sequence[Any] = field(default_factory=dict)
    missing: Sequence[Any] = ()
    seed: int | None = None

    def check(self) -> None:
        """Raises ValueError if a number is impossible, or no class is given."""
        for name, value, most in (("epsilon", self.epsilon, math.inf), ("delta", self.delta, 1.0)):
            is_number = isinstance(value, int | float | np.integer | np.floating)
            if not is_number or not 0 < value < most:
                raise ValueError(
                    f"{name} of Privacy must be a number above 0 and below {most:g}, got {value!r}"
                )
        if len(self.classes) == 0:
            raise ValueError("Privacy needs all classes (classes=): those of the rows would reveal rows")

    def values_of(self, position: int, name: str) -> tuple[str, Array]:
        """ "bounds" and (low, high), or "levels" and the levels, of a column. Raises ValueError if neither is given."""
        for kind in ("bounds", "levels"):
            given = getattr(self, kind)
            if isinstance(given, Mapping):
                given = given.get(name, given.get(position, ()))
            if len(given):
                checked = _checked_bounds if kind == "bounds" else _checked_levels
                return kind, checked(name, given)
        raise ValueError(
            f"Privacy has neither bounds nor levels of column {name!r}: give bounds={{{name!r}: (low, high)}} for numbers or "
            f"levels={{{name!r}: [...]}}, from knowledge of the field; those of the rows would reveal rows"
        )

    def may_miss(self, position: int, name: str) -> bool:
        """Whether cells of a column may be missing."""
        return name in self.missing or position in self.missing


@dataclass(frozen=True)
class PrivacyAccount:
    """What a private model has spent: a field of its ``fitted_``, and ``privacy_account_``.

    Attributes
    ----------
    epsilon, delta : float
        The promise.
    rho : float
        The same as zero-concentrated differential privacy, which is what is spent on the sums: the sum of all
        ``(sensitivity / scale)^2 / 2``.
    sums : tuple of str
        Which sums over rows were released.
    sensitivities : tuple of float
        For each the most that one row changes it (L2 norm), in units of its lattice.
    scales : tuple of float
        For each the standard deviation of the noise, in the same units.
    mechanism, neighbors : str
        The mechanism, and which tables differ by one row.
    is_seeded : bool
        Whether the noise came from a given seed: then there is no promise.

    Examples
    --------
    >>> from calibayes import GaussianNB, TrainingOptions
    >>> from calibayes.trust import Privacy
    >>> from sklearn.datasets import load_iris
    >>> privacy = Privacy(epsilon=5.0, delta=1e-6, classes=[0, 1, 2], bounds=[0, 10])
    >>> model = GaussianNB(rule="ml", training=TrainingOptions(privacy=privacy)).fit(*load_iris(return_X_y=True))
    >>> model.privacy_account_.sums[0]
    'class_prior/count'
    """

    epsilon: float
    delta: float
    rho: float
    sums: tuple[str, ...]
    sensitivities: tuple[float, ...]
    scales: tuple[float, ...]
    mechanism: str = MECHANISM
    neighbors: str = NEIGHBORS
    is_seeded: bool = False

    @property
    def spent(self) -> float:
        """rho of all sums together."""
        pairs = zip(self.sensitivities, self.scales, strict=True)
        return sum((sensitivity / scale) ** 2 / 2 for sensitivity, scale in pairs)

    def verify(self) -> None:
        """Raises ValueError if the account, which may come from a model file, does not add up."""
        require_number("epsilon", self.epsilon, 0.0)
        require_number("delta", self.delta, 0.0, 1.0)
        require(len(self.sums) == len(self.sensitivities) == len(self.scales), "an account with gaps")
        numbers = (*self.sensitivities, *self.scales)
        require(all(0 < number < math.inf for number in numbers), "sensitivities and scales must be positive")
        require(self.spent <= self.rho * (1 + 1e-9), "the sums spend more than rho")
        least_delta = delta_of(self.rho, self.epsilon)
        require(least_delta <= self.delta * (1 + 1e-6), "rho is more than epsilon, delta")

    def __str__(self) -> str:
        spent = f"epsilon {self.epsilon:g}, delta {self.delta:g} (zCDP with rho {self.rho:.3g})"
        return f"{spent}, {self.neighbors}: {self.mechanism}" + ", SEEDED: no promise" * self.is_seeded


def _checked_bounds(name: str, given: Sequence[float]) -> Array:
    values = np.asarray(given, dtype=np.float64)
    if values.shape != (2,) or not np.isfinite(values).all() or not values[0] < values[1]:
        raise ValueError(f"bounds of column {name!r} must be (low, high), low below high, got {given!r}")
    return values


def _checked_levels(name: str, given: Sequence[Any]) -> Array:
    values = np.array(given)
    values = values if values.dtype.kind in "biuf" else np.array(given, dtype=object)
    if len(set(values.tolist())) < len(values):
        raise ValueError(f"levels of column {name!r} must be distinct, got {given!r}")
    return values


def check_alone(given: Any, keep_summary: bool, validation_fraction: float | None, start: Any) -> None:
    """Raises ValueError unless this is a `Privacy` without training options that read the rows in another way."""
    if not isinstance(given, Privacy):
        raise ValueError(f"privacy must be Privacy(...) of calibayes.trust or None, got {given!r}")
    if keep_summary or validation_fraction is not None or start is not None:
        raise ValueError(
            "privacy cannot be combined with keep_summary, validation_fraction or start: they read the rows"
        )


# -- Exact samples of the discrete Gaussian distribution (Canonne, Kamath and Steinke 2020) ------------------
#
# Only whole numbers are drawn and compared, so that the distribution is the stated one to the last bit: the noise of
# floating-point samplers tells about the sum that it is added to (Mironov 2012).


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
    fractions = chain(repeat((1, 1), whole), [(rest, denominator)])
    return all(_happens_exp_of_fraction(*fraction, source) for fraction in fractions)


def _happens_exp_of_fraction(numerator: int, denominator: int, source: random.Random) -> bool:
    """True with probability exp(-numerator / denominator), for a fraction of at most 1: von Neumann's method."""
    trials = 1
    while source.randrange(denominator * trials) < numerator:
        trials += 1
    return trials % 2 == 1


def verify_extra(fitted: Any, account: Any) -> None:
    """Raises ValueError unless this is an account, which may come from a model file."""
    require_instance("privacy", account, PrivacyAccount)
