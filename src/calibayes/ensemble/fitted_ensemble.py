"""The fitted ensemble as one immutable value, and its predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibayes.core import verify
from calibayes.core.protocols import Array
from calibayes.core.verify import TOLERANCE, require, require_names
from calibayes.encoders.schema import Schema
from calibayes.ensemble.grown_trees import GrownTrees
from calibayes.ensemble.path_members import CalibrationPath
from calibayes.kernels.posterior import log_normalize, mix
from calibayes.model.checked_rows import kept_row_count
from calibayes.model.verification import verify_classes
from calibayes.tables.table import Table

FREQUENCIES = "class frequencies"
"""The member that predicts the class frequencies for every row."""
TREES = "trees"
FURTHER_TREES = "further trees"
"""What is left out if growth ends before held-out rows say so."""
"""The trees that are grown on the members."""


@dataclass(frozen=True)
class FittedEnsemble:
    """A weighted average of posteriors, and trees that are grown on it.

    Attributes
    ----------
    classes : (k,) array
    names : tuple of str
        Columns of the training table.
    class_frequencies : (k,) array
        In training.
    models : mapping
        Name -> trained estimator, of the members with a positive weight.
    weights : mapping
        Name -> weight of every member that was evaluated, "class frequencies" last.
    paths : mapping
        Name -> held-out scores along the member's path.
    skipped : mapping
        Name -> why a member, the trees or further trees were left out.
    rows, tried_rows : int
        Number of training rows, and of those that members were compared on.
    log_loss, error : float
        Of the ensemble on held-out rows.
    schema : Schema
        What each column of the training table contains.
    density : estimator or None
        The member with the density.
    priors : (k,) array or None
        Class frequencies that predictions are adjusted to.
    grown : GrownTrees or None
        Trees that are grown on the average of the members.
    """

    classes: Array
    names: tuple[str, ...]
    class_frequencies: Array
    models: Mapping[str, Any]
    weights: Mapping[str, float]
    paths: Mapping[str, CalibrationPath]
    skipped: Mapping[str, str]
    rows: int
    tried_rows: int
    log_loss: float
    error: float
    schema: Schema
    density: Any = None
    priors: Array | None = None
    grown: GrownTrees | None = None

    def verify(self) -> None:
        """Raises ValueError unless the fields agree; see `calibayes.core.verify`."""
        k = verify_classes(self.classes)
        require(len(self.names) > 0 and self.schema.names == self.names, "the schema has other columns")
        for name in ("class_frequencies", *(("priors",) if self.priors is not None else ())):
            probabilities = verify.require_probabilities(name, getattr(self, name), (k,))
            require(bool((probabilities > 0).all()), f"{name} contains a probability of 0")
        self._verify_weights()
        for name, model in self.models.items():
            _verify_member(name, model, self)
        if self.density is not None:
            _verify_member("density", self.density, self)
        require(0 <= self.tried_rows <= self.rows, f"tried_rows is {self.tried_rows} of {self.rows} rows")
        if self.grown is not None:
            require(len(self.grown.log_factors[0]) == k, "the trees have other classes")
            verify.require_positions("columns of the trees", self.grown.bytes.indices, len(self.names))

    def _verify_weights(self) -> None:
        for name, weight in self.weights.items():
            verify.require_number(f"the weight of {name!r}", weight, 0.0, 1.0 + TOLERANCE)
        require(list(self.weights)[-1:] == [FREQUENCIES], f"the last weight must be that of {FREQUENCIES!r}")
        is_one = abs(sum(self.weights.values()) - 1.0) <= TOLERANCE
        require(is_one, "the weights of the members do not sum to 1")
        members = [name for name in self.weights if name != FREQUENCIES]
        require_names("paths", self.paths, members)
        require_names("models", self.models, [name for name in members if self.weights[name] > 0])

    @property
    def kept_by_member(self) -> dict[str, int]:
        """Name -> number of training rows that a member keeps; "density" is the member with the density, if it has no weight."""
        has_weight = any(self.density is model for model in self.models.values())
        trained = self.models if has_weight else {**self.models, "density": self.density}
        return {name: kept_row_count(model) for name, model in trained.items()}

    @property
    def kept_rows(self) -> int:
        """The largest number of training rows that a member keeps."""
        return max(self.kept_by_member.values())

    @property
    def used_weights(self) -> Array:
        """Weights of the members in use, class frequencies last."""
        return np.array([self.weights[name] for name in (*self.models, FREQUENCIES)])

    @property
    def prior_shift(self) -> Array:
        """Change of the log class frequencies since training, (k,)."""
        if self.priors is None:
            return np.zeros(len(self.classes))
        return np.log(self.priors) - np.log(self.class_frequencies)

    def member_predictions(self, table: Table) -> Array:
        """log p(class | x) of each member, class frequencies last, (members, n, k)."""
        predictions = [model.predict_log_proba(table) for model in self.models.values()]
        constant = np.broadcast_to(np.log(self.class_frequencies), (table.n, len(self.classes)))
        return np.stack([*predictions, constant])

    def average(self, predictions: Array) -> Array:
        """log p(class | x) of the members' average, (n, k), in training; from those of the members."""
        return log_normalize(mix(predictions, self.used_weights))[0]

    def completed(self, log_members: Array, scores: Sequence[Array]) -> Array:
        """log p(class | x) of the ensemble, (n, k), from that of the members' average and the scores of the trees."""
        log_posterior = log_members
        if self.grown is not None:
            log_posterior = self.grown.log_posterior(log_members, scores)
        if self.priors is not None:
            log_posterior = log_posterior + self.prior_shift
        return log_normalize(log_posterior)[0]

    def tree_scores(self, table: Table) -> list[Array]:
        """The scores of each forest, (n, k) each; none without trees."""
        return [] if self.grown is None else self.grown.scores(table)

    def log_posterior(self, table: Table) -> Array:
        """log p(class | x), (n, k)."""
        return self.completed(self.average(self.member_predictions(table)), self.tree_scores(table))

    def shares(self, table: Table) -> Array:
        """Share of each member, and last of the trees, in the probability of the most probable class; rows sum to one."""
        predictions, scores = self.member_predictions(table), self.tree_scores(table)
        log_members = self.average(predictions)
        rows, best = np.arange(table.n), np.argmax(self.completed(log_members, scores), axis=1)
        of_best = (predictions + _log_weights(self.used_weights)[:, None, None])[:, rows, best].T
        if self.grown is not None:
            trees = replace(self.grown, weight=1.0).log_posterior(log_members, scores)[rows, best]
            log_weights = _log_weights(np.array([1.0 - self.grown.weight, self.grown.weight]))
            of_best = np.column_stack([of_best + log_weights[0], trees + log_weights[1]])
        return np.exp(of_best - np.logaddexp.reduce(of_best, axis=1, keepdims=True))


def _verify_member(name: str, model: Any, ensemble: FittedEnsemble) -> None:
    """Raise ValueError unless a member is fitted to the classes and columns of the ensemble."""
    require(hasattr(model, "predict_log_proba"), f"member {name!r} has no probabilities")
    classes: Any = getattr(model, "classes_", None)
    require(bool(np.array_equal(classes, ensemble.classes)), f"member {name!r} has other classes")
    conversion = getattr(getattr(model, "estimator_", model), "conversion_", None)
    columns = None if conversion is None else conversion.converted_names
    require(columns == ensemble.names, f"member {name!r} has other columns")


def _log_weights(weights: Array) -> Array:
    """Logarithms of weights, of which some may be zero."""
    return np.log(np.maximum(weights, np.finfo(np.float64).tiny))
