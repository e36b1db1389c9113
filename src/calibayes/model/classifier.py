"""The base of all classifiers: predictions and decisions from posterior probabilities, and delegates to analyses of them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from calibayes.core.protocols import Array, Engine
from calibayes.model import decision, delegates, notebook, parameters, pickles, table_inputs
from calibayes.model.attributes import delegate, numpy_classes, on_one_state
from calibayes.model.delegates import feature
from calibayes.tables.table import Table


class Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predictions of a classifier for tables of any kind, decisions, and delegates to analyses.

    A subclass computes log p(class | x) of a table in memory (`_log_posterior`). Public methods open what they are
    given as X (`calibayes.model.table_inputs`).
    """

    costs: Any = None
    class_weight: Any = None
    n_jobs: int | None = None
    classes_: Any

    get_params = parameters.get_params
    set_params = parameters.set_params
    __getstate__ = pickles.get_state
    __setstate__ = pickles.set_state

    _repr_html_ = property(notebook.html_method)
    _repr_mimebundle_ = notebook.mime_bundle

    # -- predictions -------------------------------------------------------------------------------------------------

    @on_one_state
    def predict(self, X: Any) -> Array:
        """The class of each row, (n,): the most probable one, or with ``costs`` the one of lowest expected cost."""
        return table_inputs.open_rows(X).map(self, "predict", self._labels)

    @on_one_state
    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (n, k)."""
        return table_inputs.open_rows(X).map(self, "predict_proba", self._posterior)

    @on_one_state
    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        return table_inputs.open_rows(X).map(self, "predict_log_proba", self._log_posterior)

    @on_one_state
    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class, (n,), for two classes; otherwise log p(class | x), (n, k)."""
        return table_inputs.open_rows(X).map(self, "decision_function", self._scores)

    @on_one_state
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows, by weight, whose class is predicted; ``y`` and ``sample_weight`` may name columns of X."""
        return table_inputs.accuracy(self, X, y, sample_weight)

    def _labels(self, table: Table, engine: Engine) -> Array:
        return np.asarray(self.decide(table).data)

    def _posterior(self, table: Table, engine: Engine) -> Array:
        return np.exp(self._log_posterior(table, engine))

    def _log_posterior(self, table: Table, engine: Engine) -> Array:
        """log p(class | x), (n, k), of a table in memory."""
        raise TypeError(f"{type(self).__name__} has no probabilities")

    def _scores(self, table: Table, engine: Engine) -> Array:
        log_posterior = self._log_posterior(table, engine)
        return decision.log_odds(log_posterior) if log_posterior.shape[1] == 2 else log_posterior

    @on_one_state
    def decide(
        self,
        X: Any,
        *,
        costs: Array | None = None,
        thresholds: Array | None = None,
        least_posterior: float = 0.0,
        least_density: float = -np.inf,
    ) -> np.ma.MaskedArray[Any, Any]:
        """Classes of the rows, masked where the model abstains.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        costs : (k, k) array, optional
            ``costs[i, j]`` is the cost of deciding class j when i is true; by default the estimator's ``costs``.
        thresholds : (k,) array, optional
            Choose the class with the largest ratio of probability to threshold.
        least_posterior : float
            Abstain if no class has this probability.
        least_density : float
            Abstain if log p(x) is lower; see `outlier_threshold`.

        Returns
        -------
        masked array of shape (n,)
            Rows with an abstention are masked; their data hold the class that would have been chosen.
        """
        needs_density = bool(least_density > -np.inf)
        if np.isnan(least_density) or (needs_density and not hasattr(self, "score_samples")):
            expected = "a number, for a model with `score_samples`"
            raise ValueError(f"least_density must be {expected}, got {least_density!r}")
        inputs = self._decision_inputs(X, density=needs_density)
        scores, posterior, evidence = map(table_inputs.on_numpy, inputs)
        chosen = self._choose(scores, posterior, self.costs if costs is None else costs, thresholds)
        least = parameters.number("least_posterior", least_posterior, 0.0, 1.0)
        abstain = decision.rejected(posterior, evidence, least, least_density)
        return np.ma.MaskedArray(numpy_classes(self)[chosen], mask=abstain)

    # -- what the model says about rows that it was not trained on ----------------------------------------------------

    with_held_out = delegate("analysis.held_out")
    predict_set = delegate("analysis.prediction_sets")
    adapt_priors = delegate("analysis.prior_shift")
    drift = delegate("analysis.drift")
    surprise = delegate("analysis.surprise")
    label_issues = delegate("analysis.label_issues")
    influence = delegate("analysis.influence")
    questions = delegate("analysis.questions")

    @cached_property
    def held_out_(self) -> Any:
        """The record of predictions for rows that the model was not trained on; made at first use (`calibayes.trust.HeldOut`)."""
        return feature("held_out").held_out_of(self)

    # -- in other places ----------------------------------------------------------------------------------------------

    report = delegates.report

    marginals = delegate("analysis.marginals", "refuse_marginals")
    explain = delegate("analysis.explanation")

    to_sql = delegates.to_sql
    to_onnx = delegates.to_onnx

    def _decision_inputs(self, X: Any, *, density: bool) -> tuple[Array, Array, Array]:
        """Scores whose largest is the most probable class, (n, k), p(class | x), (n, k), and log p(x), (n,).

        log p(x) may be anything unless ``density`` is set.
        """
        log_posterior, model = self.predict_log_proba(X), cast(Any, self)
        evidence = model.score_samples(X) if density else np.zeros(len(log_posterior))
        return log_posterior, np.exp(log_posterior), evidence

    def _choose(self, scores: Array, posterior: Array, costs: Any, thresholds: Any) -> Array:
        if costs is not None and thresholds is not None:
            raise ValueError("give costs or thresholds, not both")
        if costs is not None:
            return decision.least_cost(posterior, decision.checked_costs(costs, posterior.shape[1]))
        if thresholds is None:
            return decision.most_probable(scores)
        values = np.asarray(thresholds, dtype=np.float64)
        if values.shape != posterior.shape[1:] or not (values > 0).all():
            raise ValueError(f"thresholds must be {posterior.shape[1]} positive numbers, one for each class")
        return decision.above_thresholds(posterior, values)
