"""Risk-based calibration for generative classifiers: Tables 3 to 12."""

from __future__ import annotations

from typing import Any

from calibayes.estimators.discriminant_analysis import QuadraticDiscriminantAnalysis
from calibayes.estimators.naive_bayes import NaiveBayes
from calibayes.estimators.trade_off import TradeOffCV
from calibayes.experiments.experiment import Experiment, Paper
from calibayes.experiments.protocols.data_entry import DataEntry
from calibayes.experiments.results.split_counts import SplitCounts
from calibayes.experiments.results.split_results import Splits
from calibayes.experiments.results.split_table import SplitTable
from calibayes.families import Dirichlet, NormalInverseWishart
from calibayes.rules import DFE, GD, RC

NAME = "rc-generative-2025"

ENTRIES = (
    DataEntry("iris", "iris"),
    DataEntry("sonar", "sonar"),
    DataEntry("climate-model", "climate model", rows=360),
    DataEntry("indian-liver", "indian liver"),
    DataEntry("vehicle", "vehicle"),
    DataEntry("german-numer", "german numer"),
    DataEntry("splice", "splice"),
    DataEntry("qsar", "qsar"),
    DataEntry("svmguide3", "svmguid3"),
    DataEntry("redwine", "redwine"),
    DataEntry("optdigits", "optdigits"),
    DataEntry("satellite", "satellite"),
    DataEntry("pulsar", "pulsar"),
    DataEntry("magic", "magic"),
    DataEntry("adult", "adult", missing_is_level=True),
)
"""All but the five sets of 512 ResNet features, which are not public."""

STOPPED: dict[str, Any] = {"stop": "soft_error", "max_iter": 63}
"""At the first update that makes the soft error worse, after 64 iterations at the latest."""
LIKELIHOOD: dict[str, Any] = {"alpha": 0.0, "discretize": "kmeans"}
POSTERIOR: dict[str, Any] = {"discretize": "kmeans", "prior": Dirichlet(size=1.0), "class_alpha": 1.0}
CONJUGATE: dict[str, Any] = {"prior": NormalInverseWishart(m1=10.0, m2=10.0), "class_alpha": 1.0}
CALIBRATION, DESCENT, REINFORCEMENT = RC(step=0.1), GD(step=0.1), DFE(step=0.1)

NAIVE_BAYES = {
    "ML": NaiveBayes(rule="ml", **LIKELIHOOD),
    "ML RC": NaiveBayes(rule=CALIBRATION, **LIKELIHOOD, **STOPPED),
    "ML GD": NaiveBayes(rule=DESCENT, **LIKELIHOOD, **STOPPED),
    "ML DFE": NaiveBayes(rule=REINFORCEMENT, **LIKELIHOOD, **STOPPED),
    "MAP": NaiveBayes(rule="ml", **POSTERIOR),
    "MAP RC": NaiveBayes(rule=CALIBRATION, **POSTERIOR, **STOPPED),
    "MAP GD": NaiveBayes(rule=DESCENT, **POSTERIOR, **STOPPED),
}
QUADRATIC = {
    "ML": QuadraticDiscriminantAnalysis(rule="ml"),
    "ML RC": QuadraticDiscriminantAnalysis(rule=CALIBRATION, **STOPPED),
    "ML GD": QuadraticDiscriminantAnalysis(rule=DESCENT, **STOPPED),
    "MAP": QuadraticDiscriminantAnalysis(rule="ml", **CONJUGATE),
    "MAP RC": QuadraticDiscriminantAnalysis(rule=CALIBRATION, **CONJUGATE, **STOPPED),
    "MAP GD": QuadraticDiscriminantAnalysis(rule=DESCENT, **CONJUGATE, **STOPPED),
    "validated RC": QuadraticDiscriminantAnalysis(
        rule=CALIBRATION, validation_fraction=0.2, stop=None, max_iter=63
    ),
    "GDT": TradeOffCV(
        estimator=QuadraticDiscriminantAnalysis(max_iter=30), lams=(1.0, 0.5, 0.1), cv=3, scoring="log_loss"
    ),
}

BINS = Splits(NAME, ENTRIES, NAIVE_BAYES, standardize=False, splits=5)
NUMBERS = Splits(NAME, ENTRIES, QUADRATIC, standardize=True, splits=5)

HELD_OUT = (
    "Ours are clean: bins, standardization, priors and every stop see the training rows alone, and the test rows are "
    "counted once. The published test columns cannot be met that way; they are as low as training errors where the "
    "model is far too rich for the rows (QDA on sonar: 207 rows, 60 columns, no test error at all)."
)
GOES_ON = (
    "Where the published RC stays at its start (iteration 1), a statistic would have become invalid and that version "
    "stopped; ours holds the statistic back and goes on."
)
OVERFITS = (
    "QDA can over-fit where rows are few for its columns: compare RC's training and test errors with those of ML. The "
    "last columns are what the library offers against it, helpful or not on a given data set: a prior (MAP, and RC "
    "from it), a stop by validation rows inside the training part, and GDT with lam chosen by cross-validation on the "
    "training part."
)
OTHER_SPLITS = (
    "other random splits; the published test columns are nearer to training errors than to clean test errors"
)


def _compared(start: str) -> dict[str, str]:
    return {start: start, "RC": f"{start} RC", "GD": f"{start} GD"}


def _table(
    name: str, title: str, splits: Splits, methods: dict[str, str], *notes: str, **more: Any
) -> SplitTable:
    counted = tuple(method for method in methods if method in ("RC", "GD", "DFE"))
    further = more.get("further", {})
    return SplitTable(name, title, splits, methods, further, counted, notes, OTHER_SPLITS)


def _counts(name: str, splits: Splits, start: str, rivals: dict[str, str]) -> SplitCounts:
    return SplitCounts(name, f"RC against {' and '.join(rivals)}, counted", splits, f"{start} RC", rivals)


EXPERIMENTS: tuple[Experiment, ...] = (
    _table("3", "Naive Bayes, ML", BINS, _compared("ML"), HELD_OUT, GOES_ON),
    _counts("4", BINS, "ML", {"ML": "ML", "GD": "ML GD"}),
    _table(
        "5",
        "QDA, ML",
        NUMBERS,
        _compared("ML"),
        HELD_OUT,
        OVERFITS,
        further={"MAP": "MAP", "MAP RC": "MAP RC", "validated RC": "validated RC", "GDT": "GDT"},
    ),
    _counts("6", NUMBERS, "ML", {"ML": "ML", "GD": "ML GD"}),
    _table("7", "Naive Bayes, MAP", BINS, _compared("MAP"), HELD_OUT, GOES_ON),
    _counts("8", BINS, "MAP", {"MAP": "MAP", "GD": "MAP GD"}),
    _table("9", "QDA, MAP", NUMBERS, _compared("MAP"), HELD_OUT),
    _counts("10", NUMBERS, "MAP", {"MAP": "MAP", "GD": "MAP GD"}),
    _table("11", "Naive Bayes, RC against DFE", BINS, {"RC": "ML RC", "DFE": "ML DFE"}, HELD_OUT, GOES_ON),
    _counts("12", BINS, "ML", {"DFE": "ML DFE"}),
)

PAPER = Paper(
    NAME,
    "Perez, Echegoyen, Santafe (2025), Risk-based calibration for generative classifiers",
    EXPERIMENTS,
    "Errors in percent, means over five random splits into 75 % training and 25 % test rows; iterations count the "
    "start as 1. Published percents are cut, not rounded (18 for adult where rc-probabilistic-2024 has 0.187), and so "
    "are ours before they are compared.",
)
