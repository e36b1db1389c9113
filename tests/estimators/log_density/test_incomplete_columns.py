"""Log densities of columns with missing values and of columns of levels, against direct sums over rows."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from calibayes import (
    LogDensityFeatures,
    LogUnivariateClassifier,
    SparseLogBivariateClassifier,
    measure_dependence,
)
from calibayes.dependence import HSIC, Pearson, TopFraction
from calibayes.estimators.density_columns import LabeledNumbers, class_dependence
from calibayes.tables.dates import ColumnWarning

QUICK = {"C": 0.1, "selection": TopFraction(0.5)}


def quiet(*_):
    pass


def incomplete(n=90, seed=0):
    """Two columns of numbers and two of levels, with missing cells; the classes differ in how the columns depend."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    size = rng.normal(size=n)
    other = np.where(y, size, -size) + 0.3 * rng.normal(size=n)
    color = np.where(rng.random(n) < 0.2, "green", np.where((size > 0) == (y == 1), "red", "blue"))
    shape = rng.choice(["round", "flat"], n)
    table = pd.DataFrame({"size": size, "other": other, "color": color, "shape": shape}, dtype=object)
    table = table.mask(rng.random((n, 4)) < 0.15)
    return table.astype({"size": float, "other": float}), y


def density(model, table, y, label, row, columns):
    """The density of a row in some columns, summed over the rows of its class in which these columns are known."""
    densities, known = model.densities_, table[columns].notna().all(axis=1) & (y == label)
    kernel, at, total = densities.kernels[label], table[known], np.ones(int(known.sum()))
    for name in columns:
        j = list(table.columns).index(name)
        if table[name].dtype == float:
            h = (kernel.single if len(columns) == 1 else kernel.double)[j] * densities.scale[j]
            total = total * stats.norm.pdf(row[name], at[name].astype(float), h) * densities.scale[j]
        else:
            size = table[name].nunique()
            n = int((table[name].notna() & (y == label)).sum())
            other = 1.0 / (n + size)  # one pseudo-count for each level
            total = total * np.where(at[name] == row[name], 1 - (size - 1) * other, other)
    return float(total.mean())


def test_densities_are_sums_over_rows_with_known_values():
    table, y = incomplete()
    model = LogDensityFeatures(selection=None, floor=1e-300).fit(table, y)
    names = list(model.get_feature_names_out())
    row = pd.Series({"size": 0.3, "other": -0.2, "color": "red", "shape": "flat"})
    found = dict(zip(names, model.transform(row.to_frame().T.astype(table.dtypes.to_dict()))[0], strict=True))
    for label in (0, 1):
        for columns in (["size"], ["color"], ["size", "other"], ["size", "color"], ["color", "shape"]):
            expected = np.log(density(model, table, y, label, row, columns))
            assert_allclose(found[f"log p({', '.join(columns)} | {label})"], expected, rtol=1e-9)


def test_densities_of_levels_are_smoothed_frequencies():
    table, y = incomplete()
    model = LogDensityFeatures(selection=TopFraction(0)).fit(table, y)
    found = np.exp(
        model.transform(
            pd.DataFrame({"size": 0.0, "other": 0.0, "color": ["red", "blue", "green"], "shape": "flat"})
        )
    )
    counts = table["color"][y == 1].value_counts()
    expected = [(counts[level] + 1) / (counts.sum() + 3) for level in ("red", "blue", "green")]
    place = list(model.get_feature_names_out()).index("log p(color | 1)")
    assert_allclose(found[:, place], expected)


def test_a_missing_value_leaves_the_density_of_the_known_column_and_a_constant():
    table, y = incomplete()
    model = LogDensityFeatures(selection=None).fit(table, y)
    names = list(model.get_feature_names_out())
    features = pd.DataFrame(model.transform(table), columns=names)
    known = table.notna().all(axis=1).to_numpy()
    alone = table["size"].notna().to_numpy() & table["color"].isna().to_numpy()
    pair, single = "log p(size, color | 1)", "log p(size | 1)"
    both = table[["size", "color"]].notna().all(axis=1).to_numpy()
    difference = (features[pair] - features[single]).to_numpy()
    assert_allclose(difference[alone], difference[both].mean())
    assert np.ptp(difference[known]) > 0.1
    assert_allclose(features[single][table["size"].isna()], features[single][table["size"].notna()].mean())


def test_rows_without_any_known_value_have_the_mean_score_of_the_training_rows():
    table, y = incomplete(300)
    complete = table.fillna({"size": 0.0, "other": 0.0, "color": "red", "shape": "flat"})
    model = SparseLogBivariateClassifier(**QUICK).fit(complete, y)
    nothing = pd.DataFrame({"size": [np.nan], "other": [np.nan], "color": [None], "shape": [None]})
    expected = model.densities_.expected
    assert len(expected) + 2 == model.coef_.shape[1]  # beside the two columns of numbers, whose mean is 0
    assert_allclose(model.decision_function(nothing), model.coef_[0, 2:] @ expected + model.intercept_[0])


