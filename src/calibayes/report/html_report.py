"""The class Report: an HTML page that can be saved, displayed in a notebook, or converted to a dictionary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.core.replaced_file import replaced_file
from calibayes.report.facts import ReportOptions, facts_of_model, facts_of_table
from calibayes.report.page import framed
from calibayes.report.ranking_facts import Progress
from calibayes.report.sections import page_of
from calibayes.report.values import Facts


@dataclass(frozen=True)
class Report:
    """A page about a table or a model.

    Attributes
    ----------
    facts : Facts
        The content of the page as plain values.
    model : estimator
        The model that the page describes.
    html : str
        The complete page.
    findings : calibayes.checks.Findings
        The results of the numbered checks.
    """

    facts: Facts
    model: Any

    @cached_property
    def html(self) -> str:
        """The complete page."""
        return page_of(self.facts)

    @property
    def findings(self) -> Any:
        """The results of the numbered checks."""
        return self.facts.findings

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file and return its path. The file is replaced as a whole, never left incomplete."""
        with replaced_file(path) as file:
            file.write(self.html.encode())
        return Path(path)

    def to_dict(self) -> dict[str, Any]:
        """The content of the page as dictionaries, lists, numbers and strings; numbers that are not finite are None."""
        return plain(self.facts)

    def _repr_html_(self) -> str:
        return framed(self.html, self.facts.title)

    def __repr__(self) -> str:
        size = len(self.html.encode()) / 1e3
        return f"Report {self.facts.title!r}: {self.facts.about}; {size:.0f} kB; write it to a file with .save(path)"


def plain(value: Any) -> Any:
    """A value as dictionaries, lists, numbers and strings.

    >>> plain({"a": np.array([1.0, np.nan]), 2: (True, "x")})
    {'a': [1.0, None], '2': [True, 'x']}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


# -- The functions that create reports -----------------------------------------------------------------------


def report_on_table(
    X: Any,
    y: Any,
    *,
    models: Sequence[str] | None = None,
    rules: Sequence[str] | None = None,
    folds: int = 5,
    seed: int = 0,
    ignore: Sequence[str] = (),
    costs: Array | None = None,
    n_jobs: int | None = 1,
    max_rows: int | None = None,
    progress: Progress | None = None,
    title: str | None = None,
    source: str | None = None,
) -> Report:
    """Compare models on a table, train one on all rows, and describe table and model on one page.

    The model is the default, `BayesClassifier`, unless another one has a lower log loss beyond doubt (paired over the folds).

    All scores are of rows that the model was not trained on, unless the page says otherwise.

    Parameters
    ----------
    X : data frame or array of shape (n, d), or any other table that `fit` reads, such as the path of a Parquet file
    y : (n,) labels, or the name of their column
        Rows without a label are left out.
    models : names, optional
        Names in `calibayes.compare.MODELS` and `calibayes.compare.BASELINES`; by default all, except those that are slow on
        wide tables.
    rules : names, optional
        Training rules to compare; by default maximum likelihood and risk-based calibration, ("ml", "rc").
    folds : int, default=5
        Number of cross-validation folds; fewer if a class has fewer rows.
    seed : int, default=0
        Seed of the random sample, the folds and the model.
    ignore : codes, optional
        Codes of the checks that are not run, such as ("CB004",).
    costs : (k, k) array, optional
        ``costs[i, j]`` is the cost of predicting class j if class i is true, in the order of the sorted labels; by default
        every mistake costs 1.
    n_jobs : int, default=1
        Number of threads of a fit; None is the default of the estimators.
    max_rows : int, optional
        Most rows that models are compared on, 5,000 by default. One model is trained on all rows.
    progress : function, optional
        Called with the name of the current stage and the completed share of the work, from 0 to 1.
    title : str, optional
        Title of the page.
    source : str, optional
        Python code that creates X and y, shown on the page before the code of the model.

    Returns
    -------
    Report
        ``report.save("report.html")`` writes it to one file; a notebook displays it.

    Raises
    ------
    ValueError
        If X and y have different lengths, y has only one class, or a model, rule or check does not exist.

    Examples
    --------
    >>> from calibayes.datasets import load_penguins
    >>> from calibayes.report import report_on_table
    >>> X, y = load_penguins(return_X_y=True)
    >>> report = report_on_table(X, y, models=["KernelNB", "LDA"], folds=2, title="Penguins")
    >>> len(report.facts.ranking.methods)
    4
    >>> report.html.startswith("<!doctype html>")
    True
    """
    comparison = (models, rules, folds, seed, n_jobs, max_rows)
    options = ReportOptions(ignore, costs, progress, title, source, *comparison)
    return Report(*facts_of_table(X, y, options))


def report_on_model(
    model: Any,
    X: Any,
    y: Any,
    *,
    ignore: Sequence[str] = (),
    costs: Array | None = None,
    progress: Progress | None = None,
    title: str | None = None,
    source: str | None = None,
) -> Report:
    """Describe a fitted model on one page, using labeled rows that it was not trained on.

    Parameters
    ----------
    model : fitted classifier
        A classifier of this package or any classifier with the interface of scikit-learn; sections that it does not support
        are listed on the page.
    X, y
        Rows that the model was not trained on, and their labels: scores on training rows would be too optimistic.
    ignore, costs, progress, title, source
        As in `report_on_table`.

    Returns
    -------
    Report

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    ValueError
        If X and y have different lengths, y has only one class or one that is not a class of the model, or a check does not
        exist.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load_penguins
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = load_penguins(return_X_y=True)
    >>> X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    >>> report = NaiveBayes().fit(X, y).report(X_new, y_new)
    >>> report.facts.quality.rows
    86
    """
    return Report(facts_of_model(model, X, y, ReportOptions(ignore, costs, progress, title, source)), model)
