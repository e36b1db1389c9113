"""Naive Bayes under the names and parameters that scikit-learn's users know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from calibayes.core.protocols import Array
from calibayes.encoders.bins import bins_named
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Encoder, Flags
from calibayes.estimators.checks import number, whole_number
from calibayes.estimators.columns import every
from calibayes.estimators.generative import Generative, Weighted
from calibayes.estimators.kinds import Choices, check_kinds, specifications
from calibayes.estimators.mixed import Mixed
from calibayes.families import Bernoulli, Categorical, Diagonal, Dirichlet, Gaussian, NormalInverseWishart
from calibayes.families.gaussian.regularizers import VarianceSmoothing
from calibayes.families.model import PRIOR
from calibayes.kernels.levels.counts import offsets

LEAST_ALPHA = 1e-10
UNCUT = "n_bins is for numbers in bins: say how they are cut (discretize), as by 'kmeans'"
MOST_BINS = 5
"""Bins of a column of numbers unless a person says how many, as in the papers."""


@dataclass(eq=False, repr=False, kw_only=True)
class ClassProbabilities(Generative):
    """Class probabilities by scikit-learn's parameters of discrete naive Bayes."""

    fit_prior: bool = True
    class_prior: Array | None = None

    def _fixed_priors(self, k: int) -> Array | None:
        return np.full(k, 1.0 / k) if self.class_prior is None and not self.fit_prior else self.class_prior

    @property
    def class_count_(self) -> Array:
        return np.asarray(self.data_statistics_[PRIOR]["count"])

    @property
    def class_log_prior_(self) -> Array:
        return np.asarray(self.parameters_[PRIOR]["log_probability"])


@dataclass(eq=False, repr=False, kw_only=True)
class Discrete(ClassProbabilities):
    """Parameters that naive Bayes over levels, flags and events share."""

    alpha: float | Array = 1.0
    force_alpha: bool = True
    prior: Dirichlet | None = None

    def _smoothing(self) -> dict[str, Any]:
        """alpha or prior as the family takes them."""
        if self.prior is not None:
            if np.any(np.asarray(self.alpha) != 1.0):
                raise ValueError("give alpha or prior, not both")
            return {"prior": self.prior}
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if not self.force_alpha and (alpha >= 0).all():
            alpha = np.maximum(alpha, LEAST_ALPHA)
        return {"alpha": float(alpha) if alpha.ndim == 0 else alpha}


@dataclass(eq=False, repr=False, kw_only=True)
class CategoricalNB(Weighted, Discrete):
    """Naive Bayes over columns of levels.

    Any values are levels: whole numbers as in scikit-learn, other numbers, strings, booleans. A level that was not
    there in training says nothing about the class: its column is skipped.

    Parameters
    ----------
    alpha, force_alpha, fit_prior, class_prior, min_categories
        As in scikit-learn's CategoricalNB.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Examples
    --------
    >>> from calibayes import CategoricalNB
    >>> X = [["red", "round"], ["red", "long"], ["green", "long"], ["green", "round"]]
    >>> model = CategoricalNB(rule="ml").fit(X, ["apple", "apple", "pear", "pear"])
    >>> model.predict([["red", "square"]]).tolist()
    ['apple']
    """

    min_categories: int | Sequence[int] | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        return [("columns", Categorical(**self._smoothing()), every, Levels(at_least=self.min_categories))]

    @property
    def categories_(self) -> list[Array]:
        """The levels of each column, in the order of their codes."""
        return list(cast(Levels, self._bound.encoders["columns"]).levels)

    @property
    def n_categories_(self) -> Array:
        return np.array([len(levels) for levels in self.categories_])

    @property
    def category_count_(self) -> list[Array]:
        return self._by_column(self.data_statistics_["columns"]["count"])

    @property
    def feature_log_prob_(self) -> list[Array]:
        return self._by_column(self.parameters_["columns"]["log_probability"])

    def _by_column(self, table: Array) -> list[Array]:
        return np.split(table, offsets(tuple(self.n_categories_))[1:-1], axis=1)


