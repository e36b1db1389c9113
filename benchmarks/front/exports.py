"""Which models are exported where: `python -m benchmarks.front.exports --page docs/exports.md` writes the page.

Each model is fitted to a small table and exported in each format; the page shows what came of it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import calibayes as cb
from calibayes.encoders import Grid
from calibayes.export.onnx import to_onnx
from calibayes.export.sql import to_sql
from calibayes.families import Gaussian, KernelPair, Mixture, TreeCovariance

EXPORTS: Mapping[str, Callable[[Any], Any]] = {
    "SQL": lambda model: to_sql(model, "visits"),
    "ONNX": to_onnx,
}
"""Format -> export of a model."""
INTRODUCTION = """# What is exported where

Written by `python -m benchmarks.front.exports --page docs/exports.md`, which fits each model to a small table and exports it.
Rules and other ways of training make no difference: the parameters are exported. Class frequencies that were replaced
(`with_priors`, `adapt_priors`) and temperatures are part of them. [SQL](sql.md) and [ONNX](onnx.md) say what is computed and how
it differs from `predict_proba`.

`BayesClassifier`, the default, is a weighted average of members. It is exported if all members with a weight are
(`model.weights_` shows them), with the trees that are grown on them. The member "near" is not: it keeps training rows.
`BayesClassifier(keep_rows=False)` leaves it out. In tables with more columns than rows, members of principal components are not
exported, either; the error names the member.
"""


class Sample(NamedTuple):
    """A model, the table that it is fitted to, and what the page calls it."""

    model: Any
    table: str = "numbers"
    settings: str = ""

    @property
    def label(self) -> str:
        """Name of the estimator and its settings."""
        return f"`{type(self.model).__name__}`" + (f" ({self.settings})" if self.settings else "")


SAMPLES = (
    Sample(cb.GaussianNB(rule="ml")),
    Sample(cb.BernoulliNB(rule="ml", binarize=1.0), "counts"),
    Sample(cb.CategoricalNB(rule="ml"), "counts"),
    Sample(cb.MultinomialNB(rule="ml"), "counts"),
    Sample(cb.ComplementNB(), "counts"),
    Sample(cb.PoissonNB(rule="ml"), "counts"),
    Sample(cb.NaiveBayes(rule="ml"), "mixed"),
    Sample(cb.NaiveBayes(rule="ml", discretize="mdl"), "mixed", "numbers in bins"),
    Sample(cb.NaiveBayes(rule="ml"), "dated", "with dates"),
    Sample(cb.NaiveBayes(rule="ml"), "zoned", "with times of a time zone"),
    Sample(cb.NaiveBayes(rule="ml"), "written", "with dates written as text"),
    Sample(cb.KernelNB(rule="ml"), "mixed"),
    Sample(cb.KernelNB(rule="ml", binning="grid"), "mixed", "on a grid"),
    Sample(cb.TreeAugmentedNB(rule="ml"), "mixed"),
    Sample(cb.AODE(rule="ml"), "mixed"),
    Sample(cb.KDependenceBayes(rule="ml", max_parents=1), "counts", "one parent"),
    Sample(cb.KDependenceBayes(rule="ml", edges=cb.families.AllEdges()), "counts", "two parents"),
    Sample(cb.LinearDiscriminantAnalysis(rule="ml")),
    Sample(cb.LinearDiscriminantAnalysis(rule="ml", encoder="dense"), "mixed", 'encoder="dense"'),
    Sample(cb.QuadraticDiscriminantAnalysis(rule="ml")),
    Sample(cb.GenerativeLogisticRegression(max_iter=3, stop=None)),
    Sample(cb.MixtureDiscriminantAnalysis(rule="ml")),
    Sample(
        cb.GenerativeClassifier(families=[("all", Gaussian(TreeCovariance()), cb.every)], rule="ml"),
        settings="Gaussian tree",
    ),
    Sample(
        cb.GenerativeClassifier(families=[("all", Mixture(Gaussian()), cb.every)], rule="ml"),
        settings="mixture",
    ),
    Sample(
        cb.GenerativeClassifier(families=[("all", KernelPair(), [0, 1], Grid(16))], rule="ml"),
        settings="kernels over pairs",
    ),
    Sample(cb.TradeOffCV(cb.GaussianNB(max_iter=2, stop=None), cv=2)),
    Sample(
        cb.PosteriorMixture(
            models=[("kernel", cb.KernelNB(rule="ml")), ("lda", cb.LinearDiscriminantAnalysis(rule="ml"))],
            cv=2,
        )
    ),
    Sample(cb.BayesClassifier(cv=2), "waves", "if a member keeps rows"),
    Sample(cb.BayesClassifier(cv=2, keep_rows=False), "waves", "keep_rows=False"),
    Sample(cb.JointKernelClassifier()),
    Sample(cb.CalibratedTrees(max_iter=2)),
    Sample(cb.LogUnivariateClassifier()),
    Sample(cb.SparseLogBivariateClassifier()),
)


def tables(n: int = 90) -> dict[str, tuple[Any, Any]]:
    """Name -> small table and its classes."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    numbers = rng.normal(size=(n, 2)) + y[:, None]
    waves = rng.uniform(-3.0, 3.0, size=(200, 2))
    mixed = pd.DataFrame(
        {"size": numbers[:, 0], "color": np.where(rng.random(n) < 0.3 + 0.4 * y, "red", "blue")}
    )
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n) + 60 * y, unit="D")
    return {
        "numbers": (numbers, y),
        "counts": (rng.poisson(1.0 + y[:, None] * [0.0, 1.0, 2.0]), y),
        "mixed": (mixed, y),
        "dated": (mixed.assign(day=days), y),
        "zoned": (mixed.assign(day=days.tz_localize("Europe/Berlin")), y),
        "written": (mixed.assign(day=days.strftime("%d.%m.%Y")), y),
        "waves": (waves, (np.sin(2.0 * waves).sum(axis=1) > 0.0).astype(int)),
    }


def outcomes() -> Iterator[tuple[Sample, dict[str, str]]]:
    """Each model, and for each format "" if it is exported, else why not."""
    given = tables()
    for sample in SAMPLES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = sample.model.fit(*given[sample.table])
        yield sample, {name: _outcome(export, fitted) for name, export in EXPORTS.items()}


def _outcome(export: Callable[[Any], Any], model: Any) -> str:
    """Why a model cannot be exported; "" if it can."""
    try:
        export(model)
    except TypeError as error:
        return str(error).split(" cannot be exported: ", 1)[-1].split(". Export a model", 1)[0]
    return ""


def page() -> str:
    """The text of docs/exports.md."""
    head = ["| model | " + " | ".join(EXPORTS) + " | why not |", "| --- |" + " --- |" * (len(EXPORTS) + 1)]
    return "\n".join([INTRODUCTION, *head, *(_line(*outcome) for outcome in outcomes()), ""])


def _line(sample: Sample, found: Mapping[str, str]) -> str:
    """The line of a model; a reason that all formats share is given once."""
    answers = ["no" if why else "yes" for why in found.values()]
    reasons = dict.fromkeys(why for why in found.values() if why)
    return f"| {sample.label} | {' | '.join(answers)} | {'; '.join(reasons)} |".replace("  |", " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="write the page to this file instead of printing it")
    options = parser.parse_args()
    if options.page:
        options.page.write_text(page(), encoding="utf-8")
    else:
        print(page())


if __name__ == "__main__":
    main()
