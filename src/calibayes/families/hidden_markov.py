"""Hidden Markov models: sequences of symbols that hidden states emit, by expectation maximization and every rule on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array

from calibayes.core import verify
from calibayes.core.protocols import Array, Arrays, Layout, ValidStatistics
from calibayes.families.counts import floored, keep_nonnegative
from calibayes.families.density import UNBOUND
from calibayes.families.markov_chain import (
    require_alpha_or_prior,
    require_one_column,
    require_pseudo_count,
    require_whole_number,
)
from calibayes.families.priors import Dirichlet
from calibayes.kernels import level_counts

NAMES = ("initial", "transition", "emission")
"""Names of the statistics, and after "log_" of the parameters."""
SEGMENT = 1.0
"""How far the start prefers for each state its own part of a sequence, in log odds."""


@dataclass(frozen=True)
class HiddenMarkov:
    """Hidden Markov model: a chain of hidden states, each of which emits symbols by its own probabilities, in each class.

    The statistics are expected counts of initial states, transitions and emitted symbols given the symbols of a row
    (forward-backward algorithm, Rabiner 1989), times its class weight: maximum likelihood is expectation maximization
    (Baum-Welch), and other rules use the expected counts of their weights. A gap, and a symbol that did not occur in
    training, is summed over. Training starts from shares of the states that prefer, for each state, some symbols by random
    numbers and its own part of the sequence. The density is that of the symbols given the length.

    Parameters
    ----------
    states : int, default=3
        Number of hidden states of each class.
    alpha : float, default=0
        Pseudo-count of each initial state, transition and symbol.
    prior : Dirichlet, optional
        Prior by equivalent sample size instead of ``alpha``, of each distribution.
    seed : int, default=0
        Of the random numbers of the start.

    Examples
    --------
    >>> from calibayes.sequences import SequenceClassifier
    >>> X = ["aaabbb", "aabbbb", "aaaabb", "ababab", "bababa", "abbaba"]
    >>> y = ["change", "change", "change", "mixed", "mixed", "mixed"]
    >>> model = SequenceClassifier(family=HiddenMarkov(states=2, alpha=0.1), rule="ml").fit(X, y)
    >>> model.predict(["aaaaabbb", "abababab"])
    array(['change', 'mixed'], dtype='<U6')
    """

    states: int = 3
    alpha: float = 0.0
    prior: Dirichlet | None = None
    seed: int = 0
    layout: Layout = field(default=UNBOUND, repr=False, compare=False)

    reads = "sequences"

    def __post_init__(self) -> None:
        require_whole_number("states of a HiddenMarkov", self.states, 1)
        require_whole_number("seed of a HiddenMarkov", self.seed, 0)
        require_pseudo_count("alpha of a HiddenMarkov", self.alpha)
        require_alpha_or_prior(self)

    @property
    def _symbols(self) -> int:
        return self.layout.levels[0]

    @property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape of the statistics."""
        k, s = len(self.layout.classes), self.states
        return dict(zip(NAMES, ((k, s), (k, s, s), (k, s, self._symbols)), strict=True))

    @property
    def size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self._shapes.values())

    def bind(self, layout: Layout) -> Self:
        require_one_column(self, layout)
        return replace(self, layout=layout)

    def prepare(self, start: Arrays, pooled: Arrays | None = None) -> Self:
        return self

    def has_hidden(self, columns: Array) -> bool:
        return self.states > 1

    # -- statistics ----------------------------------------------------------------------------------------------------

    def statistics(self, columns: Array, weights: Array, parameters: Arrays | None = None) -> Arrays:
        rows = _rows(columns, self._symbols)
        if parameters is None:
            shares = self._start_shares(rows)
            by_class = [_counts(rows, shares, (shares[:-1], shares[1:]), weight) for weight in weights.T]
        else:
            models = self._models(parameters)
            by_class = [
                _expected_counts(rows, model, weight) for model, weight in zip(models, weights.T, strict=True)
            ]
        return {
            name: np.stack(counts) for name, counts in zip(NAMES, zip(*by_class, strict=True), strict=True)
        }

    def _start_shares(self, rows: CodedSequences) -> Array:
        """Shares of the states at each position before anything is learned, (length, n, states)."""
        preferred = np.random.default_rng(self.seed).normal(size=(self._symbols, self.states))
        logits = np.concatenate([preferred, np.zeros((1, self.states))])[rows.codes]
        segment = np.arange(len(rows.codes))[:, None] * self.states // np.maximum(rows.lengths, 1)
        logits += SEGMENT * (segment[:, :, None] == np.arange(self.states))
        shares = np.exp(logits)
        return np.asarray(shares / shares.sum(axis=2, keepdims=True) * rows.goes_on[:, :, None])

    def _models(self, parameters: Arrays) -> Iterator[tuple[Array, ...]]:
        """Initial, transition and emission probabilities of each class."""
        return zip(*(np.exp(parameters[f"log_{name}"]) for name in NAMES), strict=True)

    # -- parameters and density ----------------------------------------------------------------------------------------

    def _pseudo_count(self, name: str) -> float:
        levels = self._symbols if name == "emission" else self.states
        return self.alpha if self.prior is None else self.prior.pseudo_count(levels)

    def parameters(self, statistics: Arrays) -> Arrays:
        return {f"log_{name}": _log_shares(statistics[name], self._pseudo_count(name)) for name in NAMES}

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        return np.asarray(self._terms(columns, parameters).sum(axis=2))

    def position_terms(self, columns: Array, parameters: Arrays) -> Array:
        """log p(symbol | symbols before it, class) of each position, (n, k, length); 0 at gaps."""
        terms, codes = self._terms(columns, parameters), np.asarray(columns)
        return np.where(((codes >= 0) & (codes < self._symbols))[:, None], terms, 0.0)

    def _terms(self, columns: Array, parameters: Arrays) -> Array:
        """`position_terms`, with rounding errors at gaps."""
        rows = _rows(columns, self._symbols)
        terms = np.empty((len(rows.order), len(self.layout.classes), len(rows.codes)))
        for c, model in enumerate(self._models(parameters)):
            terms[rows.order, c] = np.log(_forward(rows, model)[1]).T
        return terms

    def keep_valid(self, current: Arrays, proposed: Arrays) -> ValidStatistics:
        """An expected count that would be negative keeps its value."""
        return keep_nonnegative(current, proposed)

    # -- abilities -----------------------------------------------------------------------------------------------------

    def conjugate(self) -> Self:
        return self if self.alpha or self.prior else replace(self, prior=Dirichlet())

    def exact(self) -> Self:
        return self

    def log_prior(self, parameters: Arrays) -> float:
        return sum(self._pseudo_count(name) * float(parameters[f"log_{name}"].sum()) for name in NAMES)

    def occurrences(self, statistics: Arrays) -> Array:
        return np.asarray(statistics["emission"].sum(axis=(0, 1)))

    def recode(self, statistics: Arrays, codes: Sequence[Array], levels: Sequence[int]) -> Arrays:
        every = [np.arange(self.states), np.asarray(codes[0])]
        emission = level_counts.recode_table(statistics["emission"], every, (self.states, levels[0]))
        return {**statistics, "emission": emission}

    def verify(self) -> None:
        self.layout.verify()
        if self.layout.classes:
            require_one_column(self, self.layout)

    def verify_parameters(self, parameters: Arrays) -> None:
        shapes = {f"log_{name}": shape for name, shape in self._shapes.items()}
        verify.require_arrays("parameters", parameters, shapes)
        for name, shape in shapes.items():
            verify.require_log_probabilities(name, parameters[name], shape)

    def verify_statistics(self, statistics: Arrays) -> None:
        verify.require_arrays("statistics", statistics, self._shapes, least=0.0)


