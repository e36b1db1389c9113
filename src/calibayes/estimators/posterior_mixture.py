"""Any models of the package, mixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibayes.estimators.averaged import FREQUENCIES
from calibayes.estimators.discriminant_analysis import LinearDiscriminantAnalysis
from calibayes.estimators.kernel_naive_bayes import KernelNB
from calibayes.estimators.members import Member
from calibayes.estimators.mixture_reasons import Reasoning
from calibayes.estimators.reading import Rows
from calibayes.estimators.standard_members import member_of


@dataclass(eq=False, repr=False, kw_only=True)
class PosteriorMixture(Reasoning):
    """Any models of this package, their posteriors averaged: ``p(class | x) = sum of w_m p_m(class | x)``.

    The weights are those that suit out-of-fold probabilities best, after half a row for each member. The class
    frequencies are a member too: what they weigh is how often rows come out against all that the others say. Models
    under a rule that climbs (RC, TM, GDT) are stopped at the tau of least held-out log loss, see `calibayes.learn.walk`.

    Parameters
    ----------
    models : list of (name, estimator), optional
        By default `KernelNB` and `LinearDiscriminantAnalysis`, of which the latter needs numbers.
    cv : int, splitter or list of splits, optional
        Folds; by default five, three from 3,000 rows on, of about 20,000 rows where there are more: those are
        enough to say how far to train and what each member counts. Rows that were seen twice, or have weight 2, are dealt
        out as two rows, up to about eight times as many as there are.
    costs, class_weight, random_state, n_jobs, verbose
        As in `GenerativeClassifier`.
    time_limit : float, optional
        Seconds after which paths end where they are and further members are left out.

    Attributes
    ----------
    weights_ : mapping
        Name -> weight; "class frequencies" is the last. Members count nothing, and are not trained on
        all rows, whose weight would be less than two fifths of an even share. Each begins with half a row in which it
        alone was right; where all together are no better than the class frequencies, those alone count.
    models_, paths_ : mappings
        Name -> trained estimator, of the members that count; its held-out log loss along the path.
    skipped_ : mapping
        Name -> why it was left out.
    out_of_fold_log_loss_, out_of_fold_error_ : float
        Of the mixture on the rows it was weighted on.
    rows_, tried_rows_ : int
        Rows it was trained on, and how many of them the members were tried on.

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

    def _members(self, rows: Rows) -> Mapping[str, Member | str]:
        usual = [("kernel", KernelNB()), ("linear", LinearDiscriminantAnalysis())]
        given = usual if self.models is None else self.models
        return {name: member_of(name, *parts) for name, *parts in named(given)}


def named(given: Any) -> list[tuple[Any, ...]]:
    """Entries that begin with a name, all names different; a sentence where they do not."""
    entries = list(given.items()) if isinstance(given, Mapping) else list(given)
    if not all(
        isinstance(entry, tuple | list) and len(entry) > 1 and isinstance(entry[0], str) for entry in entries
    ):
        raise ValueError(f"give a list of (name, model), got {given!r}")
    names = [entry[0] for entry in entries]
    if not names:
        raise ValueError("there is nothing to average: give at least one member")
    if len(set(names)) < len(names) or FREQUENCIES in names:
        raise ValueError(
            f"give names that differ from each other and from {FREQUENCIES!r}: {', '.join(names)}"
        )
    return [tuple(entry) for entry in entries]
