"""What a trained model is asked: decisions, probabilities, densities."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes import engines
from calibayes.core.block import Block
from calibayes.core.protocols import Array, Trees
from calibayes.decision import most_probable, tempered
from calibayes.estimators.checks import number
from calibayes.estimators.deciding import Deciding
from calibayes.estimators.training import Training
from calibayes.families import ClassPrior
from calibayes.families.model import PRIOR, Product
from calibayes.kernels.threads import reuse_threads, thread_limit
from calibayes.posterior import log_normalize
from calibayes.tables.read import Table
from calibayes.tables.sources import ArraySource

Joint: TypeAlias = Callable[[Product, Block, Trees], Array]
"""What a model says of a block of rows, (n, k)."""


@dataclass(eq=False, repr=False, kw_only=True)
class Predicting(Deciding, Training):
    """Decisions, probabilities and densities of a trained model."""

    costs: Array | None = None

    def predict(self, X: Any) -> Array:
        """The class of each row, (n,): the most probable one, or the one of least expected cost with ``costs``."""
        if self.costs is not None:
            return super().predict(X)
        chosen = np.concatenate(self._of_rows(X, most_probable, Product.contrast))
        return np.asarray(self.classes_[chosen])

    def _judged(self, X: Any, *, density: bool) -> tuple[Array, Array, Array]:
        log_joint = self.predict_joint_log_proba(X)
        log_posterior, evidence = log_normalize(log_joint)
        return log_joint, np.exp(self._tempered(log_posterior)), evidence

    def predict_log_proba(self, X: Any) -> Array:
        """log p(class | x), (n, k)."""
        log_joint = self.predict_joint_log_proba(X)
        return self._tempered(log_normalize(log_joint)[0])

    def _tempered(self, log_posterior: Array) -> Array:
        temperature = getattr(self, "temperature_", 1.0)
        return log_posterior if temperature == 1.0 else tempered(log_posterior, temperature)

    def predict_joint_log_proba(self, X: Any) -> Array:
        """log p(x, class), (n, k)."""
        return np.concatenate(self._of_rows(X, lambda log_joint: log_joint))

    def _of_rows(
        self, X: Any, function: Callable[[Array], Array], joint: Joint = Product.log_joint
    ) -> list[Array]:
        """What a function says of the joint log densities (n, k) of each block of rows."""
        self._check_learned()
        return self._of_table(self._read(X, reset=False), function, joint)

    def _of_table(
        self, table: Table, function: Callable[[Array], Array], joint: Joint = Product.log_joint
    ) -> list[Array]:
        nothing, threads = np.zeros(table.n), engines.thread_count(self.n_jobs)
        blocks = {"k": len(self.classes_), "least_cells": self._least_cells}
        with reuse_threads(), thread_limit(threads):
            source = ArraySource(self._encode(table), nothing, nothing, nothing, **blocks)
            return engines.engine_for(threads).each(
                lambda block: function(joint(self._model, block, self.parameters_)), source
            )

    def _check_learned(self) -> None:
        check_is_fitted(self)
        if self.parameters_ is None:
            raise ValueError(f"not enough rows have been seen yet: {self._unready}")

    def score_samples(self, X: Any) -> Array:
        """log p(x), (n,): low for rows unlike those of training."""
        return log_normalize(self.predict_joint_log_proba(X))[1]

    def outlier_threshold(self, X: Any, share: float = 0.01) -> float:
        """The log density below which a further row falls with probability ``share``, at most.

        ``X`` are rows that took no part in training; with n of them the share is kept for any distribution, as a
        conformal quantile. It is -inf where they are too few for so small a share. A row with missing cells has the
        density of its known ones, which is no smaller: thresholds are for rows that are as complete as these.
        """
        scores = np.sort(self.score_samples(X))
        rank = int(np.floor(number("share", share, 0.0, 1.0) * (len(scores) + 1)))
        return float(scores[min(rank, len(scores)) - 1]) if rank >= 1 else -np.inf

    def with_priors(self, priors: Array) -> Self:
        """This model where classes are as frequent as ``priors`` (k,) say: for a world that has shifted, no refit.

        The log odds move by how the new frequencies differ from those of training. (Under a rule that trains the
        class prior it is no frequency any more, and is moved, not replaced.)
        """
        self._check_learned()
        self._refuse_shifted()
        new = ClassPrior(fixed=priors).bind(self._model.prior.layout)
        of_training = replace(self._model.prior, alpha=0.0).parameters(self.data_statistics_[PRIOR])[
            "log_probability"
        ]
        shift = new.parameters({})["log_probability"] - of_training
        moved = self.parameters_[PRIOR]["log_probability"] + shift * getattr(self, "temperature_", 1.0)
        shifted = copy.copy(self)
        shifted._shifted = True
        shifted.parameters_ = {
            **self.parameters_,
            PRIOR: {"log_probability": moved - np.logaddexp.reduce(moved)},
        }
        return shifted
