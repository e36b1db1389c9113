"""Engines and sources that are not the package's own: only the protocols matter."""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import calibayes as cb
from calibayes.core.named_arrays import map_leaves
from calibayes.core.protocols import Block, Layout
from calibayes.engines import Serial
from calibayes.families import ClassPrior, Diagonal, Full, Gaussian, Product
from calibayes.learn import LastState, Plan, train
from calibayes.rules import RC
from calibayes.tables.row_blocks import ArraySource
from tests.contract.tables import table

ROWS_PER_BLOCK = 70


@dataclass
class CountingEngine:
    """`Serial`, with the number of calls of each method."""

    totals: int = 0
    eaches: int = 0

    def total(self, function, source):
        self.totals += 1
        return Serial().total(function, source)

    def each(self, function, source):
        self.eaches += 1
        return Serial().each(function, source)


@dataclass
class BlockList:
    """A source over blocks that exist already, as a reader of files would have them."""

    blocks: list
    loaded: int = field(default=0, init=False)

    def load(self, position):
        self.loaded += 1
        return self.blocks[position]

    def parts(self):
        return [partial(self.load, position) for position in range(len(self.blocks))]

    def batches(self, size, rng):
        whole = Block(
            {"x": np.concatenate([block.columns["x"] for block in self.blocks])},
            *(
                np.concatenate([getattr(block, name) for block in self.blocks])
                for name in ("labels", "weight", "held_out")
            ),
        )
        order = rng.permutation(len(whole.labels))
        for rows in np.split(order, range(size, len(order), size)):
            columns = {"x": whole.columns["x"][rows]}
            yield Block(columns, whole.labels[rows], whole.weight[rows], whole.held_out[rows])


def problem(shape):
    """A bound model, and the same rows as an `ArraySource` and as a list of blocks."""
    X, y = table()
    codes = np.searchsorted(["x", "y", "z"], y)
    array = ArraySource({"x": X}, codes, np.ones(len(y)), np.zeros(len(y)), ROWS_PER_BLOCK)
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    layout = Layout(("x", "y", "z"), names, center=X.mean(axis=0), variance=X.var(axis=0))
    model = Product(ClassPrior(), {"x": Gaussian(shape)}).bind({"x": layout}, layout.classes)
    return model, array, BlockList([load() for load in array.parts()])


@pytest.mark.parametrize("shape", [Diagonal(), Full()], ids=["diagonal", "full"])
@pytest.mark.parametrize(
    "plan",
    [Plan(rule=RC()), Plan(rule=RC(step=0.1), stop=LastState(), max_iter=4, batch_size=32, seed=3)],
    ids=["all-rows", "mini-batches"],
)
def test_any_source_and_engine_train_and_predict_as_the_packages_own(shape, plan):
    model, array, blocks = problem(shape)
    engine = CountingEngine()
    expected, actual = train(model, array, Serial(), plan, 3), train(model, blocks, engine, plan, 3)
    assert actual.updates == expected.updates > 1
    map_leaves(assert_array_equal, actual.run.best.parameters, expected.run.best.parameters)
    assert_array_equal(actual.history["log_loss"], expected.history["log_loss"])
    assert engine.totals == actual.history["passes"][-1] + 1  # the first pass sums the labels' statistics
    assert blocks.loaded == engine.totals * len(blocks.blocks)
    parameters = actual.run.best.parameters
    predicted = engine.each(lambda block: actual.model.log_joint(block, parameters), blocks)
    assert [len(part) for part in predicted] == [len(block.labels) for block in blocks.blocks]
    one_block = replace(array, rows_per_block=array.n).parts()[0]()
    np.testing.assert_allclose(
        np.concatenate(predicted), expected.model.log_joint(one_block, parameters), rtol=1e-12
    )
    assert engine.eaches == 1


QUICK = {"max_iter": 3, "stop": None}
ESTIMATORS = [
    cb.GaussianNB(**QUICK),
    cb.NaiveBayes(**QUICK),
    cb.BayesClassifier(random_state=0),
    cb.PosteriorMixture(random_state=0),
    cb.PosteriorMixture(
        models=[("path", cb.GaussianNB()), ("refit", cb.LinearDiscriminantAnalysis(rule="ml"))],
        random_state=0,
    ),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_fit_and_predict_use_the_engine_that_is_given(estimator):
    X, y = table()
    engine = CountingEngine()
    expected = estimator.fit(X, y).predict_log_proba(X)
    model = type(estimator)(**{**estimator.get_params(deep=False), "engine": engine}).fit(X, y)
    assert engine.totals > 0
    for method in ("predict", "predict_proba", "predict_log_proba"):
        engine.eaches = 0
        getattr(model, method)(X)
        assert engine.eaches > 0
    assert_array_equal(model.predict_log_proba(X), expected)
    assert_array_equal(model.predict(X), estimator.predict(X))


@pytest.mark.parametrize("estimator", ESTIMATORS[2:], ids=lambda estimator: type(estimator).__name__)
def test_an_ensemble_predicts_held_out_rows_on_its_engine(estimator):
    X, y = table()
    engine = CountingEngine()
    type(estimator)(**{**estimator.get_params(deep=False), "engine": engine}).fit(X, y)
    assert engine.totals > 0
    assert engine.eaches > 0


def test_each_pass_is_one_call_of_total():
    X, y = table()
    engine = CountingEngine()
    model = cb.GaussianNB(rule=RC(step=0.1), engine=engine, max_iter=5, stop=None).fit(X, y)
    assert engine.totals == 7
    assert_array_equal(
        model.predict_proba(X),
        cb.GaussianNB(rule=RC(step=0.1), max_iter=5, stop=None).fit(X, y).predict_proba(X),
    )
    assert engine.eaches == 1


class OnlyTotals:
    def total(self, function, source):
        return Serial().total(function, source)


@pytest.mark.parametrize("engine", [OnlyTotals(), CountingEngine, "threads", 2])
def test_an_engine_needs_both_methods(engine):
    X, y = table()
    for estimator in (cb.GaussianNB, cb.BayesClassifier, cb.PosteriorMixture):
        with pytest.raises(ValueError, match=r"engine must have the methods `total` and `each`, .*, got"):
            estimator(engine=engine).fit(X, y)


def test_two_fits_at_once_do_not_disturb_the_number_of_threads():
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import threadpool_info

    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    X, y = table()
    before, alone = threads(), cb.QuadraticDiscriminantAnalysis(max_iter=20, stop=None).fit(X, y)
    with ThreadPoolExecutor(4) as pool:
        models = list(
            pool.map(lambda _: cb.QuadraticDiscriminantAnalysis(max_iter=20, stop=None).fit(X, y), range(8))
        )
    assert threads() == before
    for model in models:
        assert_array_equal(model.predict_log_proba(X), alone.predict_log_proba(X))
