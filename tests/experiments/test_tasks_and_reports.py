"""Tasks, the result cache, reports and the files written from them."""

import csv
import math
import os
import signal
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as SklearnQDA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import KBinsDiscretizer

from calibayes import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from calibayes.plots import panels
from calibayes.reproduction.catalog import PAPERS, select_experiments
from calibayes.reproduction.claims import Claim, best, better, no_worse, reach
from calibayes.reproduction.experiment import ResultCache, Settings, run_tasks, task_key
from calibayes.reproduction.pages import (
    agreement_counts,
    agreement_summary,
    counts_with_versions,
    format_pair,
    to_csv,
    to_markdown,
    write_page,
    write_report,
)
from calibayes.reproduction.papers.generative_models_notes import EXAMPLE
from calibayes.reproduction.procedures import (
    Above,
    Cleaning,
    DataEntry,
    FitWithTestRows,
    HeldOutSplit,
    TrainingCurve,
    WholeTableCurve,
)
from calibayes.reproduction.published_updates import PrintedGradient, UncheckedCalibration, _on_simplex
from calibayes.reproduction.result_tables import (
    BoxNumbers,
    ExperimentReport,
    Figure,
    NumberPair,
    TableRow,
    published_table,
    read_numbers,
)
from calibayes.reproduction.simulations import SimulatedTrials, TwoGaussians, UniformChain, fit_projection
from calibayes.rules import RC

IRIS = DataEntry("iris", "iris")


@dataclass(frozen=True, eq=False)
class _Given(Cleaning):
    """A table instead of the one that an entry reads."""

    columns: object = None
    target: object = None

    def apply(self, entry):
        return self.columns, self.target


CURVE = TrainingCurve(IRIS, Cleaning(), LinearDiscriminantAnalysis(rule=RC(step=0.1), stop=None, max_iter=2))


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("CALIBAYES_DATA", raising=False)


def test_keys_depend_on_the_task_and_the_data(tmp_path, monkeypatch):
    same = TrainingCurve(
        IRIS, Cleaning(), LinearDiscriminantAnalysis(rule=RC(step=0.1), stop=None, max_iter=2)
    )
    assert task_key(CURVE) == task_key(same)
    others = [
        replace(CURVE, cleaning=Cleaning(standardize=True)),
        replace(CURVE, model=LinearDiscriminantAnalysis(rule=RC(step=0.2), stop=None, max_iter=2)),
        replace(CURVE, data=replace(IRIS, skip=1)),
    ]
    assert len({task_key(task) for task in [CURVE, *others]}) == 4
    before = task_key(CURVE)
    (tmp_path / "iris.csv.gz").write_bytes(b"another table")
    monkeypatch.setenv("CALIBAYES_DATA", str(tmp_path))
    assert task_key(CURVE) != before


def test_the_cache_has_no_incomplete_results(tmp_path):
    cache = ResultCache(tmp_path / "cache")
    assert cache.get("a") is None
    cache.put("a", {"error": [0.1]})
    assert cache.get("a") == {"error": [0.1]}
    (tmp_path / "cache" / "b.json").write_text('{"error": [0.', encoding="utf-8")
    assert cache.get("b") is None
    assert not list((tmp_path / "cache").glob("*.part"))


@pytest.mark.parametrize(
    "content",
    [b"null", b"5", b"{}", b"[]", b'[["error", 1]]', b'"x"', b"\xff\xfe", b"", b'{"key": "c", "result": {}}'],
)
def test_damaged_results_are_not_used(tmp_path, content):
    (tmp_path / f"{task_key(CURVE)}.json").write_bytes(content)
    assert ResultCache(tmp_path).get(task_key(CURVE)) is None


def test_a_damaged_result_is_computed_again(tmp_path):
    cache = ResultCache(tmp_path)
    (tmp_path / f"{task_key(CURVE)}.json").write_bytes(b"null")
    assert len(run_tasks([CURVE], cache, 1, lambda count: None)[task_key(CURVE)]["error"]) == 3
    assert cache.get(task_key(CURVE)) is not None


