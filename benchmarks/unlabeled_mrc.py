"""Minimax risk classifiers (MRCpy) on the splits of `unlabeled.py`, whose option ``--rivals`` takes the file.

`python unlabeled_mrc.py FILE` in an environment of its own: MRCpy 3.0.0 needs scikit-learn 1.6 and cvxpy, and not this
package. ``--quick`` uses two data sets that come with scikit-learn, and two splits. The classifiers see the numbers that
linear discriminant analysis sees, and the labeled rows only, with MRCpy's default parameters. A probability of 0 counts as
1e-6 in the log loss.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

import numpy as np
from few_labels import scores, splits, tables

LEAST = 1e-6


def figures(split, classifiers):
    """Rival -> error and log loss."""
    known = ~np.isnan(split.labels)
    classes, codes = np.unique(split.labels[known], return_inverse=True)
    X, X_test = split.numbers
    found = {}
    for name, (make, options) in classifiers.items():
        fitted = make(phi="linear", fit_intercept=True, random_state=0, **options).fit(X[known], codes)
        probability = np.maximum(fitted.predict_proba(X_test), LEAST)
        log_p = np.log(probability / probability.sum(axis=1, keepdims=True))
        found[name] = [float(score) for score in scores(log_p, classes, split.test)]
    return found


def main():
    from MRCpy import CMRC, MRC

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    # The log loss of MRC takes too long without cvxpy, and fails with its version 1.9.
    classifiers = {
        "MRC, 0-1 loss": (MRC, {"loss": "0-1"}),
        "CMRC, 0-1 loss": (CMRC, {"loss": "0-1", "solver": "cvx"}),
        "CMRC, log loss": (CMRC, {"loss": "log", "solver": "cvx"}),
    }
    results = {}
    for name, (X, y) in tables(options.quick).items():
        number = 2 if options.quick else options.splits
        results[name] = [figures(split, classifiers) for split in splits(X, y, number)]
        options.file.write_text(json.dumps(results))
        print(name, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
