"""The densities of single columns against SciPy: every rule, every engine, weights, missing values, files, and their errors."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats

from calibayes import GenerativeClassifier, NaiveBayes, every, load, save
from calibayes import families as f
from calibayes.analysis.unknown_cells import LEAST_PROBABILITY, cells_of
from calibayes.core.protocols import Layout
from calibayes.engines import Dask, Serial, Threads
from calibayes.export.model_expressions import model_expressions
from calibayes.families.angles import concentration_of
from calibayes.families.compositions import alpha_of
from calibayes.families.positive_numbers import gamma_shape
from calibayes.rules import DFE, GD
from tests.cases import RULES
from tests.export.evaluate import evaluate
from tests.seeds import generator

K, N = 3, 180
LABELS = np.arange(N) % K
NAMES = np.array(["a", "b", "c"])


class Shipped(NamedTuple):
    """A density, rows of it, the distribution of SciPy, and SciPy's estimate from the known values of a column."""

    family: Any
    columns: np.ndarray
    frozen: Any
    """Function of the parameters -> frozen distribution."""
    estimate: Any
    """Function of numbers -> frozen distribution."""
    kind: str | None
    outside: tuple[float, ...]
    """Values that have no density."""


def drawn(draw, first, second):
    """Numbers with other parameters in each class and column."""
    a, b = np.array(first)[LABELS], np.array(second)[LABELS]
    return draw(a, b)


SHAPES = [[1.0, 4.0], [2.5, 1.5], [6.0, 0.7]]
SCALES = [[2.0, 1.0], [0.5, 2.0], [1.0, 3.0]]


def gamma_of_moments(x):
    shape = x.mean() ** 2 / x.var()
    return stats.gamma(shape, scale=x.mean() / shape)


def gamma_of(p):
    return stats.gamma(p["shape"], scale=1.0 / p["rate"])


SHIPPED = {
    "exponential": Shipped(
        f.Exponential(),
        drawn(lambda a, b: generator(50).exponential(b), SHAPES, SCALES),
        lambda p: stats.expon(scale=1.0 / p["rate"]),
        lambda x: stats.expon(*stats.expon.fit(x, floc=0)),
        "exponential",
        (-2.5,),
    ),
    "gamma": Shipped(
        f.GammaDensity(),
        drawn(generator(51).gamma, SHAPES, SCALES),
        gamma_of,
        lambda x: stats.gamma(*stats.gamma.fit(x, floc=0)),
        "gamma",
        (0.0, -2.5),
    ),
    "gamma by moments": Shipped(
        f.GammaByMoments(),
        drawn(generator(52).gamma, SHAPES, SCALES),
        gamma_of,
        gamma_of_moments,
        None,
        (0.0, -2.5),
    ),
    "lognormal": Shipped(
        f.LogNormal(),
        drawn(generator(53).lognormal, SCALES, [[0.5, 1.0], [0.7, 0.3], [1.5, 1.0]]),
        lambda p: stats.lognorm(np.sqrt(p["variance"]), scale=np.exp(p["mean"])),
        lambda x: stats.lognorm(*stats.lognorm.fit(x, floc=0)),
        "lognormal",
        (0.0, -2.5),
    ),
}
SHIPPED |= {
    "negative binomial": Shipped(
        f.NegativeBinomial(),
        drawn(
            lambda a, b: generator(56).negative_binomial(a, 1.0 / (1.0 + 2.0 * b)).astype(float),
            SHAPES,
            SCALES,
        ),
        lambda p: stats.nbinom(1.0 / p["dispersion"], 1.0 / (1.0 + p["dispersion"] * p["mean"])),
        lambda x: stats.nbinom(x.mean() ** 2 / (x.var() - x.mean()), x.mean() / x.var()),
        "negative_binomial",
        (2.5, -1.0),
    ),
    "von Mises": Shipped(
        f.VonMises(),
        drawn(
            generator(58).vonmises,
            [[0.5, 2.0], [2.5, -2.0], [3.1, 1.0]],
            [[0.5, 9.0], [2.0, 4.0], [30.0, 1.0]],
        ),
        lambda p: stats.vonmises(p["concentration"], loc=p["mean"]),
        lambda x: stats.vonmises(*stats.vonmises.fit(x, fscale=1)),
        "vonmises",
        (),
    ),
}
BY_COLUMN = list(SHIPPED)
PARTS = generator(59).standard_gamma(np.array([[4.0, 2.0, 3.0], [2.0, 5.0, 4.0], [0.7, 1.0, 3.0]])[LABELS])
SHIPPED["dirichlet"] = Shipped(
    f.DirichletDensity(), PARTS / PARTS.sum(axis=1, keepdims=True), None, None, "dirichlet", (0.0, -0.5)
)
POSITIVE = ["exponential", "gamma", "gamma by moments", "lognormal"]
OF_KINDS = [name for name, shipped in SHIPPED.items() if shipped.kind]


