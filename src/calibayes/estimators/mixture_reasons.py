"""Why this class, through a mixture: the log odds of an average as a sum over members and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibayes.core.protocols import Array
from calibayes.estimators.averaged import log_weights
from calibayes.estimators.explaining import Explanation, code_of, pairs
from calibayes.estimators.mixing import Mixing
from calibayes.kernels.posterior.averaging import pair_shares
from calibayes.tables.read import Table

TOGETHER = "columns together"
"""What a member says of columns that it does not take apart."""


class Reasoning(Mixing):
    """Reasons for the decisions of a mixture."""

    def explain(self, X: Any, against: Any = None) -> Explanation:
        """What speaks for the most probable class of each row.

        The difference of two averaged probabilities is the sum of the members' differences, and a difference of two
        numbers is their logarithmic mean times the difference of their logs. So the log odds of the mixture are exactly
        a sum of those of the members, each times the ratio of its logarithmic mean of the two classes' weighted
        probabilities to that of the mixture; and the log odds of a member are a sum over its columns (those of near rows as
        the columns come in, the most relevant first). A column's
        contribution is that sum over the members. Class frequencies, shifted ones too, are in "class prior"; members
        whose density is not a sum over columns contribute to "columns together", those that join two columns to a term
        with the names of both.

        Parameters
        ----------
        X : array or data frame of shape (n, d)
        against : label, optional
            The class to compare with; by default each row's second most probable one. Where it is the most probable
            one itself, the second most probable one is explained against it.

        Returns
        -------
        Explanation
            The contributions of a row sum to its log odds.
        """
        table = self._table(X)
        said = self._log_posteriors(table)
        chosen, other = pairs(self._averaged(said), code_of(against, self.classes_))
        rows, weighted = np.arange(table.n), said + log_weights(self._weights)[:, None, None]
        shares = pair_shares(weighted[:, rows, chosen], weighted[:, rows, other])
        constant = np.log(self.class_prior_)
        shift = getattr(self, "_shift", np.zeros(len(constant)))
        found = dict.fromkeys(("class prior", *table.names), np.zeros(table.n))
        found["class prior"] = (
            shares[-1] * (constant[chosen] - constant[other]) + shift[chosen] - shift[other]
        )
        for share, (name, model) in zip(shares[:-1], self.models_.items(), strict=True):
            for group, odds in _odds(name, model, table, chosen, other):
                found[group] = found.get(group, 0.0) + share * odds
        contributions = np.stack(list(found.values()), axis=1)
        return Explanation(tuple(found), contributions, self.classes_[chosen], self.classes_[other])


def _odds(name: str, model: Any, table: Table, chosen: Array, other: Array) -> list[tuple[str, Array]]:
    """The terms of one member's log odds."""
    if not hasattr(model, "_terms"):
        raise ValueError(f"member {name!r} ({type(model).__name__}) gives no reasons")
    names, terms = model._terms(table)
    rows, temperature = np.arange(table.n), getattr(model, "temperature_", 1.0)
    odds = (terms[rows, chosen] - terms[rows, other]) / temperature
    whole = len(names) == 2 and names[1] not in table.names
    return list(zip((names[0], TOGETHER) if whole else names, odds.T, strict=True))
