"""A family by three methods: laws, weights, missing values, every applicable rule, every engine, and its errors."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from calibayes import GenerativeClassifier, every
from calibayes.core.protocols import Layout
from calibayes.core.verify import require_sums_of_one
from calibayes.encoders import Numbers
from calibayes.engines import Dask, Serial, Threads
from calibayes.families import ColumnDensity, Density, Poisson
from calibayes.files import ModelFileError, save
from calibayes.rules import GD, MAP
from calibayes.testing import FAMILY_LAWS, FamilyCase, applicable_laws
from tests.cases import FAMILIES, RULES, LogNormal
from tests.seeds import SEED, generator

K, N = 3, 150
LABELS = np.arange(N) % K
LAYOUT = Layout(("a", "b", "c"), ("x0", "x1"))


class Exponential(ColumnDensity):
    def cell_statistics(self, x):
        return {"sum": x}

    def parameters(self, statistics):
        return {"log_rate": np.log(statistics["count"] / statistics["sum"])}

    def cell_log_density(self, x, parameters):
        return parameters["log_rate"] - np.exp(parameters["log_rate"]) * x


class Geometric(ColumnDensity):
    """The number of failures before the first success."""

    reads = "counts"

    def cell_statistics(self, x):
        return {"sum": x}

    def parameters(self, statistics):
        total = statistics["count"] + statistics["sum"]
        return {
            "log_success": np.log(statistics["count"] / total),
            "log_failure": np.log(statistics["sum"] / total),
        }

    def cell_log_density(self, x, parameters):
        return parameters["log_success"] + x * parameters["log_failure"]

    def verify_parameters(self, parameters):
        super().verify_parameters(parameters)
        total = np.exp(parameters["log_success"]) + np.exp(parameters["log_failure"])
        require_sums_of_one("log_success and log_failure", total)


class Laplace(ColumnDensity):
    """About 0, with a scale for each class and column."""

    def cell_statistics(self, x):
        return {"distance": np.abs(x)}

    def parameters(self, statistics):
        return {"scale": statistics["distance"] / statistics["count"]}

    def cell_log_density(self, x, parameters):
        return -np.abs(x) / parameters["scale"] - np.log(2.0 * parameters["scale"])

    def is_valid(self, statistics):
        return (statistics["count"] > 0) & (statistics["distance"] > 0)


class TiedLaplace(Laplace):
    """A scale for each column, which all classes share: the posterior is that of the class prior."""

    def statistics(self, columns, weights, parameters=None):
        sums = super().statistics(columns, weights)
        return {"count": sums["count"], "distance": sums["distance"].sum(axis=0, keepdims=True)}

    def parameters(self, statistics):
        return {"scale": statistics["distance"] / statistics["count"].sum(axis=0, keepdims=True)}

    def cell_log_density(self, x, parameters):
        return np.repeat(super().cell_log_density(x, parameters), len(self.layout.classes), axis=1)


class FullNormal(Density):
    """A normal distribution with a covariance matrix: no product over columns."""

    def statistics(self, columns, weights, parameters=None):
        squares = np.einsum("nk,ni,nj->kij", weights, columns, columns)
        return {"count": weights.sum(axis=0), "sum": weights.T @ columns, "squares": squares}

    def parameters(self, statistics):
        count = statistics["count"][:, None]
        mean = statistics["sum"] / count
        covariance = statistics["squares"] / count[..., None] - mean[:, :, None] * mean[:, None, :]
        return {"mean": mean, "root": np.linalg.cholesky(covariance)}

    def log_density(self, columns, parameters):
        pairs = zip(parameters["mean"], parameters["root"], strict=True)
        return np.stack(
            [stats.multivariate_normal(mean, root @ root.T).logpdf(columns) for mean, root in pairs], 1
        )


WAITS = generator(20).exponential(np.array([[1.0, 4.0], [3.0, 3.0], [5.0, 1.0]])[LABELS])
EVENTS = generator(21).geometric(np.array([[0.5, 0.2], [0.3, 0.3], [0.2, 0.6]])[LABELS]) - 1.0
SIDE = np.linspace(-7.0, 12.0, 153)
GRID = np.stack(np.meshgrid(SIDE, SIDE), axis=-1).reshape(-1, 2)
EDGES = np.concatenate([np.linspace(0, 5, 200), np.linspace(5, 60, 100)[1:]])
MIDDLES, WIDTHS = (EDGES[1:] + EDGES[:-1]) / 2, np.diff(EDGES)
COUNTS = np.arange(120.0)


def pairs(values):
    return np.stack(np.meshgrid(values, values), axis=-1).reshape(-1, 2)


CASES = {
    "exponential": FamilyCase(
        Exponential().bind(LAYOUT), WAITS, K, (pairs(MIDDLES), pairs(WIDTHS)), seed=SEED
    ),
    "geometric": FamilyCase(Geometric().bind(LAYOUT), EVENTS, K, (pairs(COUNTS), 1.0), seed=SEED),
    "laplace": FamilyCase(Laplace().bind(LAYOUT), WAITS - 3.0, K, seed=SEED),
    "normal": FamilyCase(
        FullNormal().bind(LAYOUT),
        generator(22).normal(size=(N, 2)) + LABELS[:, None],
        K,
        (GRID, (SIDE[1] - SIDE[0]) ** 2),
    ),
}
APPLICABLE = {name: rule for name, rule in RULES.items() if name not in ("map", "gdt-prior", "gd", "dfe")}


def with_missing(columns):
    return np.where(generator(23).random(columns.shape) < 0.2, np.nan, columns)


def classifier(family, **options):
    return GenerativeClassifier(families=[("cells", family, every)], **options)


@pytest.mark.parametrize(
    ("name", "law"),
    [
        pytest.param(name, law, id=f"{name}-{law}")
        for name, case in CASES.items()
        for law in applicable_laws(case)
    ],
)
def test_a_density_satisfies_the_laws(name, law):
    law.check(CASES[name])


def test_missing_cells_are_marginalized_by_a_law():
    assert {"missing_values_are_marginalized", "terms_sum_to_log_density"} <= {
        law.name for law in applicable_laws(CASES["exponential"])
    }


@pytest.mark.parametrize("rule", APPLICABLE)
@pytest.mark.parametrize("name", ["exponential", "geometric", "normal"])
def test_every_rule_trains_it(name, rule):
    case = CASES[name]
    labels = np.where(np.arange(N) % 5 == 0, -1, LABELS) if rule == "em" else LABELS
    y = [None if label < 0 else "abc"[label] for label in labels]
    model = classifier(type(case.family)(), rule=APPLICABLE[rule], max_iter=15).fit(case.columns, y)
    start = classifier(type(case.family)(), rule="ml").fit(case.columns, np.array(list("abc"))[LABELS])
    assert np.isfinite(model.predict_log_proba(case.columns)).all()
    loss = -np.log(model.predict_proba(case.columns)[np.arange(N), LABELS]).mean()
    at_start = -np.log(start.predict_proba(case.columns)[np.arange(N), LABELS]).mean()
    assert loss <= at_start + (1e-12 if "rc" in rule or rule in ("tm", "ml", "gdt") else 0.1)


@pytest.mark.parametrize("rule", [GD(), MAP()])
def test_a_rule_that_needs_more_says_what(rule):
    with pytest.raises(ValueError, match="Exponential"):
        classifier(Exponential(), rule=rule).fit(WAITS, LABELS)


def predicted(name, engine):
    case = CASES[name]
    columns = with_missing(case.columns)
    model = classifier(type(case.family)(), engine=engine, rule="rc", max_iter=5, stop=None).fit(
        columns, LABELS
    )
    return model.predict_proba(columns)


@pytest.mark.parametrize("name", ["exponential", "geometric"])
def test_every_engine_computes_the_same(name):
    expected = predicted(name, Serial())
    np.testing.assert_allclose(predicted(name, Threads(2)), expected, rtol=1e-9)
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"):
        np.testing.assert_allclose(predicted(name, Dask()), expected, rtol=1e-9)


def test_a_weight_counts_as_copies_of_a_row():
    counts = generator(24).integers(0, 4, N)
    columns = with_missing(WAITS)
    weighted = classifier(Exponential(), rule="rc", max_iter=5, stop=None).fit(
        columns, LABELS, sample_weight=counts
    )
    repeated = classifier(Exponential(), rule="rc", max_iter=5, stop=None).fit(
        np.repeat(columns, counts, axis=0), np.repeat(LABELS, counts)
    )
    np.testing.assert_allclose(weighted.predict_proba(WAITS), repeated.predict_proba(WAITS), rtol=1e-9)


def test_parameters_are_those_of_the_known_cells():
    columns = with_missing(WAITS)
    model = classifier(Exponential(), rule="ml").fit(columns, LABELS)
    rates = [1 / np.nanmean(columns[c == LABELS], axis=0) for c in range(K)]
    log_rate = model.fitted_.parameters["cells"]["log_rate"]
    np.testing.assert_allclose(log_rate, np.log(rates), rtol=1e-12)
    density = stats.expon(scale=np.exp(-log_rate[None])).logpdf(columns[:, None])
    expected = np.nansum(density, axis=2) + model.fitted_.parameters["class_prior"]["log_probability"]
    np.testing.assert_allclose(
        model.predict_log_proba(columns),
        expected - np.logaddexp.reduce(expected, axis=1, keepdims=True),
        rtol=1e-9,
    )


def test_many_rows_are_computed_in_parts():
    columns = np.tile(WAITS, (700, 1))
    family = CASES["exponential"].prepared()
    parameters = family.parameters(CASES["exponential"].start())
    expected = np.tile(family.terms(WAITS, parameters).sum(axis=2), (700, 1))
    np.testing.assert_array_equal(family.log_density(columns, parameters), expected)


def test_a_shared_statistic_is_kept_for_all_classes():
    family = TiedLaplace().bind(LAYOUT)
    start = family.statistics(WAITS, np.eye(K)[LABELS])
    proposed = {"count": start["count"] + 1.0, "distance": -start["distance"]}
    kept = family.keep_valid(start, proposed)
    assert kept.frozen_classes.all()
    assert kept.frozen == K * 2 + 2
    np.testing.assert_array_equal(kept.statistics["distance"], start["distance"])
    np.testing.assert_array_equal(kept.statistics["count"], start["count"])


def test_a_density_that_all_classes_share_leaves_the_class_prior():
    model = classifier(TiedLaplace(), rule="ml").fit(with_missing(WAITS), LABELS)
    np.testing.assert_allclose(model.predict_proba(WAITS), 1.0 / K)


def test_one_class_is_frozen_and_the_others_move():
    family = Exponential().bind(LAYOUT)
    start = family.statistics(WAITS, np.eye(K)[LABELS])
    proposed = {name: 2.0 * value for name, value in start.items()}
    proposed["sum"][1, 0] = -1.0
    kept = family.keep_valid(start, proposed)
    assert kept.frozen_classes.tolist() == [False, True, False]
    assert kept.frozen == 4
    for name in start:
        np.testing.assert_array_equal(kept.statistics[name][1], start[name][1])
        np.testing.assert_array_equal(kept.statistics[name][0], 2.0 * start[name][0])


def test_an_error_names_class_column_and_parameter():
    zeros = np.where((LABELS == 1)[:, None] & [False, True], 0.0, WAITS)
    with pytest.raises(
        ValueError, match=r"class '1', column 'x1': parameter 'log_rate' of Exponential is not finite"
    ):
        classifier(Exponential()).fit(zeros, LABELS)
    missing = np.where((LABELS == 2)[:, None] & [True, False], np.nan, WAITS)
    undetermined = (
        "class '2', column 'x0': the known values do not determine the parameters of Exponential. Leave"
    )
    with pytest.raises(ValueError, match=undetermined):
        classifier(Exponential()).fit(missing, LABELS)
    constant = np.where((LABELS == 2)[:, None] & [True, False], 3.0, WAITS)
    with pytest.raises(
        ValueError, match=r"parameters of LogNormal, which needs two different values\. Leave"
    ):
        classifier(LogNormal()).fit(constant, LABELS)
    with pytest.raises(ValueError, match=r"all classes together: FullNormal has no parameters"):
        classifier(FullNormal()).fit(np.ones((N, 2)), LABELS)


class Waits(Exponential):
    def in_support(self, x):
        return x >= 0


def refused_value(model, method, rows):
    """The column and the value of the error that a method of a model raises for rows."""
    with pytest.raises(ValueError, match="which has no density in a") as caught:
        getattr(model, method)(rows)
    return re.search(r"column ('.*?') contains (\S+),", str(caught.value)).groups()


@pytest.mark.parametrize(("family", "value"), [(LogNormal(), 0.0), (LogNormal(), -2.5), (Waits(), -2.5)])
def test_a_value_without_a_density_is_an_error_that_names_it(family, value):
    odd = with_missing(WAITS)
    odd[140, 1] = value
    expected = ("'x1'", f"{value:g}")
    with pytest.raises(
        ValueError,
        match=rf"column 'x1' contains {value:g}, which has no density in a {family.__class__.__name__}:",
    ):
        classifier(family).fit(odd, LABELS)
    model = classifier(family, rule="ml").fit(WAITS, LABELS)
    for method in ("predict", "predict_proba", "score_samples", "explain"):
        assert refused_value(model, method, odd) == expected
    assert np.isfinite(model.predict_log_proba(with_missing(WAITS))).all()


def test_a_value_without_a_density_in_a_file_is_an_error(tmp_path):
    frame = pd.DataFrame(WAITS, columns=["x0", "x1"]).assign(label=LABELS.astype(str))
    frame.loc[140, "x1"] = -2.5
    frame.to_csv(tmp_path / "waits.csv", index=False)
    with pytest.raises(ValueError, match=r"column 'x1' contains -2.5, which has no density in a LogNormal"):
        classifier(LogNormal()).fit(tmp_path / "waits.csv", "label")


class Sampled(LogNormal):
    def sample(self, parameters, classes, rng, given=None):
        mean, variance = (parameters[name][classes] for name in ("mean", "variance"))
        drawn = np.exp(rng.normal(mean, np.sqrt(variance)))
        return drawn if given is None else np.where(np.isnan(given), drawn, given)


def test_given_values_of_a_sample_have_a_density():
    model = classifier(Sampled(), rule="ml").fit(WAITS, LABELS)
    rows, _ = model.sample(5, given={"x0": 2.0}, random_state=0)
    assert (rows[:, 0] == 2.0).all()
    assert (rows > 0).all()
    with pytest.raises(ValueError, match="column 'x0' contains -2, which has no density in a Sampled"):
        model.sample(5, given={"x0": -2.0}, random_state=0)


def test_a_family_that_cannot_fill_or_sample_says_so():
    model = classifier(Exponential(), rule="ml").fit(WAITS, LABELS)
    with pytest.raises(ValueError, match=r"family 'cells' \(Exponential\) cannot be sampled"):
        model.sample(3)
    with pytest.raises(ValueError, match=r"family 'cells' \(Exponential\) cannot fill its missing cells"):
        model.fill(with_missing(WAITS))
    np.testing.assert_array_equal(model.fill(WAITS), WAITS)


class WithoutEncoding(Exponential):
    reads = "waits"


def test_an_unknown_encoding_is_an_error_that_lists_those_there_are():
    known = (
        "'numbers', 'clusters', 'levels', 'cells', 'flags', 'counts': set `reads`, or give 'cells' an encoder"
    )
    with pytest.raises(ValueError, match=f"WithoutEncoding reads 'waits', which is none of {known}"):
        classifier(WithoutEncoding()).fit(WAITS, LABELS)
    parts = [("cells", WithoutEncoding(), every, Numbers())]
    assert GenerativeClassifier(families=parts).fit(WAITS, LABELS).score(WAITS, LABELS) > 0.4


class CheckedLaxly(LogNormal):
    """Accepts negative variances and any statistics."""

    def verify_parameters(self, parameters):
        ColumnDensity.verify_parameters(self, parameters)

    def verify_statistics(self, statistics):
        assert statistics


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "parameters_without_a_density_are_refused",
            r"CheckedLaxly\.verify_parameters must raise ValueError for 'variance', negated: the density sums to nan",
        ),
        (
            "damaged_statistics_are_refused",
            r"CheckedLaxly\.verify_statistics must raise ValueError for arrays without 'count'",
        ),
    ],
)
def test_a_law_that_fails_says_which_damage_was_accepted(name, message):
    known = FAMILIES["log-normal"]
    case = replace(known, family=CheckedLaxly().bind(known.layout))
    (law,) = [law for law in applicable_laws(case) if law.name == name]
    with pytest.raises(AssertionError, match=message):
        law.check(case)


def test_a_case_says_which_statistics_cannot_be_negative():
    (law,) = [law for law in FAMILY_LAWS if law.name == "damaged_statistics_are_refused"]
    law.check(FAMILIES["log-normal"])  # sums of logarithms may be negative
    with pytest.raises(
        AssertionError, match=r"for 'sum', made negative \(the case lists it as nonnegative\)"
    ):
        law.check(replace(FAMILIES["log-normal"], nonnegative=("sum",)))
    with pytest.raises(AssertionError, match=r"no statistics of these names, .*'total'"):
        law.check(replace(FAMILIES["log-normal"], nonnegative=("count", "total")))


class Centered(LogNormal):
    """Sums about the center of the layout, which another model does not share."""

    def cell_statistics(self, x):
        return {"sum": np.log(x / self.layout.center), "squares": np.log(x / self.layout.center) ** 2}


def test_sums_about_a_center_that_cannot_be_moved_break_a_law():
    known = FAMILIES["log-normal"]
    layout = replace(known.layout, center=np.array([2.0, 3.0]))
    case = replace(known, family=Centered().bind(layout))
    (law,) = [law for law in applicable_laws(case) if "cannot_be_moved" in law.name]
    with pytest.raises(AssertionError, match="Not equal"):
        law.check(case)
    assert classifier(Centered(), rule="ml").fit(WAITS, LABELS).classes_.tolist() == [0, 1, 2]


def test_a_density_of_whole_rows_refuses_missing_values():
    with pytest.raises(ValueError, match="contains NaN, and FullNormal cannot model missing values"):
        classifier(FullNormal()).fit(with_missing(WAITS), LABELS)


def test_a_class_without_a_method_is_an_error_that_names_it():
    incomplete = type("Incomplete", (ColumnDensity,), {"cell_statistics": None, "parameters": None})
    with pytest.raises(TypeError, match="cell_log_density"):
        incomplete()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            type("Mine", (), {"statistics": 1, "parameters": 1})(),
            "it has no bind, prepare, log_density, keep_valid, reads",
        ),
        (Poisson, "it is a class: make an object of it"),
        ("gaussian", "such as Gaussian"),
    ],
)
def test_an_error_says_what_a_family_lacks(given, message):
    with pytest.raises(ValueError, match=message):
        classifier(given).fit(WAITS, LABELS)


def test_a_family_of_a_user_cannot_be_saved_but_pickled(tmp_path):
    model = classifier(Exponential()).fit(WAITS, LABELS)
    with pytest.raises(ModelFileError, match="cannot be saved"):
        save(model, tmp_path / "model.calibayes")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(WAITS), model.predict_proba(WAITS))
