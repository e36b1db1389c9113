"""What holds for every check: it finds its fault and only that, says where, and can be silenced."""

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, seed, settings
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from calibayes import GaussianNB, NaiveBayes
from calibayes.checks import CHECKS, run_checks
from calibayes.checks.model_checks import Mean
from calibayes.checks.run import run_on
from calibayes.checks.subject import subject_of
from calibayes.compare import FoldResult, compare, stratified_folds
from calibayes.datasets import load
from calibayes.testing import tables
from calibayes.testing.random_tables import is_clear
from tests.checks.cases import CASES, plain_table
from tests.seeds import SEED

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"
CODES = [check.code for check in CHECKS]


def run(given, **further):
    return run_checks(given.X, given.y, **{**given.further, **further})


def test_every_check_has_a_case():
    assert list(CASES) == CODES == sorted(set(CODES))


@pytest.mark.parametrize("check", CHECKS, ids=CODES)
def test_a_check_finds_its_fault_and_nothing_without_it(check):
    case = CASES[check.code]
    faulty, faultless = run(case.faulty), run(case.faultless)
    (finding,) = [finding for finding in faulty.found if finding.code == check.code]
    assert check.code in faultless.passed, [str(finding) for finding in faultless.found]
    assert set(case.columns) == set(finding.columns)
    assert finding.title == check.title
    assert any(figure in finding.message for figure in "0123456789")
    assert all(repr(column) in finding.message for column in finding.columns[:1])
    assert finding.evidence
    assert all(isinstance(value, float | int | str) for value in finding.evidence.values())
    silenced = run(case.faulty, ignore=(check.code,))
    assert silenced.silenced == (check.code,)
    assert check.code not in {finding.code for finding in silenced.found} | set(silenced.passed)


