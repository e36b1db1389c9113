"""Training along a path of sums of steps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from calibayes.core.protocols import Layout
from calibayes.engines import Serial
from calibayes.families import ClassPrior, Diagonal, Gaussian, Product
from calibayes.learn import LastState, Run, data_sums, follow_path, learn
from calibayes.rules import RC
from calibayes.tables.row_blocks import ArraySource


def problem():
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    x = rng.normal(size=(90, 2)) * (1 + labels[:, None]) + labels[:, None]
    source = ArraySource({"x": x}, labels, np.ones(90), np.zeros(90))
    layout = Layout(("a", "b", "c"), ("u", "v"), center=x.mean(axis=0), variance=x.var(axis=0))
    model = Product(ClassPrior(), {"x": Gaussian(Diagonal())}).bind({"x": layout}, layout.classes)
    statistics = data_sums(model, source, Serial(), 3).statistics
    model = model.prepare(statistics)
    return model, RC().begin(model, statistics), source


def run_(model, start, **options):
    return Run(model, RC(), start, stop=LastState(), limit=60, **options)


def test_a_path_reaches_each_total_step_and_steps_keep_growing():
    model, start, source = problem()
    path, total_steps = run_(model, start, horizon=0.0), (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
    reached = [
        (total_step, path.accepted.total_step)
        for total_step in follow_path([path], source, Serial(), total_steps)
    ]
    assert reached == [(total_step, total_step) for total_step in total_steps]
    steps = np.array([entry.step for entry in path.history])
    assert_allclose(np.cumsum(steps), [entry.total_step for entry in path.history])
    full_step = 0.5
    for step, reached_before in zip(steps[1:], np.cumsum(steps)[:-1], strict=True):
        room = next(t for t in total_steps if t > reached_before + 1e-12) - reached_before
        assert step == pytest.approx(min(full_step, room))
        full_step = min(1.3 * full_step, 8.0)
    objectives = [entry.objective for entry in path.history]
    assert np.all(np.diff(objectives) >= 0)


def test_a_path_with_one_total_step_equals_learning_up_to_it():
    model, start, source = problem()
    learned, followed = run_(model, start, horizon=3.0), run_(model, start, horizon=3.0)
    learn([learned], source, Serial())
    assert list(follow_path([followed], source, Serial(), (3.0,))) == [3.0]
    assert learned.history[-1].total_step == followed.history[-1].total_step == 3.0
    assert_array_equal(learned.best.state.value["x"]["first"], followed.best.state.value["x"]["first"])
    followed.set_horizon(2.0)
    assert followed.done


def test_a_path_ends_when_no_run_has_updates_left():
    model, start, source = problem()
    short = Run(model, RC(), start, stop=LastState(), limit=2, horizon=0.0)
    assert list(follow_path([short], source, Serial(), (0.0, 0.5, 1.0, 2.0, 4.0))) == [0.0, 0.5, 1.0]
    assert short.updates == 2
