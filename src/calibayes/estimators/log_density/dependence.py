"""Dependence of the columns of a table, class by class."""

from __future__ import annotations

from typing import Any

from calibayes.dependence import HSIC, Dependence, Measure, MutualInformation, Pearson, Permuted, Spearman
from calibayes.engines import one_thread
from calibayes.estimators.announcing import Announcer
from calibayes.estimators.interface.checks import whole_number
from calibayes.estimators.log_density.densities import class_dependence
from calibayes.estimators.numeric_rows import NumericRows

MEASURES: dict[str, Measure] = {
    "hsic": HSIC(),
    "pearson": Pearson(),
    "spearman": Spearman(),
    "mutual_information": MutualInformation(),
}
"""The short names."""


def measure_named(measure: Any) -> Measure:
    """A measure by its short name, or the one given."""
    if isinstance(measure, str) and measure in MEASURES:
        return MEASURES[measure]
    if not hasattr(measure, "measure"):
        raise ValueError(
            f"measure must be one of {', '.join(MEASURES)} or an object of calibayes.dependence, got {measure!r}"
        )
    return measure  # type: ignore[no-any-return]


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
    """How dependent each pair of columns is, over all rows or within each class.

    Parameters
    ----------
    X : array or data frame of numbers, (n, d)
    y : (n,) labels, optional
        Without them all rows are one class.
    measure : {"hsic", "pearson", "spearman", "mutual_information"} or measure, default="hsic"
    permutations : int, optional
        Shuffles that p-values come from; by default they come from an approximation: a gamma distribution for HSIC,
        Student's for correlations, chi-squared for mutual information.
    sample_weight : (n,) array, optional
        A weight counts as that many copies of its row.
    random_state : int, default=0
        Seed of the shuffles.
    verbose : bool, optional
        Whether to print progress after the first second; by default where a person watches.

    Returns
    -------
    Dependence
        ``frame()`` is a tidy table of class, pair, statistic and p-value; `calibayes.plots.plot_dependence` draws it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import measure_dependence
    >>> iris = load_iris(as_frame=True)
    >>> found = measure_dependence(iris.data, iris.target, measure="spearman")
    >>> found.frame().iloc[0][["first", "second"]].tolist()
    ['sepal length (cm)', 'petal length (cm)']
    """
    found = measure_named(measure)
    if permutations is not None:
        found = Permuted(found, whole_number("permutations", permutations, 1), random_state)
    reader = NumericRows()
    if y is None:
        names, rows = reader._unlabeled(X, sample_weight)
        classes = ["all"]
    else:
        labels, rows, read = reader._labeled(X, y, sample_weight)
        names, classes = read.table.names, labels.tolist()
    announce = Announcer("measure_dependence", verbose)
    with one_thread():
        return class_dependence(found, rows, names, classes, announce)
