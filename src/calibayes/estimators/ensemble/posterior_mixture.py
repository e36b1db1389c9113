"""An ensemble of any models of the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibayes.core.protocols import Array
from calibayes.estimators.ensemble.estimator import PosteriorAverage
from calibayes.estimators.ensemble.member import Member
from calibayes.estimators.ensemble.standard_members import member_of, named_members
from calibayes.estimators.interface.input import Rows
from calibayes.estimators.interface.parameters import estimator
from calibayes.estimators.presets.discriminant_analysis import LinearDiscriminantAnalysis
from calibayes.estimators.presets.tabular import KernelNB


@estimator
class PosteriorMixture(PosteriorAverage):
    """A weighted average of the posteriors of any models of this package: p(class | x) = sum of w_m p_m(class | x).

    The weights maximize the log likelihood of the out-of-fold predictions plus 0.5 * log(weight) for each member, a weak
    prior. Members with a weight below 0.4 / (number of members) get weight 0. The class frequencies are a member, too, so
    that no class has probability zero. Models with an iterative rule (RC, TM, GDT) are stopped early, at the
    sum of steps with the lowest held-out log loss.

    Parameters
    ----------
    models : list of (name, estimator), optional
        By default `KernelNB` and `LinearDiscriminantAnalysis`; the latter needs numbers.
    cv : int, splitter or list of splits, optional
        Inner folds. By default five, or three from 3,000 rows on; if there are more than 20,000 rows, on a subset of about
        20,000. If all weights are integers with a sum of at most eight times the number of rows, a row of weight w is
        treated as w copies.
    class_weight, costs, random_state, engine, n_jobs, verbose
        As in `GenerativeClassifier`.
    time_limit : float, optional
        Approximate limit of the fit in seconds: calibration ends, and members that were not evaluated yet are left out.

    Attributes
    ----------
    weights_ : mapping
        Name -> weight; "class frequencies" is the last. Its weight is 1 if the ensemble is no better than the class
        frequencies alone.
    models_, paths_ : mappings
        Name -> trained estimator, of the members with a weight; held-out scores along the path of calibration steps.
    skipped_ : mapping
        Name -> why a member was left out.
    schema_ : Schema
        What each column contains, and how many values are missing; it prints as a table.
    kept_rows_ : int
        Number of training rows in the fitted model: the largest number that a member keeps.
    out_of_fold_log_loss_, out_of_fold_error_ : float
        Of the ensemble on the held-out rows.
    rows_, tried_rows_ : int
        Number of training rows, and of those used in the inner cross-validation.
    training_table_ : TrainingTable
        Rows, columns, their kinds and missing cells of the training table; `print` shows them in a line.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import KernelNB, PosteriorMixture, QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PosteriorMixture(models=[("kernel", KernelNB()), ("qda", QuadraticDiscriminantAnalysis())]).fit(X, y)
    >>> list(model.weights_)
    ['kernel', 'qda', 'class frequencies']
    """

    models: Sequence[tuple[str, Any]] | None = None

    def members(self, rows: Rows, classes: Array) -> Mapping[str, Member | str]:
        default = [("kernel", KernelNB()), ("linear", LinearDiscriminantAnalysis())]
        given = default if self.models is None else self.models
        return {name: member_of(name, *parts) for name, *parts in named_members(given)}
