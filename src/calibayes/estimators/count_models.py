"""Naive Bayes over counts of events, dense or sparse: words of documents, clicks, cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calibayes.core.protocols import Array, Engine, Rule
from calibayes.encoders.numbers import Counts
from calibayes.estimators.naive_bayes import COUNTING, ClassPriorAttributes, CountingNB, even_unless_fitted
from calibayes.families import ClassPrior, Complement, Gamma, Multinomial, Poisson
from calibayes.families.joint_model import PRIOR
from calibayes.model.attributes import array_of, array_property
from calibayes.model.binding import every
from calibayes.model.estimator import Traits
from calibayes.model.parameters import estimator, number
from calibayes.model.recipe import Recipe


def count_tags(tags: Any, *, allow_nan: bool) -> Any:
    """The scikit-learn tags of an estimator over counts."""
    tags.input_tags.positive_only = True
    tags.input_tags.allow_nan = allow_nan
    tags.classifier_tags.poor_score = True  # the data of scikit-learn's checks are no counts
    return tags


def counts_of(model: Any) -> Counts:
    """The encoder of an estimator over counts, which names it in messages."""
    return Counts(reader=type(model).__name__)


def _refuse_decision_function(model: Any) -> Any:
    raise AttributeError(f"{type(model).__name__} has no decision function: use predict_log_proba")


NO_DECISION_FUNCTION: Any = property(_refuse_decision_function)
"""As in scikit-learn, whose checks pass negative numbers to every estimator that has a decision function."""


@estimator
class MultinomialNB(CountingNB):
    """Multinomial naive Bayes over counts of events, such as the words of a document.

    The density is that of a row given its number of events, including the multinomial coefficient; scikit-learn omits the
    coefficient, which is the same for all classes. Counts need not be integers.

    Parameters
    ----------
    alpha, force_alpha, fit_prior, class_prior
        As in scikit-learn's MultinomialNB.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    rule, max_iter, stop, training, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> from calibayes import MultinomialNB
    >>> model = MultinomialNB(rule="ml").fit(csr_array([[2, 0, 1], [0, 3, 1]]), ["fruit", "tool"])
    >>> model.predict([[0, 1, 0]]).tolist()
    ['tool']
    """

    _traits = COUNTING._replace(reads_sparse=True)
    decision_function = NO_DECISION_FUNCTION

    def __sklearn_tags__(self) -> Any:
        return count_tags(super().__sklearn_tags__(), allow_nan=False)

    def _families(self) -> Sequence[tuple[Any, ...]]:
        return [("columns", Multinomial(**self._smoothing()), every, counts_of(self))]

    feature_count_ = array_of("data_statistics_", "columns", "count")
    feature_log_prob_ = array_of("parameters_", "columns", "log_probability")


@estimator
class ComplementNB(CountingNB):
    """Complement naive Bayes (Rennie et al. 2003): each class is scored by the counts of all other classes.

    Its scores are no densities, so it has no `score_samples`, its probabilities are as arbitrary as scikit-learn's, and
    it has a closed form only.

    Parameters
    ----------
    alpha, force_alpha, fit_prior, class_prior, norm
        As in scikit-learn's ComplementNB, where the class probabilities do not enter the scores either.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    rule : {"ml", "map"} or rule, default="ml"
    costs, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from calibayes import ComplementNB
    >>> model = ComplementNB().fit([[2, 0, 1], [0, 3, 1], [3, 1, 1]], ["fruit", "tool", "fruit"])
    >>> model.predict([[0, 1, 0]]).tolist()
    ['tool']
    """

    norm: bool = False
    rule: str | Rule = "ml"

    # Its scores have no class prior: a class without rows could be predicted.
    _traits = COUNTING._replace(reads_sparse=True, allows_lost_classes=False)
    decision_function = NO_DECISION_FUNCTION

    def __sklearn_tags__(self) -> Any:
        return count_tags(super().__sklearn_tags__(), allow_nan=False)

    def _families(self) -> Sequence[tuple[Any, ...]]:
        return [("columns", Complement(**self._smoothing(), norm=self.norm), every, counts_of(self))]

    def _recipe(self, engine: Engine) -> Recipe:
        recipe = super()._recipe(engine)
        if not (rule := recipe.rule).is_closed_form:
            name = rule.name
            raise ValueError(f"ComplementNB has a closed form only: use rule='ml' or 'map', not {name!r}")
        return recipe

    def _given_priors(self, k: int) -> Any:
        return np.full(k, 1.0 / k)

    feature_count_ = array_of("data_statistics_", "columns", "count")
    feature_log_prob_ = array_of("parameters_", "columns", "weight")

    @property
    def score_samples(self) -> Any:
        raise AttributeError("ComplementNB has no density: its scores compare classes, not rows")

    @array_property
    def class_log_prior_(self) -> Array:
        """Log class probabilities, which do not enter the scores."""
        given = even_unless_fitted(self.class_prior, self.fit_prior, len(self.classes_))
        prior = given if isinstance(given, ClassPrior) else ClassPrior(given)
        bound = prior.bind(self.fitted_.model.prior.layout)
        return np.asarray(bound.parameters(self.data_statistics_[PRIOR])["log_probability"])

    @array_property
    def feature_all_(self) -> Array:
        return np.asarray(self.feature_count_.sum(axis=0))


@estimator
class PoissonNB(ClassPriorAttributes):
    """Naive Bayes over counts with a Poisson density for each class and column: the number of events matters, too.

    Missing values are skipped. Counts need not be integers.

    Parameters
    ----------
    alpha : float, default=1
        Pseudo-count of events in each column, at its mean rate; 0 is maximum likelihood.
    prior : Gamma, optional
        Prior of the rates instead of ``alpha``.
    fit_prior, class_prior
        As in scikit-learn's MultinomialNB.
    rule, max_iter, stop, training, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from calibayes import PoissonNB
    >>> model = PoissonNB(rule="ml").fit([[0, 1], [1, 0], [7, 2], [9, 3]], ["quiet", "quiet", "busy", "busy"])
    >>> model.predict([[5, 1]]).tolist()
    ['busy']
    """

    alpha: float = 1.0
    fit_prior: bool = True
    class_prior: Array | ClassPrior | None = None
    prior: Gamma | None = None

    _traits = Traits(reads_sparse=True)
    decision_function = NO_DECISION_FUNCTION

    def __sklearn_tags__(self) -> Any:
        return count_tags(super().__sklearn_tags__(), allow_nan=True)

    def _given_priors(self, k: int) -> Any:
        return even_unless_fitted(self.class_prior, self.fit_prior, k)

    def _families(self) -> Sequence[tuple[Any, ...]]:
        alpha = number("alpha", self.alpha, 0.0, 1e300)
        if self.prior is not None and alpha != 1.0:
            raise ValueError("give alpha or prior, not both")
        smoothing = Gamma(alpha) if alpha else None
        return [("columns", Poisson(prior=self.prior or smoothing), every, counts_of(self))]

    feature_count_ = array_of("data_statistics_", "columns", "sum")

    @array_property
    def rate_(self) -> Array:
        """Events per row, for each class and column."""
        return np.asarray(self.parameters_["columns"]["rate"])
