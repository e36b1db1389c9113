"""Explanations of sequences: the log odds of a decision as a sum over the positions of a sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from calibayes.analysis.explanation import code_of, compared_classes
from calibayes.core.abilities import PositionTerms
from calibayes.core.notices import counted, listed, printable
from calibayes.core.protocols import Array
from calibayes.encoders.sequence_codes import Sequences
from calibayes.engines import computing
from calibayes.model import predict
from calibayes.model.attributes import fitted_of, numpy_classes
from calibayes.model.checked_rows import new_table


@dataclass(frozen=True)
class PositionExplanation:
    """Contributions of the positions of sequences to the log odds of one class against another.

    The contribution of a position is log p(symbol | symbols before it, chosen) - log p(symbol | symbols before it, other).

    Attributes
    ----------
    column : str
        The column of the sequences.
    symbols : tuple of tuples of str
        The symbols of each row; None at a gap.
    contributions : (n, length) array
        0 at gaps and for symbols that did not occur in training, NaN after the end of a sequence.
    rest : (n,) array
        The part of the log odds that the class prior and other columns have.
    chosen, other : (n,) arrays
        The class that is explained and the one it is compared with.

    Examples
    --------
    >>> from calibayes.sequences import MarkovChain, SequenceClassifier
    >>> chain = MarkovChain(order=1, alpha=1.0, back_off=1.0)
    >>> model = SequenceClassifier(family=chain, rule="ml").fit(["abab", "baba", "aabb", "bbaa"], [0, 0, 1, 1])
    >>> explained = model.explain_positions(["aabb"])
    >>> explained.symbols, explained.contributions.round(2).tolist()
    ((('a', 'a', 'b', 'b'),), [[0.0, 1.61, -0.85, 1.61]])
    """

    column: str
    symbols: tuple[tuple[str | None, ...], ...]
    contributions: Array
    rest: Array
    chosen: Array
    other: Array

    @property
    def log_odds(self) -> Array:
        """log p(chosen | x) - log p(other | x), (n,)."""
        return np.asarray(self.rest + np.nansum(self.contributions, axis=1))

    def overall(self) -> Array:
        """Mean absolute contribution of each position over the rows that have it, (length,)."""
        has_position = ~np.isnan(self.contributions)
        return np.asarray(
            np.nansum(np.abs(self.contributions), axis=0) / np.maximum(has_position.sum(axis=0), 1)
        )

    def frame(self, backend: Any = "pandas") -> Any:
        """A data frame with a line for each position of each row: row and position from 0 on, symbol, contribution."""
        row, position = np.nonzero(~np.isnan(self.contributions))
        symbols = [self.symbols[i][t] for i, t in zip(row.tolist(), position.tolist(), strict=True)]
        contributions = self.contributions[row, position]
        columns = {"row": row, "position": position, "symbol": symbols, "contribution": contributions}
        return nw.from_dict(columns, backend=backend).to_native()

    def __repr__(self) -> str:
        sizes = self.overall()
        largest = ", ".join(f"{t}: {sizes[t]:.3g}" for t in np.argsort(-sizes, kind="stable")[:5])
        rows = counted(len(self.chosen), "row")
        return f"Explanation of {rows} by positions of {printable(self.column)}; mean absolute contributions: {largest}"


def explain_positions(
    self: Any, X: Any, column: str | None = None, against: Any = None
) -> PositionExplanation:
    """Contributions of the positions of a column of sequences to the log odds of the most probable class.

    Parameters
    ----------
    X : sequences, or a table with a column of sequences
    column : str, optional
        Name of the column; it may be omitted if there is one.
    against : label, optional
        The class to compare with; by default each row's second most probable one. For rows whose most probable
        class it is, the second most probable one is explained against it.

    Returns
    -------
    PositionExplanation
        Contributions and the rest sum to the log odds (before any temperature).
    """
    fitted, classes = fitted_of(self), numpy_classes(self)
    table = new_table(self, X)
    name, encoder = _column_of_sequences(fitted, column)
    with computing(getattr(self, "engine", None), self.n_jobs) as engine:
        log_joint = predict.log_joint(fitted, table, engine)
        chosen, other = compared_classes(log_joint, code_of(against, classes))
        terms = fitted.model.families[name].position_terms(encoder.encode(table), fitted.learned()[name])
    rows, symbols = np.arange(table.n), encoder.split(table)
    contributions = terms[rows, chosen] - terms[rows, other]
    ends = np.array([len(sequence) for sequence in symbols])
    length = max(int(ends.max(initial=0)), 1)
    contributions = np.where(np.arange(length) < ends[:, None], contributions[:, :length], np.nan)
    rest = log_joint[rows, chosen] - log_joint[rows, other] - np.nansum(contributions, axis=1)
    shown = fitted.binding.columns(name)[0]
    return PositionExplanation(shown, symbols, contributions, rest, classes[chosen], classes[other])


def _column_of_sequences(fitted: Any, column: str | None) -> tuple[str, Sequences]:
    """Family and encoder of a column of sequences. Raises ValueError if there is none, or several and no name."""
    families, encoders = fitted.model.families, fitted.binding.encoders
    names = [name for name, family in families.items() if isinstance(family, PositionTerms)]
    by_column = {fitted.binding.columns(name)[0]: name for name in names}
    if not names:
        raise ValueError("the model has no column of sequences, so there are no positions to explain")
    if column is None and len(names) > 1:
        raise ValueError(f"the model has several columns of sequences: name one of {listed(list(by_column))}")
    if column is not None and column not in by_column:
        raise ValueError(f"{column!r} is no column of sequences; those are {listed(list(by_column))}")
    name = names[0] if column is None else by_column[column]
    return name, encoders[name]
