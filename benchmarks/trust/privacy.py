"""Error of differentially private Gaussian naive Bayes: `python -m benchmarks.trust.privacy`.

Bounds are wide round numbers of each quantity (8-bit intensities of a radio profile and their moments; clinical ranges); they
were written down by someone who had seen the ranges of the columns. delta is 1e-6, below one over the square of the number of
rows of the smaller table. ``--quick`` uses a table of scikit-learn.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold

from calibayes import GaussianNB, TrainingOptions
from calibayes.trust import Privacy

DELTA = 1e-6
EPSILONS = (0.1, 1.0, 10.0)
BOUNDS = {
    "pulsar": {
        "profile_mean": (0, 255),
        "profile_std": (0, 128),
        "profile_kurtosis": (-5, 10),
        "profile_skewness": (-5, 100),
        "dmsnr_mean": (0, 255),
        "dmsnr_std": (0, 128),
        "dmsnr_kurtosis": (-5, 50),
        "dmsnr_skewness": (-5, 1500),
    },
    "diabetes": {
        "pregnant": (0, 20),
        "glucose": (0, 250),
        "blood_pressure": (0, 150),
        "skin_thickness": (0, 100),
        "insulin": (0, 1000),
        "bmi": (0, 80),
        "pedigree": (0, 3),
        "age": (20, 100),
    },
}
QUICK = "breast cancer"
QUICK_BOUNDS = {QUICK: {"mean radius": (0, 50), "mean texture": (0, 50)}}
DIFFPRIVLIB = {"pulsar": (9.6, 5.8, 6.1), "diabetes": (52.0, 36.0, 28.0)}
"""Error in per cent of diffprivlib's GaussianNB at the same epsilons (pure, delta 0), measured before on these tables."""


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    if name == QUICK:
        X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        return X.iloc[:, :2], y.to_numpy()
    folder = os.environ.get("CALIBAYES_DATA")
    if folder is None:
        raise SystemExit("CALIBAYES_DATA is not set: set it to the folder of data sets")
    frame = pd.read_csv(Path(folder) / f"{name}.csv.gz")
    return frame.iloc[:, :-1], frame.iloc[:, -1].to_numpy()


def errors(name: str, epsilon: float | None, repeats: int) -> list[float]:
    """Error in per cent on held-out rows, for each fold and repetition of the noise."""
    X, y = table(name)
    options = None
    if epsilon is not None:
        options = TrainingOptions(
            privacy=Privacy(epsilon, DELTA, classes=[0, 1], bounds={**BOUNDS, **QUICK_BOUNDS}[name])
        )
    found = []
    for repeat in range(repeats):
        for train, test in StratifiedKFold(5, shuffle=True, random_state=repeat).split(X, y):
            model = GaussianNB(rule="ml", training=options).fit(X.iloc[train], y[train])
            found.append(100 * (1 - model.score(X.iloc[test], y[test])))
    return found


def draw(frame: pd.DataFrame, path: Path) -> None:
    """Error beside epsilon for both tables."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(7.5, 3), layout="constrained")
    for axes, name in zip(panels, BOUNDS, strict=True):
        rows = frame[(frame.table == name) & frame.epsilon.notna()]
        axes.errorbar(rows.epsilon, rows.error, rows.deviation, fmt="o-", capsize=3, label="calibayes")
        axes.plot(EPSILONS, DIFFPRIVLIB[name], "s--", label="diffprivlib")
        plain = frame[(frame.table == name) & frame.epsilon.isna()].error.iloc[0]
        axes.axhline(plain, color="gray", lw=1, label="no privacy")
        axes.set(xscale="log", title=name, xlabel="epsilon", ylabel="error (%)", ylim=(0, None))
    panels[0].legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for name in QUICK_BOUNDS if options.quick else BOUNDS:
        for epsilon in (*EPSILONS, None):
            found = errors(name, epsilon, 1 if options.quick or epsilon is None else 10)
            rows.append((name, epsilon, np.mean(found), np.std(found)))
    frame = pd.DataFrame(rows, columns=["table", "epsilon", "error", "deviation"])
    print(frame.to_string(index=False, float_format="{:.3g}".format))
    if options.picture:
        draw(frame, options.picture)


if __name__ == "__main__":
    main()