def with_gaps(columns):
    return np.where(generator(54).random(columns.shape) < 0.2, np.nan, columns)


def log_density(shipped, x, parameters):
    """SciPy's log density or log probability."""
    distribution = shipped.frozen(parameters)
    return distribution.logpdf(x) if hasattr(distribution.dist, "logpdf") else distribution.logpmf(x)


def classifier(family, **options):
    return GenerativeClassifier(families=[("cells", family, every)], **options)


def fitted(name, columns=None, labels=LABELS, weight=None, **options):
    shipped = SHIPPED[name]
    columns = shipped.columns if columns is None else columns
    return classifier(shipped.family, **options).fit(columns, labels, sample_weight=weight)


def parameters_of(model):
    return model.fitted_.parameters["cells"]


def frame_of(name):
    columns = with_gaps(SHIPPED[name].columns)
    return pd.DataFrame(columns, columns=list("xyz")[: columns.shape[1]])


def of_kind(name, columns, **options):
    """Naive Bayes with all columns of a kind."""
    return NaiveBayes(kinds=dict.fromkeys(columns, SHIPPED[name].kind), **options)


@pytest.mark.parametrize("name", BY_COLUMN)
def test_log_densities_are_those_of_scipy(name):
    shipped, columns = SHIPPED[name], with_gaps(SHIPPED[name].columns)
    model = fitted(name, columns, rule="ml")
    parameters = {key: value[None] for key, value in parameters_of(model).items()}
    cells = np.where(np.isnan(columns), 0.0, 1.0)[:, None] * np.nan_to_num(
        log_density(shipped, columns[:, None], parameters)
    )
    expected = cells.sum(axis=2) + model.fitted_.parameters["class_prior"]["log_probability"]
    np.testing.assert_allclose(model.predict_joint_log_proba(columns), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", BY_COLUMN)
def test_parameters_are_those_that_scipy_estimates_from_the_known_values(name):
    """SciPy maximizes the likelihood with a looser tolerance: the distributions are compared, where rows are."""
    shipped, columns = SHIPPED[name], with_gaps(SHIPPED[name].columns)
    parameters = parameters_of(fitted(name, columns, rule="ml"))
    for c in range(K):
        for j, column in enumerate(columns.T):
            known = column[(c == LABELS) & ~np.isnan(column)]
            expected = shipped.estimate(known)
            found = shipped.frozen({key: value[c, j] for key, value in parameters.items()})
            density = "logpdf" if hasattr(found.dist, "logpdf") else "logpmf"
            np.testing.assert_allclose(
                getattr(found, density)(known), getattr(expected, density)(known), rtol=1e-5, atol=1e-5
            )


@pytest.mark.parametrize("rule", ["ml", "rc"])
@pytest.mark.parametrize("name", SHIPPED)
def test_a_weight_counts_as_copies_of_a_row(name, rule):
    counts, columns = generator(55).integers(0, 4, N), with_gaps(SHIPPED[name].columns)
    options: dict[str, Any] = {"rule": rule, "max_iter": 5, "stop": None}
    weighted = fitted(name, columns, weight=counts, **options)
    repeated = fitted(name, np.repeat(columns, counts, axis=0), np.repeat(LABELS, counts), **options)
    np.testing.assert_allclose(
        weighted.predict_proba(columns), repeated.predict_proba(columns), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        (name, rule)
        for name, shipped in SHIPPED.items()
        for rule, trains in RULES.items()
        if all(isinstance(shipped.family, ability) for ability in trains.needs) and rule != "gd"
    ],
)
def test_every_rule_trains_it_to_a_valid_model(name, rule):
    columns = with_gaps(SHIPPED[name].columns)
    labels = [None if rule == "em" and i % 5 == 0 else NAMES[c] for i, c in enumerate(LABELS)]
    model = fitted(name, columns, labels, rule=RULES[rule], max_iter=20, stop=None)
    state = model.fitted_
    assert np.isfinite(model.predict_log_proba(columns)).all()
    assert state.model.families["cells"].is_valid(state.statistics["cells"]).all()
    state.model.families["cells"].verify_parameters(state.parameters["cells"])
    if model.n_iter_ > 1:
        assert model.history_["objective"][1:].max() > model.history_["objective"][0]


