"""What training rows are worth: the change of the loss on other rows when they are left out of the training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from calibayes.analysis.fairness import group_labels
from calibayes.analysis.merging import difference
from calibayes.core.notices import shortened
from calibayes.core.protocols import Array, Block, ModelArrays, Rule, State
from calibayes.engines import computing
from calibayes.families import Product
from calibayes.families.joint_model import PRIOR
from calibayes.kernels.posterior import log_normalize
from calibayes.model.checked_rows import Reading, new_table, read_target
from calibayes.model.estimator import refuse_parts_of_rows
from calibayes.model.fitted import Fitted
from calibayes.model.predict import tempered_posterior
from calibayes.model.table_inputs import InMemory


@dataclass(frozen=True)
class Influence:
    """Change of the log loss of test rows when training rows, or groups of them, are left out.

    Attributes
    ----------
    values : (n,) array
        Log loss without the row or group, minus log loss with all rows: positive if the row is worth keeping. NaN if there
        is no model without it, such as for the only row of a class.
    loss : float
        Log loss of the test rows with all training rows.
    groups : tuple or None
        The n groups; None if single rows are left out.
    is_exact : bool
        Whether the values are those of models of the remaining rows; if not, updates of the training were repeated.

    Examples
    --------
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> GaussianNB(rule="ml").fit(X[::2], y[::2]).influence(X[::2], y[::2], X[1::2], y[1::2]).values.shape
    (75,)
    """

    values: Array
    loss: float
    groups: tuple[Any, ...] | None
    is_exact: bool

    def by_group(self) -> dict[Any, float]:
        """Group (or position of a row) -> value, least worth keeping first."""
        names = range(len(self.values)) if self.groups is None else self.groups
        order = np.argsort(self.values, kind="stable").tolist()
        return {names[i]: float(self.values[i]) for i in order}

    def __str__(self) -> str:
        kind = "row" if self.groups is None else "group"
        how = "exact" if self.is_exact else "approximate"
        lines = [(kind, "change of log loss without it")]
        lines += [(str(name), f"{value:+.6f}") for name, value in self.by_group().items()]
        return f"log loss {self.loss:.4f} with all rows; changes are {how}\n{shortened(lines, 10)}"


def influence(
    self: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, groups: Any = None, sample_weight: Any = None
) -> Influence:
    """Change of the log loss of test rows when each training row, or each group of rows, is left out.

    A generative model of ML or MAP is a function of sums over rows: the sums of the row are subtracted, which is exact up to
    what the encoders have learned (levels, bins and grids stay as they are). For calibrated models, and where something is
    hidden (components of a mixture, missing values under a full covariance), the row is subtracted from the sums from which
    the training started, and as many updates are made on the remaining rows; the loss is compared with that after the same
    number of updates on all rows. That is approximate, because a fit without the row may stop at another update.

    Parameters
    ----------
    X, y, sample_weight
        The rows of `fit`. Closed forms accept some of them.
    X_test, y_test
        Rows that were not used in training.
    groups : (n,) labels, optional
        The group of each training row, such as its source: groups are left out as a whole. By default each row is left out.
        The time for each group is that of predicting the test rows and, unless the model is a closed form, of as many passes
        over the training rows as the model was trained for.

    Returns
    -------
    Influence
        Positive values are rows that are worth keeping; ``is_exact`` says whether they are exact.
    """
    raise TypeError(
        f"{type(self).__name__} is no function of sums over rows, so that rows can only be left out by fitting again: use a "
        "generative estimator such as NaiveBayes or GenerativeClassifier"
    )


# -- Loss of test rows when training rows are left out: closed forms by subtraction, others by replaying the calibration

MISSING_WEIGHT = 1e-6
"""Relative difference between the weight of the given rows and that of the training, from which on rows are missing."""


@dataclass(frozen=True)
class TrainedRows:
    """The rows of a fitted model, encoded, and test rows.

    Attributes
    ----------
    fitted : Fitted
    rows : Block
        The training rows.
    test : Block
    """

    fitted: Fitted
    rows: Block
    test: Block

    def loss(self, model: Product, parameters: ModelArrays) -> float:
        """Log loss of the test rows."""
        log_posterior = log_normalize(model.log_joint(self.test, parameters))[0]
        log_posterior = tempered_posterior(self.fitted, log_posterior)
        return -float(np.mean(log_posterior[np.arange(len(self.test.labels)), self.test.labels]))

    def only(self, positions: Array) -> Block:
        """Some training rows."""
        columns = {name: column[positions] for name, column in self.rows.columns.items()}
        weight = self.rows.weight[positions]
        return Block(columns, self.rows.labels[positions], weight, np.zeros(len(weight)))

    def _onehot(self, block: Block) -> Array:
        """The class weights of rows with labels, (n, k)."""
        return block.onehot(len(self.fitted.classes)) * block.weight[:, None]

    @cached_property
    def is_exact(self) -> bool:
        """Whether the model is a closed form of sums over these rows."""
        sums = self.fitted.model.data_sums(self.rows, self._onehot(self.rows))
        return self.fitted.rule.is_closed_form and self.fitted.is_additive and not sums["hidden"]

    def without(self, positions: Array) -> Fitted:
        """The closed form of the training rows without some; it has no parameters if these are too few."""
        if not len(positions):
            return self.fitted.closed_form(self.fitted.data_statistics)
        block = self.only(positions)
        removed = self.fitted.model.data_sums(block, self._onehot(block))["statistics"]
        return self.fitted.closed_form(difference(self.fitted, removed))

    def loss_without(self, positions: Array) -> float:
        """Log loss of the test rows without some training rows; NaN if there is no model of the others."""
        left = self.without(positions)
        return np.nan if left.parameters is None else self.loss(left.model, left.parameters)

    def loss_of_replay(self, positions: Array) -> float:
        """Log loss after as many updates of the rule on the rows without some; NaN if they are not possible."""
        left = self.without(positions)
        if left.statistics is None:
            return np.nan
        weight = self.rows.weight.copy()
        weight[positions] = 0.0
        replay = Replay(left.model, left.rule, self.rows, weight, self._is_of_lowest_soft_error)
        try:
            parameters = replay.parameters(left.statistics, self.fitted.n_iter)
        except FloatingPointError:
            return np.nan
        return self.loss(left.model, parameters)

    @cached_property
    def _is_of_lowest_soft_error(self) -> bool:
        """Whether the training used the state of the lowest soft error, and not that of the highest objective."""
        history, best = self.fitted.history, self.fitted.best_iter
        if history is None or best is None or not np.isfinite(history["objective"]).all():
            return False
        return bool(np.argmax(history["objective"]) != best and np.argmin(history["soft_error"]) == best)


class Proposal(NamedTuple):
    """A state, its scores of the rows, its objective, and the score of which the lowest is the best."""

    state: State
    log_joint: Array
    objective: float
    score: float


@dataclass(frozen=True)
class Replay:
    """The updates of a rule on encoded rows with given weights: no stop, no validation, all rows in one block."""

    model: Product
    rule: Rule
    rows: Block
    weight: Array
    by_soft_error: bool
    """Whether the best state is that of the lowest soft error; if not, that of the highest objective."""

    @cached_property
    def _onehot(self) -> Array:
        return self.rows.onehot(len(self.model.prior.layout.classes))

    def parameters(self, statistics: ModelArrays, updates: int) -> ModelArrays:
        """The parameters of the best state of some updates; these are fewer if no step raises the objective."""
        best = self._scored(self.rule.begin(self.model, statistics))
        for current in self._updated(best, updates):
            best = current if current.score <= best.score else best
        return best.state.parameters

    def _updated(self, current: Proposal, updates: int) -> Iterator[Proposal]:
        """The state after each update; fewer if the step control gives up."""
        control, size, step = self.rule.control, float(self.weight.sum()), None
        for update in range(1, updates + 1):
            posterior = np.exp(log_normalize(current.log_joint)[0])
            weights = self.rule.weights(self._onehot, posterior) * self.weight[:, None]
            direction = self.model.statistics(self.rows, weights, current.state.parameters)
            before, step, rejections = current, control.step(update, step), 0
            while step is not None:
                current = self._scored(self.rule.advance(self.model, before.state, direction, step, size)[0])
                if not control.guarded or current.objective >= before.objective:
                    break
                rejections += 1
                step = control.step(update, step, rejections)
            if step is None:
                return
            yield current

    def _scored(self, state: State) -> Proposal:
        log_joint = self.model.log_joint(self.rows, state.parameters)
        by_row = self.rule.objective(log_joint, self._onehot)
        objective = 0.0 if by_row is None else float(np.sum(self.weight * by_row))
        share = self.rule.shrink if self.rule.prior_weight is None else self.rule.prior_weight
        objective += share * self.model.log_prior(state.parameters)
        if not self.by_soft_error:
            return Proposal(state, log_joint, objective, -objective)
        posterior = np.exp(log_normalize(log_joint)[0])
        soft_error = float(np.sum(self.weight * (1.0 - np.sum(posterior * self._onehot, axis=1))))
        return Proposal(state, log_joint, objective, soft_error)


def influence_of_groups(
    self: Any, X: Any, y: Any, X_test: Any, y_test: Any, *, groups: Any = None, sample_weight: Any = None
) -> Influence:
    check_is_fitted(self, "fitted_")
    self.fitted_.learned()
    self.fitted_.refuse_shifted_priors()
    refuse_parts_of_rows(self)
    fitted: Fitted = self.fitted_
    how = Reading(self.class_weight, classes=fitted.classes, fewest_classes=1, reset=False)
    _, rows = InMemory(X, y, sample_weight).rows(self, None, how)
    block = Block(rows.encoded(fitted.binding), rows.codes, rows.weight, np.zeros(len(rows.codes)))
    trained = TrainedRows(fitted, block, _test_block(self, X_test, y_test))
    names, members = _groups(X, groups, new_table(self, X).n, rows.positions)
    with computing(self.engine, self.n_jobs):
        values = np.array(list(_changes(trained, members)))
    return Influence(values, trained.loss(fitted.model, fitted.learned()), names, trained.is_exact)


influence_of_groups.__doc__ = influence.__doc__


def _changes(trained: TrainedRows, members: list[Array]) -> Iterator[float]:
    """The change of the loss without each group of rows."""
    if trained.is_exact:
        before = trained.loss(trained.fitted.model, trained.fitted.learned())
        loss_without = trained.loss_without
    else:
        _require_statistics(trained)
        before = trained.loss_of_replay(np.zeros(0, dtype=int))
        loss_without = trained.loss_of_replay
    for positions in members:
        yield loss_without(positions) - before if len(positions) else 0.0


def _require_statistics(trained: TrainedRows) -> None:
    """Raises ValueError if the steps of the training cannot be repeated on these rows."""
    fitted = trained.fitted
    if fitted.statistics is None:
        raise ValueError(
            f"rule {fitted.rule.name!r} keeps no statistics, from which rows could be subtracted: use rule='rc', 'ml' or 'map'"
        )
    total, given = float(np.sum(fitted.data_statistics[PRIOR]["count"])), float(trained.rows.weight.sum())
    if abs(total - given) > MISSING_WEIGHT * total:
        raise ValueError(
            f"the rows have a total weight of {given:g}, those of the training {total:g}: a model that is no closed form needs "
            "all rows of `fit`"
        )


def _test_block(model: Any, X: Any, y: Any) -> Block:
    table = new_table(model, X)
    codes = read_target(y, unlabeled=False, classes=model.fitted_.classes, fewest_classes=1).codes
    check_consistent_length(codes, np.empty(table.n))
    return Block(model.fitted_.binding.encode(table), codes, np.ones(table.n), np.zeros(table.n))


def _groups(X: Any, groups: Any, n: int, kept: Array) -> tuple[tuple[Any, ...] | None, list[Array]]:
    """Names of the groups, None for single rows, and the positions of their rows among those of positive weight."""
    if groups is None:
        place = np.full(n, -1)
        place[kept] = np.arange(len(kept))
        return None, [place[i : i + 1][place[i : i + 1] >= 0] for i in range(n)]
    given = group_labels(X, groups, n)
    members: dict[Any, list[int]] = {}
    for number, row in enumerate(kept.tolist()):
        members.setdefault(given[row], []).append(number)
    return tuple(members), [np.array(rows) for rows in members.values()]
