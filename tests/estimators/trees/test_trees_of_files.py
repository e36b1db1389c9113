"""Trees of rows that are not in memory: the same bits from files, queries and tables, whatever the budget."""

import numpy as np
import pandas as pd
import pytest

from calibayes import BayesClassifier, CalibratedTrees
from calibayes.ensemble import bayes, many_rows
from calibayes.kernels.dispatch import native_kernels
from calibayes.tables.read import ENVIRONMENT_VARIABLE
from tests.kernel_versions import numpy_only, use_instruction_set
from tests.seeds import generator

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
ROWS = 3000


def table(weights):
    rng = generator(5)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=ROWS) for i in range(3)})
    frame["text"] = rng.choice(list("abcdefg"), ROWS)
    frame["gaps"] = np.where(rng.random(ROWS) < 0.1, np.nan, rng.integers(0, 9, ROWS))
    score = frame.x0 * frame.x1 + 2 * (frame.text == "a") + 0.3 * frame.gaps.fillna(0) + rng.normal(size=ROWS)
    frame["label"] = np.digitize(score, [0.0, 1.5])
    weight = {"counts": rng.integers(1, 4, ROWS).astype(float), "weights": rng.uniform(0.5, 2.0, ROWS)}
    return frame if weights == "none" else frame.assign(weight=weight[weights])


def bits_of_trees(model, X):
    leaves = model.leaves_
    arrays = (*vars(leaves.forest).values(), leaves.log_factor, leaves.losses, leaves.log_start)
    counts = model.data_statistics_["trees"]["count"], model.statistics_["trees"]["count"]
    return [array.tobytes() for array in (*arrays, *counts, model.predict_proba(X))]


def small_trees(**options):
    return CalibratedTrees(max_trees=12, max_leaves=9, **options)


@pytest.mark.parametrize("weights", ["none", "counts", "weights"])
def test_trees_are_the_same_bits_from_every_source(weights, tmp_path, monkeypatch):
    frame = table(weights)
    X = frame.drop(columns=["label", "weight"], errors="ignore")
    given = {} if weights == "none" else {"sample_weight": "weight"}
    weight = frame.get("weight")
    expected = bits_of_trees(small_trees().fit(X, frame.label, weight), X)
    path, csv = tmp_path / "rows.parquet", tmp_path / "rows.csv"
    parquet.write_table(pyarrow.Table.from_pandas(frame), path, row_group_size=777)
    frame.to_csv(csv, index=False)
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        for source in (path, csv, connection.sql(f"select * from '{path}'")):
            assert bits_of_trees(small_trees().fit(source, "label", **given), X) == expected
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "10000")  # bytes: most words are in the temporary file
    for threads in (1, 2, 5):
        assert bits_of_trees(small_trees(n_jobs=threads).fit(path, "label", **given), X) == expected
    monkeypatch.delenv(ENVIRONMENT_VARIABLE)
    with numpy_only():
        assert bits_of_trees(small_trees().fit(X, frame.label, weight), X) == expected
    for name in native_kernels.module.levels() if native_kernels.module else ():
        with use_instruction_set(name):
            assert bits_of_trees(small_trees(n_jobs=5).fit(X, frame.label, weight), X) == expected


def test_updates_of_all_leaves_read_the_file_again(tmp_path):
    frame = table("none")
    path, X = tmp_path / "rows.parquet", frame.drop(columns="label")
    frame.to_parquet(path)
    in_memory = small_trees(max_iter=3, stop=None).fit(X, frame.label)
    of_file = small_trees(max_iter=3, stop=None).fit(path, "label")
    np.testing.assert_allclose(of_file.predict_proba(X), in_memory.predict_proba(X), rtol=1e-10)
    assert not np.allclose(in_memory.predict_proba(X), small_trees().fit(X, frame.label).predict_proba(X))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weights", ["none", "counts"])
def test_the_default_is_the_same_from_memory_and_files(weights, tmp_path, monkeypatch):
    """With many rows one forest is grown on all of them, in passes; no row is left out, and no warning is given."""
    monkeypatch.setattr(bayes, "ONE_FOREST", 2000)
    monkeypatch.setattr(many_rows, "MEMBER_ROWS", 400)
    frame = table(weights)
    X = frame.drop(columns=["label", "weight"], errors="ignore")
    given = {} if weights == "none" else {"sample_weight": "weight"}
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pandas(frame), path, row_group_size=777)
    model = BayesClassifier(families=["tied", "kernel", "trees"])
    in_memory = model.fit(X, frame.label, frame.get("weight"))
    expected, trees = in_memory.predict_proba(X), in_memory.trees_
    assert in_memory.rows_ == ROWS
    assert 300 <= in_memory.tried_rows_ <= 0.6 * ROWS
    order = generator(1).permutation(ROWS)
    weight = None if weights == "none" else frame.weight[order]
    for budget in ("1GiB", "10000"):
        monkeypatch.setenv(ENVIRONMENT_VARIABLE, budget)
        found = BayesClassifier(families=model.families, n_jobs=2).fit(path, "label", **given)
        assert found.trees_.losses.tobytes() == trees.losses.tobytes()
        assert found.trees_.log_factors[0].tobytes() == trees.log_factors[0].tobytes()
        np.testing.assert_allclose(found.predict_proba(X), expected, rtol=1e-10, atol=1e-12)
    moved = BayesClassifier(families=model.families).fit(X.loc[order], frame.label[order], weight)
    np.testing.assert_allclose(moved.predict_proba(X), expected, rtol=1e-7, atol=1e-9)
