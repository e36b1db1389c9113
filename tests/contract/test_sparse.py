"""A sparse table is the dense one with less to store: the same numbers, and never made dense."""

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

import calibayes as cb
from calibayes.families import Bernoulli, Diagonal, Gaussian, Multinomial, Poisson
from calibayes.rules import GDT, RC
from calibayes.tables.read import read_array
from calibayes.tables.row_blocks import BYTES_PER_BLOCK, ArraySource
from tests.contract.test_scikit_learn import ESTIMATORS
from tests.seeds import generator

SPARSE = [estimator for estimator in ESTIMATORS if get_tags(estimator).input_tags.sparse]
RULES = ("ml", "map", RC(step=0.1), "rc", "tm", "dfe", GDT(0.5), "em", "gd")
FORMATS = ("csr", "csc", "coo", "lil", "dok", "bsr")


def documents(n=240, d=12, seed=0):
    rng = generator(seed)
    y = rng.integers(0, 3, n)
    rates = rng.gamma(0.4, 1.0, size=(3, d))
    X = rng.poisson(rates[y]).astype(float)
    X[:, 4] = 0.0
    return X, np.array(["x", "y", "z"])[np.where(rng.random(n) < 0.2, rng.integers(0, 3, n), y)]


def assert_same(left, right, X):
    for method in ("predict_joint_log_proba", "predict_proba", "predict_joint_log_proba"):
        assert_allclose(getattr(left, method)(X), getattr(right, method)(X), rtol=1e-10, atol=1e-10)


def test_who_reads_sparse_tables():
    assert {type(e).__name__ for e in SPARSE} == {"BernoulliNB", "ComplementNB", "MultinomialNB", "PoissonNB"}


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("estimator", SPARSE, ids=lambda e: type(e).__name__)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", [{}, {"alpha": 0.0}], ids=str)
def test_every_rule_gives_the_dense_numbers(estimator, rule, options):
    if rule == "dfe" and isinstance(estimator, cb.PoissonNB):
        pytest.skip("sums of events beside counts of rows are no counts of levels")
    if isinstance(estimator, cb.ComplementNB) and rule not in ("ml", "map"):
        pytest.skip("closed form only")
    X, y = documents()
    if rule == "em":
        y = np.where(np.arange(len(y)) % 3 == 0, None, y.astype(object))
    model = clone(estimator).set_params(rule=rule, max_iter=8, stop=None, **options)
    dense, thin = clone(model).fit(X, y), clone(model).fit(sparse.csr_array(X), y)
    assert_same(thin, dense, X)
    assert_allclose(
        thin.predict_joint_log_proba(sparse.csr_array(X)), dense.predict_joint_log_proba(X), rtol=1e-10
    )


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("estimator", SPARSE, ids=lambda e: type(e).__name__)
def test_every_format(estimator, form, kind):
    X, y = documents(60)
    given = getattr(sparse, f"{form}_{kind}")(X)
    before = given.copy()
    model = clone(estimator).set_params(rule="ml").fit(given, y)
    assert_allclose(model.predict_proba(given), clone(model).fit(X, y).predict_proba(X), atol=1e-12)
    assert_array_equal(given.toarray(), before.toarray())


@pytest.mark.parametrize("estimator", SPARSE, ids=lambda e: type(e).__name__)
def test_partial_fit_weights_and_held_out_rows(estimator):
    X, y = documents()
    weight = generator(1).uniform(0.0, 2.0, len(y)) * (np.arange(len(y)) % 5 > 0)
    thin = sparse.csr_array(X)
    dense = clone(estimator).set_params(rule="ml").fit(X, y, weight)
    model = clone(estimator).set_params(rule="ml")
    for rows in np.array_split(np.arange(len(y)), 3):
        model.partial_fit(thin[rows], y[rows], classes=["x", "y", "z"], sample_weight=weight[rows])
    assert_same(model, dense, X)
    options = {"training": cb.TrainingOptions(validation_fraction=0.25), "random_state": 0}
    model = clone(estimator).set_params(**options)
    assert_same(clone(model).fit(thin, y), clone(model).fit(X, y), X)
    assert_same(pickle.loads(pickle.dumps(dense)), dense, X)


def test_mini_batches_and_jobs():
    X, y = documents()
    options = {"max_iter": 3, "stop": None, "random_state": 0}
    for more in ({"training": cb.TrainingOptions(batch_size=16)}, {"n_jobs": 2}):
        model = cb.MultinomialNB(**options, **more)
        assert_same(clone(model).fit(sparse.csr_array(X), y), clone(model).fit(X, y), X)