def test_a_result_under_the_key_of_another_task_is_not_used(tmp_path):
    cache = ResultCache(tmp_path)
    cache.put("a", {"error": [0.1]})
    (tmp_path / "a.json").rename(tmp_path / "b.json")
    assert cache.get("b") is None


@dataclass(frozen=True)
class Killed:
    """A task whose process is killed."""

    def inputs(self):
        return ()

    def run(self):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_is_an_error_and_finished_results_are_kept(tmp_path):
    cache = ResultCache(tmp_path)
    with pytest.raises(ChildProcessError, match=r"process .* ended unexpectedly.*--jobs"):
        run_tasks([CURVE, Killed()], cache, 1, lambda count: None)
    assert cache.get(task_key(CURVE)) is not None


def test_cached_results_are_not_computed_again(tmp_path):
    cache, finished = ResultCache(tmp_path), []
    first = run_tasks([CURVE, CURVE], cache, 1, finished.append)
    assert finished == [0, 1]
    assert len(first[task_key(CURVE)]["error"]) == 3
    cache.put(task_key(CURVE), {"error": [7.0]})
    assert run_tasks([CURVE], cache, 1, finished.append)[task_key(CURVE)] == {"error": [7.0]}


def test_a_failed_fit_is_reported_and_not_cached(tmp_path):
    singular = replace(CURVE, data=replace(IRIS, rows=51), model=QuadraticDiscriminantAnalysis(prior=None))
    results = run_tasks([singular], ResultCache(tmp_path), 1, lambda count: None)
    assert "singular" in results[task_key(singular)]["failed"]
    assert list(tmp_path.iterdir()) == []


def test_number_pairs():
    assert NumberPair(0.1494, 0.149).exact
    assert not NumberPair(0.1496, 0.149, spread=0.001).differs
    assert NumberPair(0.1506, 0.149, spread=0.001).differs
    assert NumberPair(0.1506, 0.149).close
    assert not NumberPair(10.6, 10, digits=0, unit=0.01).close  # one percentage point
    assert NumberPair(18.7, 18, digits=0, unit=0.01, truncated=True).exact
    assert not NumberPair(18.7, 18, digits=0, unit=0.01).exact
    assert math.isnan(NumberPair(None, 0.1).difference)
    assert not NumberPair(None, 0.1).differs
    assert format_pair(NumberPair(0.2, 0.149)) == "0.200 / 0.149 *"
    assert format_pair(NumberPair(0.2)) == "0.200"
    assert format_pair(NumberPair(0.2, bold=True)) == "**0.200**"
    assert format_pair(NumberPair(None, 2, digits=0)) == "- / 2"


def test_reports_are_written_and_counted(tmp_path):
    rows = (
        TableRow("one", {"ML": NumberPair(0.1, 0.1), "iter": NumberPair(3.0, 4.0, digits=0, unit=0.0)}),
        TableRow("two", {"ML": NumberPair(0.2, 0.3)}, "another version"),
    )
    draw = lambda: panels({"a": {"b": (np.arange(3), np.arange(3.0))}}, columns=1, x="x", y="y")
    report = ExperimentReport(
        PAPERS[0].name, "II", "A table", rows, ("A note.",), figures=(Figure("picture", draw),)
    )
    assert agreement_counts(report) == (2, 1, 1)
    assert "| two | 0.200 / 0.300 * |  | another version |" in to_markdown(report)
    assert next(csv.reader(to_csv(report).splitlines()))[1] == "ML ours"
    assert {path.suffix for path in write_report(report, tmp_path)} == {".md", ".csv", ".png", ".svg"}
    assert "two (ML): another version" in agreement_summary([report])
    page = write_page([report], tmp_path / "page.md", "calibayes reproduce").read_text(encoding="utf-8")
    assert "calibayes reproduce" in page
    assert "| all | 2 | 1 | 1 | 1 |" in page


