"""Dependence of the columns of a table, class by class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.base import BaseEstimator

from calibayes.core.notices import collected_warnings
from calibayes.core.resolve import resolve
from calibayes.dependence import HSIC, Dependence, Measure, MutualInformation, Pearson, Permuted, Spearman
from calibayes.engines import one_thread
from calibayes.estimators.interface.parameters import whole_number
from calibayes.estimators.log_density.densities import class_dependence
from calibayes.estimators.log_density.numeric_rows import labeled_numbers, unlabeled_numbers
from calibayes.estimators.log_density.report import progress_reports

MEASURES: dict[str, Callable[[], Measure]] = {
    "hsic": HSIC,
    "pearson": Pearson,
    "spearman": Spearman,
    "mutual_information": MutualInformation,
}
"""Short names of measures."""


def measure_named(measure: Any) -> Measure:
    """A measure by its short name, or the one given."""
    named: Measure = resolve("measure", measure, MEASURES, ability="measure", example="HSIC()")
    return named


def measure_dependence(
    X: Any,
    y: Any = None,
    *,
    measure: Any = "hsic",
    permutations: int | None = None,
    sample_weight: Any = None,
    random_state: int = 0,
    verbose: bool | None = None,
) -> Dependence:
    """Measure the dependence of each pair of columns, over all rows or within each class.

    Parameters
    ----------
    X : array or data frame of numbers, (n, d)
    y : (n,) labels, optional
        Without them all rows are one class.
    measure : {"hsic", "pearson", "spearman", "mutual_information"} or measure, default="hsic"
    permutations : int, optional
        Number of permutations for p-values. By default p-values are approximate: from a gamma distribution for HSIC,
        Student's t for correlations, chi-squared for mutual information.
    sample_weight : (n,) array, optional
        A row of weight w counts as w copies of it.
    random_state : int, default=0
        Seed of the permutations.
    verbose : bool, optional
        Whether to report progress on the standard error stream after the first second; by default on a terminal only.

    Returns
    -------
    Dependence
        ``frame()`` is a table with class, pair, statistic and p-value; `calibayes.plots.plot_dependence` plots it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import measure_dependence
    >>> iris = load_iris(as_frame=True)
    >>> dependence = measure_dependence(iris.data, iris.target, measure="spearman")
    >>> dependence.frame().iloc[0][["first", "second"]].tolist()
    ['sepal length (cm)', 'petal length (cm)']
    """
    chosen = measure_named(measure)
    if permutations is not None:
        chosen = Permuted(chosen, whole_number("permutations", permutations, 1), random_state)
    reader, classes = BaseEstimator(), ["all"]
    if y is None:
        names, rows = unlabeled_numbers(reader, X, sample_weight)
    else:
        labels, rows, table_rows = labeled_numbers(reader, X, y, sample_weight)
        names, classes = table_rows.table.names, labels.tolist()
    with collected_warnings(), one_thread(), progress_reports("measure_dependence", verbose) as report:
        return class_dependence(chosen, rows, names, classes, report)
