"""Messages about singular covariances: which classes, and why."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array, Layout


class SingularCovarianceWarning(UserWarning):
    """The covariance of a class is singular; a prior is used for it.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SingularCovarianceWarning)  # the prior is wanted
    """


def affected_classes(singular: Array, layout: Layout) -> str:
    """Names of the classes with a singular covariance, from (k,) booleans; (1,) is a tied covariance."""
    if len(singular) < len(layout.classes):
        return "all classes together"
    names = [repr(name) for name, is_singular in zip(layout.classes, singular, strict=True) if is_singular]
    return f"class {', '.join(names)}"


def reason(counts: Array, is_constant: Array, is_determined: Array, layout: Layout) -> str:
    """Why the covariance of a class is singular.

    Parameters
    ----------
    counts : (1,) or (d,) array
        Number of rows of the class, or of its known cells in each column.
    is_constant : (d,) booleans
        Columns without variance within the class.
    is_determined : (d,) booleans
        Columns without variance given the columns before them.
    """
    is_unknown = np.broadcast_to(counts <= 0, is_constant.shape)
    if is_unknown.any():
        return f"no known values in {_listed(layout.columns, is_unknown)}"
    if is_constant.any():
        return f"no within-class variance in {_listed(layout.columns, is_constant)}"
    if counts.min() <= len(layout.columns):
        return f"{counts.min():g} rows for {len(layout.columns)} columns"
    return f"determined by the other columns: {_listed(layout.columns, is_determined)}"


def _listed(names: tuple[str, ...], mask: Array, most: int = 5) -> str:
    """The names of the columns in a mask, at most ``most`` of them."""
    chosen = [repr(name) for name, is_chosen in zip(names, mask, strict=True) if is_chosen]
    rest = f" and {len(chosen) - most} more" if len(chosen) > most else ""
    return ("column " if len(chosen) == 1 else "columns ") + ", ".join(chosen[:most]) + rest
