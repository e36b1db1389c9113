"""Covariances that are none, in words."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array, Layout


class SingularCovarianceWarning(UserWarning):
    """A class's covariance was singular and a prior was put on it."""


def where(singular: Array, layout: Layout) -> str:
    """The classes whose covariance is singular, (k,) booleans, or all of them where they share one, (1,)."""
    if len(singular) < len(layout.classes):
        return "all classes together"
    names = [repr(name) for name, bad in zip(layout.classes, singular, strict=True) if bad]
    return f"class {', '.join(names)}"


def why(counts: Array, flat: Array, determined: Array, layout: Layout) -> str:
    """The reason of one class.

    ``counts`` (1,) or (d,) are its rows or known cells, ``flat`` (d,) its columns without spread, ``determined`` (d,)
    those without a variance of their own.
    """
    unknown = np.broadcast_to(counts <= 0, flat.shape)
    if unknown.any():
        return f"no known cell in it: {_listed(layout.columns, unknown)}"
    if flat.any():
        return f"no spread left within it: {_listed(layout.columns, flat)}"
    if counts.min() <= len(layout.columns):
        return f"{counts.min():g} rows for {len(layout.columns)} columns"
    return f"determined by the other columns: {_listed(layout.columns, determined)}"


def _listed(names: tuple[str, ...], chosen: Array, most: int = 5) -> str:
    picked = [repr(name) for name, take in zip(names, chosen, strict=True) if take]
    rest = f" and {len(picked) - most} more" if len(picked) > most else ""
    return ("column " if len(picked) == 1 else "columns ") + ", ".join(picked[:most]) + rest