@pytest.mark.parametrize("name", [name for name in SHIPPED if hasattr(SHIPPED[name].family, "natural")])
def test_gradient_descent_trains_it(name):
    columns = with_gaps(SHIPPED[name].columns)
    model = fitted(name, columns, rule=GD(step=0.05), max_iter=20, stop=None)
    assert np.isfinite(model.predict_log_proba(columns)).all()
    assert model.history_["log_loss"][-1] < model.history_["log_loss"][0]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_rule_of_counts_says_that_it_is_not_for_it(name):
    with pytest.raises(ValueError, match=type(SHIPPED[name].family).__name__):
        fitted(name, rule=DFE())


def predicted(name, engine):
    columns = with_gaps(SHIPPED[name].columns)
    return fitted(name, columns, engine=engine, max_iter=3, stop=None).predict_proba(columns)


@pytest.mark.parametrize("name", SHIPPED)
def test_threads_compute_the_same(name):
    np.testing.assert_allclose(predicted(name, Threads(2)), predicted(name, Serial()), rtol=1e-9)


def test_a_cluster_computes_the_same():
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"):
        found = {name: predicted(name, Dask()) for name in SHIPPED}
    for name, probabilities in found.items():
        np.testing.assert_allclose(probabilities, predicted(name, Serial()), rtol=1e-9)


@pytest.mark.parametrize("rule", ["ml", "rc"])
@pytest.mark.parametrize("name", OF_KINDS)
def test_files_give_the_same_model_as_tables(name, rule, tmp_path):
    columns = frame_of(name)
    rows = columns.assign(label=NAMES[LABELS])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    model = of_kind(name, columns, rule=rule, max_iter=5, stop=None)
    streamed = model.fit(tmp_path / "rows.csv", "label").predict_proba(columns)
    in_memory = model.fit(columns, rows["label"]).predict_proba(columns)
    np.testing.assert_allclose(streamed, in_memory, rtol=1e-9)


@pytest.mark.parametrize("name", OF_KINDS)
def test_a_saved_model_is_the_same(name, tmp_path):
    columns = frame_of(name)
    model = of_kind(name, columns).fit(columns, LABELS)
    save(model, tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(columns), model.predict_proba(columns))
    assert loaded.schema_["x"].kind == SHIPPED[name].kind


@pytest.mark.parametrize("name", OF_KINDS)
def test_merged_and_forgotten_rows_are_those_of_a_fit(name):
    columns, half = frame_of(name), N // 2
    whole, first, second = (
        of_kind(name, columns, rule="ml").fit(columns[rows], LABELS[rows])
        for rows in (slice(None), slice(None, half), slice(half, None))
    )
    expected = whole.predict_proba(columns)
    np.testing.assert_allclose(first.merge(second).predict_proba(columns), expected, rtol=1e-8)
    forgotten = whole.forget(columns[half:], LABELS[half:]).predict_proba(columns)
    np.testing.assert_allclose(forgotten, first.predict_proba(columns), rtol=1e-7)