@pytest.mark.parametrize("check", CHECKS, ids=CODES)
def test_the_page_of_a_check_has_its_section(check):
    page = PAGE.read_text(encoding="utf-8")
    headings = re.findall(r"^## (CB\d+): (.*)$", page, flags=re.MULTILINE)
    assert (check.code, check.title) in headings
    assert len(headings) == len(CHECKS)
    (section,) = re.findall(rf"^## {check.code}: .*?(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL)
    beginnings = re.findall(r"^\*\*(.*?)\*\*", section, flags=re.MULTILINE)
    assert beginnings == ["What it means.", "How it is measured.", "What to do.", "Silence it"]
    assert f'`ignore=("{check.code}",)`' in section
    anchor = re.sub(r"[^a-z0-9]+", "-", f"{check.code} {check.title}".lower())
    assert check.page.endswith(f"/checks.html#{anchor}")


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_found_in_tables_without_a_fault(seed):
    X, y = plain_table(seed, n=(100, 300, 1500)[seed % 3])
    findings = run_checks(X, y, NaiveBayes().fit(X, y) if seed == 0 else None)
    assert [str(finding) for finding in findings.found] == []
    assert set(findings.passed) | set(findings.skipped) == set(CODES)


def test_an_unknown_code_is_an_error():
    X, y = plain_table()
    with pytest.raises(ValueError, match="unknown code 'CB04': the codes are CB001 to CB"):
        run_checks(X, y, ignore=("CB04",))
    assert run_checks(X, y, ignore="CB004").silenced == ("CB004",)


def test_bad_input_is_refused():
    X, y = plain_table()
    with pytest.raises(ValueError, match="X has 600 rows and y has 599 labels"):
        run_checks(X, y[:-1])
    with pytest.raises(ValueError, match="one class"):
        run_checks(X, np.repeat("ash", len(y)))
    with pytest.raises(ValueError, match="no labels"):
        run_checks(X, np.full(len(y), None))
    with pytest.raises(ValueError, match="X must be a data frame"):
        run_checks(np.zeros(len(y)), y)
    with pytest.raises(NotFittedError):
        run_checks(X, y, NaiveBayes())


@pytest.mark.parametrize("given", ["array", "list", "sparse", "polars", "pyarrow"])
def test_tables_of_any_kind_are_read(given):
    X, y = plain_table(n=60)
    numbers = X[["height", "birds"]]
    assert len(run_checks(converted(numbers, given), list(y)).passed) > 5


def converted(frame, kind):
    if kind == "sparse":
        return pytest.importorskip("scipy.sparse").csr_array(frame.to_numpy())
    if kind in ("polars", "pyarrow"):
        library = pytest.importorskip(kind)
        return library.from_pandas(frame) if kind == "polars" else library.Table.from_pandas(frame)
    return frame.to_numpy().tolist() if kind == "list" else frame.to_numpy()


def test_odd_columns_end_in_findings_not_in_errors():
    n = 40
    X = pd.DataFrame(
        {
            "lists": [[i] for i in range(n)],
            "mixed": [True, 1.5, "x", None] * (n // 4),
            "infinite": [np.inf, -np.inf, 1.0, np.nan] * (n // 4),
            "empty": [None] * n,
            "dates": pd.date_range("2020-01-01", periods=n),
            "categories": pd.Categorical(["a", "b"] * (n // 2)),
        }
    )
    findings = run_checks(X, [0, 1] * (n // 2))
    assert len(findings.found) + len(findings.passed) + len(findings.skipped) == len(CHECKS)


@pytest.mark.parametrize("seed", range(3))
def test_rare_levels_in_random_order_are_no_shift(seed):
    """Levels that occur once or twice must not be joined by where they first occur."""
    X, y = plain_table()
    towns = np.random.default_rng(seed).integers(0, 2 * len(y), len(y))
    findings = run_checks(X.assign(town=[f"t{town}" for town in towns]), y)
    assert {finding.code for finding in findings.found} <= {"CB015"}


@seed(SEED)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(tables())
@pytest.mark.filterwarnings("ignore:The number of unique classes is greater:UserWarning")
def test_any_table_is_checked_or_refused_clearly(table):
    try:
        findings = run_checks(table.training, table.labels)
    except ValueError as error:
        if not is_clear(error):
            raise
        return
    assert len(findings.found) + len(findings.passed) + len(findings.skipped) == len(CHECKS)


def test_results_of_a_comparison_are_checked():
    data = load("penguins")
    pairs = [("GaussianNB", "ml"), ("GaussianNB", "rc")]
    results = list(compare(data, pairs, stratified_folds(np.asarray(data.target), 3, 0)))
    findings = run_checks(data.data, data.target, results=results)
    assert {"CB001", "CB013"} <= set(findings.passed)
    assert "CB002" not in findings.skipped
    alone = run_checks(data.data, data.target, results=results[:1])
    assert "ml" in alone.skipped["CB002"]
    assert "at least two folds" in alone.skipped["CB001"]


def test_models_without_held_out_rows_are_skipped_with_the_reason():
    X, y = plain_table(n=100)
    numbers = X[["height", "birds"]]
    findings = run_checks(numbers, y, LogisticRegression().fit(numbers, y))
    assert "held_out_" in findings.skipped["CB012"]
    other = NaiveBayes(rule="ml").fit(X[:50], y[:50]).with_held_out(X[50:], y[50:])
    skipped = run_checks(X, y, other).skipped
    assert "training rows" in skipped["CB001"]
    assert "needs at least 100 held-out rows, has 50" in skipped["CB012"]


def test_large_tables_are_sampled_and_constant_columns_confirmed(monkeypatch):
    monkeypatch.setattr("calibayes.checks.subject.MOST_CELLS", 20_000)
    n, d = 3000, 10
    X = np.random.default_rng(0).normal(size=(n, d))
    X[:, 0], X[:, 1] = 1.0, 2.0
    rows = np.random.default_rng(0).choice(n, 2000, replace=False)
    X[np.setdiff1d(np.arange(n), rows)[0], 1] = 3.0  # varies outside of the sample only
    findings = run_checks(X, np.arange(n) % 2)
    assert findings.scope == "2,000 of 3,000 rows, 10 columns (drawn at random)"
    assert [(finding.code, finding.columns) for finding in findings.found] == [("CB008", ("x0",))]


def test_wide_tables_are_sampled(monkeypatch):
    monkeypatch.setattr("calibayes.checks.subject.MOST_COLUMNS", 20)
    X = np.random.default_rng(0).normal(size=(100, 50))
    assert run_checks(X, np.arange(100) % 2).scope == "all 100 rows, 20 of 50 columns (drawn at random)"


@pytest.mark.parametrize(
    ("mean", "error", "deviations"),
    [(0.0, 0.0, 0.0), (0.1, 0.0, np.inf), (-0.1, 0.0, -np.inf), (1.0, 5e-324, np.inf), (1.0, 0.5, 2.0)],
)
def test_means_without_spread_have_infinite_deviations(mean, error, deviations):
    assert Mean(mean, error).deviations == deviations


def test_dates_and_decimals_are_no_identifiers_equal_columns_or_rare_levels():
    n, rng = 300, np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "day": pd.date_range("2024-01-01", periods=n).astype(str),
            "price": [Decimal(int(value)) / 7 for value in rng.permutation(n)],
            "month": pd.period_range("2000-01", periods=n, freq="M")[rng.permutation(n)],
            "key": [f"k{number}" for number in range(n)],
        }
    )
    found = run_checks(X, rng.integers(0, 2, n)).found
    assert [finding.columns for finding in found if finding.code in ("CB004", "CB014", "CB015")] == [("key",)]


@pytest.mark.parametrize(
    "names",
    [
        [0, 1],
        [True, False],
        pd.date_range("2024", periods=2),
        pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]),
    ],
    ids=["integers", "booleans", "dates", "tuples"],
)
def test_names_of_columns_need_not_be_strings(names):
    X, y = plain_table(n=60)
    findings = run_checks(X[["height", "birds"]].assign(birds=1).set_axis(names, axis=1), y)
    assert findings.scope == "all 60 rows, 2 columns"
    assert [finding.columns for finding in findings.found if finding.code == "CB008"] == [
        (str(list(names)[1]),)
    ]


def test_the_scope_of_one_column_is_singular():
    X, y = plain_table(n=60)
    assert run_checks(X[["height"]], y).scope == "all 60 rows, 1 column"


@pytest.mark.filterwarnings("ignore:The number of unique classes is greater:UserWarning")
def test_classes_of_one_row_each_are_no_leak():
    X = np.random.default_rng(0).normal(size=(200, 2))
    findings = run_checks(X, [f"class {i}" for i in range(200)])
    assert "CB003" in findings.passed


def test_weighted_models_are_checked_with_their_weights():
    """A model of weighted rows predicts weighted frequencies: unweighted ones would differ from them."""
    rng = np.random.default_rng(0)
    y = (rng.random(2000) < 0.1).astype(int)
    X = rng.normal(size=(2000, 2))
    X[:, 0] += y
    model = GaussianNB(rule="ml").fit(X, y, np.where(y == 1, 3.0, 1.0))
    assert {"CB012", "CB013"} <= set(run_checks(X, y, model).passed)
    unweighted = replace(model.held_out_, weight=np.ones(len(y)))
    findings = run_on(subject_of(X, y, model, held_out=unweighted), ())
    assert "CB012" in {finding.code for finding in findings.found}


def test_errors_of_a_model_are_compared_with_the_classes_of_its_own_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    model = GaussianNB(rule="ml").fit(X, y)
    findings = run_checks(X[:100], np.repeat([0, 1], [97, 3]), model)
    (finding,) = [finding for finding in findings.found if finding.code == "CB013"]
    record = model.held_out_
    error = np.mean(record.log_posterior.argmax(axis=1) != record.codes)
    assert f"is {100 * error:.0f} %; always predicting" in finding.message


@pytest.mark.parametrize(("compared_rows", "is_found"), [(100, False), (None, True)])
def test_errors_of_folds_are_compared_by_the_number_of_their_rows(compared_rows, is_found):
    X, y = plain_table()
    results = [
        FoldResult("KernelNB", "ml", error, 0.5, 0.2, 0.2, 0, 1.0) for error in (0.1, 0.25, 0.4, 0.2, 0.3)
    ]
    findings = run_on(subject_of(X, y, results=results, compared_rows=compared_rows), ())
    assert ("CB006" in {finding.code for finding in findings.found}) == is_found
