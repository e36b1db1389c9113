"""Naive Bayes over counts of events, dense or sparse: words of documents, clicks, cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibayes.core.protocols import Array, Rule
from calibayes.estimators.checks import number
from calibayes.estimators.columns import every
from calibayes.estimators.naive_bayes import ClassProbabilities, Discrete
from calibayes.families import Complement, Gamma, Multinomial, Poisson


class Counting:
    """What scikit-learn is told about estimators over counts."""

    @property
    def _sparse(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on columns that are no counts, as the checks' are
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class Events(Counting, Discrete):
    """What naive Bayes over a row's events and its complement share: no cell may be missing."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False
        return tags

    @property
    def feature_count_(self) -> Array:
        return np.asarray(self.data_statistics_["columns"]["count"])


@dataclass(eq=False, repr=False, kw_only=True)
class MultinomialNB(Events):
    """Naive Bayes over counts that share out a row's events over the columns, as words in a document.

    The density is that of a row given its number of events, with the multinomial coefficient; scikit-learn leaves the
    coefficient out, which is the same for all classes. Counts need not be whole.

    Parameters
    ----------
    alpha, force_alpha, fit_prior, class_prior
        As in scikit-learn's MultinomialNB.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from calibayes import MultinomialNB
    >>> model = MultinomialNB(rule="ml").fit(csr_array([[2, 0, 1], [0, 3, 1]]), ["fruit", "tool"])
    >>> model.predict([[0, 1, 0]]).tolist()
    ['tool']
    """

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        return [("columns", Multinomial(**self._smoothing()), every)]

    @property
    def feature_log_prob_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["log_probability"])


@dataclass(eq=False, repr=False, kw_only=True)
class ComplementNB(Events):
    """Complement naive Bayes: a row belongs to the class whose complement it is least like.

    Its scores are no densities, so it has no `score_samples`, its probabilities are as arbitrary as scikit-learn's,
    and it is learned in closed form only.

    Parameters
    ----------
    alpha, force_alpha, fit_prior, class_prior, norm
        As in scikit-learn's ComplementNB, where the class probabilities do not enter the scores either.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    rule : {"ml", "map"} or rule, default="ml"
    class_weight, n_jobs, ...
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from calibayes import ComplementNB
    >>> model = ComplementNB().fit([[2, 0, 1], [0, 3, 1], [3, 1, 1]], ["fruit", "tool", "fruit"])
    >>> model.predict([[0, 1, 0]]).tolist()
    ['tool']
    """

    rule: str | Rule = "ml"
    norm: bool = False

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        return [("columns", Complement(**self._smoothing(), norm=self.norm), every)]

    def _checked_rule(self) -> Rule:
        rule = super()._checked_rule()
        if not rule.closed_form:
            raise ValueError(f"ComplementNB is learned in closed form only: rule 'ml', not {rule.name!r}")
        return rule

    def _fixed_priors(self, k: int) -> Array:
        return np.full(k, 1.0 / k)

    @property
    def score_samples(self) -> Any:
        raise AttributeError(
            "ComplementNB has no density: its scores say how classes compare, not how rows do"
        )

    @property
    def class_log_prior_(self) -> Array:
        """Log class probabilities, which do not enter the scores."""
        given = super()._fixed_priors(len(self.classes_))
        return np.log(self.class_count_ / self.class_count_.sum() if given is None else given)

    @property
    def feature_all_(self) -> Array:
        return np.asarray(self.feature_count_.sum(axis=0))

    @property
    def feature_log_prob_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["weight"])


@dataclass(eq=False, repr=False, kw_only=True)
class PoissonNB(Counting, ClassProbabilities):
    """Naive Bayes over counts, each column a Poisson of its own: how many events there are counts too.

    Missing cells are skipped. Counts need not be whole.

    Parameters
    ----------
    alpha : float, default=1
        Pseudo-count of events in each column, at its own mean rate; 0 is maximum likelihood.
    prior : Gamma, optional
        Prior of the rates instead of ``alpha``.
    fit_prior, class_prior
        As in scikit-learn's MultinomialNB.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Examples
    --------
    >>> from calibayes import PoissonNB
    >>> model = PoissonNB(rule="ml").fit([[0, 1], [1, 0], [7, 2], [9, 3]], ["quiet", "quiet", "busy", "busy"])
    >>> model.predict([[5, 1]]).tolist()
    ['busy']
    """

    alpha: float = 1.0
    prior: Gamma | None = None

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        alpha = number("alpha", self.alpha, 0.0, 1e300)
        if self.prior is not None and alpha != 1.0:
            raise ValueError("give alpha or prior, not both")
        smoothing = Gamma(alpha) if alpha else None
        return [("columns", Poisson(prior=self.prior or smoothing), every)]

    @property
    def feature_count_(self) -> Array:
        return np.asarray(self.data_statistics_["columns"]["sum"])

    @property
    def rate_(self) -> Array:
        """Events a row, for each class and column."""
        return np.asarray(self.parameters_["columns"]["rate"])