def test_the_page_begins_with_the_counts_of_all_papers(tmp_path):
    """Also of papers whose section stays as it is; what is counted apart has lines of its own."""
    page = tmp_path / "page.md"
    pairs = {
        "RC": NumberPair(0.1, 0.1),
        "MAP": NumberPair(0.1, 0.2),
        "all rows": NumberPair(0.2, 0.2, apart=True, stands_for=("one", "MAP")),
        "of a new data set": NumberPair(0.3, 0.3, apart=True),
    }
    reports = [
        ExperimentReport(paper.name, table, "A table", (TableRow("one", pairs),))
        for paper in PAPERS[:2]
        for table in ("1", "2")
    ]
    assert agreement_counts(reports[0]) == (2, 1, 1)
    assert agreement_counts(reports[0], apart=True) == (2, 2, 2)
    assert counts_with_versions(reports[0]) == (2, 2, 2)
    write_page(reports[:2], page, "first")
    text = write_page(reports[2:], page, "second").read_text(encoding="utf-8")
    head = text[: text.index("## ")]
    assert f"| {PAPERS[0].name} | 4 | 2 | 2 | 2 |" in head
    assert "| all papers | 8 | 4 | 4 | 4 |" in head
    assert f"| {PAPERS[1].name}, with versions counted apart | 4 | 4 | 4 | 0 |" in head
    assert f"| {PAPERS[1].name}, counted apart | 4 | 4 | 4 | 0 |" in head
    assert text.count("| all papers |") == 1


def test_papers_without_a_report_keep_their_sections(tmp_path):
    page = tmp_path / "page.md"
    first, second = (
        ExperimentReport(
            paper.name, "1", f"of {paper.name}", (TableRow("one", {"ML": NumberPair(0.1, 0.1)}),)
        )
        for paper in PAPERS[:2]
    )
    write_page([second], page, "second")
    write_page([first], page, "first")
    together = page.read_text(encoding="utf-8")
    assert [together.count(f"with `{word}`") for word in ("first", "second")] == [1, 1]
    assert together.index(f"## {first.paper}") < together.index(f"## {second.paper}")
    assert write_page([first, second], page, "both").read_text(encoding="utf-8").count("with `both`") == 2


def test_a_claim_lists_the_rows_where_it_holds():
    low, high = [0.1 + 0.001 * i for i in range(12)], [0.2 + 0.002 * i for i in range(12)]
    errors_by_row = {"x": {"a": low, "b": high}, "y": {"a": high, "b": low}, "z": {"a": low, "b": low}}
    sentence = Claim("a is better", "9 of 9", better("a", "b")).check(errors_by_row)
    assert sentence == "Claim: a is better. True here in 1 of 3 (in x); published: 9 of 9."
    assert [no_worse("a", "b")(errors) for errors in errors_by_row.values()] == [True, False, True]
    assert [best("a")(errors) for errors in errors_by_row.values()] == [True, False, True]


def test_the_same_figure_is_the_same_file(tmp_path):
    draw = lambda: panels({"a": {"b": (np.arange(3), np.arange(3.0))}}, columns=1, x="x", y="y")
    report = ExperimentReport("p", "1", "t", figures=(Figure("picture", draw),))
    first = [path.read_bytes() for path in write_report(report, tmp_path / "a")]
    assert [path.read_bytes() for path in write_report(report, tmp_path / "b")] == first


def test_reach():
    assert reach([0.3, 0.2, 0.1], 0.2) == 2.0
    assert reach([0.3, 0.2], 0.1) is None


def test_published_tables_are_complete():
    assert len(published_table("rc-probabilistic-2024", "II")) == 31
    assert len(published_table("rc-generative-2025", "9")) == 21
    assert published_table("gdt-2004", "1")["Balls2 DISC"]["vehicle"] == 0.250
    for table in ("II", "III", "IV", "V", "VI", "VII", "VIII", "IX"):
        content = published_table("rc-probabilistic-2024", table)
        means = np.mean([row["RC"] for label, row in content.items() if label != "average"])
        assert means == pytest.approx(content["average"]["RC"], abs=0.0011)  # detects typing errors


def test_unknown_names():
    with pytest.raises(ValueError, match="unknown paper 'x'"):
        select_experiments("x")
    with pytest.raises(ValueError, match="has no table 'XX'"):
        select_experiments("rc-probabilistic-2024", "XX")
    assert select_experiments("rc-probabilistic-2024", "ix")[0][1].name == "IX"
    assert len(select_experiments()) > 20