@pytest.mark.parametrize("name", SHIPPED)
def test_contributions_samples_and_imputed_values(name):
    columns = with_gaps(SHIPPED[name].columns)
    model = fitted(name, columns, rule="ml")
    assert np.isfinite(list(model.explain(columns).overall().values())).all()
    rows, _ = model.sample(50, given={"x0": SHIPPED[name].columns[0, 0]}, random_state=0)
    assert (rows[:, 0] == SHIPPED[name].columns[0, 0]).all()
    assert SHIPPED[name].family.in_support(rows).all()
    filled = model.fill(columns)
    np.testing.assert_array_equal(filled[~np.isnan(columns)], columns[~np.isnan(columns)])
    assert np.isfinite(filled).all()


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, shipped in SHIPPED.items() for value in shipped.outside]
)
def test_a_value_without_a_density_is_an_error_of_fits_and_predictions(name, value):
    family = type(SHIPPED[name].family).__name__
    odd = with_gaps(SHIPPED[name].columns)
    odd[140, 1] = value
    message = f"column 'x1' contains {value:g}, which has no density in a {family}: correct or remove it"
    with pytest.raises(ValueError, match=message):
        fitted(name, odd)
    model = fitted(name, rule="ml")
    for method in ("predict", "predict_proba", "score_samples", "explain"):
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(odd)


@pytest.mark.parametrize("name", POSITIVE)
def test_an_export_has_no_probabilities_for_a_value_without_a_density(name):
    model = fitted(name, rule="ml")
    first, second = SHIPPED[name].columns[:4].T.copy()
    second[1], second[2] = -2.5, np.nan
    columns = {"x0": first, "x1": second}
    found = evaluate(model_expressions(model).probabilities, columns, 4)
    known = np.array([True, False, True, True])
    assert np.isnan(found[1]).all()
    expected = model.predict_proba(np.stack([first, second], axis=1)[known])
    np.testing.assert_allclose(found[known], expected, rtol=1e-9)


@pytest.mark.parametrize("name", POSITIVE)
def test_units_change_nothing(name):
    columns = with_gaps(SHIPPED[name].columns)
    model, scaled = (fitted(name, unit * columns, max_iter=8, stop=None) for unit in (1.0, 2.0**20))
    np.testing.assert_allclose(
        scaled.predict_proba(2.0**20 * columns), model.predict_proba(columns), rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("name", OF_KINDS)
def test_a_kind_has_a_prior_so_that_a_constant_class_is_no_error(name):
    columns = SHIPPED[name].columns.copy()
    columns[LABELS == 1], columns[LABELS == 2, 1] = columns[1], np.nan
    model = of_kind(name, range(columns.shape[1])).fit(columns, LABELS)
    assert np.isfinite(model.predict_log_proba(columns)).all()


@pytest.mark.parametrize("name", [name for name in SHIPPED if SHIPPED[name].family.requirement])
def test_a_class_without_an_estimate_is_an_error_that_says_what_it_needs(name):
    columns = SHIPPED[name].columns.copy()
    columns[LABELS == 1] = 0.0 if name == "exponential" else columns[1]
    needs = SHIPPED[name].family.requirement
    with pytest.raises(ValueError, match=rf"class '1'(, column 'x0')?: .*, which needs {needs}\. Leave"):
        fitted(name, columns)


def test_prior_rows_are_rows_of_all_classes_together():
    """Each class with two further rows at the mean of all rows, for a density whose estimate depends on means alone."""
    columns = SHIPPED["exponential"].columns
    model = classifier(f.Exponential(prior_rows=2.0), rule="ml").fit(columns, LABELS)
    sums = np.stack([columns[c == LABELS].sum(axis=0) for c in range(K)])
    expected = (N / K + 2.0) / (sums + 2.0 * columns.mean(axis=0))
    np.testing.assert_allclose(parameters_of(model)["rate"], expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [1e-3, 0.02, 0.5, 3.0, 40.0, 2e3, 9e3, 2e4, 1e6])
def test_the_shape_of_a_gamma_density_solves_its_equation_over_all_sizes(shape):
    """Large shapes by the asymptotic series of log(shape) - psi(shape), which the subtraction of both loses."""
    series = 1 / (2 * shape) + 1 / (12 * shape**2) - 1 / (120 * shape**4)
    excess = series if shape > 100.0 else np.log(shape) - special.psi(shape)
    np.testing.assert_allclose(gamma_shape(np.array([excess])), shape, rtol=1e-9)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "1"])
def test_prior_rows_must_be_a_number_from_0_on(value):
    with pytest.raises(ValueError, match="prior_rows must be a"):
        f.Exponential(prior_rows=value)


# -- The limit of Poisson, concentrated angles, and compositions ---------------------------------------------


