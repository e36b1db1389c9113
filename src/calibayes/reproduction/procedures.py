"""The computations of the experiments: data entries, splits, simulations, and tasks that fit and score models.

Cached results are valid as long as the code of this folder is unchanged (`calibayes.reproduction.experiment.task_key`).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import KBinsDiscretizer, StandardScaler

from calibayes.core.protocols import Array
from calibayes.datasets import Dataset, load, numeric_matrix
from calibayes.learn import LastState
from calibayes.reproduction.author_files import IMAGE_FEATURES, AuthorData

# -- A data set as a paper uses it: rows, columns, target and preprocessing ----------------------------------


@dataclass(frozen=True)
class Above:
    """Binary target: whether a column is above a value. The column is removed from the features."""

    column: str
    value: float


@dataclass(frozen=True)
class DataEntry:
    """A data set and how the version of the paper differs from it.

    Parameters
    ----------
    name : str
        Name in `calibayes.datasets`.
    label : str
        Name in the paper.
    skip, rows : int, optional
        Number of leading rows to drop, and of rows to use after them.
    drop : names of columns to drop
    keep : names of columns to use
        By default all.
    target : Above, optional
        Replaces the target of the file.
    missing_is_level : bool
        Whether a missing text is a level; by default rows with missing values are dropped.
    authors : AuthorFile or ImageFeatures, optional
        Read instead of the data set if it is on this computer; the other fields are for its columns then.
    version_of : str
        Label in the paper, if the label is that of a further version of a data set.
    apart : bool
        Whether the error rates of this data set are counted apart: see `NumberPair`.
    """

    name: str
    label: str
    skip: int = 0
    rows: int | None = None
    drop: tuple[str, ...] = ()
    target: Above | None = None
    missing_is_level: bool = False
    keep: tuple[str, ...] = ()
    authors: AuthorData | None = None
    version_of: str = ""
    apart: bool = False

    @property
    def row(self) -> str:
        """Label of the row of published numbers."""
        return self.version_of or self.label

    @property
    def has_author_file(self) -> bool:
        """Whether the files of the authors are on this computer."""
        return self.authors is not None and bool(self.authors.input_names())

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of what is read, among the inputs of a task."""
        return (self.authors.input_names() if self.authors is not None else ()) or (self.name,)

    def read(self) -> Dataset:
        """The version of the paper."""
        data = self.authors.read() if self.authors is not None and self.has_author_file else load(self.name)
        columns, target = data.data.drop(columns=list(self.drop)), data.target
        columns = columns[list(self.keep)] if self.keep else columns
        if self.target is not None:
            target = columns[self.target.column] > self.target.value
            columns = columns.drop(columns=self.target.column)
        last = len(target) if self.rows is None else self.skip + self.rows
        used = slice(self.skip, last)
        return replace(data, data=columns.iloc[used], target=target.iloc[used])


def data_entries(names: Sequence[str], fields: Mapping[str, Mapping[str, Any]]) -> tuple[DataEntry, ...]:
    """Data sets whose labels are their names with blanks; ``fields`` has further or other fields of some.

    >>> [entry.label for entry in data_entries(["blood-transfusion", "letter"], {"letter": {"label": "letterrecog"}})]
    ['blood transfusion', 'letterrecog']
    """
    usual = ({"name": name, "label": name.replace("-", " ")} for name in names)
    return tuple(DataEntry(**{**entry, **fields.get(entry["name"], {})}) for entry in usual)


IMAGE_ENTRIES = tuple(
    DataEntry(f"{features.name}-resnet18", features.name.replace("_", " "), authors=features, apart=True)
    for features in IMAGE_FEATURES
)
"""The data sets of image features of the two papers on risk-based calibration."""


@dataclass(frozen=True)
class Cleaning:
    """The preprocessing of a paper for a model; see `numeric_matrix`."""

    least_class_rows: int = 1
    within_classes: bool = False
    standardize: bool = False
    least_variance: float = 0.0

    def apply(self, entry: DataEntry) -> tuple[Array, Array]:
        """Columns (n, d) and target (n,)."""
        numbers, target = numeric_matrix(
            _read(entry),
            missing_is_level=entry.missing_is_level,
            least_class_rows=self.least_class_rows,
            within_classes=self.within_classes,
            least_variance=self.least_variance,
        )
        return (StandardScaler().fit_transform(numbers) if self.standardize else numbers), target


@lru_cache(maxsize=2)
def _read(entry: DataEntry) -> Dataset:
    """Cached, because successive tasks mostly use the same data set."""
    return entry.read()


