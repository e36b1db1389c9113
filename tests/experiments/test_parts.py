"""Cells, the store, comparisons and what is written of them."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest

from calibayes import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from calibayes.experiments import PAPERS, Pair, Report, Row, Settings, chosen
from calibayes.experiments.claims import Claim, best, better, no_worse
from calibayes.experiments.comparison import Figure
from calibayes.experiments.papers.generative_models_notes import EXAMPLE
from calibayes.experiments.protocols.data_entry import Above, Cleaning, DataEntry
from calibayes.experiments.protocols.directions import find_directions
from calibayes.experiments.protocols.held_out import HeldOut
from calibayes.experiments.protocols.simulation import SimulatedTrials, TwoGaussians, UniformChain
from calibayes.experiments.protocols.training_curve import TrainingCurve
from calibayes.experiments.published import published
from calibayes.experiments.results.cells import key
from calibayes.experiments.results.error_table import reach
from calibayes.experiments.running import run_cells
from calibayes.experiments.store import Store
from calibayes.experiments.summary import counts, summary, write_page
from calibayes.experiments.writing import csv_text, markdown, side_by_side, write_report
from calibayes.plots import panels
from calibayes.rules import RC

IRIS = DataEntry("iris", "iris")
CURVE = TrainingCurve(IRIS, Cleaning(), LinearDiscriminantAnalysis(rule=RC(step=0.1), stop=None, max_iter=2))


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("CALIBAYES_DATA", raising=False)


def test_keys_follow_the_cell_and_the_data(tmp_path, monkeypatch):
    same = TrainingCurve(
        IRIS, Cleaning(), LinearDiscriminantAnalysis(rule=RC(step=0.1), stop=None, max_iter=2)
    )
    assert key(CURVE) == key(same)
    others = [
        replace(CURVE, cleaning=Cleaning(standardize=True)),
        replace(CURVE, model=LinearDiscriminantAnalysis(rule=RC(step=0.2), stop=None, max_iter=2)),
        replace(CURVE, data=replace(IRIS, skip=1)),
    ]
    assert len({key(cell) for cell in [CURVE, *others]}) == 4
    before = key(CURVE)
    (tmp_path / "iris.csv.gz").write_bytes(b"another table")
    monkeypatch.setenv("CALIBAYES_DATA", str(tmp_path))
    assert key(CURVE) != before


def test_a_store_keeps_whole_results_only(tmp_path):
    store = Store(tmp_path / "cells")
    assert store.get("a") is None
    store.put("a", {"error": [0.1]})
    assert store.get("a") == {"error": [0.1]}
    (tmp_path / "cells" / "b.json").write_text('{"error": [0.', encoding="utf-8")
    assert store.get("b") is None
    assert not list((tmp_path / "cells").glob("*.part"))


def test_kept_cells_are_not_computed_again(tmp_path):
    store, told = Store(tmp_path), []
    first = run_cells([CURVE, CURVE], store, 1, told.append)
    assert told == [0, 1]
    assert len(first[key(CURVE)]["error"]) == 3
    store.put(key(CURVE), {"error": [7.0]})
    assert run_cells([CURVE], store, 1, told.append)[key(CURVE)] == {"error": [7.0]}


def test_a_refusal_is_reported_and_not_kept(tmp_path):
    singular = replace(CURVE, data=replace(IRIS, rows=51), model=QuadraticDiscriminantAnalysis(prior=None))
    found = run_cells([singular], Store(tmp_path), 1, lambda count: None)
    assert "singular" in found[key(singular)]["failed"]
    assert list(tmp_path.iterdir()) == []


def test_pairs():
    assert Pair(0.1494, 0.149).exact
    assert not Pair(0.1496, 0.149, spread=0.001).differs
    assert Pair(0.1506, 0.149, spread=0.001).differs
    assert Pair(0.1506, 0.149).close
    assert not Pair(10.6, 10, digits=0, unit=0.01).close  # one percent point
    assert Pair(18.7, 18, digits=0, unit=0.01, cut=True).exact
    assert not Pair(18.7, 18, digits=0, unit=0.01).exact
    assert math.isnan(Pair(None, 0.1).gap)
    assert not Pair(None, 0.1).differs
    assert side_by_side(Pair(0.2, 0.149)) == "0.200 / 0.149 *"
    assert side_by_side(Pair(0.2)) == "0.200"
    assert side_by_side(Pair(0.2, bold=True)) == "**0.200**"
    assert side_by_side(Pair(None, 2, digits=0)) == "- / 2"


def test_reports_are_written_and_counted(tmp_path):
    rows = (
        Row("one", {"ML": Pair(0.1, 0.1), "iter": Pair(3.0, 4.0, digits=0, unit=0.0)}),
        Row("two", {"ML": Pair(0.2, 0.3)}, "another version"),
    )
    draw = lambda: panels({"a": {"b": (np.arange(3), np.arange(3.0))}}, columns=1, x="x", y="y")
    report = Report(PAPERS[0].name, "II", "A table", rows, ("A note.",), figures=(Figure("picture", draw),))
    assert counts(report) == (2, 1, 1)
    assert "| two | 0.200 / 0.300 * |  | another version |" in markdown(report)
    assert next(csv.reader(csv_text(report).splitlines()))[1] == "ML ours"
    assert {path.suffix for path in write_report(report, tmp_path)} == {".md", ".csv", ".png", ".svg"}
    assert "two (ML): another version" in summary([report])
    page = write_page([report], tmp_path / "page.md", "calibayes reproduce").read_text(encoding="utf-8")
    assert "calibayes reproduce" in page
    assert "| all | 2 | 1 | 1 | 1 |" in page


def test_papers_that_are_not_run_keep_their_sections(tmp_path):
    page = tmp_path / "page.md"
    first, second = (
        Report(paper.name, "1", f"of {paper.name}", (Row("one", {"ML": Pair(0.1, 0.1)}),))
        for paper in PAPERS[:2]
    )
    write_page([second], page, "second")
    write_page([first], page, "first")
    together = page.read_text(encoding="utf-8")
    assert [together.count(f"with `{word}`") for word in ("first", "second")] == [1, 1]
    assert together.index(f"## {first.paper}") < together.index(f"## {second.paper}")
    assert write_page([first, second], page, "both").read_text(encoding="utf-8").count("with `both`") == 2


def test_a_claim_says_where_it_holds():
    low, high = [0.1 + 0.001 * i for i in range(12)], [0.2 + 0.002 * i for i in range(12)]
    found = {"x": {"a": low, "b": high}, "y": {"a": high, "b": low}, "z": {"a": low, "b": low}}
    told = Claim("a is better", "9 of 9", better("a", "b")).told(found)
    assert told == "Claim: a is better. Here in 1 of 3 (in x); printed: 9 of 9."
    assert [no_worse("a", "b")(errors) for errors in found.values()] == [True, False, True]
    assert [best("a")(errors) for errors in found.values()] == [True, False, True]


def test_the_same_figure_is_the_same_file(tmp_path):
    draw = lambda: panels({"a": {"b": (np.arange(3), np.arange(3.0))}}, columns=1, x="x", y="y")
    report = Report("p", "1", "t", figures=(Figure("picture", draw),))
    first = [path.read_bytes() for path in write_report(report, tmp_path / "a")]
    assert [path.read_bytes() for path in write_report(report, tmp_path / "b")] == first


def test_reach():
    assert reach([0.3, 0.2, 0.1], 0.2) == 2.0
    assert reach([0.3, 0.2], 0.1) is None


def test_all_published_tables_are_there():
    assert len(published("rc-probabilistic-2024", "II")) == 31
    assert len(published("rc-generative-2025", "9")) == 21
    assert published("gdt-2004", "1")["Balls2 DISC"]["vehicle"] == 0.250
    for table in ("II", "III", "IV", "V", "VI", "VII", "VIII", "IX"):
        content = published("rc-probabilistic-2024", table)
        means = np.mean([row["RC"] for label, row in content.items() if label != "average"])
        assert means == pytest.approx(content["average"]["RC"], abs=0.0011)  # a slip of the pen would show


def test_names_that_are_not_there():
    with pytest.raises(ValueError, match="unknown paper 'x'"):
        chosen("x")
    with pytest.raises(ValueError, match="has no table 'XX'"):
        chosen("rc-probabilistic-2024", "XX")
    assert chosen("rc-probabilistic-2024", "ix")[0][1].name == "IX"
    assert len(chosen()) > 20


def test_entries_say_what_a_version_lacks():
    entry = DataEntry(
        "iris", "iris", skip=1, rows=100, drop=("petal_width",), target=Above("sepal_length", 5.8)
    )
    data = entry.read()
    assert data.columns.names == ("sepal_width", "petal_length")
    assert data.columns.n == 100
    assert data.target.sum() == (load_column("sepal_length")[1:101] > 5.8).sum()


def load_column(name):
    from calibayes.datasets import load

    table = load("iris").columns
    return table.column(table.names.index(name))


def test_settings_choose_data_sets():
    entries = [IRIS, DataEntry("vehicle", "vehicle"), DataEntry("wine", "wine")]
    sizes = {"iris": 150.0, "vehicle": 846.0, "wine": 5000.0}
    assert [entry.name for entry in Settings(quick=True).choose(entries, sizes)] == ["iris"]
    assert [entry.name for entry in Settings().choose(entries, sizes)] == ["iris", "wine"]
    assert [entry.name for entry in Settings(datasets=("wine",)).choose(entries, sizes)] == ["wine"]
    assert Settings(trials=3).repetitions(100, 4) == 3
    assert Settings(quick=True).repetitions(100, 4) == 4


SEEN = []


class Spy(LinearDiscriminantAnalysis):
    """Writes down which rows a fit sees."""

    def fit(self, X, y, sample_weight=None):
        SEEN.append(np.array(X))
        return super().fit(X, y, sample_weight)


def test_no_fit_sees_a_test_row():
    """Scaled by training rows alone, so the rows that were seen have mean 0 and deviation 1 exactly."""
    SEEN.clear()
    found = HeldOut(IRIS, Cleaning(), Spy(rule="ml"), split=3, standardize=True).run()
    (rows,) = SEEN
    assert len(rows) == 112
    np.testing.assert_allclose(rows.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(rows.std(axis=0), 1.0)
    assert 0 <= found["test"] <= 0.2
    assert found["iter"] == 1


def test_directions_come_from_training_rows():
    rng = np.random.default_rng(0)
    columns, target = rng.normal(size=(60, 6)), np.arange(60) % 3
    columns[:, 2] += 3 * target
    view = find_directions(columns, target, 4)
    inside = view.apply(columns)
    assert inside.shape == (60, 4)
    within = np.mean([np.cov(inside[target == k, :2].T, bias=True) for k in range(3)], axis=0)
    np.testing.assert_allclose(within, np.eye(2), atol=1e-10)
    fisher, _ = np.linalg.qr(view.directions[:, :2])
    np.testing.assert_allclose(fisher.T @ view.directions[:, 2:], 0.0, atol=1e-10)


@pytest.mark.parametrize("world", [TwoGaussians(), UniformChain()])
def test_simulations(world):
    model = LinearDiscriminantAnalysis(rule="ml")
    found = SimulatedTrials(world, (("ml", model),), 50, 2000, (0, 1)).run()
    assert len(found["loss"]["ml"]) == 2
    assert max(found["loss"]["ml"]) < 0.8


def test_the_worked_example_is_ordered_as_theory_has_it():
    scores = replace(EXAMPLE, test_rows=20_000).run()["scores"]
    assert scores["Bayes rule"][0] <= min(errors[0] for errors in scores.values()) + 0.002
    assert scores["QDA"][0] < scores["LDA"][0]
    assert all(cheap < probable for _, probable, cheap in scores.values())


def test_linear_discriminant_of_the_notes():
    """b = -2 S^-1 (mean of -1 - mean of 1), c as printed: twice the log odds."""
    columns, target = EXAMPLE.world.draw(200, seed=0)
    model = LinearDiscriminantAnalysis(rule="ml").fit(columns, target)
    means = [columns[target == k].mean(axis=0) for k in (0, 1)]
    residuals = columns - np.array(means)[target]
    inverse = np.linalg.inv(residuals.T @ residuals / len(target))
    b = -2 * inverse @ (means[0] - means[1])
    p = target.mean()
    c = means[0] @ inverse @ means[0] - means[1] @ inverse @ means[1] - 2 * np.log((1 - p) / p)
    np.testing.assert_allclose(2 * model.decision_function(columns), columns @ b + c, rtol=1e-8)
