"""Which models are trained on a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibayes.backends.device.input import ADVICE
from calibayes.core.protocols import Family, Rule
from calibayes.families import (
    Bernoulli,
    Categorical,
    Complement,
    Diagonal,
    Full,
    Gaussian,
    Multinomial,
    Spherical,
    Tied,
    TiedDiagonal,
    TiedSpherical,
)
from calibayes.families.covariance_shapes import WeightedTied

FAMILIES = (Bernoulli, Categorical, Complement, Gaussian, Multinomial)
SHAPES = (Diagonal, Full, Spherical, Tied, TiedDiagonal, TiedSpherical, WeightedTied)


def require_device_support(
    families: Mapping[str, Family], rule: Rule, batch_size: int | None, checkpoint: Any = None
) -> None:
    """Raises TypeError if a family, the rule or an option is not supported on a device."""
    for name, family in families.items():
        shape = getattr(family, "shape", None)
        if type(family) not in FAMILIES or (shape is not None and type(shape) not in SHAPES):
            kind = type(family).__name__ if shape is None else f"{type(family).__name__}({shape!r})"
            _refuse(f"family {name!r} ({kind})")
    if not rule.keeps_statistics:
        _refuse(f"rule {rule.name!r}")
    if batch_size is not None:
        _refuse(f"mini-batches (batch_size={batch_size})")
    if checkpoint is not None:
        _refuse(f"a model with a checkpoint ({checkpoint})")


def _refuse(what: Any) -> None:
    raise TypeError(f"{what} cannot be trained with an X on a device. {ADVICE}")