def test_data_entries_apply_the_changes_of_the_paper():
    entry = DataEntry(
        "iris", "iris", skip=1, rows=100, drop=("petal_width",), target=Above("sepal_length", 5.8)
    )
    data = entry.read()
    assert list(data.data.columns) == ["sepal_width", "petal_length"]
    assert len(data.data) == 100
    assert data.target.sum() == (load_column("sepal_length")[1:101] > 5.8).sum()


def load_column(name):
    from calibayes.datasets import load

    return load("iris").data[name]


def test_settings_select_data_sets():
    entries = [IRIS, DataEntry("vehicle", "vehicle"), DataEntry("wine", "wine")]
    sizes = {"iris": 150.0, "vehicle": 846.0, "wine": 5000.0}
    assert [entry.name for entry in Settings(quick=True).select(entries, sizes)] == ["iris"]
    assert [entry.name for entry in Settings().select(entries, sizes)] == ["iris", "wine"]
    assert [entry.name for entry in Settings(datasets=("wine",)).select(entries, sizes)] == ["wine"]
    assert Settings(trials=3).repetitions(100, 4) == 3
    assert Settings(quick=True).repetitions(100, 4) == 4


FITTED_ROWS = []


class Recorder(LinearDiscriminantAnalysis):
    """Records the rows that are passed to fit."""

    def fit(self, X, y, sample_weight=None):
        FITTED_ROWS.append(np.array(X))
        return super().fit(X, y, sample_weight)


