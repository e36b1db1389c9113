"""Posterior of an ensemble when only some columns are known, from which it is explained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.analysis.marginals import ColumnSum, Marginals, PartNeedsAllColumns
from calibayes.core.protocols import Array
from calibayes.ensemble.fitted_ensemble import FittedEnsemble
from calibayes.ensemble.grown_trees import GrownTrees
from calibayes.kernels.forests import path_terms
from calibayes.kernels.posterior import log_normalize
from calibayes.model.checked_rows import new_table
from calibayes.tables.table import Table


@dataclass(frozen=True)
class AverageOfMembers:
    """The average of the members' posteriors, each given the same columns, and the trees on it. Weights stay as they are.

    Attributes
    ----------
    columns : sequence of int
        All columns of the table.
    fitted : FittedEnsemble
    members : tuple of Marginals
        Those of ``fitted.models``, in their order, before their temperatures.
    trees : tuple of Marginals
        The scores of the forests that are grown on the members: contributions along the paths of the rows.
    n : int
        Number of rows.
    """

    columns: Sequence[int]
    fitted: FittedEnsemble
    members: tuple[Marginals, ...]
    trees: tuple[Marginals, ...]
    n: int

    def scores(self, present: Array) -> Array:
        groups = (self.members, self.trees)
        return self._average(*([part.scores(present) for part in parts] for parts in groups))

    def along(self, order: Array) -> Iterator[Array]:
        paths = [[part.along(order) for part in parts] for parts in (self.members, self.trees)]
        return (self._average(*([next(path) for path in group] for group in paths)) for _ in order)

    def _average(self, scores: Sequence[Array], tree_scores: Sequence[Array]) -> Array:
        temperatures = [getattr(model, "temperature_", 1.0) for model in self.fitted.models.values()]
        members = [log_normalize(one / t)[0] for one, t in zip(scores, temperatures, strict=True)]
        constant = np.broadcast_to(np.log(self.fitted.class_frequencies), (self.n, len(self.fitted.classes)))
        return self.fitted.completed(self.fitted.average(np.stack([*members, constant])), tree_scores)


def marginals(fitted: FittedEnsemble, table: Table) -> Marginals:
    """log p(class | known columns) of an ensemble. Raises ValueError if a member cannot be explained."""
    members = tuple(_member_marginals(name, model, table) for name, model in fitted.models.items())
    trees = () if fitted.grown is None else tuple(forest_marginals(fitted.grown, table))
    part = AverageOfMembers(range(len(table.names)), fitted, members, trees, table.n)
    return Marginals(table.names, np.zeros(len(fitted.classes)), (part,))


def _member_marginals(name: str, model: Any, table: Table) -> Marginals:
    if not hasattr(model, "marginals"):
        raise PartNeedsAllColumns(
            f"member {name!r} ({type(model).__name__}) cannot be explained, because it cannot leave out columns (`marginals`): "
            "use a generative estimator or JointKernelClassifier as this member"
        )
    return model.marginals(table)


def forest_marginals(grown: GrownTrees, table: Table) -> list[Marginals]:
    """The scores of each forest for any known columns: contributions along the paths of the rows."""
    columns, none = grown.bytes.encode(table), np.zeros(len(grown.log_factors[0]))
    return [
        Marginals(table.names, none, (ColumnSum(grown.bytes.indices, *path_terms(columns, *part)),))
        for part in zip(grown.forests, grown.log_factors, grown.masses, strict=True)
    ]


def marginals_of_ensemble(self: Any, X: Any) -> Marginals:
    """log p(class | known columns) of the rows: the weighted average of the members' posteriors given these columns."""
    check_is_fitted(self)
    table, names = new_table(self, X), self.fitted_.names
    return marginals(self.fitted_, table if table.names == names else replace(table, names=names))
