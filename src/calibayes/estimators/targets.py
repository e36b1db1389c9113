"""Labels and row weights as a person gives them, checked and turned into codes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from calibayes.core.protocols import Array
from calibayes.tables.read import missing


class Target(NamedTuple):
    classes: Array
    codes: Array
    """Position of each row's label among the classes; -1 without a label."""


def read_target(y: Any, *, unlabeled: bool, classes: Array | None = None) -> Target:
    """Classes and codes. None, NaN and NA mean no label, which only some rules can use."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    values = np.asarray(y)
    if values.ndim != 1:
        values = column_or_1d(values, warn=True)
    unknown = missing(values)
    if unknown.any() and not unlabeled:
        raise ValueError(
            f"Input y contains NaN or missing labels ({int(unknown.sum())} rows): leave those rows out, or learn from them with a model that takes rule='em'"
        )
    known = values[~unknown] if unknown.any() else values
    if known.dtype.kind == "f" and not np.isfinite(known).all():
        raise ValueError("Input y contains infinity")
    if len(known) == 0 and classes is None:
        raise ValueError("the target has no labels at all")
    known = _narrowed(known)
    if known.dtype.kind not in "biu" and len(known):  # whole numbers are always labels
        check_classification_targets(known)
    found, inverse = distinct(known)
    if classes is None:
        classes = found
    elif not np.isin(found, classes).all():
        strange = found[~np.isin(found, classes)]
        raise ValueError(f"y has labels that are not among the classes: {strange.tolist()}")
    if len(classes) < 2:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}: at least two classes are needed to tell apart"
        )
    places = np.asarray(np.searchsorted(classes, found))
    if len(known) == len(values):
        return Target(classes, inverse if len(found) == len(classes) else places[inverse])
    codes = np.full(len(values), -1)
    codes[~unknown] = places[inverse]
    return Target(classes, codes)


MOST_COUNTED = 2**16
"""Whole numbers that span no more than this are sorted by counting them."""


def distinct(labels: Array) -> tuple[Array, Array]:
    """Distinct labels, ascending, and which of them each row has."""
    if labels.dtype.kind in "iu" and len(labels):
        least, most = int(labels.min()), int(labels.max())
        if most - least < MOST_COUNTED:
            above = (
                labels - labels.dtype.type(least)
                if labels.dtype.kind == "u"
                else labels.astype(np.int64) - least
            )
            shifted = above.astype(np.int64)
            present = np.bincount(shifted) > 0
            values = np.array(
                [least + place for place in np.flatnonzero(present).tolist()], dtype=labels.dtype
            )
            return values, (np.cumsum(present) - 1)[shifted]
    values, inverse = np.unique(labels, return_inverse=True)
    return values, inverse


def read_classes(classes: Any) -> Array:
    """Classes that a person lists: distinct, ascending, none missing."""
    listed = np.asarray(classes)
    if listed.ndim != 1 or missing(listed).any():
        raise ValueError(f"classes must be a list of labels, none of them missing, got {classes!r}")
    return np.unique(_narrowed(listed))


def _narrowed(labels: Array) -> Array:
    """Objects of one type as an array of that type; a mixture is an error."""
    if labels.dtype.kind != "O":
        return labels
    kinds = sorted({type(label).__name__ for label in labels})
    strings = all(isinstance(label, str) for label in labels)
    if not strings and len(kinds) > 1:
        raise ValueError(f"Unknown label type: y mixes labels of types {', '.join(kinds)}")
    return labels if strings else np.array(labels.tolist())


def read_weight(sample_weight: Any, n: int) -> Array:
    """Row weights as floats: one for all, or not negative, finite and not all zero."""
    if sample_weight is None:
        return np.ones(n)
    weight = np.array(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n, weight)
    if weight.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if weight.shape != (n,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected {(n,)}!")
    if not np.isfinite(weight).all():
        raise ValueError("sample_weight contains NaN or infinity")
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise ValueError(f"Negative values in data passed to `sample_weight`: row {row} has {weight[row]:g}")
    if not (weight > 0).any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return weight


def class_factors(class_weight: Any, classes: Array, codes: Array, weight: Array) -> Array:
    """What multiplies the weight of each row, (n,): 1 for a row without a label."""
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be a dictionary or 'balanced', got {class_weight!r}")
        mass = np.bincount(codes[codes >= 0], weight[codes >= 0], minlength=len(classes))
        factors = mass.sum() / (len(classes) * np.where(mass > 0, mass, 1.0))
    else:
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown:
            raise ValueError(f"class_weight names {unknown[0]!r}, which is not among the classes")
        factors = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=np.float64)
    return np.where(codes < 0, 1.0, factors[codes])


def hold_out(codes: Array, fraction: float, rng: np.random.Generator) -> Array:
    """A random share of each class's rows, (n,) booleans; every class keeps at least one row to learn from."""
    held = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes[codes >= 0]):
        rows = rng.permutation(np.flatnonzero(codes == code))
        held[rows[: min(round(fraction * len(rows)), len(rows) - 1)]] = True
    if not held.any():
        raise ValueError(f"validation_fraction={fraction} of {len(codes)} rows holds out no row at all")
    return held


def class_frequencies(codes: Array, weight: Array, classes: Array) -> Array:
    """The share of the weight that each class has, (k,); a sentence where one has none."""
    mass = np.bincount(codes, weight, minlength=len(classes))
    if not (mass > 0).all():
        lost = ", ".join(repr(str(label)) for label in classes[~(mass > 0)])
        raise ValueError(f"no rows (or no weight) in class {lost}, or none outside of one of the folds")
    return np.asarray(mass / mass.sum())
