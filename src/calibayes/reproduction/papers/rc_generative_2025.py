"""Perez, Echegoyen and Santafe (2025), risk-based calibration for generative classifiers: all tables, Figure 1."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import norm

import calibayes as cb
from calibayes.core.protocols import Array
from calibayes.plots import plot_ranks
from calibayes.ranks import average_ranks, rank_summary
from calibayes.reproduction import result_tables as tables
from calibayes.reproduction.author_files import FEATURES_ABSENT
from calibayes.reproduction.claims import count_better_equal_worse, reach
from calibayes.reproduction.experiment import Experiment, Paper, Results, Settings, Task
from calibayes.reproduction.papers.rc_probabilistic_2024 import (
    AUTHOR_FILES,
    CONJUGATE,
    LIKELIHOOD,
    POSTERIOR,
    RULES,
)
from calibayes.reproduction.procedures import (
    IMAGE_ENTRIES,
    Cleaning,
    DataEntry,
    FitWithTestRows,
    HeldOutSplit,
    data_entries,
)
from calibayes.reproduction.simulations import TOY_CLASSES, TOY_ROWS, ToyStates

# -- Models on the same random splits of the same data sets, and means over the splits (rc-generative-2025)

PARTS = ("training", "test")
"""Parts of a split."""
QUICK_SPLITS = 2


@dataclass(frozen=True)
class SplitStudy:
    """Data sets, models and splits that several tables share.

    Parameters
    ----------
    entries : tuple of DataEntry
    models : name -> estimator
    standardize : bool
        Whether columns are standardized by the training rows.
    splits : int
        Number of random splits.
    with_test_rows : name -> task of any data set and split
        Further models, which are trained with all rows.
    """

    paper: str
    entries: tuple[DataEntry, ...]
    models: Mapping[str, Any]
    standardize: bool
    splits: int
    with_test_rows: Mapping[str, FitWithTestRows]

    def task_groups(self, settings: Settings, models: Collection[str]) -> dict[tuple[str, str], list[Task]]:
        """(Label of a data set, model) -> tasks, one for each split, on all selected data sets."""
        splits = range(settings.repetitions(self.splits, QUICK_SPLITS))
        return {
            (entry.label, name): [self._task(entry, name, split) for split in splits]
            for entry in settings.select(self.entries, tables.published_sizes(self.paper, "2"))
            for name in models
        }

    def entry(self, label: str) -> DataEntry:
        """The data set of this label."""
        return next(entry for entry in self.entries if entry.label == label)

    def missing(self, labels: Collection[str]) -> str:
        """A sentence that names the data sets of the paper that are not among the labels; empty if there are none."""
        missing = [entry for entry in self.entries if entry.label not in labels]
        names = f"Data sets not run: {', '.join(entry.label for entry in missing)}." if missing else ""
        return " ".join(
            [names, *[FEATURES_ABSENT] * any(entry in IMAGE_ENTRIES for entry in missing)]
        ).strip()

    def _task(self, entry: DataEntry, name: str, split: int) -> Task:
        if name in self.with_test_rows:
            return replace(self.with_test_rows[name], data=entry, split=split)
        return HeldOutSplit(entry, Cleaning(), self.models[name], split, self.standardize)


Runs = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
"""(Label of a data set, model) -> results, one for each split."""


def labels_of(runs: Runs) -> list[str]:
    """Labels of the data sets."""
    return list(dict.fromkeys(label for label, _ in runs))


def mean_errors(runs: Runs, models: Collection[str], part: str) -> Array:
    """Mean errors of models over the splits, (data sets, models), without differences by rounding."""
    errors = [[mean(runs[label, model], part) for model in models] for label in labels_of(runs)]
    return np.round(errors, 12)


def mean(results: Sequence[Mapping[str, Any]], name: str) -> float:
    """Mean of an entry over the splits; NaN if a fit failed."""
    return float(np.mean([result.get(name, np.nan) for result in results]))


def mean_reach(calibrated: Sequence[Mapping[str, Any]], rival: Sequence[Mapping[str, Any]]) -> float | None:
    """Mean over the splits of the first iteration, from 1, with a soft error not above the rival's lowest.

    None if there is no such iteration in some split.
    """
    curves = zip(calibrated, rival, strict=True)
    iterations = [reach(ours["soft_error"], min(theirs["soft_error"])) for ours, theirs in curves]
    return None if None in iterations else float(np.mean([number for number in iterations if number]))


# -- Table of training and test errors over random splits (rc-generative-2025, Tables 3, 5, 7, 9, 11) --------

ALL_ROWS = ", all rows"
"""Follows the column of a method that was trained with the test rows."""
STOPPED_AT_START = 2.5
"""Mean iterations, the start included, below which calibration stopped after its first update."""
SINGULAR = "a covariance is singular: ours uses a prior for that class"
SKIPS_INVALID = "the published RC stops at its start; ours skips invalid statistics and continues"


@dataclass(frozen=True)
class SplitTable(Experiment):
    """Errors of the methods of the paper and of further methods, with rank tests.

    Parameters
    ----------
    study : SplitStudy
    methods : column -> name of a model
        Methods of the paper; the column "reach" compares RC with the last one.
    further : names of models
        Models that are not in the paper; only their test errors are shown.
    all_rows : column -> name of a model
        The methods once more, trained with the test rows as the paper evidently did; their errors are counted apart.
    reason : str
        Why numbers may differ from the published ones.
    """

    study: SplitStudy
    methods: Mapping[str, str]
    further: Sequence[str]
    all_rows: Mapping[str, str]
    notes: tuple[str, ...] = ()
    reason: str = ""

    def task_groups(self, settings: Settings) -> dict[tuple[str, str], list[Task]]:
        models = [*self.methods.values(), *self.further, *self.all_rows.values()]
        return self.study.task_groups(settings, models)

    def report(self, results: Results, settings: Settings) -> tables.ExperimentReport:
        runs = self.results_by_group(results, settings)
        rows = [*(self._row(label, runs) for label in labels_of(runs)), self._rank_row(runs)]
        tests, figures = self._rank_tests(runs)
        return self.report_of(
            rows,
            *self.notes,
            self._all_rows_note(rows),
            self.study.missing(labels_of(runs)),
            *tests,
            reason=self.reason,
            figures=figures,
        )

    def _all_rows_note(self, rows: Sequence[tables.TableRow]) -> str:
        """How many published errors come out with the test rows, and how many of the same ones without them."""
        names = [f"{method} {part}" for method in self.all_rows for part in PARTS]
        compared = [
            (row.pairs[name], row.pairs[name + ALL_ROWS])
            for row in rows
            for name in names
            if name + ALL_ROWS in row.pairs and row.pairs[name + ALL_ROWS].compared
        ]
        if not compared:
            return ""
        honest, leaky = (sum(pair.exact for pair in pairs) for pairs in zip(*compared, strict=True))
        return (
            f"Columns “all rows” are trained with the test rows, as the paper evidently did: {leaky} of {len(compared)} "
            f"published errors come out as printed there, {honest} of the same ones without the test rows."
        )

    def _models(self) -> dict[str, str]:
        """Column -> name of a model."""
        return {**self.methods, **{name: name for name in self.further}}

    def _row(self, label: str, runs: Runs) -> tables.TableRow:
        published = self.published()[label]
        by_method = {method: runs[label, model] for method, model in self._models().items()}
        pairs: dict[str, tables.NumberPair] = {}
        for method in self.methods:
            for part in PARTS:
                name = f"{method} {part}"
                pairs[name] = _percent(mean(by_method[method], part), published, name)
            if method in RULES:
                name = f"{method} iter"
                pairs[name] = _iterations(mean(by_method[method], "iter"), published, name)
        failures = [result["failed"] for runs in by_method.values() for result in runs if "failed" in result]
        if not failures:
            iterations = mean_reach(by_method["RC"], by_method[list(self.methods)[-1]])
            pairs["reach"] = _iterations(iterations, published, "reach")
        if self.study.entry(label).apart:
            pairs = {name: replace(pair, apart=True) for name, pair in pairs.items()}
        pairs |= {
            f"{method} test": _percent(mean(by_method[method], "test"), {}, "") for method in self.further
        }
        for method, model in self.all_rows.items():
            pairs |= _all_rows_pairs(label, method, runs[label, model], published)
        return tables.TableRow(label, pairs, "; ".join(_reasons(by_method, pairs["RC iter"], failures)))

    def _rank_row(self, runs: Runs) -> tables.TableRow:
        """Average ranks over the data sets of this run; the published ones are over all data sets of the paper."""
        published = self.published().get("average", {})
        pairs = {}
        for part in PARTS:
            ranks = average_ranks(mean_errors(runs, self.methods.values(), part))
            for method, rank in zip(self.methods, ranks.tolist(), strict=True):
                name = f"{method} {part}"
                pairs[name] = tables.uncompared(rank, published.get(name), digits=2)
        return tables.TableRow("average rank", pairs)

    def _rank_tests(self, runs: Runs) -> tuple[list[str], tuple[tables.Figure, ...]]:
        """Friedman's and Wilcoxon's tests of the test errors of all methods: a sentence and a figure."""
        models = self._models()
        if len(models) < 3 or len(labels_of(runs)) < 3:
            return [], ()
        summary = rank_summary(mean_errors(runs, models.values(), "test"), list(models))
        rc_tests = [
            f"{b if a == 'RC' else a} p = {p:.3f}"
            for (a, b), p in zip(summary.pairs, summary.pair_p, strict=True)
            if "RC" in (a, b)
        ]
        sentence = (
            f"Test errors on {summary.rows} data sets: Friedman test p = {summary.friedman_p:.4f}; "
            f"Wilcoxon tests with Holm's correction of RC against {', '.join(rc_tests)}; "
            f"critical difference of average ranks {summary.critical_difference:.2f}."
        )
        figure = tables.Figure(f"{self.paper}-{self.name}-ranks", lambda: plot_ranks(summary).figure)
        return [sentence], (figure,)


def _percent(error: float, published: Mapping[str, float], name: str) -> tables.NumberPair:
    return tables.NumberPair(
        100 * error,
        published.get(name),
        spread=published.get(f"{name} ±", 0.0),
        digits=0,
        unit=0.01,
        extra_digits=1,
        truncated=True,
    )


def _all_rows_pairs(
    label: str, method: str, runs: Sequence[Mapping[str, Any]], published: Mapping[str, float]
) -> dict[str, tables.NumberPair]:
    """Errors and iterations of a method that was trained with the test rows."""
    pairs = {f"{method} {part}": _percent(mean(runs, part), published, f"{method} {part}") for part in PARTS}
    if method in RULES:
        pairs[f"{method} iter"] = _iterations(mean(runs, "iter"), published, f"{method} iter")
    return {
        name + ALL_ROWS: replace(pair, apart=True, stands_for=(label, name)) for name, pair in pairs.items()
    }


def _iterations(ours: float | None, published: Mapping[str, float], name: str) -> tables.NumberPair:
    return tables.NumberPair(ours, published.get(name), spread=1.0, digits=1, unit=0.0)


def _reasons(by_method: Mapping[str, Any], iterations: tables.NumberPair, failures: list[str]) -> list[str]:
    """The first failure, else known causes: a singular covariance, or a published calibration that stopped early."""
    if failures:
        return failures[:1]
    notes = {note for runs in by_method.values() for result in runs for note in result["notes"]}
    singular = any("singular" in note for note in notes)
    continues = iterations.differs and (
        (iterations.published or 0.0) < STOPPED_AT_START < (iterations.ours or 0.0)
    )
    return [SINGULAR] * singular + [SKIPS_INVALID] * continues


# -- Table of how often one method is better than, equal to, worse than others (rc-generative-2025, Tables 4, 6, ... 12)


@dataclass(frozen=True)
class WinCountTable(Experiment):
    """Number of data sets on which calibration has a lower, equal or higher mean error than its rivals.

    Parameters
    ----------
    study : SplitStudy
    calibrated : name of a model
    rivals : column -> name of a model
    """

    study: SplitStudy
    calibrated: str
    rivals: Mapping[str, str]

    def task_groups(self, settings: Settings) -> dict[tuple[str, str], list[Task]]:
        return self.study.task_groups(settings, [self.calibrated, *self.rivals.values()])

    def report(self, results: Results, settings: Settings) -> tables.ExperimentReport:
        runs = self.results_by_group(results, settings)
        published = len(tables.published_table(self.paper, "2"))
        note = f"Ours: {len(labels_of(runs))} data sets; published: {published}."
        return self.report_of([self._row(part, runs) for part in PARTS], note)

    def _row(self, part: str, runs: Runs) -> tables.TableRow:
        published = self.published()[part]
        pairs = {}
        for rival, model in self.rivals.items():
            errors = mean_errors(runs, [self.calibrated, model], part)
            names = (f"better than {rival}", f"equal to {rival}", f"worse than {rival}")
            for name, count in zip(names, count_better_equal_worse(map(tuple, errors.tolist())), strict=True):
                pairs[name] = tables.uncompared(count, published.get(name), digits=0)
        return tables.TableRow(part, pairs)


# -- The toy example: its states over the updates (Table 1), and those before and after the first one (Figure 1)

UPDATES = (0, 1, 2, 4, 8, 16, 32, 64)
"""Numbers of updates of Table 1."""
EXACT_NOTE = "{} of {} numbers are equal as printed; a star marks the others."


@dataclass(frozen=True)
class ToyTable(Experiment):
    """Posterior of the true class of each row and soft error, after several numbers of updates."""

    def task_groups(self, settings: Settings) -> dict[str, list[ToyStates]]:
        return {"states": [ToyStates(UPDATES)]} if settings.datasets is None else {}

    def report(self, results: Results, settings: Settings) -> tables.ExperimentReport:
        ((states,),) = self.results_by_group(results, settings).values()
        numbers = np.arange(len(TOY_ROWS)), np.array(TOY_CLASSES) - 1
        of_true_class = np.array(states["posterior"])[:, *numbers]
        values = [*of_true_class.T, np.mean(1.0 - of_true_class, axis=1)]
        reasons = tables.known_reasons(self.paper, self.name)
        rows = [
            _toy_row(label, zip(published, values_of_row, strict=True), published, reasons)
            for (label, published), values_of_row in zip(self.published().items(), values, strict=True)
        ]
        return self.report_of(rows, _exact(rows))


@dataclass(frozen=True)
class ToyFigure(Experiment):
    """Statistics, means, decision boundary and posterior at x = 1, and the densities of both classes."""

    def task_groups(self, settings: Settings) -> dict[str, list[ToyStates]]:
        return {"states": [ToyStates((0, 1))]} if settings.datasets is None else {}

    def report(self, results: Results, settings: Settings) -> tables.ExperimentReport:
        ((states,),) = self.results_by_group(results, settings).values()
        start, first = (
            [*statistics, *means, float(np.mean(means)), *posterior[1]]
            for statistics, means, posterior in zip(
                states["statistics"], states["means"], states["posterior"], strict=True
            )
        )
        posterior = np.array(states["posterior"][0])
        labeled = np.stack([posterior.sum(axis=0), np.array(TOY_ROWS) @ posterior], axis=1).ravel().tolist()
        published, values = self.published(), (start, labeled, first)
        names = list(published[next(iter(published))])
        rows = [
            _toy_row(label, zip(names, of_row, strict=False), published[label], {})
            for label, of_row in zip(published, values, strict=True)
        ]
        curves = {
            label: _densities(means)
            for label, means in zip(("(a) start", "(b) after one update"), states["means"], strict=True)
        }
        numbers = tables.CurveNumbers(curves, x="x", y="p(x, class)", columns=2)
        figure = tables.Figure.of(f"{self.paper}-{self.name}", numbers)
        return self.report_of(rows, CAPTION, _exact(rows), figures=(figure,))


def _toy_row(
    label: str,
    values: Iterable[tuple[str, float]],
    published: Mapping[str, float],
    reasons: Mapping[str, str],
) -> tables.TableRow:
    pairs = {
        name: tables.NumberPair(float(value), published.get(name), unit=0.0, digits=2)
        for name, value in values
    }
    return tables.TableRow(label, pairs, reasons.get(label, ""))


def _exact(rows: Sequence[tables.TableRow]) -> str:
    pairs = [pair for row in rows for pair in row.pairs.values() if pair.compared]
    return EXACT_NOTE.format(sum(pair.exact for pair in pairs), len(pairs))


def _densities(means: Sequence[float]) -> dict[str, tuple[list[float], list[float]]]:
    """p(x, class) of both classes over x, the training rows, and the boundary between the classes."""
    x = np.linspace(-4.0, 14.0, 181)
    curves = {
        f"class {label}": (x.tolist(), (0.5 * norm.pdf(x - mean)).tolist())
        for label, mean in enumerate(means, start=1)
    }
    rows = {f"x = {x:g}, class {label}": ([x], [0.0]) for x, label in zip(TOY_ROWS, TOY_CLASSES, strict=True)}
    middle = float(np.mean(means))
    return {**curves, **rows, "boundary": ([middle, middle], [0.0, 0.2])}


CAPTION = (
    "The caption of (a) gives 0.35 as the soft error at x = 1, which is the posterior of its true class; the soft error is "
    "0.65, as in the text of the paper."
)


NAME = "rc-generative-2025"

ENTRIES = (
    *data_entries(
        [
            *("iris", "sonar", "climate-model", "indian-liver", "vehicle", "german-numer", "splice", "qsar"),
            *("svmguide3", "redwine", "optdigits", "satellite", "pulsar", "magic", "adult"),
        ],
        {
            **{
                name: {"authors": AUTHOR_FILES[name], "apart": True}
                for name in ("sonar", "german-numer", "magic")
            },
            "climate-model": {"rows": 360},
            "svmguide3": {"label": "svmguid3", "authors": AUTHOR_FILES["svmguide3"], "apart": True},
            "adult": {"missing_is_level": True},
        },
    ),
    *IMAGE_ENTRIES,
)
"""All data sets of the paper."""

STOPPED: dict[str, Any] = {"stop": "soft_error", "max_iter": 63}
"""Stop at the first update that increases the soft error, at the latest after 64 iterations (the start is the first)."""


def _models(kind: Any, starts: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """For each start, the model as estimated there, and calibrated from there by each rule."""
    estimated = {start: kind(rule="ml", **choices) for start, choices in starts.items()}
    calibrated = {
        f"{start} {name}": kind(rule=rule, **choices, **STOPPED)
        for start, choices in starts.items()
        for name, rule in RULES.items()
    }
    return estimated | calibrated


NAIVE_BAYES = _models(cb.NaiveBayes, {"ML": LIKELIHOOD, "MAP": POSTERIOR})
QUADRATIC = {
    **_models(cb.QuadraticDiscriminantAnalysis, {"ML": {}, "MAP": CONJUGATE}),
    "validated RC": cb.QuadraticDiscriminantAnalysis(
        rule=RULES["RC"], training=cb.TrainingOptions(validation_fraction=0.2), stop=None, max_iter=63
    ),
    "GDT": cb.TradeOffCV(
        estimator=cb.QuadraticDiscriminantAnalysis(max_iter=30),
        lams=(1.0, 0.5, 0.1),
        cv=3,
        scoring="log_loss",
    ),
}

GAUSSIAN = Cleaning(least_class_rows=10, within_classes=True, standardize=True)
"""As in rc-probabilistic-2024. With all columns, the maximum likelihood estimate of QDA does not exist for qsar."""


def _with_test_rows(
    kind: Any,
    starts: Mapping[str, dict[str, Any]],
    cleaning: Cleaning,
    rules: Mapping[str, Any],
    from_part: bool,
) -> dict[str, FitWithTestRows]:
    """For each start, the model as estimated there, unless it is from the training rows, and calibrated by each rule."""
    tasks = {}
    for start, choices in starts.items():
        of_start = partial(FitWithTestRows, ENTRIES[0], cleaning, kind(rule="ml", **choices))
        if not from_part:
            tasks[start + ALL_ROWS] = of_start(None, 0, from_part, 0)
        for name, rule in rules.items():
            tasks[f"{start} {name}{ALL_ROWS}"] = of_start(rule, 63, from_part, 0)
    return tasks


BINNED_ALL_ROWS = _with_test_rows(
    cb.NaiveBayes,
    {"ML": LIKELIHOOD, "MAP": POSTERIOR},
    Cleaning(),
    {name: RULES[name] for name in ("RC", "DFE")},
    from_part=True,
)
NUMERIC_ALL_ROWS = _with_test_rows(
    cb.QuadraticDiscriminantAnalysis,
    {"ML": {}, "MAP": CONJUGATE},
    GAUSSIAN,
    {"RC": RULES["RC"]},
    from_part=False,
)

BINNED = SplitStudy(NAME, ENTRIES, NAIVE_BAYES, False, 5, BINNED_ALL_ROWS)
NUMERIC = SplitStudy(NAME, ENTRIES, QUADRATIC, True, 5, NUMERIC_ALL_ROWS)

HELD_OUT = (
    "Our test errors are unbiased: bins, standardization, priors and stopping use only the training rows, and test rows "
    "are used once. The published test errors do not come out in this way: they are as low as training errors even where "
    "the model must overfit (QDA on sonar: 207 rows, 60 columns, test error zero)."
)
CONTINUES = (
    "Where the published RC stays at its start (iteration 1), an update would have made a statistic invalid and that "
    "implementation stopped; ours skips the statistic and continues."
)
OVERFITS = (
    "QDA can overfit if there are few rows for its columns: compare the training and test errors of RC with those of "
    "ML. The last columns are remedies in this library, each of which helps on some data sets: a prior (MAP, and RC "
    "started from it), early stopping on validation rows taken from the training rows (validated RC), and GDT with lam "
    "chosen by cross-validation on the training rows."
)
UPDATED_WITH_TEST_ROWS = (
    "different random splits; and the published updates evidently used the test rows, from a start of the training rows "
    "(columns “all rows”)"
)
FITTED_TO_ALL_ROWS = (
    "different random splits; and the published model was evidently fitted to all rows, test rows included (columns “all "
    "rows”)"
)
ALL_ROWS_START = (
    "“All rows”: standardized by, and fitted to, all rows; RC stops where the soft error of the training rows rises. The "
    "gradient descent of the paper has no such column: it mostly stays at its start, which is that of ML."
)
ALL_ROWS_UPDATES = (
    "“All rows”: bins of all rows, a start from the training rows, updates with all rows; they stop where the soft error of "
    "the training rows rises. Open: which update the published implementation takes for invalid. Ending at the first count "
    "below zero, skipping the cell, the class, the column within the class or the whole column, clipping at zero and a "
    "floor at 1e-12 were tried on nine data sets; none gives the published iterations on all."
)


def _tables(
    number: int,
    title: str,
    study: SplitStudy,
    methods: dict[str, str],
    *notes: str,
    further: Sequence[str] = (),
) -> tuple[SplitTable, WinCountTable]:
    """A table of errors, and the next one: on how many data sets RC has lower errors than the others."""
    rivals = {name: model for name, model in methods.items() if name != "RC"}
    all_rows = {
        name: model + ALL_ROWS for name, model in methods.items() if model + ALL_ROWS in study.with_test_rows
    }
    reason = FITTED_TO_ALL_ROWS if study.standardize else UPDATED_WITH_TEST_ROWS
    counts = f"Number of data sets on which RC is better than, equal to, worse than {' and '.join(rivals)}"
    return (
        SplitTable(NAME, str(number), title, study, methods, further, all_rows, notes, reason),
        WinCountTable(NAME, str(number + 1), counts, study, methods["RC"], rivals),
    )


ML = {"ML": "ML", "RC": "ML RC", "GD": "ML GD"}
MAP = {"MAP": "MAP", "RC": "MAP RC", "GD": "MAP GD"}
BY_DFE = {"RC": "ML RC", "DFE": "ML DFE"}
REMEDIES = ("MAP", "MAP RC", "validated RC", "GDT")
EXPERIMENTS: tuple[Experiment, ...] = (
    ToyTable(NAME, "1", "Toy example: posterior of the true class and soft error after updates of RC"),
    ToyFigure(NAME, "figure-1", "Toy example: the model before and after the first update"),
    *_tables(3, "Naive Bayes, ML", BINNED, ML, HELD_OUT, ALL_ROWS_UPDATES, CONTINUES),
    *_tables(5, "QDA, ML", NUMERIC, ML, HELD_OUT, ALL_ROWS_START, OVERFITS, further=REMEDIES),
    *_tables(7, "Naive Bayes, MAP", BINNED, MAP, HELD_OUT, ALL_ROWS_UPDATES, CONTINUES),
    *_tables(9, "QDA, MAP", NUMERIC, MAP, HELD_OUT, ALL_ROWS_START),
    *_tables(11, "Naive Bayes, RC against DFE", BINNED, BY_DFE, HELD_OUT, ALL_ROWS_UPDATES, CONTINUES),
)

PAPER = Paper(
    NAME,
    "Perez, Echegoyen, Santafe (2025), Risk-based calibration for generative classifiers",
    EXPERIMENTS,
    "Errors in percent, means over five random splits into 75 % training and 25 % test rows; iterations (iter) count "
    "the start as iteration 1; reach is the first iteration at which the soft error of RC is not above the lowest soft "
    "error of the last method of the paper. Published percentages are truncated, not rounded (18 for adult, which is "
    "0.187 in rc-probabilistic-2024); ours are truncated before the comparison.",
)
