"""Kernels that are part of a fitted model verify that their fields agree."""

from dataclasses import replace

import numpy as np
import pytest

from calibayes.kernels.joint_density import KernelRows, NormalScores, ProductKernel, learn_normal_scores
from tests.seeds import generator

ROWS = KernelRows(generator(0).normal(size=(6, 2)), np.ones(6), (0, 2, 6))
KERNEL = ProductKernel(generator(1).normal(size=(2, 6)), np.ones(6), np.ones(2), np.ones(2))
SCORES = learn_normal_scores(np.round(generator(2).normal(size=(300, 2)), 1), np.ones(300))


@pytest.mark.parametrize("value", [ROWS, KERNEL, SCORES], ids=lambda value: type(value).__name__)
def test_what_training_makes_passes(value):
    value.verify()


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": ROWS.rows[:-1]},
        {"rows": ROWS.rows[0]},
        {"rows": ROWS.rows * np.nan},
        {"rows": ROWS.rows * 1e200},
        {"rows": ROWS.rows.astype(object)},
        {"weight": ROWS.weight[:-1]},
        {"weight": -ROWS.weight},
        {"weight": np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])},
        {"weight": ROWS.weight * np.inf},
        {"weight": ROWS.weight * 1e308},
        {"ends": (0, 2)},
        {"ends": (0, 2, 7)},
        {"ends": (1, 2, 6)},
        {"ends": (0, 6, 2)},
        {"ends": (0, 2, 2, 6)},
        {"ends": (6,)},
        {"ends": ()},
    ],
    ids=str,
)
def test_rows_of_kernels_that_do_not_fit_are_refused(changes):
    with pytest.raises(ValueError, match=r"rows|weight|ends"):
        replace(ROWS, **changes).verify()


@pytest.mark.parametrize("field", ["centers", "weights", "single", "double"])
@pytest.mark.parametrize("wrong", ["short", "nan", "negative", "zero", "objects", "deep"])
def test_kernels_that_do_not_fit_are_refused(field, wrong):
    value = getattr(KERNEL, field)
    changes = {
        "short": value[..., :-1],
        "nan": value * (np.inf if field == "centers" else np.nan),  # missing values are NaN
        "negative": -np.abs(value),
        "zero": value * 0.0,
        "objects": value.astype(object),
        "deep": value[None],
    }
    if (field, wrong) in (("centers", "negative"), ("centers", "zero")):
        replace(KERNEL, centers=changes[wrong]).verify()  # rows may be anywhere
        return
    with pytest.raises(ValueError, match=r"\w"):
        replace(KERNEL, **{field: changes[wrong]}).verify()


@pytest.mark.parametrize(
    "levels", [np.ones((2, 3)), np.full((2, 2), 2.0), np.array([[0.1, 0.5], [0.9, 0.5]])]
)
def test_kernels_of_levels_that_do_not_fit_are_refused(levels):
    with pytest.raises(ValueError, match="levels"):
        replace(KERNEL, levels=levels).verify()


def test_kernels_that_are_too_far_away_are_refused():
    with pytest.raises(ValueError, match="too far away"):
        replace(KERNEL, centers=KERNEL.centers * 1e200).verify()


@pytest.mark.parametrize(
    "knots",
    [
        ([2.0, 1.0], [0.0, 1.0]),
        ([1.0, 1.0], [0.0, 1.0]),
        ([1.0, 2.0], [0.0]),
        ([1.0, np.nan], [0.0, 1.0]),
        ([1.0, 2.0], [0.0, np.inf]),
        ([], []),
        ([1, 2], [0.0, 1.0]),
    ],
    ids=str,
)
def test_knots_out_of_order_are_refused(knots):
    with pytest.raises(ValueError, match=r"knots|scores"):
        NormalScores((*SCORES.knots, tuple(map(np.array, knots)))).verify()
