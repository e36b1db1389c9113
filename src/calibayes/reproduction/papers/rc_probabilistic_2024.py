"""Perez, Echegoyen and Santafe (2024), risk-based calibration: Tables II to IX, Figures 1 to 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

import calibayes as cb
from calibayes.datasets import find_file
from calibayes.families import ClassPrior, Dirichlet, NormalInverseWishart
from calibayes.plots import panels
from calibayes.reproduction import result_tables as tables
from calibayes.reproduction.claims import count_better_equal_worse, reach
from calibayes.reproduction.experiment import Experiment, Paper, Results, Settings, task_key
from calibayes.reproduction.procedures import Above, Cleaning, DataEntry, TrainingCurve, data_entries
from calibayes.reproduction.simulations import ENDING, ImageCurve
from calibayes.rules import DFE, GD, RC

UNEXPLAINED = "not explained"


@dataclass(frozen=True)
class TrainingErrorTable(Experiment):
    """Training errors of calibration (RC) and of a rival rule with the same start, on all data sets.

    Parameters
    ----------
    start : str
        Name of the column with the error before the first update.
    rival : str
        Name of the column of the rival rule.
    calibrated, other : estimators
        Trained by calibration and by the rival rule.
    reason : str
        Why rows may differ from the published ones; for rows without a reason of their own.
    rival_reason : str
        Why the errors of the rival may differ.
    """

    entries: tuple[DataEntry, ...]
    cleaning: Cleaning
    start: str
    rival: str
    calibrated: Any
    other: Any
    reason: str = ""
    rival_reason: str = ""
    notes: tuple[str, ...] = ()

    def tasks(self, settings: Settings) -> list[TrainingCurve]:
        return [task for entry in self._entries(settings) for task in self._curves(entry)]

    def report(self, results: Results, settings: Settings) -> tables.ExperimentReport:
        entries = self._entries(settings)
        rows = [
            self._row(entry, [results[task_key(task)] for task in self._curves(entry)]) for entry in entries
        ]
        count = sum(self._agrees(row.pairs) for row in rows)
        agreement = (
            f"{count} of {len(rows)} data sets agree: the initial error and the lowest error of RC within 0.001, the "
            "iteration of RC within one."
        )
        notes = (*self.notes, agreement, self._win_counts(rows), self._not_run(entries))
        return self.report_of((*rows, _average_row(rows)), *notes, reason=self.rival_reason or self.reason)

    def _entries(self, settings: Settings) -> list[DataEntry]:
        sizes = {label: row["rows"] for label, row in tables.published_table(self.paper, "I").items()}
        return settings.select(self.entries, sizes)

    def _curves(self, entry: DataEntry) -> tuple[TrainingCurve, TrainingCurve]:
        calibrated, other = (
            TrainingCurve(entry, self.cleaning, model) for model in (self.calibrated, self.other)
        )
        return calibrated, other

    def _row(self, entry: DataEntry, results: Sequence[dict[str, Any]]) -> tables.TableRow:
        published = self.published()[entry.label]
        ours = self._numbers(*(result.get("error") for result in results))
        pairs = {name: _number_pair(name, ours[name], published.get(name)) for name in ours}
        return tables.TableRow(entry.label, pairs, self._explanation(entry.label, pairs, results))

    def _numbers(self, calibrated: list[float] | None, other: list[float] | None) -> dict[str, float | None]:
        ours: dict[str, float | None] = dict.fromkeys(
            (self.start, "RC", "RC iter", self.rival, f"{self.rival} iter", "reach")
        )
        if calibrated is not None:
            ours |= {self.start: calibrated[0], "RC": min(calibrated), "RC iter": _best_iteration(calibrated)}
        if other is not None:
            ours |= {self.rival: min(other), f"{self.rival} iter": _best_iteration(other)}
        if calibrated is not None and other is not None:
            ours["reach"] = reach(calibrated, min(other))
        return ours

    def _explanation(
        self, label: str, pairs: Mapping[str, tables.NumberPair], results: Sequence[dict[str, Any]]
    ) -> str:
        """Why calibration differs from the published numbers: known reasons and warnings of the fits; else empty."""
        if self._agrees(pairs):
            return ""
        notes = [note for result in results for note in (*result.get("notes", []), result.get("failed", ""))]
        reasons = [tables.known_reasons(self.paper, self.name).get(label, ""), *dict.fromkeys(notes)]
        return "; ".join(reason for reason in reasons if reason) or self.reason or UNEXPLAINED

    def _agrees(self, pairs: Mapping[str, tables.NumberPair]) -> bool:
        return not any(
            pairs[name].differs or not pairs[name].compared for name in (self.start, "RC", "RC iter")
        )

    def _win_counts(self, rows: Sequence[tables.TableRow]) -> str:
        compared = [row for row in rows if row.pairs["RC"].compared and row.pairs[self.rival].compared]

        def counts(side: str) -> str:
            errors = [
                [round(getattr(row.pairs[name], side), 3) for row in compared] for name in ("RC", self.rival)
            ]
            better, equal, worse = count_better_equal_worse(zip(*errors, strict=True))
            return f"better on {better}, equal on {equal}, worse on {worse}"

        return (
            f"RC compared with {self.rival} on {len(compared)} data sets: {counts('ours')}; "
            f"published, on the same data sets: {counts('published')}."
        )

    def _not_run(self, entries: Sequence[DataEntry]) -> str:
        labels = {"average", *(entry.label for entry in entries)}
        missing = [label for label in self.published() if label not in labels]
        return f"Data sets not run: {', '.join(missing)}." if missing else ""


def _best_iteration(curve: Sequence[float]) -> float:
    """The first iteration, from 1, with the lowest value."""
    return float(np.argmin(curve)) + 1.0


def _number_pair(name: str, ours: float | None, published: float | None) -> tables.NumberPair:
    if name == "reach" or name.endswith(" iter"):
        return tables.NumberPair(ours, published, spread=1.0, digits=0, unit=0.0)
    return tables.NumberPair(ours, published, spread=0.001)


def _average_row(rows: Sequence[tables.TableRow]) -> tables.TableRow:
    """Means of ours and of the published numbers over the same rows."""

    def mean(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.mean(known)) if known else None

    def mean_pair(name: str) -> tables.NumberPair:
        pairs = [row.pairs[name] for row in rows if name == "reach" or row.pairs[name].compared]
        digits = 3 if pairs and pairs[0].unit else 0
        published = mean([pair.published for pair in pairs])
        return tables.NumberPair(
            mean([pair.ours for pair in pairs]),
            None if published is None else round(published, digits),
            spread=float("inf"),
            digits=digits,
            unit=0.0,
        )

    return tables.TableRow("average of these rows", {name: mean_pair(name) for name in rows[0].pairs})


# -- Figures of training errors on images (Figures 1 to 4) ----------------------------------------------------

QUICK_IMAGES, QUICK_POOL = 1000, 4


@dataclass(frozen=True)
class ImageFigure(Experiment):
    """Training errors of several models on one set of images.

    Parameters
    ----------
    images : str
        Name of the set of images; `Settings.datasets` overrides it.
    rows, pool : int
        Number of images, and side of the squares over which pixels are averaged.
    models : label -> estimator
    within_classes : bool
        Whether pixels that are constant within a class are dropped and the others standardized.
    """

    images: str
    rows: int
    pool: int
    models: Mapping[str, Any]
    within_classes: bool

    def tasks(self, settings: Settings) -> list[ImageCurve]:
        return [task for name in self._sets(settings) for task in self._curves(name, settings).values()]

    def report(self, results: Results, settings: Settings) -> tables.ExperimentReport:
        results_by_set = {
            name: {label: results[task_key(task)] for label, task in self._curves(name, settings).items()}
            for name in self._sets(settings)
        }
        rows = [
            _curve_row(f"{name}, {label}", result)
            for name, curves in results_by_set.items()
            for label, result in curves.items()
        ]
        figure = tables.Figure(f"{self.paper}-{self.name}", lambda: _draw(results_by_set))
        count, pool = self._size(settings)
        note = (
            f"The 512 ResNet features of the paper are not public. These are raw pixels of {count} images, averaged over "
            f"squares of {pool} x {pool}: the shapes of the curves can be compared, the error levels cannot."
        )
        return self.report_of(rows, note, figures=(figure,))

    def _sets(self, settings: Settings) -> list[str]:
        names = (self.images,) if settings.datasets is None else settings.datasets
        return [name for name in names if find_file(name, ending=ENDING) is not None]

    def _size(self, settings: Settings) -> tuple[int, int]:
        return (QUICK_IMAGES, QUICK_POOL) if settings.quick else (self.rows, self.pool)

    def _curves(self, name: str, settings: Settings) -> dict[str, ImageCurve]:
        return {
            label: ImageCurve(name, model, *self._size(settings), self.within_classes)
            for label, model in self.models.items()
        }


def _curve_row(label: str, result: dict[str, Any]) -> tables.TableRow:
    if "failed" in result:
        return tables.TableRow(label, {}, result["failed"])
    curve = result["error"]
    errors = {f"iteration {i}": curve[i - 1] for i in (1, 16, 64, 128) if i <= len(curve)}
    pairs = {name: tables.NumberPair(error, unit=0.0) for name, error in errors.items()}
    pairs |= {
        "lowest": tables.NumberPair(min(curve), unit=0.0),
        "at iteration": tables.NumberPair(float(np.argmin(curve)) + 1, unit=0.0, digits=0),
    }
    return tables.TableRow(label, pairs, "; ".join(result["notes"]))


def _draw(results_by_set: Mapping[str, Mapping[str, dict[str, Any]]]) -> Any:
    content = {
        name: {
            label: (np.arange(1, len(result["error"]) + 1), np.asarray(result["error"]))
            for label, result in curves.items()
            if "error" in result
        }
        for name, curves in results_by_set.items()
    }
    return panels(content, columns=1, x="iteration", y="training error")


# -- The tables and figures of the paper ---------------------------------------------------------------------

NAME = "rc-probabilistic-2024"

ENTRIES = data_entries(
    [
        *("adult", "blood-transfusion", "climate-model", "diabetes", "ecoli", "german-numer", "glass"),
        *("haberman", "heart", "indian-liver", "ionosphere", "iris", "letter", "liver-disorders", "magic"),
        *("mammographic", "optdigits", "pulsar", "qsar", "redwine", "satellite", "sonar", "splice"),
        *("svmguide3", "vehicle"),
    ],
    {
        "adult": {"missing_is_level": True},
        "climate-model": {"rows": 360},
        "haberman": {"skip": 1},
        "letter": {"label": "letterrecog"},
        "liver-disorders": {"label": "liver disorder", "target": Above("drinks", 3.0)},
        "redwine": {"drop": ("density",)},
    },
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


def _naive_bayes(rule: Any, choices: dict[str, Any]) -> cb.NaiveBayes:
    return cb.NaiveBayes(rule=rule, **choices, **TABLE_ITERATIONS)


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
    quadratic, logistic = cb.QuadraticDiscriminantAnalysis, cb.GenerativeLogisticRegression

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
            {"training": cb.TrainingOptions(start="random"), "random_state": 0},
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
            cb.GenerativeLogisticRegression,
            rule,
            "auto",
            training=cb.TrainingOptions(start="random"),
            random_state=0,
        )
        for name, rule in rules.items()
    }
    return (
        _figure(1, "Naive Bayes on images", counting, within_classes=False),
        _figure(2, "QDA on images", gaussian(cb.QuadraticDiscriminantAnalysis), within_classes=True),
        _figure(
            3, "Logistic regression on images", gaussian(cb.GenerativeLogisticRegression), within_classes=True
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
