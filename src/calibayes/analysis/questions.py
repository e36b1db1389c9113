"""Which unknown cell of a row to ask for next: the expected fall of the loss once the cell is known.

For an unknown cell with possible values v, the model has p(v | known cells) and the posterior after each answer. The gain is
the loss of the posterior averaged over the answers, minus the average loss after the answer. For log loss that is the mutual
information of class and cell, given the known cells. It is never negative (Jensen's inequality).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.analysis.unknown_cells import FittedCells, cells_of
from calibayes.core.notices import counted, listed, shortened
from calibayes.core.protocols import Array
from calibayes.engines import computing
from calibayes.kernels.posterior import log_normalize
from calibayes.model.attributes import numpy_classes
from calibayes.model.decision import checked_costs, least_cost, most_probable
from calibayes.model.estimator import GenerativeEstimator
from calibayes.model.parameters import number
from calibayes.model.predict import tempered_posterior

UNLIKELY = 0.01
"""Probability of the answers to a question that are not considered when a decision is called settled."""


class DecisionLoss(NamedTuple):
    """The expected loss of a posterior: its entropy in nats, or with costs the cost of the best decision."""

    costs: Array | None

    def expected(self, log_posterior: Array) -> Array:
        """Expected loss of posteriors (..., k) whose probabilities are the model's: (...)."""
        posterior = np.exp(log_posterior)
        if self.costs is not None:
            return np.min(posterior @ self.costs, axis=-1)
        return -np.sum(posterior * np.where(posterior > 0, log_posterior, 0.0), axis=-1)

    def decisions(self, log_posterior: Array) -> Array:
        """The class that is decided, (n,) codes."""
        if self.costs is None:
            return most_probable(log_posterior)
        return least_cost(np.exp(log_posterior), self.costs)


@dataclass(frozen=True)
class Questions:
    """Expected gain of learning each unknown cell.

    Attributes
    ----------
    columns : tuple of str
        The d columns.
    gain : (n, d) array
        Expected fall of the loss when the cell becomes known; NaN where it is known or cannot be asked for.
    loss : (n,) array
        Expected loss with what is known now.
    is_settled : (n,) booleans
        Whether no likely combination of answers changes the decision; False if an unknown cell cannot be asked for.
    unit : str
        "nats" of log loss, or "cost".
    left_out : mapping
        Column that cannot be asked for -> why.

    Examples
    --------
    >>> import numpy as np
    >>> from calibayes import GaussianNB
    >>> from sklearn.datasets import load_iris
    >>> model = GaussianNB(rule="ml").fit(*load_iris(return_X_y=True))
    >>> model.questions(np.array([[6.0, 3.0, np.nan, np.nan]])).best
    ['x3']
    """

    columns: tuple[str, ...]
    gain: Array
    loss: Array
    is_settled: Array
    unit: str = "nats"
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> list[str | None]:
        """For each row the column of the largest gain; None if no cell can be asked for."""
        return [
            None if np.isnan(row).all() else self.columns[int(np.nanargmax(row))]
            for row in self.gain.reshape(-1, len(self.columns))
        ]

    def overall(self) -> dict[str, float]:
        """Column -> mean gain over the rows in which it is unknown, largest first."""
        asked = [j for j in range(len(self.columns)) if not np.isnan(self.gain[:, j]).all()]
        means = {self.columns[j]: float(np.nanmean(self.gain[:, j])) for j in asked}
        return dict(sorted(means.items(), key=lambda entry: -entry[1]))

    def __str__(self) -> str:
        lines = [("row", f"expected loss ({self.unit})", "ask for", "gain", "settled")]
        for i, best in enumerate(self.best):
            gain = "" if best is None else f"{np.nanmax(self.gain[i]):.4f}"
            settled = "yes" if self.is_settled[i] else "no"
            lines.append((str(i), f"{self.loss[i]:.4f}", best or "", gain, settled))
        if not self.left_out:
            return shortened(lines)
        columns = counted(len(self.left_out), "column")
        reasons = [f"{name} ({why})" for name, why in self.left_out.items()]
        return f"{shortened(lines)}\n{columns} cannot be asked for: {listed(reasons)}"


