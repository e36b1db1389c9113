"""LDA, QDA, Balls1 and Balls2 of gdt-2004, Table 1: `python benchmarks/balls.py FOLDER` prints the table.

FOLDER holds the data sets as NAME.csv.gz, last column `target` (default: the variable CALIBAYES_DATA). A trial draws 50
rows a class on average to train on, finds four directions in them and measures the error on all other rows. The
directions: Fisher's discriminant variables, scaled to unit variance within classes, as many as there are, then principal
components of what the columns, standardised, have at right angles to them, in their own scale.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from calibayes import (
    LinearDiscriminantAnalysis,
    MixtureDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    SingularCovarianceWarning,
)
from calibayes.datasets import load_file
from calibayes.learn import NoGain
from calibayes.rules import GDT

DIRECTIONS, ROWS_A_CLASS, TRIALS = 4, 50, 100
LAMS = (1.0, 0.75, 0.5, 0.25, 0.0)
TOLERANCE = {"LDA": 0.01, "QDA": 0.01, "Balls1": 0.01, "Balls2": 0.015}
TOLERANCE_AT_ZERO = 0.02
"""Where training ends matters most at lam = 0, and the paper does not say where."""
TRAINING = {"stop": NoGain(1e-6), "max_iter": 1000}


def balls(components: int) -> Callable[[], MixtureDiscriminantAnalysis]:
    return lambda: MixtureDiscriminantAnalysis(n_components=components, covariance="spherical", **TRAINING)


MODELS: dict[str, Callable[[], Any]] = {
    "LDA": lambda: LinearDiscriminantAnalysis(**TRAINING),
    "QDA": lambda: QuadraticDiscriminantAnalysis(**TRAINING),
    "Balls1": balls(1),
    "Balls2": balls(2),
}


@dataclass(frozen=True)
class Cells:
    """What the paper prints of a data set: model -> errors at the values of lam, from 1 to 0."""

    file: str
    printed: dict[str, tuple[float, ...]]


PAPER = {
    "vehicle": Cells(
        "vehicle",
        {
            "LDA": (0.237, 0.235, 0.235, 0.236, 0.243),
            "QDA": (0.235, 0.234, 0.235, 0.234, 0.267),
            "Balls1": (0.318, 0.293, 0.271, 0.254, 0.242),
            "Balls2": (0.239, 0.239, 0.236, 0.232, 0.250),
        },
    ),
    "diabetes": Cells(
        "diabetes",
        {
            "LDA": (0.253, 0.252, 0.249, 0.250, 0.249),
            "QDA": (0.262, 0.261, 0.262, 0.262, 0.270),
            "Balls1": (0.262, 0.260, 0.259, 0.257, 0.253),
            "Balls2": (0.266, 0.265, 0.265, 0.268, 0.279),
        },
    ),
    "satimage": Cells(
        "satellite",
        {
            "LDA": (0.188, 0.187, 0.186, 0.185, 0.191),
            "QDA": (0.181, 0.179, 0.180, 0.181, 0.215),
            "Balls1": (0.185, 0.183, 0.182, 0.181, 0.194),
            "Balls2": (0.185, 0.185, 0.184, 0.183, 0.210),
        },
    ),
    "australian": Cells(
        "australian",
        {
            "LDA": (0.143, 0.144, 0.144, 0.144, 0.145),
            "QDA": (0.149, 0.151, 0.150, 0.151, 0.168),
            "Balls1": (0.146, 0.145, 0.144, 0.144, 0.150),
            "Balls2": (0.146, 0.145, 0.146, 0.146, 0.166),
        },
    ),
}


def directions(X: np.ndarray, y: np.ndarray, count: int = DIRECTIONS) -> Callable[[np.ndarray], np.ndarray]:
    """From columns to the first discriminant variables and principal components of the rest, as the rows say."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    rows = (X - mean) / deviation
    fisher = _discriminants(rows, y)[:, :count]
    basis, _ = np.linalg.qr(fisher)
    rest = rows - rows @ basis @ basis.T
    _, _, right = np.linalg.svd(rest, full_matrices=False)
    principal = (right - right @ basis @ basis.T).T[:, : count - fisher.shape[1]]
    found = np.column_stack([fisher, principal])
    return lambda columns: (columns - mean) / deviation @ found