@pytest.mark.parametrize("dispersion", [0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0, 1e3])
def test_small_dispersions_lead_to_the_poisson_distribution(dispersion):
    """Below 1e-8 the log probability differs from that of Poisson by the first term of its series."""
    x, mean = np.arange(200.0)[:, None, None], np.full((1, 1), 30.0)
    parameters = {"mean": mean, "dispersion": np.full((1, 1), dispersion)}
    found = f.NegativeBinomial().cell_log_density(x, parameters)
    if dispersion > 1e-8:
        n = 1.0 / dispersion
        expected, tolerance = stats.nbinom(n, 1.0 / (1.0 + dispersion * mean)).logpmf(x), 1e-8
    else:
        first = 0.5 * dispersion * ((x - mean) ** 2 - x)
        expected, tolerance = stats.poisson(mean).logpmf(x) + first, 1e4 * dispersion**2 + 1e-10
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=tolerance)


def test_a_variance_below_the_mean_is_the_poisson_distribution():
    columns = np.where(
        LABELS[:, None] == 1, 4.0 + np.arange(N)[:, None] % 2, SHIPPED["negative binomial"].columns
    )
    columns[LABELS == 2] = 0.0
    model = fitted("negative binomial", columns, rule="ml")
    parameters = parameters_of(model)
    assert (parameters["dispersion"][1:] == 0.0).all()
    assert (parameters["dispersion"][0] > 0.0).all()
    expected = stats.poisson(parameters["mean"][1]).logpmf(columns).sum(axis=1)
    np.testing.assert_allclose(model.predict_joint_log_proba(columns)[:, 1], expected - np.log(K), rtol=1e-9)
    assert np.isfinite(model.predict_log_proba(columns)).all()


@pytest.mark.parametrize("concentration", [0.0, 1e-6, 0.3, 2.0, 40.0, 3e3, 1e5, 1e8])
def test_concentrations_are_those_of_the_mean_length_over_all_sizes(concentration):
    """Large ones by the asymptotic series of I1 / I0 (Abramowitz and Stegun 9.7.1)."""
    c = concentration
    series = 1 - 1 / (2 * c) - 1 / (8 * c**2) - 1 / (8 * c**3) if c > 1e3 else special.i1e(c) / special.i0e(c)
    np.testing.assert_allclose(concentration_of(np.array([series])), c, rtol=1e-7)


def test_large_concentrations_have_densities_of_normal_distributions():
    parameters = {"mean": np.full((1, 1), 1.5), "concentration": np.full((1, 1), 1e10)}
    x = 1.5 + np.linspace(-4e-5, 4e-5, 9)[:, None, None]
    expected = stats.norm(1.5, 1e-5).logpdf(x)
    np.testing.assert_allclose(f.VonMises().cell_log_density(x, parameters), expected, rtol=1e-6)


def test_numbers_that_differ_by_a_period_are_the_same_and_units_change_nothing():
    columns = with_gaps(SHIPPED["von Mises"].columns)
    hours = columns * 24.0 / (2.0 * np.pi)
    model, of_hours = (classifier(f.VonMises(period=p)) for p in (2.0 * np.pi, 24.0))
    expected = model.fit(columns, LABELS).predict_proba(columns)
    np.testing.assert_allclose(of_hours.fit(hours, LABELS).predict_proba(hours + 48.0), expected, rtol=1e-7)


def test_log_densities_of_compositions_are_those_of_scipy():
    columns = SHIPPED["dirichlet"].columns
    model = fitted("dirichlet", rule="ml")
    alpha = parameters_of(model)["alpha"]
    expected = np.array([[stats.dirichlet(a).logpdf(row) for a in alpha] for row in columns]) - np.log(K)
    np.testing.assert_allclose(model.predict_joint_log_proba(columns), expected, rtol=1e-9)
    gappy = columns.copy()
    gappy[:, 2] = np.nan  # the missing part is 1 minus the others
    np.testing.assert_allclose(model.predict_joint_log_proba(gappy), expected, rtol=1e-9)
    gappy[:, 1] = np.nan  # one part alone has a beta distribution
    rest = alpha.sum(axis=1) - alpha[:, 0]
    expected = stats.beta(alpha[:, 0], rest).logpdf(columns[:, :1]) - np.log(K)
    np.testing.assert_allclose(model.predict_joint_log_proba(gappy), expected, rtol=1e-9)


