"""Models and rules side by side, on the same cross-validation folds."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from calibayes.core.abilities import Conjugate
from calibayes.core.protocols import Array
from calibayes.datasets import Dataset
from calibayes.encoders.clusters import Clusters
from calibayes.estimators.bayes import BayesClassifier
from calibayes.estimators.columns import categorical, numeric, positions
from calibayes.estimators.generative import Generative, GenerativeClassifier
from calibayes.estimators.kernel_naive_bayes import KernelNB
from calibayes.estimators.naive_bayes import NaiveBayes
from calibayes.estimators.tree import TreeAugmentedNB
from calibayes.families import Categorical, Diagonal, Full, Gaussian, Mixture, Tied, TiedDiagonal
from calibayes.families.gaussian.shape import Shape
from calibayes.rules import rule_named
from calibayes.tables.read import Table

MANY_CLASSES = 20
RULES = ("ml", "map", "rc", "tm", "gdt", "dfe", "gd")


def _gaussian(shape: Shape) -> Callable[[], Generative]:
    """Numbers in a Gaussian of some shape, beside independent levels for all other columns."""
    numbers = ("numbers", Gaussian(shape, prior="auto"), numeric)
    levels = ("levels", Categorical(alpha=1.0), categorical)
    return lambda: GenerativeClassifier(families=[numbers, levels])


def _mixture() -> Generative:
    """Three components a class in one covariance, as MixtureDiscriminantAnalysis has, beside independent levels."""
    numbers = ("numbers", Mixture(Gaussian(Tied(), prior="auto")), numeric, Clusters(3))
    levels = ("levels", Categorical(alpha=1.0), categorical)
    return GenerativeClassifier(families=[numbers, levels], start="likelihood")


MODELS: Mapping[str, Callable[[], Any]] = {
    "KernelNB": KernelNB,
    "BinnedNB": lambda: NaiveBayes(discretize="kmeans"),
    "TreeAugmentedNB": TreeAugmentedNB,
    "GaussianNB": _gaussian(Diagonal()),
    "Logistic": _gaussian(TiedDiagonal()),
    "LDA": _gaussian(Tied()),
    "QDA": _gaussian(Full()),
    "Mixture": _mixture,
    "BayesClassifier": BayesClassifier,
}
"""Name -> the model. The last is an average of several, each trained by "rc". The others differ in the columns of
numbers: kernel densities (as `NaiveBayes` has them by itself), the papers' five bins, bins in a tree, a Gaussian of some
shape, or a mixture of three."""

AVERAGES = ("BayesClassifier",)


@dataclass(frozen=True)
class FoldResult:
    """What one model with one rule did on one fold."""

    model: str
    rule: str
    error: float
    log_loss: float
    training_error: float
    soft_error: float
    updates: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """A model with a rule over all folds: averages, and spreads of what was held out."""

    model: str
    rule: str
    error: float
    error_spread: float
    log_loss: float
    log_loss_spread: float
    training_error: float
    soft_error: float
    updates: float
    seconds: float


def pairs(table: Table, models: Sequence[str], rules: Sequence[str]) -> list[tuple[str, str]]:
    """Models and rules that go together on a table.

    Without columns of numbers all but the tree are the same model, and KernelNB stands for them. A rule must have
    what it needs of every family, and must not be maximum likelihood under another name ("map" where every family has
    a prior already).
    """
    usable = [model for model in models if isinstance(MODELS[model], type) or numeric(table)]
    return [(model, rule) for model in usable for rule in rules if _goes_with(model, rule, table)]


def _goes_with(model: str, rule_name: str, table: Table) -> bool:
    if model in AVERAGES:
        return rule_name == "rc"
    rule = rule_named(rule_name)
    named = MODELS[model]().specifications()
    bound = [family for _, family, selection, *_ in named if positions(selection, table)]
    able = all(isinstance(family, need) for family in bound for need in rule.needs)
    return able and (Conjugate not in rule.needs or any(rule.adapt(family) is not family for family in bound))


def folds(target: Array, count: int, seed: int) -> list[tuple[Array, Array]]:
    """Training and held-out rows of stratified folds."""
    classes, sizes = np.unique(target.astype(str), return_counts=True)
    if target.dtype.kind == "f" and len(classes) > MANY_CLASSES and sizes.min() < count:
        raise ValueError(
            f"the target has {len(classes)} different numbers: it looks like a quantity, not like classes"
        )
    if len(classes) < 2:
        raise ValueError(f"the target has only one class, {str(classes[0])!r}")
    if sizes.min() < count:
        rare = str(classes[np.argmin(sizes)])
        raise ValueError(f"class {rare!r} has {sizes.min()} rows, too few for {count} folds: use fewer folds")
    splitter = StratifiedKFold(count, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(target)), target.astype(str)))


def run_fold(
    data: Dataset, model: str, rule: str, split: tuple[Array, Array], jobs: int | None = None
) -> FoldResult:
    """Train on the training rows, measure on the others."""
    training, held_out = (np.isin(np.arange(data.columns.n), rows) for rows in split)
    own = {} if model in AVERAGES else {"rule": rule}
    estimator = MODELS[model]().set_params(n_jobs=jobs, **own)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(data.columns.rows(training), data.target[training])
    seconds = time.perf_counter() - began
    seen, new = (_averages(estimator, data, rows) for rows in (training, held_out))
    members = getattr(estimator, "models_", {model: estimator}).values()
    histories = [member.history_["error"] for member in members if hasattr(member, "history_")]
    return FoldResult(
        model,
        rule,
        error=new["error"],
        log_loss=new["log_loss"],
        training_error=seen["error"],
        soft_error=seen["soft_error"],
        updates=sum(len(errors) - 1 for errors in histories),
        seconds=seconds,
        notes=tuple(str(warning.message) for warning in caught),
    )


def _averages(estimator: Any, data: Dataset, rows: Array) -> Mapping[str, float]:
    """Error, soft error and log loss of some rows."""
    log_posterior = estimator.predict_log_proba(data.columns.rows(rows))
    truth = np.searchsorted(estimator.classes_, data.target[rows])
    of_truth = log_posterior[np.arange(len(truth)), truth]
    return {
        "error": float(np.mean(np.argmax(log_posterior, axis=1) != truth)),
        "soft_error": float(np.mean(-np.expm1(of_truth))),
        "log_loss": float(-np.mean(of_truth)),
    }


def compare(
    data: Dataset,
    chosen: Sequence[tuple[str, str]],
    splits: Sequence[tuple[Array, Array]],
    jobs: int | None = None,
) -> Iterator[FoldResult]:
    """One result after the other, fold by fold."""
    for model, rule in chosen:
        for split in splits:
            yield run_fold(data, model, rule, split, jobs)


def ranked(results: Sequence[FoldResult]) -> list[Line]:
    """Lines with the least held-out error first, and among equals the least log loss."""
    found: dict[tuple[str, str], list[FoldResult]] = {}
    for fold in results:
        found.setdefault((fold.model, fold.rule), []).append(fold)
    lines = [_line(model, rule, group) for (model, rule), group in found.items()]
    return sorted(lines, key=lambda line: (round(line.error, 12), line.log_loss))


def _line(model: str, rule: str, group: Sequence[FoldResult]) -> Line:
    def mean(name: str) -> float:
        return float(np.mean([getattr(fold, name) for fold in group]))

    def spread(name: str) -> float:
        return float(np.std([getattr(fold, name) for fold in group]))

    return Line(
        model,
        rule,
        mean("error"),
        spread("error"),
        mean("log_loss"),
        spread("log_loss"),
        mean("training_error"),
        mean("soft_error"),
        mean("updates"),
        mean("seconds"),
    )


def reading(lines: Sequence[Line]) -> str:
    """The ranking in one sentence."""
    best = lines[0]
    told = f"Best on held-out rows: {best.model} trained by {best.rule} ({best.error:.1%} error)"
    plain = [line for line in lines if line.model == best.model and line.rule == "ml"]
    if not plain or best.rule == "ml":
        return f"{told}."
    verdict = "the same" if plain[0].error == best.error else f"{plain[0].error:.1%}"
    return f"{told}; maximum likelihood of the same model: {verdict}, log loss {plain[0].log_loss:.3f} against {best.log_loss:.3f}."