# -- Fit a model within a task and collect its warnings ------------------------------------------------------


def fit_clone(model: Any, columns: Array, target: Array, seed: int | None = None) -> tuple[Any, list[str]]:
    """A fitted clone of the model, and the messages of its warnings.

    Convergence warnings are ignored: the papers use a fixed number of updates.
    """
    estimator = clone(model)
    if seed is not None:
        estimator.set_params(random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(columns, target)
    return estimator, sorted({str(warning.message) for warning in caught})


# -- Training and test errors on a random split (rc-generative-2025); test rows are used only for the test error


@dataclass(frozen=True)
class TableTask:
    """A task that reads one data set."""

    data: DataEntry
    cleaning: Cleaning

    def inputs(self) -> tuple[str, ...]:
        """Name of the data set."""
        return self.data.input_names


@dataclass(frozen=True)
class HeldOutSplit(TableTask):
    """Task: fit one model on the training rows of one split and score it on both parts.

    Parameters
    ----------
    data : DataEntry
    cleaning : Cleaning
        Applied before the split; it does not use the target: drops rows with missing values and constant columns.
    model : estimator
    split : int
        Seed of the split, which is the same for all models.
    standardize : bool
        Standardize columns by means and standard deviations of the training rows.
    share : float
        Share of the rows that are held out, stratified by class.
    """

    model: Any
    split: int
    standardize: bool = False
    share: float = 0.25

    def run(self) -> dict[str, Any]:
        """Errors on both parts, the best iteration (from 1), soft errors over the iterations, and warnings (notes)."""
        columns, target = self.cleaning.apply(self.data)
        training, test, training_target, test_target = train_test_split(
            columns, target, test_size=self.share, stratify=target, random_state=self.split
        )
        if self.standardize:
            scaler = StandardScaler().fit(training)
            training, test = scaler.transform(training), scaler.transform(test)
        model, notes = fit_clone(self.model, training, training_target, self.split)
        inner = getattr(model, "estimator_", model)
        true_class = model.predict_proba(training)[
            np.arange(len(training_target)), np.searchsorted(model.classes_, training_target)
        ]
        start = {"soft_error": np.array([np.mean(1.0 - true_class)])}  # closed forms have no history_
        return {
            "training": float(np.mean(model.predict(training) != training_target)),
            "test": float(np.mean(model.predict(test) != test_target)),
            "iter": int(inner.best_iter_) + 1,
            "soft_error": getattr(inner, "history_", start)["soft_error"].tolist(),
            "notes": notes,
        }


# -- The same errors of a model that has used the test rows, as the published ones evidently did ---------------


@dataclass(frozen=True)
class FitWithTestRows(TableTask):
    """Task: train with all rows, and score the model on the training and the test rows of one split.

    Only the soft error that ends the training is that of the training rows. To be compared with `HeldOutSplit`.

    Parameters
    ----------
    data : DataEntry
    cleaning : Cleaning
    model : estimator with a closed form
        The start of the rule; bins of columns are those of all rows.
    rule : Rule
    updates : int
        The largest number of updates; 0 scores the start.
    starts_from_training_rows : bool
        Whether the statistics of the start are those of the training rows alone.
    split : int
        Seed of the split, as in `HeldOutSplit`.
    share : float
        Share of the test rows.
    """

    model: Any
    rule: Any
    updates: int
    starts_from_training_rows: bool
    split: int
    share: float = 0.25

    def run(self) -> dict[str, Any]:
        """Errors on both parts, and the number of the state (from 1) with the lowest soft error of the training rows."""
        columns, target = self.cleaning.apply(self.data)
        training, test = train_test_split(
            np.arange(len(target)), test_size=self.share, stratify=target, random_state=self.split
        )
        one_update = clone(self.model).set_params(stop=LastState(), max_iter=1)
        model, notes = fit_clone(one_update, columns, target)
        if self.starts_from_training_rows:
            model = model.forget(columns[test], target[test])
        posterior, iteration = self._trained(model, columns, target, training)
        wrong = model.classes_[posterior.argmax(axis=1)] != target
        errors = {"training": float(np.mean(wrong[training])), "test": float(np.mean(wrong[test]))}
        return {**errors, "iter": iteration, "notes": notes}

    def _trained(self, model: Any, columns: Array, target: Array, training: Array) -> tuple[Array, int]:
        """The posterior of all rows under the last state before the soft error rises, and its number from 1."""
        true_class = training, np.searchsorted(model.classes_, target[training])
        posterior = model.predict_proba(columns)
        for number in range(1, self.updates + 1):
            model = model.calibrate(columns, target, rule=self.rule)
            proposed = model.predict_proba(columns)
            if np.mean(proposed[true_class]) < np.mean(posterior[true_class]):
                return posterior, number
            posterior = proposed
        return posterior, self.updates + 1


# -- Balanced errors by stratified cross-validation (slb-2020, section 5.2) ----------------------------------


@dataclass(frozen=True)
class BalancedFolds(TableTask):
    """Task: cross-validate one model; folds of the same seed are the same for all models."""

    model: Any
    seed: int
    folds: int = 5

    def run(self) -> dict[str, Any]:
        """Balanced error and error of each fold, and warnings of the fits (notes)."""
        columns, target = self.cleaning.apply(self.data)
        splitter = StratifiedKFold(self.folds, shuffle=True, random_state=self.seed)
        balanced_errors, errors, all_notes = [], [], set()
        for training, test in splitter.split(columns, target):
            model, notes = fit_clone(self.model, columns[training], target[training])
            wrong = model.predict(columns[test]) != target[test]
            balanced_errors.append(balanced_error(wrong, target[test]))
            errors.append(float(np.mean(wrong)))
            all_notes |= set(notes)
        return {"balanced": balanced_errors, "error": errors, "notes": sorted(all_notes)}


def balanced_error(wrong: Array, target: Array) -> float:
    """Mean over the classes of the error within the class."""
    return float(np.mean([np.mean(wrong[target == label]) for label in np.unique(target)]))


# -- Training errors over the updates of a rule, on all rows (rc-probabilistic-2024) -------------------------


@dataclass(frozen=True)
class TrainingCurve(TableTask):
    """Task: fit one model on all rows of a data set; entry 0 of the curve is the start."""

    model: Any

    def run(self) -> dict[str, Any]:
        """The training errors, the shape of the columns and warnings (notes)."""
        columns, target = self.cleaning.apply(self.data)
        model, notes = fit_clone(self.model, columns, target)
        return {"error": model.history_["error"].tolist(), "shape": list(columns.shape), "notes": notes}


@dataclass(frozen=True)
class WholeTableCurve(TableTask):
    """Task: calibrate naive Bayes with a prior as the implementation of the paper evidently did, on all rows.

    It gives the published numbers; the paper does not describe it. The differences from `TrainingCurve` are that counts of
    a column in a class keep their values together if one of them would become negative, and that smoothed counts of a
    column are divided by the smoothed count of the class, which differs from their sum as soon as counts have been kept.
    """

    bins: int = 5
    step: float = 0.1
    updates: int = 63

    def run(self) -> dict[str, Any]:
        """The training errors; entry 0 is the start."""
        columns, target = self.cleaning.apply(self.data)
        codes = bins_of(columns, self.bins)
        classes, true_class = np.unique(target, return_inverse=True)
        levels = np.eye(self.bins)[codes].reshape(len(codes), -1)
        labels = np.eye(len(classes))[true_class]
        counts, sizes, errors = levels.T @ labels, labels.sum(axis=0), []
        for _ in range(self.updates + 1):
            posterior = _posterior(levels, counts, sizes, self.bins)
            errors.append(float(np.mean(posterior.argmax(axis=1) != true_class)))
            change = self.step * (labels - posterior)
            counts = _keep_tables(counts, counts + levels.T @ change, self.bins)
            proposed = sizes + change.sum(axis=0)
            sizes = np.where(proposed > 0, proposed, sizes)
        return {"error": errors, "shape": list(columns.shape), "notes": []}


def bins_of(columns: Array, bins: int) -> Array:
    """The bin of each cell, by the k-means bins of scikit-learn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns with fewer values have empty bins
        binned = KBinsDiscretizer(bins, encode="ordinal", strategy="kmeans", subsample=None).fit_transform(
            columns
        )
    return np.asarray(binned, dtype=int)


def _posterior(levels: Array, counts: Array, sizes: Array, bins: int) -> Array:
    """Class probabilities (n, k) under a prior of one row a class, of which each bin of a column has the same part."""
    log_tables = np.log(np.maximum(counts + 1 / bins, np.finfo(float).tiny)) - np.log(sizes + 1)
    return np.asarray(softmax(levels @ log_tables + np.log(sizes + 1), axis=1))


def _keep_tables(current: Array, proposed: Array, bins: int) -> Array:
    """The proposed counts, but the current ones of a column in a class where a proposed one is negative."""
    is_invalid = (proposed.reshape(-1, bins, proposed.shape[1]) < 0).any(axis=1)
    return np.where(np.repeat(is_invalid, bins, axis=0), current, proposed)