def questions(self: Any, X: Any, *, costs: Array | None = None, unlikely: float = UNLIKELY) -> Questions:
    """Expected gain of learning each unknown cell of the rows, one at a time.

    Unknown cells are integrated out of the model. The values that a cell may have, and their probabilities given the known
    cells, are those of the model: levels and bins are summed, numbers are integrated by Gauss-Legendre quadrature. For log
    loss the gain is the mutual information of class and cell given the known cells. It is defined by the model: for
    classifiers that have p(x, class), and as good as that density.

    Parameters
    ----------
    X : array or data frame of shape (n, d)
        Unknown cells are missing values. A missing value is unknown here even in columns in which the model has learned
        from missing values; "it is missing" is one of the answers then.
    costs : (k, k) array, optional
        ``costs[i, j]`` is the cost of deciding class j when i is true; the gain is then in expected cost. By default it is
        in log loss (nats), even if the estimator has ``costs``.
    unlikely : float, default=0.01
        Answers to each question with this total probability, the least probable ones, are ignored by ``is_settled``.

    Returns
    -------
    Questions
        It prints as a table; ``best`` is the column to ask for, row by row.
    """
    cells, loss = unknown_cells(self, X), DecisionLoss(costs_of(self, costs))
    number("unlikely", unlikely, 0.0, 1.0)
    n, d = cells.known.shape
    log_posterior = posterior_of(cells, cells.log_joint)
    gain, odds = np.full((n, d), np.nan), OddsRange.of(log_posterior, loss)
    with computing(getattr(self, "engine", None), self.n_jobs):
        for j in range(d):
            for rows, log_joint in cells.answers(j):
                gain[rows, j] = gains(cells, log_joint, loss)
                odds.widen(cells, rows, log_joint, unlikely)
    is_settled = odds.is_settled() & ~(np.isnan(gain) & ~cells.known).any(axis=1)
    unit = "nats" if costs is None else "cost"
    return Questions(cells.names, gain, loss.expected(log_posterior), is_settled, unit, dict(cells.left_out))


def unknown_cells(model: Any, X: Any) -> FittedCells:
    """The unknown cells of the rows of a table, or of one row that is a mapping column -> value."""
    if not isinstance(model, GenerativeEstimator):
        raise TypeError(
            f"{type(model).__name__} has no density of its columns, so that the values of an unknown cell have no probabilities: "
            "use a generative estimator such as NaiveBayes, TreeAugmentedNB or GenerativeClassifier"
        )
    return cells_of(model, X)


def costs_of(model: Any, costs: Array | None) -> Array | None:
    """The costs as a checked array, None if there are none."""
    return None if costs is None else checked_costs(costs, len(model.classes_))


def posterior_of(cells: FittedCells, log_joint: Array) -> Array:
    """log p(class | x) at the temperature of the model, from log p(x, class), (n, k)."""
    return tempered_posterior(cells.fitted, log_normalize(log_joint)[0])


def gains(cells: FittedCells, log_joint: Array, loss: DecisionLoss) -> Array:
    """The expected fall of the loss, (m,), from log p(known cells, value, class), (m, v, k)."""
    probability, log_after = answered(cells, log_joint)
    before = np.einsum("mv,mvk->mk", probability, np.exp(log_after))
    with np.errstate(divide="ignore"):
        loss_before = loss.expected(np.log(before))
    after = np.sum(probability * loss.expected(log_after), axis=1)
    return np.maximum(loss_before - after, 0.0)  # rounding may leave -1e-17


def answered(cells: FittedCells, log_joint: Array) -> tuple[Array, Array]:
    """p(value | known cells), (m, v), and the log posterior after each value, (m, v, k)."""
    m, v, k = log_joint.shape
    log_evidence: Array = np.logaddexp.reduce(log_joint, axis=2)
    probability = np.exp(log_evidence - np.logaddexp.reduce(log_evidence, axis=1, keepdims=True))
    flat = np.where((log_evidence == -np.inf)[..., None], 0.0, log_joint).reshape(m * v, k)
    return probability, posterior_of(cells, flat).reshape(m, v, k)