def test_no_fit_uses_a_test_row():
    """Standardized by the training rows only, so that the rows passed to fit have mean 0 and deviation 1 exactly."""
    FITTED_ROWS.clear()
    result = HeldOutSplit(IRIS, Cleaning(), Recorder(rule="ml"), split=3, standardize=True).run()
    (rows,) = FITTED_ROWS
    assert len(rows) == 112
    np.testing.assert_allclose(rows.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(rows.std(axis=0), 1.0)
    assert 0 <= result["test"] <= 0.2
    assert result["iter"] == 1


def test_errors_with_test_rows_are_those_of_a_fit_to_all_rows():
    """Beside a model of the training rows, scikit-learn's QDA of all rows, and the training error of RC on all rows."""
    numeric, rule = Cleaning(standardize=True), RC(step=0.1)
    start = QuadraticDiscriminantAnalysis(rule="ml")
    columns, target = numeric.apply(IRIS)
    task = FitWithTestRows(IRIS, numeric, start, rule, 0, False, split=3)
    in_training, in_test = train_test_split(np.arange(150), test_size=0.25, stratify=target, random_state=3)
    wrong = SklearnQDA().fit(columns, target).predict(columns) != target
    result = task.run()
    assert (result["training"], result["test"]) == (wrong[in_training].mean(), wrong[in_test].mean())
    from_training = replace(task, starts_from_training_rows=True).run()
    honest = HeldOutSplit(IRIS, numeric, start, split=3).run()
    assert [from_training[part] for part in ("training", "test")] == [honest["training"], honest["test"]]
    trained = replace(task, updates=63).run()
    fitted = QuadraticDiscriminantAnalysis(rule=rule, stop=None, max_iter=63).fit(columns, target)
    mean_error = (len(in_training) * trained["training"] + len(in_test) * trained["test"]) / 150
    assert mean_error == pytest.approx(fitted.history_["error"][trained["iter"] - 1])
    assert trained["iter"] > 60


def test_what_used_test_rows_is_counted_apart(tmp_path):
    ((_, experiment),) = select_experiments("rc-generative-2025", "5")
    settings = Settings(datasets=("iris",), trials=1)
    results = {task_key(task): task.run() for task in experiment.tasks(settings)}
    report = experiment.report(results, settings)
    pairs = report.rows[0].pairs
    names = ("ML training", "ML test", "RC training", "RC test", "RC iter")
    assert [name for name, pair in pairs.items() if pair.apart] == [f"{name}, all rows" for name in names]
    assert agreement_counts(report)[0] == 6
    assert agreement_counts(report, apart=True)[0] == 4
    assert any("of 4 published errors come out as printed there" in note for note in report.notes)


def test_projection_has_discriminant_directions_and_components_of_the_residuals():
    rng = np.random.default_rng(0)
    columns, target = rng.normal(size=(60, 6)), np.arange(60) % 3
    columns[:, 2] += 3 * target
    projection = fit_projection(columns, target, 4)
    projected = projection.apply(columns)
    assert projected.shape == (60, 4)
    within = np.mean([np.cov(projected[target == k, :2].T, bias=True) for k in range(3)], axis=0)
    np.testing.assert_allclose(within, np.eye(2), atol=1e-10)
    fisher, _ = np.linalg.qr(projection.directions[:, :2])
    np.testing.assert_allclose(fisher.T @ projection.directions[:, 2:], 0.0, atol=1e-10)


@pytest.mark.parametrize("simulation", [TwoGaussians(), UniformChain()])
def test_simulations(simulation):
    model = LinearDiscriminantAnalysis(rule="ml")
    losses = SimulatedTrials(simulation, (("ml", model),), 50, 2000, (0, 1)).run()["loss"]["ml"]
    assert len(losses) == 2
    assert max(losses) < 0.8


def test_the_worked_example_is_ordered_as_in_theory():
    scores = replace(EXAMPLE, test_rows=20_000).run()["scores"]
    assert scores["Bayes rule"][0] <= min(errors[0] for errors in scores.values()) + 0.002
    assert scores["QDA"][0] < scores["LDA"][0]
    assert all(cheapest < most_probable for _, most_probable, cheapest in scores.values())


def test_linear_discriminant_of_the_notes():
    """b = -2 S^-1 (mean of -1 - mean of 1), c as printed: twice the log odds."""
    columns, target = EXAMPLE.distribution.draw(200, seed=0)
    model = LinearDiscriminantAnalysis(rule="ml").fit(columns, target)
    means = [columns[target == k].mean(axis=0) for k in (0, 1)]
    residuals = columns - np.array(means)[target]
    inverse = np.linalg.inv(residuals.T @ residuals / len(target))
    b = -2 * inverse @ (means[0] - means[1])
    p = target.mean()
    c = means[0] @ inverse @ means[0] - means[1] @ inverse @ means[1] - 2 * np.log((1 - p) / p)
    np.testing.assert_allclose(2 * model.decision_function(columns), columns @ b + c, rtol=1e-8)


def test_a_page_links_to_figures_that_the_site_draws_and_keeps_their_numbers(tmp_path):
    numbers = BoxNumbers({"a": {"one": [0.1, 0.2]}}, y="error")
    figures = (Figure.of("boxes", numbers), Figure("drawn-anew", lambda: None, is_on_site=True))
    report = ExperimentReport(PAPERS[0].name, "II", "A table", figures=figures)
    page = write_page([report], tmp_path / "page.md", "command").read_text(encoding="utf-8")
    assert "[Picture: boxes](https://calibayes.readthedocs.io/en/stable/page.html#picture-boxes)" in page
    assert "page.html#picture-drawn-anew" in page
    assert read_numbers(tmp_path / "results" / "boxes.json") == numbers
    assert not list(tmp_path.glob("*.svg"))


@pytest.mark.parametrize(("name", "equal"), [("1", "31 of 32"), ("figure-1", "21 of 21")])
def test_the_toy_has_the_published_numbers(name, equal):
    ((_, experiment),) = select_experiments("rc-generative-2025", name)
    results = {task_key(task): task.run() for task in experiment.tasks(Settings())}
    report = experiment.report(results, Settings())
    assert equal in report.notes[-1]
    assert all(row.reason for row in report.rows if row.differs)
    assert agreement_counts(report) == (0, 0, 0)  # no error rates of a data set
    assert experiment.tasks(Settings(datasets=("iris",))) == []


def test_whole_tables_are_kept_where_one_count_would_be_negative():
    """The update, computed row by row and table by table."""
    rng, n, d, k, bins = np.random.default_rng(0), 240, 5, 3, 4
    target = np.arange(n) % k
    columns = rng.normal(size=(n, d)) + 0.7 * target[:, None] * np.array([1, -1, 1, 0, 2])
    task = WholeTableCurve(IRIS, _Given(columns=columns, target=target), bins=bins, step=0.1, updates=20)
    binned = KBinsDiscretizer(bins, encode="ordinal", strategy="kmeans", subsample=None).fit_transform(
        columns
    )
    codes, each = binned.astype(int), np.arange(d)
    counts, sizes = np.zeros((d, bins, k)), np.full(k, n / k)
    for row, label in zip(codes, target, strict=True):
        counts[each, row, label] += 1
    expected, kept, tables = [], 0, 0
    for _ in range(21):
        joint = [np.prod((counts[each, row] + 1 / bins) / (sizes + 1), axis=0) * (sizes + 1) for row in codes]
        posterior = np.array([row / row.sum() for row in joint])
        expected.append(np.mean(posterior.argmax(axis=1) != target))
        change = np.zeros(counts.shape)
        for row, label, probabilities in zip(codes, target, posterior, strict=True):
            change[each, row] += 0.1 * (np.eye(k)[label] - probabilities)
        is_valid = (counts + change >= 0).all(axis=1, keepdims=True)
        counts += np.where(is_valid, change, 0.0)
        sizes = sizes + change[0].sum(axis=0)
        kept, tables = kept + np.sum(~is_valid), tables + is_valid.size
    assert task.run()["error"] == pytest.approx(expected)
    assert len(set(expected)) > 3
    assert 0 < kept < tables


def test_calibration_without_a_check_is_that_of_the_library_while_covariances_are_valid():
    columns, target = load_iris(return_X_y=True)
    given = _Given(columns=columns, target=target)
    own = TrainingCurve(IRIS, given, QuadraticDiscriminantAnalysis(rule=RC(step=0.1), stop=None, max_iter=63))
    assert UncheckedCalibration(IRIS, given).run()["error"] == own.run()["error"]


def test_the_printed_gradient_has_a_trace_in_every_entry():
    """One update, with loops over rows and classes."""
    columns, target = load_iris(return_X_y=True)
    columns = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    groups = [columns[target == label] for label in range(3)]
    means, covariances = [x.mean(axis=0) for x in groups], [np.cov(x.T, bias=True) for x in groups]

    def posterior(sizes, means, covariances):
        densities = [multivariate_normal(m, c).pdf(columns) for m, c in zip(means, covariances, strict=True)]
        joint = sizes * np.stack(densities, axis=1)
        return joint / joint.sum(axis=1, keepdims=True)

    weights = posterior(np.ones(3), means, covariances) - np.eye(3)[target]
    sizes, after = np.exp(-0.03 * weights.sum(axis=0)), ([], [])
    for weight, mean, covariance in zip(weights.T, means, covariances, strict=True):
        first, second = np.linalg.solve(covariance, mean), -0.5 * np.linalg.inv(covariance)
        for w, x in zip(weight, columns, strict=True):
            first = first - 0.03 * w * (x - mean)
            second = second - 0.03 * w * (np.outer(x, x) - np.outer(mean, mean) - np.trace(covariance))
        after[1].append(-0.5 * np.linalg.inv(second))
        after[0].append(after[1][-1] @ first)
    task = PrintedGradient(IRIS, _Given(columns=columns, target=target), step=4.5, updates=1)
    start, one = task.run()["error"]
    wrong = posterior(sizes, *after).argmax(axis=1) != target
    assert (start, one) == (pytest.approx(0.02), pytest.approx(np.mean(wrong)))
    assert start != one


def test_probabilities_are_projected_to_the_nearest_ones():
    rng = np.random.default_rng(0)
    values, others = rng.normal(size=(30, 4)), rng.dirichlet(np.ones(4), size=2000)
    projected = _on_simplex(values)
    assert projected.sum(axis=1) == pytest.approx(1)
    assert projected.min() == 0
    nearest = ((values[:, None] - others) ** 2).sum(axis=2).min(axis=1)
    assert np.all(((values - projected) ** 2).sum(axis=1) <= nearest)
    assert _on_simplex(others) == pytest.approx(others)
