"""Naive Bayes with the names and parameters of scikit-learn: levels, flags, Gaussian numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np

from calibayes import families
from calibayes.core.notices import warn
from calibayes.core.protocols import Array
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Flags
from calibayes.families import ClassPrior
from calibayes.families.counts import smoothing_of
from calibayes.families.covariance_shapes import VarianceSmoothing
from calibayes.families.joint_model import PRIOR
from calibayes.kernels.level_counts import offsets
from calibayes.model.attributes import array_of, array_property
from calibayes.model.binding import every
from calibayes.model.estimator import GenerativeEstimator, Traits
from calibayes.model.parameters import estimator, number

COUNTING = Traits(fewest_classes=1, allows_lost_classes=True, runs_on_device=True)
LEAST_ALPHA = 1e-10
"""Least pseudo-count with ``force_alpha=False``, as in scikit-learn."""


class ClassPriorAttributes(GenerativeEstimator):
    """Fitted attributes of scikit-learn's discrete naive Bayes that describe the class prior."""

    class_count_ = array_of("data_statistics_", PRIOR, "count")
    class_log_prior_ = array_of("parameters_", PRIOR, "log_probability")


@estimator
class CountingNB(ClassPriorAttributes):
    """The parameters of scikit-learn's discrete naive Bayes: pseudo-counts and class probabilities."""

    alpha: float | Array = 1.0
    force_alpha: bool = True
    fit_prior: bool = True
    class_prior: Array | ClassPrior | None = None
    prior: families.Dirichlet | None = None

    _traits = COUNTING

    def _given_priors(self, k: int) -> Any:
        return even_unless_fitted(self.class_prior, self.fit_prior, k)

    def _smoothing(self) -> dict[str, Any]:
        """alpha or prior as the family takes them."""
        smoothing = smoothing_of(self.alpha, self.prior)
        alpha = np.asarray(smoothing.get("alpha", LEAST_ALPHA))
        if self.force_alpha or (alpha < 0).any() or (alpha >= LEAST_ALPHA).all():
            return smoothing
        problem = f"alpha too small will result in numeric errors, setting alpha = {LEAST_ALPHA:.1e}"
        warn(f"{problem}. Use `force_alpha=True` to keep alpha unchanged.")
        return smoothing_of(np.maximum(alpha, LEAST_ALPHA), None)


def even_unless_fitted(class_prior: Any, fit_prior: bool, k: int) -> Any:
    """Class probabilities by scikit-learn's parameters of discrete naive Bayes."""
    return np.full(k, 1.0 / k) if class_prior is None and not fit_prior else class_prior


@estimator
class CategoricalNB(CountingNB):
    """Naive Bayes over columns of levels (categories).

    Any values are levels: integers as in scikit-learn, other numbers, strings, booleans. A column with a level that did
    not occur in training is skipped for that row.

    Parameters
    ----------
    alpha, force_alpha, fit_prior, class_prior, min_categories
        As in scikit-learn's CategoricalNB.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from calibayes import CategoricalNB
    >>> X = [["red", "round"], ["red", "long"], ["green", "long"], ["green", "round"]]
    >>> model = CategoricalNB(rule="ml").fit(X, ["apple", "apple", "pear", "pear"])
    >>> model.predict([["red", "square"]]).tolist()
    ['apple']
    """

    min_categories: int | Sequence[int] | None = None
    class_weight: Mapping[Any, float] | str | None = None

    _traits = COUNTING._replace(reads_text=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags

    def _families(self) -> Sequence[tuple[Any, ...]]:
        family = families.Categorical(**self._smoothing())
        return [("columns", family, every, Levels(at_least=self.min_categories))]

    @property
    def categories_(self) -> list[Array]:
        """The levels of each column, in the order of their codes."""
        return list(cast(Levels, self.fitted_.binding.encoders["columns"]).levels)

    @array_property
    def n_categories_(self) -> Array:
        return np.array([len(levels) for levels in self.categories_])

    @array_property
    def category_count_(self) -> list[Array]:
        return self._by_column(self.data_statistics_["columns"]["count"])

    @array_property
    def feature_log_prob_(self) -> list[Array]:
        return self._by_column(self.parameters_["columns"]["log_probability"])

    def _by_column(self, table: Array) -> list[Array]:
        return np.split(table, offsets(tuple(map(len, self.categories_)))[1:-1], axis=1)


@estimator
class BernoulliNB(CountingNB):
    """Naive Bayes over columns of zeros and ones, dense or sparse.

    Parameters
    ----------
    alpha, force_alpha, binarize, fit_prior, class_prior
        As in scikit-learn's BernoulliNB.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from calibayes import BernoulliNB
    >>> model = BernoulliNB(rule="ml").fit([[0, 1], [1, 1], [1, 0], [0, 0]], [1, 1, 0, 0])
    >>> model.predict([[0, 1]]).tolist()
    [1]
    """

    binarize: float | None = 0.0
    class_weight: Mapping[Any, float] | str | None = None

    _traits = COUNTING._replace(reads_sparse=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # the data of scikit-learn's checks are not binary
        return tags

    def _families(self) -> Sequence[tuple[Any, ...]]:
        return [("columns", families.Bernoulli(**self._smoothing()), every, Flags(self.binarize))]

    feature_count_ = array_of("data_statistics_", "columns", "ones")
    feature_log_prob_ = array_of("parameters_", "columns", "log_one")


@estimator
class GaussianNB(GenerativeEstimator):
    """Naive Bayes over numbers with a Gaussian density for each class and column.

    With more columns than rows log probabilities have a temperature, as in `NaiveBayes`, unless ``rule="ml"``.

    Parameters
    ----------
    priors, var_smoothing
        As in scikit-learn's GaussianNB.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of means and variances; "auto" is a prior for classes with a variance of zero only, None is strict maximum
        likelihood.
    rule, max_iter, stop, training, class_weight, costs, random_state, engine, n_jobs, verbose
        See `GenerativeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(GaussianNB().fit(X, y).score(X, y) > GaussianNB(rule="ml").fit(X, y).score(X, y))
    True
    """

    priors: Array | ClassPrior | None = None
    var_smoothing: float = 1e-9
    prior: families.NormalInverseWishart | Literal["auto"] | None = "auto"
    class_weight: Mapping[Any, float] | str | None = None

    _traits = COUNTING._replace(is_tempered_if_wide=True)

    def _families(self) -> Sequence[tuple[Any, ...]]:
        smoothing = VarianceSmoothing(number("var_smoothing", self.var_smoothing, 0.0, 1e300))
        family = families.Gaussian(families.Diagonal(), prior=self.prior, regularizer=smoothing)
        return [("columns", family, every)]

    class_count_ = array_of("data_statistics_", PRIOR, "count", in_type_of_columns=True)
    theta_ = array_of("parameters_", "columns", "mean", in_type_of_columns=True)
    var_ = array_of("parameters_", "columns", "variance", in_type_of_columns=True)

    @array_property
    def class_prior_(self) -> Array:
        return np.exp(self.parameters_[PRIOR]["log_probability"]).astype(self.fitted_.number_type)

    @property
    def epsilon_(self) -> float:
        return float(cast(Any, self.fitted_.model.families["columns"]).regularizer.epsilon)
