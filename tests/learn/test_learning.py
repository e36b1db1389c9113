"""Training: every family under every rule that applies to it, on every engine."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.core.named_arrays import map_leaves
from calibayes.engines import Serial, Threads
from calibayes.learn import Never, NoGain, Run, learn, mini_batches, problem_of
from calibayes.rules import RC
from calibayes.tables.row_blocks import ArraySource, ConsecutiveRows
from tests.cases import FAMILIES, LIKELIEST, RULES
from tests.learn.training import STARTS, run, source_of

PAIRS = [
    (family, rule)
    for family, case in FAMILIES.items()
    for rule in RULES
    if all(isinstance(case.family, need) for need in RULES[rule].needs)
]
"""Names of families and of the rules that apply to them."""
FIXED_STEP = [(family, rule) for family, rule in PAIRS if not RULES[rule].control.guarded]
"""With step control a rounding error could change a step from accepted to rejected."""
FIXED_STEP_AND_START = [
    (family, rule, list(STARTS)[number % len(STARTS)]) for number, (family, rule) in enumerate(FIXED_STEP)
]
"""Each pair with one start: every start occurs with every rule and with every family."""
STEP_CONTROL = [(family, rule) for family, rule in PAIRS if rule in ("rc", "gdt")]
RISING = [
    (family, rule) for family, rule in STEP_CONTROL if rule == "rc" or FAMILIES[family].maximizes_likelihood
]
"""Under the trade-off the start of a smoothed density may already have the highest objective on its path."""


class UnequalBlocks(ArraySource):
    """Blocks of 1, 1, 1, 2, 4, 8, ... rows, and the last row alone."""

    def parts(self):
        edges = [0, 1, 2, *(2 + 2**power for power in range(self.n.bit_length())), self.n - 1, self.n]
        edges = sorted({min(edge, self.n) for edge in edges})
        return [ConsecutiveRows(self, *rows) for rows in pairwise(edges)]


def assert_trees_equal(left, right):
    map_leaves(assert_array_equal, left, right)


@pytest.mark.parametrize(("family", "rule"), PAIRS)
def test_engine_and_number_of_jobs_do_not_change_the_result(family, rule):
    case = FAMILIES[family]
    source = source_of(case, rows=30)
    serial = run(case, RULES[rule], Serial(), source, updates=2)
    threaded = run(case, RULES[rule], Threads(3), source, updates=2)
    assert_trees_equal(threaded.candidate.parameters, serial.candidate.parameters)


@pytest.mark.parametrize(("family", "rule", "start"), FIXED_STEP_AND_START)
def test_blocks_of_any_size_give_the_same_result(family, rule, start):
    case, updates, source = FAMILIES[family], 2, source_of(FAMILIES[family])
    one_block = run(case, RULES[rule], Serial(), source, STARTS[start], updates)
    unequal = UnequalBlocks(source.columns, source.labels, source.weight, source.held_out)
    blocks = run(case, RULES[rule], Serial(), unequal, STARTS[start], updates)
    for actual, expected in zip(blocks.history, one_block.history, strict=True):
        assert_allclose(
            [actual.soft_error, actual.log_loss, actual.objective],
            [expected.soft_error, expected.log_loss, expected.objective],
            rtol=1e-9,
        )


@pytest.mark.parametrize(("family", "rule"), PAIRS)
def test_parameters_stay_finite_and_valid_from_any_start(family, rule):
    case = FAMILIES[family]
    for start in STARTS.values():
        run_ = run(case, RULES[rule], Serial(), source_of(case), start, updates=12)
        assert_trees_equal(
            map_leaves(np.isfinite, run_.best.parameters), map_leaves(lambda _: True, run_.best.parameters)
        )
        assert all(0.0 <= entry.error <= 1.0 and entry.soft_error >= 0.0 for entry in run_.history)


def objectives(case, rule, source, updates):
    """Objective before and after each update."""
    return [entry.objective for entry in run(case, rule, Serial(), source, updates=updates).history]


@pytest.mark.parametrize(("family", "rule"), STEP_CONTROL)
def test_step_control_never_lowers_the_objective_and_raises_it_in_the_end(family, rule):
    case = FAMILIES[family]
    objective = objectives(case, RULES[rule], source_of(case), updates=15)
    assert np.all(np.diff(objective) >= -1e-11 * np.abs(objective[0]))
    if (family, rule) in RISING:
        assert objective[-1] > objective[0]


@pytest.mark.parametrize("family", LIKELIEST)
def test_expectation_maximization_never_lowers_its_objective(family):
    case = FAMILIES[family]
    source = source_of(case)
    labels = np.where(np.arange(source.n) % 4 == 1, source.labels, -1)
    partly_labeled = ArraySource(source.columns, labels, source.weight, source.held_out)
    objective = objectives(case, RULES["em"], partly_labeled, updates=10)
    assert np.all(np.diff(objective) >= -1e-9)


@pytest.mark.parametrize("rule", ["rc-fixed", "gdt", "gd", "tm", "em"])
def test_one_batch_of_all_rows_is_the_full_update(rule):
    case = FAMILIES["categorical-alpha"]
    source = source_of(case)
    full = run(case, RULES[rule], Serial(), source, updates=1)
    batch = run(case, RULES[rule], Serial(), source, updates=1, sweep=mini_batches(source, source.n, 0))
    assert_allclose(batch.history[1].log_loss, full.history[1].log_loss, rtol=1e-10)


@pytest.mark.parametrize("size", [1, 10])
def test_small_steps_on_small_batches_approach_the_full_update(size):
    case, step = FAMILIES["categorical-alpha"], 1e-3
    source = source_of(case)
    full = run(case, RC(step=step), Serial(), source, updates=1)
    small = run(case, RC(step=step), Serial(), source, updates=1, sweep=mini_batches(source, size, 0))
    gain = full.history[0].log_loss - full.history[1].log_loss
    assert small.history[0].log_loss - small.history[1].log_loss == pytest.approx(gain, rel=0.01)


def test_runs_trained_together_equal_runs_trained_alone():
    case = FAMILIES["gaussian-Full"]
    source = source_of(case)
    alone = [run(case, RULES[rule], Serial(), source) for rule in ("rc", "gdt")]
    together = [Run(run_.model, run_.rule, run_.state, stop=Never(), limit=6) for run_ in alone]
    learn(together, source, Serial())
    for expected, actual in zip(alone, together, strict=True):
        assert_trees_equal(expected.best.parameters, actual.best.parameters)


def test_runs_can_train_on_different_rows():
    """Cross-validation in one pass: each run trains on the rows outside its fold and is scored on its fold."""
    case = FAMILIES["gaussian-Full"]
    source = source_of(case)
    fold = np.arange(source.n) % 3

    def view(number):
        def split(block):
            is_training = fold[block.first : block.first + len(block.weight)] != number
            return replace(block, weight=block.weight * is_training, held_out=block.weight * ~is_training)

        return split

    runs = []
    for number in range(3):
        training = ArraySource(
            source.columns, source.labels, source.weight * (fold != number), source.weight * (fold == number)
        )
        alone = run(case, RULES["rc"], Serial(), training)
        runs.append(
            (alone, Run(alone.model, alone.rule, alone.state, stop=Never(), limit=6, view=view(number)))
        )
    learn([run_ for _, run_ in runs], source, Serial())
    for alone, run_ in runs:
        assert_trees_equal(run_.best.parameters, alone.best.parameters)
        assert run_.history[-1].validation_log_loss == alone.history[-1].validation_log_loss


def test_the_sum_of_steps_ends_at_the_horizon():
    case = FAMILIES["categorical-alpha"]
    run_ = run(case, RULES["rc"], Serial(), source_of(case), updates=100, horizon=2.5)
    assert run_.history[-1].total_step == pytest.approx(2.5, abs=1e-12)


def test_a_run_that_ended_before_it_converged_has_a_problem():
    case = FAMILIES["gaussian-Tied"]
    source = source_of(case)
    start = run(case, RULES["rc"], Serial(), source, updates=0)
    unfinished = Run(start.model, start.rule, start.state, stop=NoGain(1e-9), limit=1)
    on_purpose = Run(start.model, start.rule, start.state, stop=Never(), limit=1)
    learn([unfinished, on_purpose], source, Serial())
    assert "still rising after 1 updates. Increase max_iter" in problem_of(unfinished)
    assert problem_of(on_purpose) == ""


@pytest.mark.parametrize("name", ["gaussian-Tied", "gaussian-Full", "categorical-alpha"])
def test_a_run_has_a_problem_only_if_its_last_updates_changed_decisions(name):
    case = FAMILIES[name]
    source = source_of(case)
    earlier = run(case, RULES["rc"], Serial(), source, updates=4)
    start = run(case, RULES["rc"], Serial(), source, updates=0)
    ended = Run(start.model, start.rule, start.state, stop=NoGain(1e-12), limit=8)
    learn([ended], source, Serial())
    assert ended.updates == 8
    assert not ended.converged

    def decisions(run_):
        (load,) = source.parts()
        return run_.model.contrast(load(), run_.accepted.parameters).argmax(axis=1)

    share = np.average(decisions(earlier) != decisions(ended), weights=source.weight)
    assert ended.changed == pytest.approx(share)
    assert bool(problem_of(ended)) == (share >= 0.01)
    assert (f"changed {share:.1%} of the decisions" in problem_of(ended)) == (share >= 0.01)