# -- The forward-backward algorithm for one class, all rows at once; positions are the first axis -------------------------


class CodedSequences(NamedTuple):
    """Codes of symbols, position by position, the longest rows first: those that have a position are the first ones."""

    codes: Array
    """(length, n); the number of symbols at a gap and after the end."""
    lengths: Array
    """Positions up to the last known symbol, (n,), descending."""
    order: Array
    """The number of each row in the table, (n,)."""
    symbols: int

    @property
    def goes_on(self) -> Array:
        """Whether a position is not after the end, (length, n)."""
        return np.arange(len(self.codes))[:, None] < self.lengths

    @property
    def active(self) -> list[int]:
        """Number of rows that have each position."""
        return self.goes_on.sum(axis=1).tolist()


def _rows(columns: Array, symbols: int) -> CodedSequences:
    codes = np.asarray(columns, dtype=np.int64).T
    codes = np.where((codes >= 0) & (codes < symbols), codes, symbols)
    places = np.arange(1, len(codes) + 1)[:, None]
    lengths = np.max(np.where(codes < symbols, places, 0), axis=0, initial=0)
    order = np.argsort(-lengths, kind="stable")
    return CodedSequences(codes[:, order], lengths[order], order, symbols)


def _log_shares(count: Array, pseudo_count: float) -> Array:
    """Logarithms of the shares of counts along the last axis."""
    count = count + pseudo_count
    count = floored(count, count.sum(axis=-1, keepdims=True), pseudo_count)
    return np.asarray(np.log(count) - np.log(count.sum(axis=-1, keepdims=True)))