@dataclass(frozen=True)
class OddsRange:
    """Between which bounds log odds against the decided class may move, if all unknown cells become known.

    The change by each cell is taken given the cells that are known now, and the changes are added: for columns that are
    independent given the class that is exact.
    """

    loss: DecisionLoss
    decided: Array
    """Codes of the decisions, (n,)."""
    low: Array
    high: Array
    """Bounds of log p(class) - log p(decided class), (n, k)."""

    @classmethod
    def of(cls, log_posterior: Array, loss: DecisionLoss) -> OddsRange:
        """The odds before any answer."""
        decided = loss.decisions(log_posterior)
        odds = against(log_posterior, decided)
        return cls(loss, decided, odds, odds.copy())

    def widen(self, cells: FittedCells, rows: Array, log_joint: Array, unlikely: float) -> None:
        """Add what the likely answers to one question may change."""
        probability, log_after = answered(cells, log_joint)
        now = against(posterior_of(cells, cells.log_joint[rows]), self.decided[rows])
        change = against(log_after, self.decided[rows, None]) - now[:, None, :]
        ignored = ~likely(probability, unlikely)[..., None]
        self.low[rows] += np.min(np.where(ignored, np.inf, change), axis=1)
        self.high[rows] += np.max(np.where(ignored, -np.inf, change), axis=1)

    def is_settled(self) -> Array:
        """Whether the decision has the least expected cost anywhere between the bounds, (n,) booleans."""
        costs = 1.0 - np.eye(self.low.shape[1]) if self.loss.costs is None else self.loss.costs
        excess = costs.T[self.decided][:, :, None] - costs[None]  # (n, class, other decision)
        with np.errstate(over="ignore", invalid="ignore"):
            worst = np.where(excess > 0, np.exp(self.high)[..., None], np.exp(self.low)[..., None]) * excess
        return np.asarray((np.where(excess == 0, 0.0, worst).sum(axis=1) <= 0).all(axis=1))


def against(log_posterior: Array, decided: Array) -> Array:
    """log odds of each class against the decided one, (..., k)."""
    codes = np.broadcast_to(decided, log_posterior.shape[:-1])
    reference = np.take_along_axis(log_posterior, codes[..., None], axis=-1)
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(log_posterior), -np.inf, log_posterior - reference)


def likely(probability: Array, unlikely: float) -> Array:
    """The values without the least probable ones of total probability ``unlikely``, (m, v) booleans."""
    order = np.argsort(probability, axis=1, kind="stable")
    below = np.cumsum(np.take_along_axis(probability, order, axis=1), axis=1)
    keep = np.empty(probability.shape, dtype=bool)
    np.put_along_axis(keep, order, below > unlikely, axis=1)
    keep |= probability == probability.max(axis=1, keepdims=True)
    return keep & (probability > 0)


# -- A questionnaire: asks for one cell of a row after another, until the decision is settled ----------------

COMPLETE = "all cells that can be asked for are known"
SETTLED = "no likely combination of answers changes the decision"
NOT_WORTH = "no single answer is expected to gain more than it costs"


