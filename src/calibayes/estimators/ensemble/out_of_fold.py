"""The posteriors of held-out rows that the training of an ensemble makes, as the record `held_out_`."""

from __future__ import annotations

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.splits import LEAST_OF_CLASS
from calibayes.estimators.interface.trust.held_out import HELD_OUT_ROWS, HeldOut
from calibayes.kernels.levels.places import places_in_class


def out_of_fold_record(
    log_posterior: Array, rows: Rows, everything: Rows, most: int = HELD_OUT_ROWS
) -> HeldOut:
    """The record of rows (n, k), NaN for rows that were not held out; about ``most`` of them, all classes in proportion.

    Class weights do not count. Small classes have up to 50 rows, and weights are multiplied so that each class has the
    weight that it has among all training rows.
    """
    held_out = np.flatnonzero(~np.isnan(log_posterior).any(axis=1))
    shares = np.bincount(everything.codes) / len(everything.codes)
    kept = np.sort(held_out[_some(rows.codes[held_out], np.maximum(np.ceil(most * shares), LEAST_OF_CLASS))])
    codes, weight = rows.codes[kept], (rows.weight / rows.factor)[kept]
    if len(kept) < len(everything.codes):
        total = np.bincount(everything.codes, everything.weight / everything.factor)
        weight = (
            weight * (total / np.maximum(np.bincount(codes, weight, minlength=len(total)), 1e-300))[codes]
        )
    how = f"the inner folds of the training, {len(kept):,} of {len(everything.codes):,} rows"
    return HeldOut(log_posterior[kept], codes, weight, rows.positions[kept], how)


def _some(codes: Array, most: Array) -> Array:
    """Positions of at most ``most[class]`` rows of each class, drawn with a fixed seed."""
    order = np.random.default_rng(0).permutation(len(codes))
    drawn = codes[order]
    return np.asarray(order[places_in_class(drawn) < most[drawn]])
