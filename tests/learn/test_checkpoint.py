"""A run that is restored from a snapshot ends in the same bits as one that was not interrupted."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from calibayes.core.fingerprint import fingerprint
from calibayes.core.named_arrays import map_leaves
from calibayes.engines import Serial, Threads
from calibayes.files import checkpoint as checkpoint_file
from calibayes.files.checkpoint import FitSnapshot, TrainingSnapshot
from calibayes.learn import learn, mini_batches
from calibayes.learn.checkpoint import training_fingerprints
from calibayes.rules import RC, Schedule
from calibayes.tables.row_blocks import ArraySource
from tests.cases import FAMILIES, RULES
from tests.learn.test_learning import PAIRS
from tests.learn.training import begun, source_of

GAUSSIAN = "gaussian-Diagonal"
RULE_FAMILIES = (GAUSSIAN, "categorical-alpha", "tree-alpha")
SOME_PAIRS = [(family, rule) for family, rule in PAIRS if rule == "rc" or family in RULE_FAMILIES]
"""Every family with one rule, every rule with a few families."""


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch):
    """What is written is read from memory here; that files are flushed is tested with the function that writes them."""
    monkeypatch.setattr("os.fsync", lambda descriptor: None)


def finished(case, rule, source, kept=None, **options):
    """A run that is continued to its end, and its snapshots after each pass."""
    snapshots = []
    run, statistics = begun(case, rule, Serial(), source, **options)
    if kept is not None:
        run.restore(kept, statistics)
    learn([run], source, Serial(), record=lambda run: snapshots.append(run.snapshot()))
    return run, snapshots


def through_a_file(snapshot, path):
    """A snapshot that was written to a file and read again."""
    checkpoint_file.write(FitSnapshot({}, {"training": TrainingSnapshot({}, {"run": snapshot})}), str(path))
    return checkpoint_file.read(str(path)).trainings["training"].runs["run"]


def assert_same_run(one, other):
    for name in ("candidate", "accepted", "best"):
        left, right = getattr(one, name), getattr(other, name)
        map_leaves(assert_array_equal, left.state.value, right.state.value)
        map_leaves(assert_array_equal, left.parameters, right.parameters)
        assert (left.step, left.total_step, left.frozen) == (right.step, right.total_step, right.frozen)
    measured = [[{**asdict(entry), "seconds": 0} for entry in run.history] for run in (one, other)]
    assert repr(measured[0]) == repr(measured[1])
    flags = ("done", "converged", "diverged", "best_iter", "updates", "size")
    assert [getattr(one, name) for name in flags] == [getattr(other, name) for name in flags]


@pytest.mark.parametrize(("family", "rule"), SOME_PAIRS)
def test_every_family_and_rule_continues_to_the_same_bits(family, rule, tmp_path):
    case, rule = FAMILIES[family], RULES[rule]
    source = source_of(case, rows=17)
    whole, snapshots = finished(case, rule, source)
    half = max(len(snapshots) // 2, 1)  # a rule may end training at its start
    middle = through_a_file(snapshots[half - 1], tmp_path / "run")
    continued, rest = finished(case, rule, source, middle)
    assert len(rest) == len(snapshots) - half
    assert_same_run(whole, continued)


@pytest.mark.parametrize("sweep", [None, 13], ids=["all rows", "mini-batches"])
def test_after_each_pass(sweep, tmp_path):
    """Also after a rejected step, and after the last pass."""
    case, rule = FAMILIES[GAUSSIAN], RULES["rc"]
    source = source_of(case)

    def options():
        return {} if sweep is None else {"sweep": mini_batches(source, sweep, 3)}

    whole, snapshots = finished(case, rule, source, updates=12, **options())
    assert sweep or any(snapshot.rejections for snapshot in snapshots)
    for snapshot in snapshots:
        kept = through_a_file(snapshot, tmp_path / "run")
        continued, _ = finished(case, rule, source, kept, updates=12, **options())
        assert_same_run(whole, continued)


def test_time_goes_on(tmp_path):
    case = FAMILIES[GAUSSIAN]
    _, snapshots = finished(case, RULES["rc"], source_of(case))
    continued, _ = finished(case, RULES["rc"], source_of(case), replace(snapshots[1], seconds=1000.0))
    assert continued.history[1].seconds < 1000 < continued.history[-1].seconds


def test_a_larger_limit_continues_and_another_past_is_refused():
    case, rule = FAMILIES[GAUSSIAN], RC(step=0.1)
    source = source_of(case)
    whole, _ = finished(case, rule, source, updates=9)
    _, snapshots = finished(case, rule, source, updates=6)
    continued, _ = finished(case, rule, source, snapshots[4], updates=9)
    assert_same_run(whole, continued)
    for limit, snapshot in ((9, snapshots[6]), (3, snapshots[4]), (4, snapshots[4])):
        with pytest.raises(ValueError, match=f"was 6 and is now {limit}, after [46] updates"):
            finished(case, rule, source, snapshot, updates=limit)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda kept: {"direction": {"x": {}}}, "different names"),
        (lambda kept: {"direction": map_leaves(lambda a: a[..., None], kept.direction)}, "shape"),
        (lambda kept: {"best": replace(kept.best, value=map_leaves(np.isnan, kept.best.value))}, "type bool"),
    ],
)
def test_a_snapshot_of_another_shape_is_refused(change, problem):
    case = FAMILIES[GAUSSIAN]
    _, snapshots = finished(case, RULES["rc"], source_of(case))
    kept = replace(snapshots[2], **change(snapshots[2]))
    with pytest.raises(ValueError, match=problem):
        finished(case, RULES["rc"], source_of(case), kept)


def test_the_fingerprint_of_rows_has_every_cell_label_weight_and_their_order():
    case = FAMILIES[GAUSSIAN]
    source = source_of(case, rows=17)
    model = begun(case, RULES["rc"], Serial(), source)[0].model

    def of(changed, engine=None):
        return training_fingerprints(model, changed, engine or Serial())["rows"]

    assert of(source) == of(source_of(case, rows=17), Threads(3))
    reverse = {name: getattr(source, name)[::-1] for name in ("labels", "weight", "held_out")}
    others = [replace(source, columns={"x": case.columns[::-1]}, **reverse)]
    for name in ("labels", "weight", "held_out"):
        array = getattr(source, name).copy()
        array[-1] += 1
        others.append(replace(source, **{name: array}))
    cells = case.columns.copy()
    cells[-1, -1] = np.nextafter(cells[-1, -1], np.inf)
    others.append(replace(source, columns={"x": cells}))
    assert len({of(source), *map(of, others)}) == 6


def test_the_fingerprint_of_sparse_rows():
    cells = np.random.default_rng(0).poisson(0.5, (20, 4))
    moved = cells[:, ::-1]

    def of(table):
        zeros = np.zeros(20)
        source = ArraySource({"x": sparse.csr_array(table)}, np.arange(20) % 2, zeros + 1, zeros)
        return training_fingerprints(None, source, Serial())["rows"]

    assert of(cells) == of(cells.copy()) != of(moved)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        (("ab", "c"), ("a", "bc")),
        ((1, (2,)), ((1, 2),)),
        ([1], (1,)),
        (RC(), RC(step=0.5)),
        (np.zeros(3), np.zeros(3, dtype=np.float32)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.array(["a", None], dtype=object), np.array(["a", "None"], dtype=object)),
        (Schedule(lambda update: 1.0), Schedule(lambda update: 2.0)),
        (np.random.RandomState(0), np.random.RandomState(1)),
        (np.random.default_rng(0), np.random.default_rng(1)),
        ({1, 2}, {1, 3}),
        (np.float64(1), np.float64(2)),
        (int, float),
    ],
)
def test_values_that_differ_have_different_fingerprints(one, other):
    assert fingerprint(one) == fingerprint(one) != fingerprint(other)


class Plain:
    """An object without a text of its own, which is printed with its address."""

    def __init__(self, content):
        self.content = content


def test_addresses_have_no_influence_on_fingerprints():
    assert fingerprint(Plain(1)) == fingerprint(Plain(1)) != fingerprint(Plain(2))
    assert fingerprint({"a", "b", "c"}) == fingerprint({"c", "b", "a"})