class Questionnaire:
    """The cells of one row, asked for one after another, the most informative first.

    `next` names the column to ask for, or returns None if it is enough; ``stopped_because`` says why. `answer` notes the
    value. The model is not changed.

    Parameters
    ----------
    model : fitted classifier with p(x, class)
    known : mapping, optional
        Column -> value of the cells that are known from the beginning.
    costs : (k, k) array, optional
        ``costs[i, j]`` is the cost of deciding class j when i is true. Gains are then in expected cost; by default in nats.
    ask_costs : float or mapping, optional
        What asking costs, in the unit of the gains: of every column, or column -> cost; columns that are not named cost
        nothing. By default questions go on until the decision is settled.
    unlikely : float, default=0.01
        Answers to each question with this total probability, the least probable ones, are ignored when the decision is
        called settled. With 0 all values of levels count.

    Examples
    --------
    >>> from calibayes import NaiveBayes
    >>> from calibayes.datasets import load_penguins
    >>> from calibayes.trust import Questionnaire
    >>> X, y = load_penguins(return_X_y=True)
    >>> row = Questionnaire(NaiveBayes(rule="ml").fit(X, y), {"sex": "male"})
    >>> row.next()
    'island'
    """

    def __init__(
        self,
        model: Any,
        known: Mapping[Any, Any] | None = None,
        *,
        costs: Array | None = None,
        ask_costs: float | Mapping[Any, float] | None = None,
        unlikely: float = UNLIKELY,
    ) -> None:
        check_is_fitted(model)
        self.model = model
        self.costs = costs_of(model, costs)
        self.unlikely = unlikely
        self.answers: dict[str, Any] = {}
        """Column -> value of the known cells, in the order of the answers."""
        self.stopped_because = ""
        """Why `next` returned None."""
        self._asked: set[str] = set()
        self.columns: tuple[str, ...] = unknown_cells(model, {}).names
        self.ask_costs = self._costs_by_column(ask_costs)
        for column, value in (known or {}).items():
            self.answer(column, value)

    def next(self) -> str | None:
        """The column to ask for, None if it is enough."""
        net, gain = self._net_gains()
        open_columns = ~np.isnan(net)
        if not open_columns.any():
            self.stopped_because = COMPLETE
        elif self.questions().is_settled[0]:
            self.stopped_because = SETTLED
        elif self.ask_costs is not None and not (net[open_columns] > 0).any():
            self.stopped_because = NOT_WORTH
        else:
            self.stopped_because = ""
            # Equal net gains, such as 0 where no single answer changes the decision: by mutual information.
            keys = [-np.where(open_columns, values, -np.inf) for values in (gain, net)]
            return self.columns[int(np.lexsort(keys)[0])]
        return None

    def answer(self, column: Any, value: Any) -> None:
        """Note the value of a cell. None says that it cannot be known: it is not asked for again.

        Raises ValueError if there is no such column, or the value cannot be one of it.
        """
        name = self._name(column)
        given = {**self.answers, name: value} if value is not None else self.answers
        unknown_cells(self.model, given)  # raises an error if the value cannot be read
        self.answers = dict(given)
        self._asked.add(name)

    def questions(self) -> Questions:
        """The gain of each question with what is known now."""
        return self.model.questions(self.answers, costs=self.costs, unlikely=self.unlikely)

    def predict_proba(self) -> Array:
        """p(class | known cells), (k,)."""
        return np.exp(self._log_posterior()[0])

    def decision(self) -> Any:
        """The class that is decided with what is known now: the most probable one, or the one of lowest expected cost."""
        return numpy_classes(self.model)[DecisionLoss(self.costs).decisions(self._log_posterior())[0]]

    def _log_posterior(self) -> Array:
        cells = unknown_cells(self.model, self.answers)
        return posterior_of(cells, cells.log_joint)

    def _net_gains(self) -> tuple[Array, Array]:
        """Gains minus the costs of asking, and gains in nats, (d,) each; NaN where no question is left."""
        found = self.questions().gain[0]
        asked = np.isin(self.columns, sorted(self._asked))
        nats = found if self.costs is None else self.model.questions(self.answers).gain[0]
        price = np.zeros(len(found)) if self.ask_costs is None else self.ask_costs
        return np.where(asked, np.nan, found - price), nats

    def _costs_by_column(self, given: float | Mapping[Any, float] | None) -> Array | None:
        if given is None:
            return None
        if isinstance(given, Mapping):
            named = {self._name(column): cost for column, cost in given.items()}
            return np.array([number("ask_costs", named.get(name, 0.0), 0.0, 1e300) for name in self.columns])
        return np.full(len(self.columns), number("ask_costs", given, 0.0, 1e300))

    def _name(self, column: Any) -> str:
        """The name of a column that is given by name or position."""
        if column in self.columns:
            return str(column)
        is_position = isinstance(column, int | np.integer) and not isinstance(column, bool)
        if is_position and 0 <= column < len(self.columns):
            return self.columns[int(column)]
        raise ValueError(f"there is no column {column!r}; the columns are {listed(self.columns)}")
