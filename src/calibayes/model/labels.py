"""Labels, classes and weights of training rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from calibayes.core.protocols import Array
from calibayes.tables.table import missing_mask
from calibayes.tables.text import counted

MOST_WEIGHT = 1e100
"""Largest sum of sample weights: sums of squares of the largest numbers, times it, are finite."""


class Target(NamedTuple):
    """Classes, and each row's label as a code."""

    classes: Array
    codes: Array
    """Position of each row's label among the classes; -1 without a label."""


def require_labels(estimator: Any, y: Any) -> None:
    """Raise ValueError if there are no labels."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: give the label of each row of X"
        )


def read_target(y: Any, *, unlabeled: bool, classes: Array | None = None, fewest_classes: int = 2) -> Target:
    """Classes and codes. None, NaN and NA are missing labels, which only some rules accept."""
    values = np.asarray(y)
    if values.ndim != 1:
        values = column_or_1d(values, warn=True)
    unknown = missing_mask(values) if values.dtype.kind in "fOmM" else np.zeros(len(values), dtype=bool)
    if not unlabeled:
        refuse_missing_labels(int(np.count_nonzero(unknown)))
    known = values[~unknown] if unknown.any() else values
    if known.dtype.kind == "f" and not np.isfinite(known).all():
        raise ValueError("Input y contains infinity")
    if len(known) == 0 and classes is None:
        raise ValueError("the target has no labels at all")
    known = _narrowed(known)
    if known.dtype.kind not in "biu" and len(known):  # integers are always class labels
        check_classification_targets(known)
    labels, inverse = distinct(known)
    if classes is None:
        classes = labels
    elif not np.isin(labels, classes).all():
        unknown_labels = labels[~np.isin(labels, classes)]
        raise ValueError(
            f"The target label(s) {unknown_labels.tolist()} in y do not exist in the initial classes {classes.tolist()}"
        )
    if len(classes) < fewest_classes:
        raise ValueError(
            f"y has only one class, {classes.tolist()[0]!r}: a classifier needs at least two classes"
        )
    places = np.asarray(np.searchsorted(classes, labels))
    if len(known) == len(values):
        return Target(classes, inverse if len(labels) == len(classes) else places[inverse])
    codes = np.full(len(values), -1)
    codes[~unknown] = places[inverse]
    return Target(classes, codes)


def refuse_missing_labels(rows: int) -> None:
    """Raise ValueError if so many rows, above zero, have no label."""
    if rows:
        raise ValueError(
            f"Input y contains NaN or missing labels ({counted(rows, 'row')}): remove these rows, or use a generative "
            "classifier with rule='em', for example GaussianNB(rule='em'), which learns from them"
        )


MOST_COUNTED = 2**16
"""Integers that span no more than this are sorted by counting."""


def distinct(labels: Array) -> tuple[Array, Array]:
    """Distinct labels, ascending, and the position of each row's label among them."""
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
    """The classes passed to `partial_fit`: distinct, ascending, none missing."""
    listed = np.asarray(classes)
    if listed.ndim != 1 or missing_mask(listed).any():
        raise ValueError(f"classes must be a list of labels, none of them missing, got {classes!r}")
    return np.unique(_narrowed(listed))


def _narrowed(labels: Array) -> Array:
    """Objects of one type as an array of that type. Raises ValueError if types are mixed."""
    if labels.dtype.kind != "O":
        return labels
    kinds = sorted({type(label).__name__ for label in labels})
    strings = all(isinstance(label, str) for label in labels)
    if not strings and len(kinds) > 1:
        raise ValueError(f"Unknown label type: y mixes labels of types {', '.join(kinds)}")
    return labels if strings else np.array(labels.tolist())


def read_weight(sample_weight: Any, n: int) -> Array:
    """Sample weights as floats. Raises ValueError unless they are finite, not negative and not all zero."""
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


def check_total_weight(weight: Array, most: float = MOST_WEIGHT) -> None:
    """Raise ValueError if weights sum to more than ``most``."""
    if weight.max() > most / len(weight) and np.sum(weight / most) > 1:
        raise ValueError(
            f"the sum of the sample weights must not be above {most:g}, beyond which sums over rows overflow; the largest "
            f"weight is {weight.max():g}: divide all weights by a constant"
        )


def class_factors(class_weight: Any, classes: Array, codes: Array, weight: Array) -> Array:
    """The class weight of each row, (n,): 1 for a row without a label."""
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


def class_probabilities(priors: Any, classes: Array) -> Any:
    """Class probabilities in the order of the classes, (k,), from a mapping class -> probability; else unchanged."""
    if not isinstance(priors, Mapping):
        return priors
    labels = classes.tolist()
    listed = ", ".join(map(repr, labels))
    unknown = [label for label in priors if label not in labels]
    if unknown:
        raise ValueError(f"priors names {unknown[0]!r}, which is not among the classes {listed}")
    lacking = [label for label in labels if label not in priors]
    if lacking:
        raise ValueError(f"priors has no entry for class {lacking[0]!r}; the classes are {listed}")
    return [priors[label] for label in labels]


def class_frequencies(codes: Array, weight: Array, classes: Array) -> Array:
    """The share of each class in the total weight, (k,). Raises ValueError if a class has none."""
    mass = np.bincount(codes, weight, minlength=len(classes))
    if not (mass > 0).all():
        lost = ", ".join(repr(str(label)) for label in classes[~(mass > 0)])
        raise ValueError(f"class {lost} has no rows (or no weight), or none outside of one of the folds")
    return np.asarray(mass / mass.sum())
