"""The leaderboard of benchmarks/accuracy.py follows from its log, and a result in the log is not computed again."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def board(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from leaderboard import (
        columns,
        curve,
        elo,
        log,
        measure,
        models,
        page,
        results,
        run,
        standings,
        tables,
        tuning,
    )

    monkeypatch.setattr(elo, "DRAWS", 40)
    modules = (columns, curve, elo, log, measure, models, page, results, run, standings, tables, tuning)
    return {module.__name__.rpartition(".")[2]: module for module in modules}


def losses(by_model, fold=0):
    """Model -> its losses on tables t0, t1, ..., as the lines that ratings are computed from."""
    return pd.DataFrame(
        {"table": f"t{number}", "model": model, "fold": fold, "loss": loss}
        for model, values in by_model.items()
        for number, loss in enumerate(values)
    )


def record(table="a", model="HistGB", fold=0, rows=3_000, classes=2, digest=None, **scores):
    given = {
        "error": 0.1,
        "auc": 0.9,
        "log_loss": 0.3,
        "brier": 0.2,
        "calibration": 0.1,
        "fit_processor": 1.0,
        "predict_processor": 0.5,
    }
    label = {"table": table, "model": model, "fold": fold, "rows": rows, "columns": 5, "classes": classes}
    source = {"digest": digest, "commit": "c"} if digest else {}
    return {**label, "version": "1", **source, "scores": {**given, **scores}}


def test_three_wins_to_one_are_the_odds_of_the_ratings(board):
    found = board["elo"].by_likelihood(losses({"A": [1, 1, 1, 2], "RandomForest": [2, 2, 2, 1]}))
    assert found.points["A"] - found.points["RandomForest"] == pytest.approx(400 * np.log10(3), abs=0.01)


def test_three_models_in_a_circle_are_equal(board):
    circle = {"A": [1, 3, 2], "B": [2, 1, 3], "RandomForest": [3, 2, 1]}
    found = board["elo"].ratings(losses(circle))
    np.testing.assert_allclose(found.points, 1000.0, atol=0.01)


def test_a_tie_is_half_a_win_and_folds_share_the_weight_of_their_table(board):
    tie = board["elo"].table_wins(losses({"A": [1.0], "B": [1.0]}), ["A", "B"])
    np.testing.assert_allclose(tie, [[0, 0.5], [0.5, 0]])
    folds = pd.concat([losses({"A": [1.0], "B": [2.0]}), losses({"A": [2.0], "B": [1.0]}, fold=1)])
    np.testing.assert_allclose(board["elo"].table_wins(folds, ["A", "B"]), [[0, 0.5], [0.5, 0]])


def test_models_are_compared_only_where_both_were_measured(board):
    some = pd.concat([losses({"A": [1, 1, 2], "B": [2, 2, 1]}), losses({"C": [0.5]})])
    found = board["elo"].by_likelihood(some)
    assert found.points["C"] > found.points["A"] > found.points["B"]
    assert found.points["A"] - found.points["B"] == pytest.approx(400 * np.log10(2), abs=0.1)


def test_intervals_contain_the_rating_and_narrow_with_tables(board):
    few = board["elo"].ratings(losses({"A": [1, 1, 1, 2] * 2, "RandomForest": [2, 2, 2, 1] * 2}))
    many = board["elo"].ratings(losses({"A": [1, 1, 1, 2] * 20, "RandomForest": [2, 2, 2, 1] * 20}))
    assert few.points["RandomForest"] == pytest.approx(1000.0)
    for found in (few, many):
        low, high = found.interval("A")
        assert low < found.points["A"] < high
    assert np.ptp(many.interval("A")) < np.ptp(few.interval("A"))
    gap, (low, high), share = many.difference("A", "RandomForest")
    assert low < gap < high
    assert share == 1.0


def test_ratings_without_bounds_are_not_shown_as_numbers(board):
    found = board["elo"].ratings(losses({"A": [1, 1], "RandomForest": [2, 2], "B": [3, 3]}))
    cells = [board["standings"].rating_cell(found, model) for model in ("A", "RandomForest", "B", "C")]
    assert cells == [
        "**above 3000** (above 3000 to above 3000)",
        "1000 (1000 to 1000)",
        "below 0 (below 0 to below 0)",
        "",
    ]


def test_ratios_are_geometric_means_over_common_tables_and_folds(board):
    lines = pd.concat(
        [losses({"LightGBM": [1, 1, 1], "A": [2, 0.5, 1], "B": [4]}), losses({"A": [9]}, fold=1)]
    )
    ratios = board["results"].geometric_ratios(lines, "loss", "LightGBM")
    assert ratios["A"] == pytest.approx(1.0)
    assert ratios["B"] == pytest.approx(4.0)
    solved = losses({"LightGBM": [1e-6], "A": [2e-3]})
    assert board["results"].geometric_ratios(solved, "loss", "LightGBM")["A"] == pytest.approx(2.0)
    assert len(board["results"].geometric_ratios(lines, "loss", "CatBoost")) == 0


def test_the_log_survives_a_cut_line(board, tmp_path):
    path, log = tmp_path / "log.jsonl", board["log"]
    log.append(path, record(fold=0))
    with path.open("a", encoding="utf-8") as file:
        file.write('{"table": "a", "mod')
    assert [r["fold"] for r in log.read_log(path)] == [0]
    log.append(path, record(fold=1))
    assert [r["fold"] for r in log.read_log(path)] == [0, 1]


def test_results_of_our_models_belong_to_one_source(board):
    log = board["log"]
    old, new = record(model="BayesClassifier", digest="old"), record(model="BayesClassifier", digest="new")
    assert log.key(old) not in log.finished([new])
    assert log.key(old) in log.finished([old])
    other = record(table="b", model="BayesClassifier", digest="old")
    assert list(log.latest([old, other, new])) == ["a"]


def test_failures_are_tried_again_and_never_shown(board):
    failed = {**record(), "failure": "no memory"}
    assert board["log"].finished([failed]) == set()
    assert board["log"].latest([failed]) == {}


def test_a_result_in_the_log_is_not_computed_again(board, tmp_path, monkeypatch):
    path, measured = tmp_path / "log.jsonl", []

    def measure(make, table, split):
        measured.append((table.name, len(split[1])))
        return record()["scores"]

    monkeypatch.setattr(board["run"], "measure", measure)
    data = pd.DataFrame({"x": np.arange(60.0), "target": np.arange(60) % 2})
    loaders = {"small": lambda: board["tables"].table_of("small", data)}
    board["run"].run(path, ["HistGB"], loaders, [0])
    board["run"].run(path, ["HistGB"], loaders, [0, 1])
    assert measured == [("small", 20)] * 2
    assert [r["fold"] for r in map(json.loads, path.read_text().splitlines())] == [0, 1]


def test_large_tables_have_one_fold_and_rare_classes_are_left_out(board):
    many = board["tables"].ONE_FOLD + 1
    data = pd.DataFrame({"x": np.zeros(many), "target": np.arange(many) % 2})
    assert len(board["tables"].table_of("large", data).folds()) == 1
    data = pd.DataFrame({"x": np.zeros(59), "target": ["a"] * 20 + ["b"] * 20 + ["c"] * 19})
    assert board["tables"].table_of("small", data).size == (40, 1, 2)


def test_some_models_are_for_smaller_tables_only(board):
    is_suited = board["models"].is_suited
    assert is_suited("EBM", 50_000, 200)
    assert not is_suited("EBM", 50_001, 10)
    assert not is_suited("Khiops", 1_000, 201)
    assert not is_suited("LightGBM, tuned", 15_001, 10)
    assert is_suited("LightGBM", 10**6, 10**4)


def test_tables_need_all_models_but_those_for_smaller_ones(board):
    records = [record(t, m) for t in "ab" for m in ("HistGB", "RandomForest")]
    records += [record("b", "EBM"), record("c", "HistGB"), record("a", "HistGB", fold=1)]
    found = board["results"].comparable(records)
    assert sorted(zip(found["table"], found["model"], strict=True)) == [
        *[("a", "HistGB"), ("a", "RandomForest")],
        *[("b", "EBM"), ("b", "HistGB"), ("b", "RandomForest")],
    ]
    assert set(found["fold"]) == {0}


def test_the_loss_is_auc_for_two_classes_and_log_loss_for_more(board):
    line = board["results"].line
    assert line(record(auc=0.75))["loss"] == pytest.approx(0.25)
    assert line(record(classes=3, log_loss=0.4))["loss"] == 0.4


def test_wins_are_shares_of_tables(board):
    a = [record(t, "BayesClassifier", digest="d", auc=auc) for t, auc in (("a", 0.9), ("b", 0.8), ("c", 0.7))]
    b = [record(t, "HistGB", auc=0.8) for t in "abc"]
    found = board["results"].comparable(a + b)
    assert board["standings"].win_share(found, "BayesClassifier", "HistGB") == pytest.approx(0.5)
    assert np.isnan(board["standings"].win_share(found, "BayesClassifier", "EBM"))


def test_means_are_empty_for_models_that_lack_a_fold(board):
    records = [record("a", m, fold) for m in ("HistGB", "RandomForest", "EBM") for fold in (0, 1)]
    whole = board["standings"].standing_columns(board["results"].comparable(records))
    assert sorted(whole["error %"][0].index) == ["EBM", "HistGB", "RandomForest"]
    lacking = board["standings"].standing_columns(board["results"].comparable(records[:-1]))
    assert sorted(lacking["error %"][0].index) == ["HistGB", "RandomForest"]


def test_scores_of_a_posterior(board):
    posterior = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.8, 0.2]])
    found = board["measure"].scores(posterior, np.array([0, 1, 0, 1]))
    assert found["error"] == 0.5
    assert found["auc"] == 0.5
    assert found["calibration"] == pytest.approx((0.1 + 0.4 + 0.7 + 0.8) / 4)
    three = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    assert board["measure"].scores(three, np.arange(3))["auc"] == 1.0


def test_levels_are_those_of_the_training_rows(board):
    train = pd.DataFrame({"a b": ["x", "y", None], "n": [1, 2, 3]})
    test = pd.DataFrame({"a b": ["y", "z", None], "n": [1, 2, 3]})
    names = board["columns"].Renamed().fit(train)
    levels = board["columns"].LevelColumns().fit(names.transform(train))
    found = levels.transform(names.transform(test))
    assert list(found["c0"].cat.categories) == ["x", "y"]
    assert found["c0"].isna().tolist() == [False, True, True]
    filled = board["columns"].TextColumns("?").fit(train).transform(test)
    assert filled["a b"].tolist() == ["y", "z", "?"]


@pytest.mark.parametrize("name", ["HistGB", "RandomForest", "LogisticRegression", "BayesClassifier"])
def test_models_take_text_with_new_levels_and_missing_values(board, name):
    rng = np.random.default_rng(0)
    text = pd.Series(rng.choice([f"l{j}" for j in range(300)], 900))
    frame = pd.DataFrame({"text": text.mask(rng.random(900) < 0.05), "number": rng.normal(size=900)})
    frame.loc[rng.random(900) < 0.05, "number"] = np.nan
    target = (text.str[1:].astype(int) % 2).to_numpy()
    frame.loc[600, "text"] = "new"
    table = board["tables"].Table("made", frame, target)
    make = board["models"].MODELS[name][0]
    found = board["measure"].measure(make, table, (np.arange(600), np.arange(600, 900)))
    assert found["rows"] == 300
    assert np.isfinite(found["log_loss"])


def test_tuning_finds_settings_that_are_better_than_the_default(board):
    from sklearn.tree import DecisionTreeClassifier

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)))
    target = ((frame[0] > 0) ^ (rng.random(300) < 0.2)).to_numpy().astype(int)
    tuned = (
        board["tuning"]
        .TunedModel(
            lambda frame, **settings: DecisionTreeClassifier(random_state=0, **settings),
            {"max_depth": (1, 4, True)},
            5,
        )
        .fit(frame, target)
    )
    assert tuned.settings_
    assert min(tuned.losses_) < tuned.losses_[0]
    assert tuned.predict_proba(frame).shape == (300, 2)
    stopped = board["tuning"].TunedModel(tuned.make, tuned.space, 5, seconds=-1.0).fit(frame, target)
    assert len(stopped.losses_) == 1


def test_the_page_says_what_follows_from_the_log(board, tmp_path):
    error = {"BayesClassifier": 0.1, "LightGBM": 0.2, "CatBoost": 0.3, "RandomForest": 0.4}
    records = [
        record(
            table,
            model,
            digest="d" if model == "BayesClassifier" else None,
            error=value,
            log_loss=value,
            auc=1 - value,
        )
        for table in ("one", "two")
        for model, value in error.items()
    ]
    records.append({**record("one", "EBM"), "failure": "no memory"})
    text = board["page"].write_page(records, tmp_path).read_text(encoding="utf-8")
    assert "BayesClassifier: mean error 10.00 %, against 20.00 % of LightGBM" in text
    assert "0.500 of LightGBM's and 0.333 of CatBoost's" in text
    assert "Failures: EBM on one." in text
    assert "Folds: 2 in all. On 2 of the tables not all three folds were measured." in text
    assert "commit c, source d" in text
    assert (tmp_path / "leaderboard-elo.svg").exists()
    with pytest.raises(SystemExit, match="no table has results"):
        board["page"].write_page([], tmp_path)


def test_learning_curves_have_nested_training_rows_and_the_same_test_rows(board):
    table = board["curve"].made_up(5_000)
    splits = table.folds()
    assert [len(train) for train, _ in splits] == [1_000, 3_000, 4_500]
    assert all(np.array_equal(splits[0][1], test) for _, test in splits)
    assert set(splits[0][0]) < set(splits[1][0]) < set(splits[2][0])
    assert not set(splits[2][0]) & set(splits[0][1])


def test_a_curve_says_how_many_rows_it_was_trained_on(board, tmp_path):
    records = [record("a", "HistGB", fold=fold, rows=5_000, error=0.4 - 0.1 * fold) for fold in range(3)]
    for each in records:
        each["scores"]["rows"] = 500
    found = board["curve"].curves(records)
    assert found["rows"].tolist() == [1_000, 3_000, 4_500]
    text = "\n".join(board["curve"].curve_section(records))
    assert "| a | 4,500 | 20.00 | 0.300 |" in text
    assert "leaderboard.html#picture-leaderboard-curve" in text
    board["curve"].draw_curves(found, tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").exists()
    assert board["curve"].curve_section([]) == []