def test_cells_that_are_stored_twice_are_one_cell():
    twice = sparse.csr_array(([1.0, 2.0, 1.0, 4.0], [0, 0, 1, 1], [0, 3, 4]), shape=(2, 2))
    ours = cb.MultinomialNB(rule="ml").fit(twice, [0, 1])
    same = cb.MultinomialNB(rule="ml").fit(twice.toarray(), [0, 1])
    assert_allclose(ours.predict_joint_log_proba(twice), same.predict_joint_log_proba(twice.toarray()))
    assert twice.nnz == 4


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1.0, "Negative values in data passed to .*: column 'x2'"),
        (np.nan, "column 'x2' contains NaN"),
        (np.inf, "column 'x2' contains infinity"),
    ],
)
@pytest.mark.parametrize("estimator", SPARSE, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_bad_cells_name_their_column(estimator, make, value, message):
    X, y = documents(30)
    X[7, 2] = value
    if isinstance(estimator, cb.BernoulliNB) and value == -1.0:
        pytest.skip("a threshold takes any number")
    if np.isnan(value) and make is np.asarray and get_tags(estimator).input_tags.allow_nan:
        pytest.skip("missing values are allowed in dense tables: see the next test")
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(make(X), y)
    good = clone(estimator).set_params(rule="ml").fit(make(documents(30)[0]), y)
    with pytest.raises(ValueError, match=message):
        good.predict(make(X))


@pytest.mark.parametrize("estimator", [cb.BernoulliNB(), cb.PoissonNB()], ids=lambda e: type(e).__name__)
def test_dense_tables_may_have_missing_values(estimator):
    X, y = documents(30)
    X[7, 2] = np.nan
    assert get_tags(estimator).input_tags.allow_nan
    assert np.isfinite(clone(estimator).set_params(rule="ml").fit(X, y).predict_log_proba(X)).all()


def test_thresholds_of_sparse_tables():
    X, y = documents(60)
    thin = sparse.csr_array(X)
    for threshold in (0.0, 1.5):
        model = cb.BernoulliNB(rule="ml", binarize=threshold)
        assert_same(clone(model).fit(thin, y), clone(model).fit(X, y), X)
    with pytest.raises(ValueError, match="zero is above the threshold"):
        cb.BernoulliNB(binarize=-1.0).fit(thin, y)
    with pytest.raises(ValueError, match="other than 0 and 1"):
        cb.BernoulliNB(binarize=None).fit(thin, y)
    flags = (thin > 0).astype(float)
    model = cb.BernoulliNB(rule="ml", binarize=None)
    assert_same(clone(model).fit(flags, y), clone(model).fit(flags.toarray(), y), X > 0)


@pytest.mark.parametrize(
    "estimator", [e for e in ESTIMATORS if e not in SPARSE], ids=lambda e: type(e).__name__
)
def test_other_estimators_say_so(estimator):
    X, y = documents(30)
    with pytest.raises(TypeError, match="dense data is required"):
        estimator.fit(sparse.csr_array(X), y)


def test_families_side_by_side_over_a_sparse_table():
    X, y = documents()
    families = [("words", Multinomial(alpha=1.0), slice(0, 6)), ("events", Poisson(), [6, 8])]
    model = cb.GenerativeClassifier(families=families, max_iter=5, stop=None)
    assert get_tags(model).input_tags.sparse
    assert_same(clone(model).fit(sparse.csr_array(X), y), clone(model).fit(X, y), X)
    mixed = cb.GenerativeClassifier(families=[*families, ("size", Gaussian(Diagonal()), [9])])
    assert not get_tags(mixed).input_tags.sparse
    assert not get_tags(cb.GenerativeClassifier(families="words")).input_tags.sparse
    flags = cb.GenerativeClassifier(families=[("flags", Bernoulli(), cb.every)], rule="ml")
    assert_same(flags.fit(sparse.csr_array(X > 0), y), clone(flags).fit(X > 0, y), X > 0)


def test_a_sparse_table_has_the_parts_of_a_table():
    X, _ = documents(20)
    table, dense = read_array(sparse.csc_matrix(X)), read_array(X)
    assert (table.n, table.names) == (dense.n, dense.names)
    assert_array_equal(table.column(3), dense.column(3))
    assert_array_equal(table.matrix([3, 1]).toarray(), dense.matrix([3, 1]))
    assert_array_equal(table.rows(np.arange(20) > 4).content.toarray(), X[5:])
    left, gone = table.without("x2")
    assert_array_equal(left.content.toarray(), np.delete(X, 2, axis=1))
    assert_array_equal(gone, X[:, 2])
    assert table.is_numeric(0)


def test_blocks_hold_stored_cells():
    wide = sparse.random_array((9000, 40_000), density=0.005, format="csr", rng=generator(0))
    nothing = np.zeros(9000)
    blocks = ArraySource({"x": wide}, nothing, nothing, nothing, k=5).parts()
    sizes = [block().columns["x"].nnz * (wide.data.itemsize + wide.indices.itemsize) for block in blocks]
    assert all(0.8 * BYTES_PER_BLOCK < size < 1.1 * BYTES_PER_BLOCK for size in sizes[:-1])
    assert len(blocks) > 2
    assert sum(block().columns["x"].nnz for block in blocks) == wide.nnz


@pytest.mark.parametrize("estimator", SPARSE, ids=lambda e: type(e).__name__)
def test_nothing_of_the_size_of_the_dense_table_is_allocated(estimator):
    rng = generator(0)
    n, d, per_row = 20_000, 50_000, 10  # dense: 8 GB
    cells = (rng.poisson(1.0, n * per_row) + 1.0, rng.integers(0, d, n * per_row))
    X = sparse.csr_array((*cells, np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    y = rng.integers(0, 2, n)
    model = clone(estimator)
    options = {} if isinstance(model, cb.ComplementNB) else {"max_iter": 2, "stop": None}
    tracemalloc.start()
    try:
        model.set_params(**options).fit(X, y).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**27