def test_parameters_of_compositions_have_the_highest_likelihood():
    columns, alpha = SHIPPED["dirichlet"].columns, parameters_of(fitted("dirichlet", rule="ml"))["alpha"]
    for c in range(K):
        rows = columns[c == LABELS].T

        def loss(logs, rows=rows):
            return -stats.dirichlet(np.exp(logs)).logpdf(rows).sum()

        best = optimize.minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-7})
        np.testing.assert_allclose(alpha[c], np.exp(best.x), rtol=1e-4)


@pytest.mark.parametrize(
    "alpha",
    [[1.0, 2.0, 3.0], [0.01, 0.02, 0.5], [1e-3, 5.0, 100.0], [3e2, 0.02, 0.02], [1e-4] * 3, [1e5] * 3],
)
def test_parameters_of_compositions_are_found_over_all_sizes(alpha):
    mean_log = special.psi(np.array([alpha])) - special.psi(sum(alpha))
    np.testing.assert_allclose(alpha_of(mean_log), [alpha], rtol=1e-8)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            [0.5, 0.4, 0.3],
            "the parts 'x0', 'x1', 'x2' of a row sum to 1.2, and a DirichletDensity is one of parts",
        ),
        ([0.7, 0.5, np.nan], "the known parts 'x0', 'x1', 'x2' of a row sum to 1.2"),
    ],
)
def test_parts_that_do_not_sum_to_1_are_an_error(row, message):
    columns = SHIPPED["dirichlet"].columns.copy()
    model = fitted("dirichlet", columns)
    columns[7] = row
    for method in (lambda: fitted("dirichlet", columns), lambda: model.predict(columns)):
        with pytest.raises(ValueError, match=message):
            method()


def test_a_composition_of_one_column_is_an_error():
    with pytest.raises(
        ValueError, match="a DirichletDensity needs two or more columns that sum to 1, got 'x0'"
    ):
        fitted("dirichlet", SHIPPED["dirichlet"].columns[:, :1])


@pytest.mark.parametrize("period", [0.0, -1.0, np.nan, "day"])
def test_a_period_must_be_a_positive_number(period):
    with pytest.raises(ValueError, match="period must be a"):
        f.VonMises(period=period)


@pytest.mark.parametrize("name", [name for name in OF_KINDS if name != "dirichlet"])
def test_values_of_unknown_cells_have_their_whole_probability(name):
    """`questions` integrates over numbers above 0 and one period, and sums over counts."""
    columns = frame_of(name)
    model = of_kind(name, columns, rule="ml").fit(columns, LABELS)
    unknown = pd.DataFrame({"x": [np.nan, np.nan], "y": [np.nan, float(SHIPPED[name].columns[0, 1])]})
    cells = cells_of(model, unknown)
    for column in (0, 1):
        for rows, log_joint in cells.answers(column):
            total = np.exp(np.logaddexp.reduce(log_joint, axis=1))
            np.testing.assert_allclose(total, np.exp(cells.log_joint[rows]), rtol=1.0 - LEAST_PROBABILITY)
    assert set(model.questions(unknown).best) <= {"x", "y"}


def test_the_last_unknown_part_of_a_composition_is_no_question():
    columns = frame_of("dirichlet")
    model = of_kind("dirichlet", columns, rule="ml").fit(columns, LABELS)
    with pytest.raises(ValueError, match="Leave out columns that are nearly functions of others"):
        model.questions(pd.DataFrame({"x": [0.2], "y": [0.3], "z": [np.nan]}))


def test_a_column_that_would_become_invalid_is_kept_and_the_others_move():
    family = f.GammaDensity().bind(Layout(("a", "b", "c"), ("x0", "x1")))
    start = family.statistics(SHIPPED["gamma"].columns, np.eye(K)[LABELS])
    proposed = {name: 1.5 * value for name, value in start.items()}
    proposed["sum"][1, 0] = -1.0
    kept = family.keep_valid(start, proposed)
    assert kept.frozen == 3
    assert not kept.frozen_classes.any()
    for name, value in kept.statistics.items():
        moved = np.ones((K, 2), dtype=bool)
        moved[1, 0] = False
        np.testing.assert_allclose(value, np.where(moved, 1.5, 1.0) * start[name])
