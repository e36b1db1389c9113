"""scikit-learn's naive Bayes as it was fitted: sums over rows from class counts, feature counts, means and variances."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calibayes.core.protocols import Array, Arrays
from calibayes.encoders.levels import Levels
from calibayes.encoders.numbers import Flags
from calibayes.estimators.presets.counts import ComplementNB, MultinomialNB, counts_of
from calibayes.estimators.presets.from_sklearn.gaussian_sums import moment_sums, numbers_of, refuse_singular
from calibayes.estimators.presets.from_sklearn.rebuilt import Rebuilt, parameters_of, require_equal
from calibayes.estimators.presets.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB


def gaussian(source: Any) -> GaussianNB:
    """`GaussianNB` of scikit-learn: moments from ``class_count_``, ``theta_`` and ``var_`` less ``epsilon_``."""
    model = GaussianNB(**parameters_of(source, GaussianNB))
    count, mean = _floats(source.class_count_), _floats(source.theta_)
    epsilon = float(source.epsilon_)
    variance = np.maximum(_floats(source.var_) - epsilon, 0.0)
    numbers = numbers_of(count, mean, variance)
    family = model.specifications()[0][1]

    def sums(bound: Any) -> Arrays:
        return moment_sums(bound, np.repeat(count[:, None], mean.shape[1], axis=1), mean, variance)

    def adjust(prepared: Any) -> Any:
        # scikit-learn's is that of the rows of the last call, without weights.
        return replace(prepared, regularizer=replace(prepared.regularizer, epsilon=epsilon))

    kind = np.asarray(source.theta_).dtype
    rebuilt = Rebuilt(model, family, numbers, count, sums, number_type=kind, adjust=adjust)
    refuse_singular(rebuilt, source.classes_)
    fitted: GaussianNB = rebuilt.fit(source)
    has_rows = count > 0
    require_equal("theta_", fitted.theta_[has_rows], np.asarray(source.theta_)[has_rows])
    require_equal("var_", fitted.var_[has_rows], np.asarray(source.var_)[has_rows])
    require_equal("class_prior_", fitted.class_prior_, source.class_prior_)
    return fitted


def bernoulli(source: Any) -> BernoulliNB:
    """`BernoulliNB` of scikit-learn: counts of zeros and ones."""
    model = BernoulliNB(**parameters_of(source, BernoulliNB))
    count, ones = _floats(source.class_count_), _floats(source.feature_count_)
    statistics = {"zeros": np.maximum(count[:, None] - ones, 0.0), "ones": ones}
    encoder = Flags(model.binarize, tuple(range(source.n_features_in_)))
    fitted: BernoulliNB = _counted(source, model, encoder, statistics)
    return fitted


def multinomial(source: Any) -> MultinomialNB:
    """`MultinomialNB` of scikit-learn: events of each class and column."""
    fitted: MultinomialNB = _events(source, MultinomialNB(**parameters_of(source, MultinomialNB)))
    return fitted


def complement(source: Any) -> ComplementNB:
    """`ComplementNB` of scikit-learn: events of each class and column."""
    fitted: ComplementNB = _events(source, ComplementNB(**parameters_of(source, ComplementNB)))
    return fitted


def categorical(source: Any) -> CategoricalNB:
    """`CategoricalNB` of scikit-learn: counts of the levels 0, 1, ... of each column."""
    model = CategoricalNB(**parameters_of(source, CategoricalNB))
    tables = [_floats(table) for table in source.category_count_]
    levels = tuple(np.arange(table.shape[1]) for table in tables)
    nothing = (np.arange(0),) * len(levels)
    encoder = Levels(model.min_categories, indices=tuple(range(len(levels))), unpooled=levels, pooled=nothing)
    statistics = {"count": np.concatenate(tables, axis=1)}
    fitted: CategoricalNB = _counted(source, model, encoder, statistics, np.int64)
    return fitted


def _events(source: Any, model: Any) -> Any:
    encoder = replace(counts_of(model), indices=tuple(range(source.n_features_in_)))
    statistics = {"count": _floats(source.feature_count_), "rows": _floats(source.class_count_)}
    return _counted(source, model, encoder, statistics)


def _counted(source: Any, model: Any, encoder: Any, statistics: Arrays, kind: Any = np.float64) -> Any:
    """An estimator over counts, whose parameters are those of scikit-learn's."""
    family = model.specifications()[0][1]
    count = _floats(source.class_count_)
    fitted = Rebuilt(model, family, encoder, count, lambda bound: statistics, number_type=kind).fit(source)
    require_equal("class_log_prior_", fitted.class_log_prior_, source.class_log_prior_)
    require_equal("feature_log_prob_", _flat(fitted.feature_log_prob_), _flat(source.feature_log_prob_))
    return fitted


def _flat(tables: Any) -> Array:
    """A table (k, d), or several of them side by side."""
    return np.concatenate(tables, axis=1) if isinstance(tables, list) else np.asarray(tables)


def _floats(values: Any) -> Array:
    return np.array(values, dtype=np.float64)
