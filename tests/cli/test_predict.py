"""The command ``calibayes predict``: the same bytes for any division into blocks, and for tables of any kind."""

import bz2
import gzip
import io
import json
import lzma
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pytest

import calibayes
from calibayes.cli.options import expected_of
from calibayes.datasets import load_penguins
from calibayes.streams.csv_blocks import CsvBlocks
from calibayes.streams.text_input import open_table
from calibayes.tables.csv_parsing import CsvOptions
from tests.cli.conftest import call


def mixed_rows(n=300):
    """Rows of all types, with missing values, and a class that depends on all of them."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, n)
    words = np.array(["a,b", 'say "x"', "line\nbreak", "007", "NA?"], dtype=object)
    frame = pd.DataFrame(
        {
            "number": (rng.normal(size=n) + y).round(4),
            "count": rng.integers(0, 9, n) + y,
            "code": words[(rng.integers(0, 3, n) + y) % 5],
            "digits": np.where(rng.random(n) < 0.05, "x", (rng.integers(0, 4, n) + y).astype(str)),
            "flag": rng.random(n) < 0.3 + 0.4 * y,
            "day": pd.date_range("2024-01-01", periods=n, freq="D") + pd.to_timedelta(40 * y, unit="D"),
            "wait": pd.to_timedelta(rng.integers(0, 90, n) + 30 * y, unit="min"),
        }
    )
    frame.loc[::11, "number"] = np.nan
    frame.loc[::13, "code"] = None
    return frame, np.where(y, "yes", "no")


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    frame, labels = mixed_rows()
    calibayes.save(calibayes.NaiveBayes(rule="ml").fit(frame, labels), folder / "mixed.safetensors")
    frame.to_csv(folder / "mixed.csv", index=False)
    frame.to_parquet(folder / "mixed.parquet")
    return folder


def predicted(folder, table, *options, **more):
    result = call("predict", folder / "mixed.safetensors", table, *options, **more)
    assert result.exit_code == 0, result.output
    return result.stdout_bytes


@pytest.mark.parametrize("size", [1, 7, 100, 1000, 2**21])
@pytest.mark.parametrize("jobs", [1, 3])
def test_blocks_of_any_size_give_the_same_bytes(size, jobs, mixed):
    whole = predicted(mixed, mixed / "mixed.csv", "--id", "code")
    assert predicted(mixed, mixed / "mixed.csv", "--id", "code", "--block-bytes", size, "-j", jobs) == whole


def test_predictions_are_those_of_the_model(mixed):
    frame, _ = mixed_rows()
    model = calibayes.load(mixed / "mixed.safetensors")
    for name in ("mixed.csv", "mixed.parquet"):
        found = pd.read_csv(io.BytesIO(predicted(mixed, mixed / name)))
        assert list(found.columns) == ["prediction", "p_no", "p_yes"]
        np.testing.assert_array_equal(found["prediction"], model.predict(frame))
        np.testing.assert_allclose(found[["p_no", "p_yes"]], model.predict_proba(frame), rtol=1e-12)


def test_without_pyarrow_the_rows_are_the_same(mixed):
    model = calibayes.load(mixed / "mixed.safetensors")
    expected = expected_of(model, passed_on=("digits",))
    tables = [
        open_table(str(mixed / "mixed.csv"), expected, block_bytes=2000, with_pyarrow=which).blocks
        for which in (True, False)
    ]
    for one, other in zip(*tables, strict=True):
        one, other = one(), other()
        assert one.passed_on == other.passed_on
        np.testing.assert_array_equal(model.predict_proba(one.table), model.predict_proba(other.table))


def test_the_command_without_pyarrow(mixed, monkeypatch):
    expected = pd.read_csv(io.BytesIO(predicted(mixed, mixed / "mixed.csv", "--id", "code")))
    for module in ("calibayes.streams.text_input", "calibayes.cli.outputs"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None)
    monkeypatch.setattr(CsvBlocks, "by_pyarrow", None)
    found = pd.read_csv(io.BytesIO(predicted(mixed, mixed / "mixed.csv", "--id", "code")))
    pd.testing.assert_frame_equal(found, expected, rtol=1e-15)
    lines = predicted(mixed, mixed / "mixed.csv", "--json").decode().splitlines()
    assert [json.loads(line)["prediction"] for line in lines] == expected["prediction"].tolist()


def as_bytes(frame, kind):
    text = frame.to_csv(index=False).encode()
    buffer = io.BytesIO()
    if kind == "zstd":
        return pa.Codec("zstd").compress(text, asbytes=True)
    if kind == "feather":
        pyarrow.feather.write_feather(pa.Table.from_pandas(frame), buffer, compression="uncompressed")
    elif kind == "parquet":
        frame.to_parquet(buffer)
    elif kind == "arrow stream":
        table = pa.Table.from_pandas(frame)
        with pyarrow.ipc.new_stream(buffer, table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
    else:
        buffer.write(
            {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "csv": bytes}[kind](text)
        )
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["csv", "gzip", "zstd", "bzip2", "xz", "parquet", "feather", "arrow stream"])
@pytest.mark.parametrize("from_file", [True, False])
def test_kinds_of_tables_are_found_by_their_first_bytes(kind, from_file, penguins, tmp_path):
    frame = pd.read_csv(penguins / "penguins.csv")
    content, path = as_bytes(frame, kind), tmp_path / "table.csv"
    path.write_bytes(content)
    model = penguins / "nb.safetensors"
    expected = call("predict", model, penguins / "penguins.csv").stdout
    found = call("predict", model, path) if from_file else call("predict", model, "-", input=content)
    assert found.stdout == expected, found.output


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (lambda frame: frame.to_csv(sep=";", decimal=",", index=False).encode(), []),
        (lambda frame: frame.to_csv(sep="\t", index=False).encode(), []),
        (lambda frame: frame.to_csv(sep="|", index=False).encode(), []),
        (lambda frame: b"sep=;\r\n" + frame.to_csv(sep=";", index=False).encode(), []),
        (lambda frame: frame.to_csv(sep=" ", index=False).encode(), ["--separator", "space"]),
        (lambda frame: frame.to_csv(sep="\t", decimal=",", index=False).encode(), ["--decimal", ","]),
        (lambda frame: frame.to_csv(index=False).encode("utf-8-sig"), []),
        (lambda frame: frame.to_csv(index=False).encode("utf-16"), []),
        (lambda frame: frame.to_csv(index=False).encode("latin-1"), ["--encoding", "latin-1"]),
        (lambda frame: frame.to_csv(index=False, lineterminator="\r\n").encode(), []),
        (lambda frame: frame.to_csv(index=False).encode().rstrip(b"\n"), []),
        (lambda frame: frame[frame.columns[::-1]].to_csv(index=False).encode(), []),
        (lambda frame: frame.to_csv(index=False, quoting=1).encode(), []),
        (lambda frame: frame.to_csv(index=False, na_rep="NA").encode(), []),
        (
            lambda frame: (
                frame.astype({"body_mass_g": object})
                .fillna({"body_mass_g": "?"})
                .to_csv(index=False)
                .encode()
            ),
            [],
        ),
        (lambda frame: frame.to_csv(index=False, na_rep="-9").encode(), ["--missing-value", "-9"]),
    ],
    ids=[
        *(
            "semicolon and comma",
            "tab",
            "pipe",
            "sep=",
            "space",
            "decimal",
            "mark",
            "utf-16",
            "latin-1",
            "crlf",
        ),
        *("no last end", "order", "quoted", "NA", "?", "-9"),
    ],
)
def test_ways_to_write_a_csv_file(write, options, penguins, tmp_path):
    frame = pd.read_csv(penguins / "penguins.csv")
    path = tmp_path / "table.csv"
    path.write_bytes(write(frame))
    expected = call("predict", penguins / "nb.safetensors", penguins / "penguins.csv")
    for size in (2**21, 500):
        found = call("predict", penguins / "nb.safetensors", path, *options, "--block-bytes", size)
        assert found.stdout == expected.stdout, found.output


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zst", "jsonl", "parquet", "arrow"])
def test_formats_of_predictions(ending, penguins, tmp_path):
    output = tmp_path / f"out.{ending}"
    words = ("predict", penguins / "nb.safetensors", penguins / "penguins.csv", "--id", "year,island")
    result = call(*words, "-o", output, "--block-bytes", 3000)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    expected = pd.read_csv(io.StringIO(call(*words).stdout))
    read = {
        "jsonl": lambda path: pd.read_json(path, lines=True),
        "parquet": pd.read_parquet,
        "arrow": pd.read_feather,
    }
    if ending == "csv.zst":
        output = pa.CompressedInputStream(str(output), "zstd")
    found = read.get(ending, pd.read_csv)(output)
    assert list(found.columns) == ["year", "island", "prediction", "p_Adelie", "p_Chinstrap", "p_Gentoo"]
    found["year"] = found["year"].astype(int)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-12)


def test_parts_of_the_output(penguins):
    words = ("predict", penguins / "nb.safetensors", penguins / "penguins.csv")
    assert call(*words, "--only", "prediction").stdout.splitlines()[:2] == ["prediction", "Adelie"]
    assert call(*words, "--only", "probabilities").stdout.startswith("p_Adelie,p_Chinstrap,p_Gentoo\n")
    assert "0.9993,0.0007,0\n" in call(*words, "--digits", 4).stdout


def test_a_table_without_rows_gives_the_header_alone(penguins, tmp_path):
    path = tmp_path / "header.csv"
    path.write_text((penguins / "penguins.csv").read_text().splitlines()[0] + "\n")
    result = call("predict", penguins / "nb.safetensors", path)
    assert result.exit_code == 0
    assert result.stdout == "prediction,p_Adelie,p_Chinstrap,p_Gentoo\n"
    assert "has no rows below its header" in result.stderr


def test_further_columns_are_noted(penguins):
    result = call("predict", penguins / "nb.safetensors", penguins / "penguins.csv")
    assert result.stderr.endswith("that are not used: species\n")


def test_costs_of_the_model_decide(tmp_path):
    X, y = load_penguins(return_X_y=True)
    costs = [[0, 1, 1], [50, 0, 1], [1, 1, 0]]
    model = calibayes.NaiveBayes(rule="ml", costs=costs).fit(X, y)
    calibayes.save(model, tmp_path / "costs.safetensors")
    X.to_csv(tmp_path / "table.csv", index=False)
    found = pd.read_csv(
        io.StringIO(call("predict", tmp_path / "costs.safetensors", tmp_path / "table.csv").stdout)
    )
    assert found["prediction"].tolist() == model.predict(X).tolist()
    assert found["prediction"].tolist() != model.set_params(costs=None).predict(X).tolist()


def test_a_model_of_an_array_takes_columns_by_position(tmp_path):
    X, y = np.arange(40.0).reshape(20, 2), np.repeat([0, 1], 10)
    model = calibayes.GaussianNB(rule="ml").fit(X, y)
    calibayes.save(model, tmp_path / "m.safetensors")
    pd.DataFrame(X, columns=["u", "v"]).to_csv(tmp_path / "t.csv", index=False)
    result = call("predict", tmp_path / "m.safetensors", tmp_path / "t.csv")
    assert result.stdout.startswith("prediction,p_0,p_1\n0,")
    assert "taken in their order" in result.stderr
    pd.DataFrame(X[:, :1], columns=["u"]).to_csv(tmp_path / "t.csv", index=False)
    assert "was trained on 2" in call("predict", tmp_path / "m.safetensors", tmp_path / "t.csv").stderr


def test_a_half_written_file_does_not_replace_a_good_one(penguins, tmp_path):
    output, table = tmp_path / "out.csv", tmp_path / "table.csv"
    output.write_text("good")
    lines = (penguins / "penguins.csv").read_text().splitlines(keepends=True)
    table.write_text("".join([*lines[:200], lines[5].replace(",2007", ",old")]))
    result = call("predict", penguins / "nb.safetensors", table, "-o", output, "--block-bytes", 1000)
    assert result.exit_code == 2
    assert output.read_text() == "good"
    assert sorted(tmp_path.iterdir()) == [output, table]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_device_is_written_to_and_not_replaced(penguins, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = ("predict", penguins / "nb.safetensors", penguins / "penguins.csv")
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(pipe.read_text)
        assert call(*words, "-o", pipe).exit_code == 0
        assert found.result() == call(*words).stdout
    assert pipe.is_fifo()


def test_missing_values_of_the_training_are_those_of_later_tables(penguins, tmp_path):
    frame = pd.read_csv(penguins / "penguins.csv")
    table, model, other = tmp_path / "t.csv", tmp_path / "m.safetensors", penguins / "nb.safetensors"
    frame.to_csv(table, index=False, na_rep="-9")
    words = ("--target", "species", "-o", model, "--model", "NaiveBayes", "--rule", "ml")
    assert call("fit", table, *words, "--missing-value", "-9,n/a").exit_code == 0
    expected = call("predict", other, penguins / "penguins.csv")
    found = call("predict", model, table)
    assert found.stdout == expected.stdout
    assert "note: missing values are those that the model was trained with: '-9', 'n/a'" in found.stderr
    assert call("predict", model, table, "--missing-value", "?").stdout != expected.stdout
    for command in ("evaluate", "explain"):
        more = ("--target", "species") if command == "evaluate" else ()
        found = call(command, model, table, *more, "--json").stdout
        assert found == call(command, other, penguins / "penguins.csv", *more, "--json").stdout


def test_options_of_csv_files_are_checked():
    with pytest.raises(ValueError, match="one character"):
        CsvOptions(separator="ab")
    with pytest.raises(ValueError, match="must be"):
        CsvOptions(decimal=";")
    with pytest.raises(ValueError, match="both a comma"):
        CsvOptions(separator="comma", decimal=",")
