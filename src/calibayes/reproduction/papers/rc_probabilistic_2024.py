"""Perez, Echegoyen and Santafe (2024), risk-based calibration: Tables II to IX, Figures 1 to 4."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from calibayes.estimators.discriminant_analysis import (
    GenerativeLogisticRegression,
    QuadraticDiscriminantAnalysis,
)
from calibayes.estimators.tabular import NaiveBayes
from calibayes.families import ClassPrior, Dirichlet, NormalInverseWishart
from calibayes.model.recipe import TrainingOptions
from calibayes.reproduction.error_tables import TrainingErrorTable
from calibayes.reproduction.experiment import Paper
from calibayes.reproduction.figures import ImageFigure
from calibayes.reproduction.procedures import Above, Cleaning, DataEntry
from calibayes.rules import DFE, GD, RC

NAME = "rc-probabilistic-2024"

ENTRIES = (
    DataEntry("adult", "adult", missing_is_level=True),
    DataEntry("blood-transfusion", "blood transfusion"),
    DataEntry("climate-model", "climate model", rows=360),
    DataEntry("diabetes", "diabetes"),
    DataEntry("ecoli", "ecoli"),
    DataEntry("german-numer", "german numer"),
    DataEntry("glass", "glass"),
    DataEntry("haberman", "haberman", skip=1),
    DataEntry("heart", "heart"),
    DataEntry("indian-liver", "indian liver"),
    DataEntry("ionosphere", "ionosphere"),
    DataEntry("iris", "iris"),
    DataEntry("letter", "letterrecog"),
    DataEntry("liver-disorders", "liver disorder", target=Above("drinks", 3.0)),
    DataEntry("magic", "magic"),
    DataEntry("mammographic", "mammographic"),
    DataEntry("optdigits", "optdigits"),
    DataEntry("pulsar", "pulsar"),
    DataEntry("qsar", "qsar"),
    DataEntry("redwine", "redwine", drop=("density",)),
    DataEntry("satellite", "satellite"),
    DataEntry("sonar", "sonar"),
    DataEntry("splice", "splice"),
    DataEntry("svmguide3", "svmguide3"),
    DataEntry("vehicle", "vehicle"),
)
"""All data sets of the paper except the five of 512 ResNet features, which are not public."""

NO_CLEANING = Cleaning()
FOR_GAUSSIANS = Cleaning(least_class_rows=10, within_classes=True, standardize=True)
"""Maximum likelihood and calibration do not depend on the units of the columns; gradient descent does, and its
iterations equal the published ones if columns are standardized."""

TABLE_ITERATIONS: dict[str, Any] = {"stop": None, "max_iter": 63}
"""64 iterations; the papers count the start as iteration 1."""

CALIBRATION, DESCENT, REINFORCEMENT = RC(step=0.1), GD(step=0.1), DFE(step=0.1)


LIKELIHOOD: dict[str, Any] = {"alpha": 0.0, "discretize": "kmeans"}
POSTERIOR: dict[str, Any] = {
    "discretize": "kmeans",
    "prior": Dirichlet(size=1.0),
    "priors": ClassPrior(alpha=1.0),
}
"""Equivalent sample size of one row per class, spread evenly over the levels of each column; gives the published initial
errors."""


def _naive_bayes(rule: Any, choices: dict[str, Any]) -> NaiveBayes:
    return NaiveBayes(rule=rule, **choices, **TABLE_ITERATIONS)


def _gaussian(kind: Any, rule: Any, prior: Any, **choices: Any) -> Any:
    smoothing = 0.0 if prior == "auto" else 1.0
    return kind(prior=prior, priors=ClassPrior(alpha=smoothing), rule=rule, **TABLE_ITERATIONS, **choices)


CONJUGATE = NormalInverseWishart(m1=10.0, m2=10.0)
"""Prior mean and covariance are the means and variances of the columns, because the paper does not state them."""

CONTINUES = (
    "the implementation of the paper stops at the first update that makes a statistic invalid; ours skips the statistic "
    "and continues"
)
PRIOR_NOT_STATED = (
    "the paper does not state the prior mean and covariance; ours are the means and variances of the columns"
)
OTHER_GRADIENT = (
    "gradient descent on a covariance: the paper prints a trace instead of the covariance, which cannot be added to a "
    "matrix; ours uses the gradient"
)


def _tables() -> tuple[TrainingErrorTable, ...]:
    quadratic, logistic = QuadraticDiscriminantAnalysis, GenerativeLogisticRegression

    def naive_bayes(
        name: str, title: str, start: str, choices: Any, rival: str = "GD", **more: Any
    ) -> TrainingErrorTable:
        other = _naive_bayes(REINFORCEMENT if rival == "DFE" else DESCENT, choices)
        return TrainingErrorTable(
            NAME,
            name,
            title,
            ENTRIES,
            NO_CLEANING,
            start,
            rival,
            _naive_bayes(CALIBRATION, choices),
            other,
            **more,
        )

    def gaussian(
        name: str, title: str, start: str, kind: Any, prior: Any, choices: Any = None, **more: Any
    ) -> TrainingErrorTable:
        models = [_gaussian(kind, rule, prior, **(choices or {})) for rule in (CALIBRATION, DESCENT)]
        return TrainingErrorTable(NAME, name, title, ENTRIES, FOR_GAUSSIANS, start, "GD", *models, **more)

    return (
        naive_bayes("II", "Naive Bayes, ML", "ML", LIKELIHOOD),
        naive_bayes("III", "Naive Bayes, MAP", "MAP", POSTERIOR, reason=CONTINUES),
        gaussian("IV", "QDA, ML", "ML", quadratic, "auto", rival_reason=OTHER_GRADIENT),
        gaussian("V", "QDA, MAP", "MAP", quadratic, CONJUGATE, reason=PRIOR_NOT_STATED),
        gaussian("VI", "Logistic regression, ML", "ML", logistic, "auto"),
        gaussian("VII", "Logistic regression, MAP", "MAP", logistic, CONJUGATE, reason=PRIOR_NOT_STATED),
        gaussian(
            "VIII",
            "Logistic regression, random start",
            "Random",
            logistic,
            "auto",
            {"training": TrainingOptions(start="random"), "random_state": 0},
            reason="different random start",
            notes=(
                "Ours starts from the statistics of random labels; the paper does not describe its random start.",
            ),
        ),
        naive_bayes("IX", "Naive Bayes, ML, against DFE", "ML", LIKELIHOOD, "DFE"),
    )


FIGURE_ITERATIONS: dict[str, Any] = {"stop": None, "max_iter": 127}
IMAGES: dict[str, Any] = {"images": "mnist", "rows": 5000, "pool": 2}


def _figure(number: int, title: str, models: dict[str, Any], within_classes: bool) -> ImageFigure:
    longer = {label: clone(model).set_params(**FIGURE_ITERATIONS) for label, model in models.items()}
    return ImageFigure(
        NAME, f"figure-{number}", title, models=longer, within_classes=within_classes, **IMAGES
    )


def _figures() -> tuple[ImageFigure, ...]:
    rules = {"RC": CALIBRATION, "GD": DESCENT}
    counting = {
        f"{name} {start}": _naive_bayes(rule, choices)
        for name, rule in rules.items()
        for start, choices in (("ML", LIKELIHOOD), ("MAP", POSTERIOR))
    }

    def gaussian(kind: Any) -> dict[str, Any]:
        return {
            f"{name} {start}": _gaussian(kind, rule, prior)
            for name, rule in rules.items()
            for start, prior in (("ML", "auto"), ("MAP", CONJUGATE))
        }

    random = {
        name: _gaussian(
            GenerativeLogisticRegression,
            rule,
            "auto",
            training=TrainingOptions(start="random"),
            random_state=0,
        )
        for name, rule in rules.items()
    }
    return (
        _figure(1, "Naive Bayes on images", counting, within_classes=False),
        _figure(2, "QDA on images", gaussian(QuadraticDiscriminantAnalysis), within_classes=True),
        _figure(
            3, "Logistic regression on images", gaussian(GenerativeLogisticRegression), within_classes=True
        ),
        _figure(4, "Logistic regression on images, random start", random, within_classes=True),
    )


PAPER = Paper(
    NAME,
    "Perez, Echegoyen, Santafe (2024), Risk-based calibration for probabilistic classifiers",
    (*_tables(), *_figures()),
    "Training errors, as in the paper: the initial error, the lowest error within 64 iterations and the iteration (iter) "
    "where it is first reached, the start being iteration 1; reach is the first iteration at which the error of RC is not "
    "above the lowest error of the rival (GD or DFE).",
)
