"""A questionnaire: asks for one cell of a row after another, until the decision is settled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes.core.protocols import Array
from calibayes.estimators.interface.device_input import numpy_classes
from calibayes.estimators.interface.parameters import number
from calibayes.estimators.interface.trust.questions import (
    UNLIKELY,
    Loss,
    Questions,
    costs_of,
    posterior_of,
    unknown_cells,
)

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
            order = np.lexsort(
                (-np.where(open_columns, gain, -np.inf), -np.where(open_columns, net, -np.inf))
            )
            return self.columns[int(order[0])]
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
        found: Questions = self.model.questions(self.answers, costs=self.costs, unlikely=self.unlikely)
        return found

    def predict_proba(self) -> Array:
        """p(class | known cells), (k,)."""
        return np.exp(self._log_posterior()[0])

    def decision(self) -> Any:
        """The class that is decided with what is known now: the most probable one, or the one of lowest expected cost."""
        return numpy_classes(self.model)[Loss(self.costs).decisions(self._log_posterior())[0]]

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
            return np.array([_ask_cost(named.get(name, 0.0)) for name in self.columns])
        return np.full(len(self.columns), _ask_cost(given))

    def _name(self, column: Any) -> str:
        """The name of a column that is given by name or position."""
        if column in self.columns:
            return str(column)
        is_position = isinstance(column, int | np.integer) and not isinstance(column, bool)
        if is_position and 0 <= column < len(self.columns):
            return self.columns[int(column)]
        raise ValueError(f"there is no column {column!r}; the columns are {', '.join(self.columns)}")


def _ask_cost(given: Any) -> float:
    return number("ask_costs", given, 0.0, 1e300)