def _emitted(emission: Array) -> Array:
    """Probability of each symbol in each state, (symbols + 1, states); that of a gap is 1."""
    return np.concatenate([emission.T, np.ones((1, len(emission)))])


def _forward(rows: CodedSequences, model: tuple[Array, ...]) -> tuple[Array, Array]:
    """Posterior of the state given the symbols so far (length, n, states), and p(symbol | symbols before) (length, n).

    After the end of a row they are 0 and 1.
    """
    (initial, transition, emission), shape = model, rows.codes.shape
    emitted, filtered, scale = _emitted(emission), np.zeros((*shape, len(initial))), np.ones(shape)
    predicted = np.broadcast_to(initial, (shape[1], len(initial)))
    for t, n in enumerate(rows.active):
        joint = predicted[:n] * emitted[rows.codes[t, :n]]
        joint.sum(axis=1, out=scale[t, :n])
        np.divide(joint, scale[t, :n, None], out=filtered[t, :n])
        predicted = filtered[t, :n] @ transition
    return filtered, scale


def _expected_counts(
    rows: CodedSequences, model: tuple[Array, ...], weight: Array
) -> tuple[Array, Array, Array]:
    """Expected initial states, transitions and emissions under a model, times the weights of the rows (n,)."""
    filtered, scale = _forward(rows, model)
    transition, emitted = model[1], _emitted(model[2])
    states, right, after = np.zeros(filtered.shape), np.zeros(filtered.shape), np.ones(filtered.shape[1:])
    for t, n in reversed(list(enumerate(rows.active))):
        np.multiply(filtered[t, :n], after[:n], out=states[t, :n])
        np.multiply(emitted[rows.codes[t, :n]], after[:n] / scale[t, :n, None], out=right[t, :n])
        after[:n] = right[t, :n] @ transition.T
    initial, pairs, emission = _counts(rows, states, (filtered[:-1], right[1:]), weight)
    return initial, transition * pairs, emission


def _counts(
    rows: CodedSequences, states: Array, pairs: tuple[Array, Array], weight: Array
) -> tuple[Array, Array, Array]:
    """Sums over the positions of all rows, from the posterior of their states (length, n, states).

    The product of the two arrays of ``pairs`` (length - 1, n, states) is that of neighboring states. Both posteriors are 0
    after the end of a row.
    """
    count, weight = states.shape[2], weight[rows.order]
    initial = weight @ states[0]
    left, right = ((pairs[0] * weight[:, None]).reshape(-1, count), pairs[1].reshape(-1, count))
    emission = _by_symbol(rows) @ (states * weight[:, None]).reshape(-1, count)
    return initial, left.T @ right, emission.T


def _by_symbol(rows: CodedSequences) -> csr_array:
    """Indicators of the positions of each symbol, (symbols, length * n)."""
    codes, symbols = rows.codes.ravel(), rows.symbols
    known = np.flatnonzero(codes < symbols)
    return csr_array((np.ones(len(known)), (codes[known], known)), shape=(symbols, len(codes)))
