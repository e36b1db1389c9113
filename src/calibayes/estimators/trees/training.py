"""Train a model of leaves: grow the trees, then let a rule calibrate all leaves together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from calibayes.core.notices import warn
from calibayes.core.protocols import Array, Trees
from calibayes.encoders.leaves import Leaves
from calibayes.estimators.generative.fitted import Fitted, begin
from calibayes.estimators.generative.recipe import Recipe, assemble
from calibayes.estimators.interface.input import Rows
from calibayes.families.model import PRIOR
from calibayes.kernels.partitions.growth import Report
from calibayes.learn import Run, as_arrays, learn, problem_of
from calibayes.learn.plan import stop_named
from calibayes.learn.train import data_sums, prepared
from calibayes.tables.summaries.summary import TableSummary

TREES = "trees"
"""Name of the family over the leaves."""


@dataclass(frozen=True)
class GrowingLeaves:
    """`Leaves` that report each tree while they are fitted, and divide weights by that of one row: priors are in rows."""

    leaves: Leaves
    report: Report
    unit: float

    def fit(self, summary: TableSummary, indices: Sequence[int]) -> Leaves:
        return self.leaves.fit(summary, indices, self.report, self.unit)

    encode = Leaves.encode


def grown_model(recipe: Recipe, classes: Array, rows: Rows) -> Fitted:
    """Grow trees on the rows; then at most ``recipe.max_iter`` updates of the rule on all leaves."""
    require_every_class(classes, rows)
    assembly, k = assemble(recipe, rows, classes), len(classes)
    source, engine = assembly.source(rows), recipe.engine
    data = data_sums(assembly.model, source, engine, k)
    model = prepared(assembly.model, data, source, engine, k)
    leaves = cast(Leaves, assembly.binding.encoders[TREES])
    start = recipe.rule.begin(model, grown_statistics(leaves, data.statistics))
    run = Run(model, recipe.rule, start, stop=stop_named(recipe.stop), limit=recipe.max_iter)
    history = None
    if recipe.max_iter:
        learn([run], source, engine, recipe.callbacks)
        history = as_arrays(run.history)
        if problem := problem_of(run):
            warn(problem, ConvergenceWarning)
    progress = {
        "n_iter": max(run.updates, 1),
        "history": history,
        "best_iter": run.best_iter if history else None,
    }
    fitted = begin(assembly._replace(model=model), recipe.rule, data.statistics, **progress)
    notes = {"trees": leaves.forest.count, "held_out_log_loss": leaves.losses}
    return replace(fitted, notes=notes).after(run)


def require_every_class(classes: Array, rows: Rows) -> None:
    """Raise ValueError if a class has no rows, before trees are grown."""
    weight = np.bincount(rows.codes, rows.weight, minlength=len(classes))
    if empty := classes[weight == 0].tolist():
        raise ValueError(f"no rows (or no weight) in class {', '.join(map(repr, empty))}")


def grown_statistics(leaves: Leaves, data: Trees) -> Trees:
    """Counts of classes and leaves under which the posterior is that of the grown trees."""
    return counts_at(*leaves.start_probabilities(data[TREES]["count"].sum(axis=0)), data)


def counts_at(log_leaf: Array, log_class: Array, data: Trees) -> Trees:
    """As many counts as ``data`` has, in proportion to p(leaf | class) (k, leaves) and p(class) (k,)."""
    of_class = data[PRIOR]["count"].sum() * np.exp(log_class)
    return {
        PRIOR: {**data[PRIOR], "count": of_class},
        TREES: {**data[TREES], "count": of_class[:, None] * np.exp(log_leaf)},
    }
