"""Statistics are sums over rows, linear in the class weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from calibayes.core.abilities import CountStatistics, Movable, Structured, SumsByColumn
from calibayes.core.named_arrays import add, scale, subtract
from calibayes.core.protocols import Arrays
from calibayes.testing.laws.assertions import assert_arrays_close
from calibayes.testing.laws.case import FamilyCase
from calibayes.testing.laws.law import has, law


def _without_and_with_parameters(case: FamilyCase) -> tuple[Arrays | None, Arrays]:
    """Both forms of the last argument of `Family.statistics`: None, as at the start, and the fitted parameters."""
    return None, case.prepared().parameters(case.start())


@law()
def statistics_are_linear_in_weights(case: FamilyCase) -> None:
    family, columns, left, right = case.prepared(), case.columns, case.weights(1), case.weights(2)
    for parameters in _without_and_with_parameters(case):
        combined, of_left, of_right = (
            family.statistics(columns, weights, parameters)
            for weights in (2.0 * left - 0.5 * right, left, right)
        )
        assert_arrays_close(combined, add(scale(2.0, of_left), scale(-0.5, of_right)))


@law()
def statistics_are_additive_over_rows(case: FamilyCase) -> None:
    family, columns, weights = case.prepared(), case.columns, case.weights()
    cuts = [0, 1, len(columns) // 3, len(columns)]
    for parameters in _without_and_with_parameters(case):
        total = family.statistics(columns, weights, parameters)
        parts = [family.statistics(columns[a:b], weights[a:b], parameters) for a, b in pairwise(cuts)]
        assert_arrays_close(total, add(*parts))
        assert_arrays_close(subtract(total, parts[0]), add(*parts[1:]))


@law()
def statistics_do_not_depend_on_row_order(case: FamilyCase) -> None:
    family, columns, weights = case.prepared(), case.columns, case.weights()
    order = case.generator(3).permutation(len(columns))
    assert_arrays_close(
        family.statistics(columns, weights), family.statistics(columns[order], weights[order])
    )


@law(has(Structured))
def structure_statistics_contain_the_statistics(case: FamilyCase) -> None:
    family = case.prepared()
    assert isinstance(family, Structured)
    for weights in (case.labels(), case.weights()):
        assert_arrays_close(
            family.statistics_of(family.structure_statistics(case.columns, weights)),
            family.statistics(case.columns, weights),
        )


@law(has(CountStatistics))
def counts_sum_to_weights(case: FamilyCase) -> None:
    """Each row adds its weight times the counts per row."""
    assert isinstance(case.family, CountStatistics)
    cells = case.family.cells(case.prepared().statistics(case.columns, case.weights()))
    n, d = case.columns.shape
    counts_per_row = np.full(n, d) if case.counts_per_row is None else case.counts_per_row
    assert_allclose(cells.sum(axis=1), case.weights().T @ counts_per_row, atol=1e-9)


@law(has(SumsByColumn))
def statistics_follow_from_single_columns(case: FamilyCase) -> None:
    """Each column may have other rows in another order; here they are reversed, and one is divided into two."""
    family, weights = case.prepared(), case.weights()
    assert isinstance(family, SumsByColumn)
    halves = [(np.append(column, column[:1]), np.vstack([weights, weights[:1]])) for column in case.columns.T]
    for _, of_rows in halves:
        of_rows[[0, -1]] /= 2.0
    by_column = family.statistics_by_column([(entries[::-1], of_rows[::-1]) for entries, of_rows in halves])
    assert_arrays_close(by_column, family.statistics(case.columns, weights))


@law(has(Movable))
def moments_can_be_recentered(case: FamilyCase) -> None:
    """Moving moments to another center gives the moments summed about that center."""
    assert isinstance(case.family, Movable)
    center = np.full(case.columns.shape[1], 1.25)
    moved: Any = case.family.move(case.start(), center)
    rebound = case.family.bind(replace(case.layout, center=center))
    assert_arrays_close(moved, rebound.statistics(case.columns, case.labels()))
