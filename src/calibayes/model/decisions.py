"""Decisions from posterior probabilities and their explanation, for every classifier that has them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, cast

import numpy as np

from calibayes.analysis import (
    drift,
    held_out,
    influence,
    label_issues,
    prediction_sets,
    prior_shift,
    surprise,
)
from calibayes.analysis import questions as unknown
from calibayes.analysis.explanation import PERMUTATIONS, Explanation, explanation, sampling
from calibayes.analysis.marginals import Marginals, ModelNeedsAllColumns
from calibayes.backends.device.input import numpy_classes, on_device
from calibayes.core.protocols import Array
from calibayes.engines import computing
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
from calibayes.model.notebook import html_method, mime_bundle
from calibayes.model.parameters import number
from calibayes.model.progress import ProgressReporter

REPORT_SECONDS = 1.0
"""Least time between two reports of progress."""


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

    with_held_out = held_out.with_held_out
    predict_set = prediction_sets.predict_set
    held_out_: Any = cached_property(held_out.held_out_of)
    adapt_priors = prior_shift.adapt_priors
    drift = drift.drift
    surprise = surprise.surprise
    label_issues = label_issues.label_issues

    def leave_one_out(self, given: held_out.LabeledTable) -> held_out.HeldOut | None:
        """The record of training rows, each left out of the training exactly; None if that takes a fit for each."""
        return None

    influence = influence.influence
    questions = unknown.questions

    # -- in other places ----------------------------------------------------------------------------------------------

    report = delegates.report

    def unknown_cells(self, X: Any) -> unknown.UnknownCells:
        """The unknown cells of the rows of a table, or of one row that is a mapping column -> value."""
        raise TypeError(
            f"{type(self).__name__} has no density of its columns, so that the values of an unknown cell have no probabilities: "
            "use a generative estimator such as NaiveBayes, TreeAugmentedNB or GenerativeClassifier"
        )

    def marginals(self, X: Any) -> Marginals:
        """log p(class | known columns) of the rows, up to a term of the row, for any known columns."""
        raise ModelNeedsAllColumns(f"{type(self).__name__} cannot leave out columns")

    def explain(
        self, X: Any, against: Any = None, *, permutations: int = PERMUTATIONS, random_state: Any = None
    ) -> Explanation:
        """Contributions of the columns to the log odds of the most probable class.

        The contribution of a column is its Shapley value: the change of the log odds when the column becomes known,
        averaged over all orders in which the columns may become known. Columns that are not known are integrated out of
        the model. Where columns are independent given the class, as in naive Bayes, the Shapley value is the column's own
        log likelihood ratio. Otherwise it is exact up to eight columns and estimated from sampled orders beyond.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        against : label, optional
            The class to compare with; by default each row's second most probable one. For rows whose most probable
            class it is, the second most probable one is explained against it.
        permutations : int, default=32
            Number of sampled orders of d dependent columns, an even number: each order is followed by its reverse. The
            time is at most that of ``permutations * d`` predictions, and the standard errors fall with its square root.
            Shapley values are exact if the 2^d sets of columns are no more than that.
        random_state : int or RandomState, optional
            Seed of the orders; None is always the same.

        Returns
        -------
        Explanation
            The contributions of a row sum to its log odds (before any temperature), however many orders are sampled.
            ``standard_error`` has their standard errors. Costs have no influence.
        """
        progress = ProgressReporter(
            type(self).__name__, bool(getattr(self, "verbose", 0)), interval=REPORT_SECONDS
        )
        how = sampling(permutations, random_state, progress)
        with computing(getattr(self, "engine", None), self.n_jobs):
            explained = explanation(self.marginals(X), numpy_classes(self), against, how)
            conversion = getattr(self, "conversion_", None)
            if conversion is not None and conversion.sources:
                explained = explained.by_source(conversion.sources)
        progress.close()
        return explained

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