def test_training_rows_leave_a_copy_of_their_levels_out_of_every_class():
    """Counts of the own class that are one smaller than those of the others would tell the class."""
    X = pd.DataFrame({"a": list("uuuuuuvvvvvv"), "b": list("xxxyyyxxxyyy")})
    y = np.array([0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 1])
    model = LogDensityFeatures(selection=None, leave_one_out=True, floor=1e-300)
    found = pd.DataFrame(np.exp(model.fit_transform(X, y)), columns=model.get_feature_names_out())
    for label in (0, 1):
        of_class = X[y == label]
        other = 1.0 / (len(of_class) + 2)
        kernel = lambda same, other=other: np.where(same, 1 - other, other)
        for row in range(12):
            single = kernel((of_class["a"] == X["a"][row]).to_numpy())
            expected = (single.sum() - single.max()) / (len(of_class) - 1)
            assert_allclose(found[f"log p(a | {label})"][row], expected)
            pair = single * kernel((of_class["b"] == X["b"][row]).to_numpy())
            is_equal = (of_class == X.loc[row]).all(axis=1).any()
            expected = (pair.sum() - (1 - other) ** 2 * is_equal) / (len(of_class) - is_equal)
            assert_allclose(found[f"log p(a, b | {label})"][row], expected)


@pytest.mark.parametrize("kind", [LogUnivariateClassifier, SparseLogBivariateClassifier])
def test_weights_are_numbers_of_copies(kind):
    table, y = incomplete(60)
    copies = np.random.default_rng(1).integers(1, 4, 60)
    options = {"C": 0.1} if kind is LogUnivariateClassifier else QUICK
    weighted = kind(**options).fit(table, y, sample_weight=copies)
    repeated = kind(**options).fit(table.loc[table.index.repeat(copies)], np.repeat(y, copies))
    assert_allclose(weighted.predict_proba(table), repeated.predict_proba(table), atol=1e-6)


def test_names_of_levels_do_not_matter_and_unknown_levels_are_missing():
    table, y = incomplete()
    names = {"red": "c", "blue": "a", "green": "b"}
    plain, renamed = (
        SparseLogBivariateClassifier(**QUICK).fit(t, y) for t in (table, table.replace({"color": names}))
    )
    expected = plain.predict_proba(table)
    assert_allclose(renamed.predict_proba(table.replace({"color": names})), expected, atol=1e-7)
    missing, unknown = table.assign(color=None), table.assign(color="violet")
    assert_array_equal(plain.predict_proba(unknown), plain.predict_proba(missing))


def test_pairs_of_levels_separate_classes_that_single_columns_cannot():
    table, y = incomplete(400)
    new, z = incomplete(400, seed=1)
    assert SparseLogBivariateClassifier().fit(table, y).score(new, z) > 0.8
    assert LogUnivariateClassifier().fit(table, y).score(new, z) < 0.6


def test_columns_without_known_values_are_left_out():
    table, y = incomplete()
    with pytest.warns(ColumnWarning, match="nothing"):
        model = SparseLogBivariateClassifier(**QUICK).fit(table.assign(nothing=None), y)
    plain = SparseLogBivariateClassifier(**QUICK).fit(table, y)
    assert_allclose(model.predict_proba(table.assign(nothing="x")), plain.predict_proba(table))
    empty = pd.DataFrame({"a": [None] * 10})
    with pytest.raises(ValueError, match="known value"):
        SparseLogBivariateClassifier().fit(empty, np.arange(10) % 2)


def test_dependence_is_measured_on_rows_with_both_values():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[:, 1] += X[:, 0]
    X[::4, 0], X[::5, 2] = np.nan, np.nan
    found = measure_dependence(X, measure="pearson").statistics[0]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        known = ~np.isnan(X[:, [i, j]]).any(axis=1)
        assert_allclose(found[i, j], np.corrcoef(X[known][:, [i, j]].T)[0, 1])


@pytest.mark.parametrize("measure", [HSIC(), Pearson()])
def test_a_column_of_levels_depends_as_its_most_dependent_level(measure):
    rng = np.random.default_rng(0)
    codes, number = rng.integers(0, 3, 60), rng.normal(size=60)
    number[codes == 2] += 1.0
    columns, ones = np.c_[number, codes.astype(float)], np.ones(60)
    rows = LabeledNumbers(columns, np.zeros(60, int), ones, 1, np.array([0, 3]))
    found = class_dependence(measure, rows, ["a", "b"], ["all"], quiet)
    alone = [measure.measure(np.c_[number, codes == level], ones) for level in range(3)]
    assert_allclose(found.statistic[0, 0], max(abs(one.statistic[0, 1]) for one in alone))
    assert_allclose(found.p_value[0, 0], min(1.0, 3 * min(one.p_value[0, 1] for one in alone)))