def _discriminants(rows: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Fisher's directions, (d, k - 1), most discriminating first, with unit variance within classes.

    A column that does not vary within the classes of a small sample has no such variance: directions of next to none
    are left out.
    """
    classes, codes = np.unique(y, return_inverse=True)
    means = np.stack([rows[codes == c].mean(axis=0) for c in range(len(classes))])
    values, vectors = np.linalg.eigh(
        np.cov((rows - means[codes]).T) * (len(rows) - 1) / (len(rows) - len(classes))
    )
    some = values > 1e-8 * values[-1]
    white = vectors[:, some] / np.sqrt(values[some])
    shares = np.bincount(codes) / len(rows)
    _, _, right = np.linalg.svd(np.sqrt(shares)[:, None] * (means @ white), full_matrices=False)
    return white @ right[: len(classes) - 1].T


def trial(
    X: np.ndarray, y: np.ndarray, seed: int, models: dict[str, Callable[[], Any]] = MODELS
) -> np.ndarray:
    """Errors on the rows that were not drawn, (models, lams)."""
    order = np.random.default_rng(seed).permutation(len(y))
    size = ROWS_A_CLASS * len(np.unique(y))
    training, held = order[:size], order[size:]
    project = directions(X[training], y[training])
    A, B = project(X[training]), project(X[held])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # lam = 0 may climb for ever where classes part
        warnings.simplefilter("ignore", SingularCovarianceWarning)  # a far row that is a component of its own
        return np.array(
            [
                [_error(make(), lam, (A, y[training]), (B, y[held])) for lam in LAMS]
                for make in models.values()
            ]
        )


def _error(model: Any, lam: float, training: tuple[Any, Any], held: tuple[Any, Any]) -> float:
    return float(1.0 - model.set_params(rule=GDT(lam=lam)).fit(*training).score(*held))


def table_1(
    X: np.ndarray,
    y: np.ndarray,
    trials: int = TRIALS,
    jobs: int = 1,
    models: dict[str, Callable[[], Any]] = MODELS,
) -> dict[str, np.ndarray]:
    """Model -> errors of all trials, (trials, lams)."""
    found = np.array(Parallel(n_jobs=jobs)(delayed(trial)(X, y, seed, models) for seed in range(trials)))
    return {name: found[:, i] for i, name in enumerate(models)}


def tolerances(model: str) -> np.ndarray:
    """How far from the printed cells a model's may be, (lams,)."""
    return np.array([TOLERANCE_AT_ZERO if lam == 0 else TOLERANCE[model] for lam in LAMS])


def _lines(name: str, errors: dict[str, np.ndarray], printed: dict[str, tuple[float, ...]]) -> list[str]:
    lines = []
    for model, all_trials in errors.items():
        ours, off = all_trials.mean(axis=0), all_trials.std(axis=0) / np.sqrt(len(all_trials))
        cells = [f"{error:.3f}" for error in ours]
        if model in printed:
            beyond = np.abs(ours - printed[model]) > tolerances(model)
            cells = [
                f"{c} ({p:.3f}){' !' * b}" for c, p, b in zip(cells, printed[model], beyond, strict=True)
            ]
        lines.append(f"| {name} | {model} | " + " | ".join(cells) + f" | {off.max():.3f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=os.environ.get("CALIBAYES_DATA"))
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--model", nargs="*", default=list(MODELS))
    parser.add_argument("--data", nargs="*", default=list(PAPER))
    parser.add_argument("--quick", action="store_true", help="two trials on a set that is always there")
    options = parser.parse_args()
    models = {name: MODELS[name] for name in options.model}
    print("| data | model | " + " | ".join(f"lam {lam:g}" for lam in LAMS) + " | standard error |")
    print("| --- " * (3 + len(LAMS)) + "|")
    if options.quick:
        print(*_lines("wine", table_1(*load_wine(return_X_y=True), 2, 1, models), {}), sep="\n")
        return
    if options.folder is None:
        parser.error("name the folder of the data sets, or set CALIBAYES_DATA")
    for name in options.data:
        data, began = (
            load_file(Path(options.folder) / f"{PAPER[name].file}.csv.gz", "target"),
            time.perf_counter(),
        )
        X = np.column_stack([data.columns.column(j) for j in range(len(data.columns.names))]).astype(float)
        errors = table_1(X, np.asarray(data.target), options.trials, options.jobs, models)
        print(*_lines(name, errors, PAPER[name].printed), sep="\n", flush=True)
        print(f"<!-- {name}: {time.perf_counter() - began:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