@dataclass(eq=False, repr=False, kw_only=True)
class BernoulliNB(Weighted, Discrete):
    """Naive Bayes over columns of zeros and ones, dense or sparse.

    Parameters
    ----------
    alpha, force_alpha, binarize, fit_prior, class_prior
        As in scikit-learn's BernoulliNB.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Examples
    --------
    >>> from calibayes import BernoulliNB
    >>> model = BernoulliNB(rule="ml").fit([[0, 1], [1, 1], [1, 0], [0, 0]], [1, 1, 0, 0])
    >>> model.predict([[0, 1]]).tolist()
    [1]
    """

    binarize: float | None = 0.0

    @property
    def _sparse(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on columns that are not binary, as the checks' are
        return tags

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        return [("columns", Bernoulli(**self._smoothing()), every, Flags(self.binarize))]

    @property
    def feature_count_(self) -> Array:
        return np.asarray(self.data_statistics_["columns"]["ones"])

    @property
    def feature_log_prob_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["log_one"])


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianNB(Weighted):
    """Naive Bayes over numbers with a Gaussian density for each class and column.

    Parameters
    ----------
    priors, var_smoothing
        As in scikit-learn's GaussianNB.
    prior : NormalInverseWishart, "auto" or None, default="auto"
        Prior of means and variances; "auto" puts one on classes whose variances would be zero, None is strict maximum
        likelihood.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from calibayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(GaussianNB().fit(X, y).score(X, y) > GaussianNB(rule="ml").fit(X, y).score(X, y))
    True
    """

    priors: Array | None = None
    var_smoothing: float = 1e-9
    prior: NormalInverseWishart | Literal["auto"] | None = "auto"

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        smoothing = VarianceSmoothing(number("var_smoothing", self.var_smoothing, 0.0, 1e300))
        return [("columns", Gaussian(Diagonal(), prior=self.prior, regularizer=smoothing), every)]

    def _fixed_priors(self, k: int) -> Array | None:
        return self.priors

    @property
    def class_count_(self) -> Array:
        return np.asarray(self.data_statistics_[PRIOR]["count"])

    @property
    def class_prior_(self) -> Array:
        return np.asarray(np.exp(self.parameters_[PRIOR]["log_probability"]))

    @property
    def theta_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["mean"])

    @property
    def var_(self) -> Array:
        return np.asarray(self.parameters_["columns"]["variance"])

    @property
    def epsilon_(self) -> float:
        return float(cast(Any, self._model.families["columns"]).regularizer.epsilon)


@dataclass(eq=False, repr=False, kw_only=True)
class Tabular(Mixed, Weighted, Discrete):
    """Parameters that naive Bayes over a table as it is has, whatever it takes numbers for."""

    rare_levels: float = 0.0
    max_levels: int | None = None

    def _levels(self) -> Levels:
        most = None if self.max_levels is None else whole_number("max_levels", self.max_levels, 1)
        return Levels(rare=number("rare_levels", self.rare_levels, 0.0, 1e300), most=most)


@dataclass(eq=False, repr=False, kw_only=True)
class NaiveBayes(Tabular):
    """Naive Bayes over a table as it is: numbers have kernel densities or bins, everything else is categorical.

    Parameters
    ----------
    kinds : mapping, optional
        Column, by name or position, -> "gaussian", "kernel", "binned", "categorical" or "bernoulli", where it is not to
        be what it would be by itself.
    discretize : {"kmeans", "quantile", "uniform", "mdl", "adaptive"} or bins of `calibayes.tables`, optional
        How numbers are cut into bins: around centers (as in the papers), into equal weights, into equal widths, where
        it tells classes apart, or finely (one bin a value for few values, else many quantiles). By default they have
        kernel densities instead, those of `KernelNB`.
    n_bins : int, optional
        Most bins of a column of numbers, 5 unless given; "mdl" and "adaptive" find the number themselves.
    rare_levels : float, default=0
        Levels seen fewer times than this (by weight) are pooled into one, "other".
    max_levels : int, optional
        Levels beyond this many most frequent ones of a column are pooled too. Where a column has a pool, levels that
        were not there in training belong to it; else their column is skipped. In `partial_fit` the first rows settle
        which levels stay, and new ones join the pool.
    alpha, force_alpha, fit_prior, class_prior
        As in scikit-learn's CategoricalNB; ``alpha`` is for levels and bins.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``.
    rule, start, max_iter, stop, ...
        How to train; see `GenerativeClassifier`. "gd" needs ``discretize``: kernel densities have no natural parameters.

    Attributes
    ----------
    schema_ : Schema
        The kind of each column and why; it prints as a table.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = NaiveBayes().fit(penguins.columns, penguins.target)
    >>> bool(model.score(penguins.columns, penguins.target) > 0.98)
    True
    """

    discretize: str | Encoder | None = None
    n_bins: int | None = None

    def specifications(self) -> Sequence[tuple[Any, ...]]:
        numeric = "kernel" if self.discretize is None else "binned"
        return specifications(check_kinds(self.kinds), numeric, self._choices())

    def _choices(self) -> Choices:
        most = whole_number("n_bins", MOST_BINS if self.n_bins is None else self.n_bins, 1)
        if (
            self.discretize is None
            and self.n_bins is not None
            and "binned" not in (self.kinds or {}).values()
        ):
            raise ValueError(UNCUT)
        bins = bins_named("kmeans" if self.discretize is None else self.discretize, most)
        return Choices(self._smoothing(), bins=bins, levels=self._levels())
