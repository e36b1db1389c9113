"""Sums of expressions: those that are linear in the same terms become one product of matrices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from calibayes.core.protocols import Array
from calibayes.export import expressions as ex


class FlatSum(NamedTuple):
    """A sum of weighted expressions and a constant."""

    terms: tuple[ex.Expression, ...]
    weights: tuple[float, ...]
    constant: float

    @property
    def is_linear(self) -> bool:
        """Whether all terms are stored values (`Once`), so that a product of matrices can replace the sum."""
        return len(self.terms) > 1 and all(isinstance(term, ex.Once) for term in self.terms)


def flattened(node: ex.Sum) -> FlatSum:
    """A sum with the terms of the sums in it, constants added, and constant factors taken out of the terms."""
    terms, weights, constant = [], [], 0.0
    pending: list[ex.Expression] = list(node.terms)[::-1]
    while pending:
        term = pending.pop()
        if isinstance(term, ex.Sum):
            pending.extend(term.terms[::-1])
        elif isinstance(term, ex.Constant):
            constant += term.value
        else:
            inner, weight = _weighted(term)
            terms.append(inner)
            weights.append(weight)
    return FlatSum(tuple(terms), tuple(weights), constant)


def _weighted(term: ex.Expression) -> tuple[ex.Expression, float]:
    """A term without a constant factor, and the factor."""
    if not isinstance(term, ex.Arithmetic) or term.operator != "*":
        return term, 1.0
    left, right = term.left, term.right
    is_weighted = isinstance(left, ex.Once) and isinstance(right, ex.Constant) and not right.is_missing
    return (left, right.value) if is_weighted and isinstance(right, ex.Constant) else (term, 1.0)


def groups_with_common_terms(sums: Sequence[FlatSum]) -> list[list[int]]:
    """Positions of linear sums, grouped so that sums of different groups have no term in common."""
    group_of: dict[ex.Expression, int] = {}
    members: defaultdict[int, list[int]] = defaultdict(list)
    terms: defaultdict[int, list[ex.Expression]] = defaultdict(list)
    for position, flat in enumerate(sums):
        joined = {group_of[term] for term in flat.terms if term in group_of}
        for old in joined:
            members[position] += members.pop(old)
            terms[position] += terms.pop(old)
        members[position].append(position)
        terms[position] += [term for term in flat.terms if term not in group_of]
        group_of.update(dict.fromkeys(terms[position], position))
    return list(members.values())


class LinearMap(NamedTuple):
    """Sums that are linear in the same terms: ``weights @ terms + constants``."""

    terms: list[ex.Expression]
    weights: Array
    """(number of sums, number of terms)."""
    constants: Array
    """(number of sums,)."""
    uses: Array
    """Whether a sum uses a term, in the shape of ``weights``; a weight may be 0, and a missing term makes the sum missing."""


def linear_map(sums: Sequence[FlatSum]) -> LinearMap:
    """The matrix of linear sums."""
    place: dict[ex.Expression, int] = {}
    for flat in sums:
        for term in flat.terms:
            place.setdefault(term, len(place))
    shape = len(sums), len(place)
    weights, uses = np.zeros(shape), np.zeros(shape, dtype=bool)
    for row, flat in enumerate(sums):
        for term, weight in zip(flat.terms, flat.weights, strict=True):
            weights[row, place[term]] += weight
            uses[row, place[term]] = True
    return LinearMap(list(place), weights, np.array([flat.constant for flat in sums]), uses)
