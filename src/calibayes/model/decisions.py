"""Decisions from posterior probabilities and their explanation, for every classifier that has them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np

from calibayes.core.protocols import Array
from calibayes.kernels.dispatch import on_host
from calibayes.model import delegates
from calibayes.model.decision import (
    above_thresholds,
    checked_costs,
    least_cost,
    log_odds,
    most_probable,
    rejected,
)
from calibayes.model.delegates import delegate, feature
from calibayes.model.door import numpy_classes, on_device
from calibayes.model.notebook import html_method, mime_bundle
from calibayes.model.parameters import number


class Decisions:
    """`predict`, `decide`, `predict_proba` of a classifier with `predict_log_proba`; `explain` of one with `marginals`."""

    costs: Array | None = None
    class_weight: Any = None
    n_jobs: int | None = None
    classes_: Array

    _repr_html_ = property(html_method)
    _repr_mimebundle_ = mime_bundle

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        raise TypeError(f"{type(self).__name__} has no probabilities")

    @on_device
    def predict_proba(self, X: Any) -> Array:
        """p(class | x), (n, k)."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Array:
        """The class of each row, (n,): the most probable one, or with ``costs`` the one of lowest expected cost."""
        return np.asarray(self.decide(X).data)

    def decision_function(self, X: Any) -> Array:
        """Log odds of the second class, (n,), for two classes; otherwise log p(class | x), (n, k)."""
        log_posterior = self.predict_log_proba(X)
        return log_odds(log_posterior) if log_posterior.shape[1] == 2 else log_posterior

    @on_device
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
            raise ValueError(
                f"least_density must be a number, for a model with `score_samples`, got {least_density!r}"
            )
        scores, posterior, evidence = map(on_host, self._decision_inputs(X, density=needs_density))
        chosen = self._choose(scores, posterior, self.costs if costs is None else costs, thresholds)
        abstain = rejected(
            posterior, evidence, number("least_posterior", least_posterior, 0.0, 1.0), least_density
        )
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

    def leave_one_out(self, given: Any) -> Any:
        """The record of training rows, each left out of the training exactly; None if that takes a fit for each."""
        return None

    # -- in other places ----------------------------------------------------------------------------------------------

    report = delegates.report

    def unknown_cells(self, X: Any) -> Any:
        """The unknown cells of the rows of a table, or of one row that is a mapping column -> value."""
        raise TypeError(
            f"{type(self).__name__} has no density of its columns, so that the values of an unknown cell have no probabilities: "
            "use a generative estimator such as NaiveBayes, TreeAugmentedNB or GenerativeClassifier"
        )

    marginals = delegate("analysis.marginals", "refuse_marginals")
    explain = delegate("analysis.explanation")

    # -- in other places ---------------------------------------------------------------------------------------------

    to_sql = delegates.to_sql
    to_onnx = delegates.to_onnx

    def _decision_inputs(self, X: Any, *, density: bool) -> tuple[Array, Array, Array]:
        """Scores whose largest is the most probable class, (n, k), p(class | x), (n, k), and log p(x), (n,).

        log p(x) may be anything unless ``density`` is set.
        """
        log_posterior = self.predict_log_proba(X)
        evidence = cast(Any, self).score_samples(X) if density else np.zeros(len(log_posterior))
        return log_posterior, np.exp(log_posterior), evidence

    def _choose(
        self, scores: Array, posterior: Array, costs: Array | None, thresholds: Array | None
    ) -> Array:
        if costs is not None and thresholds is not None:
            raise ValueError("give costs or thresholds, not both")
        if costs is not None:
            return least_cost(posterior, checked_costs(costs, posterior.shape[1]))
        if thresholds is None:
            return most_probable(scores)
        values = np.asarray(thresholds, dtype=np.float64)
        if values.shape != posterior.shape[1:] or not (values > 0).all():
            raise ValueError(f"thresholds must be {posterior.shape[1]} positive numbers, one for each class")
        return above_thresholds(posterior, values)
