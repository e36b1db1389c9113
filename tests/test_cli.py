"""The commands compare and info, through the command line."""

import gzip
import io

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

from calibayes import __version__
from calibayes.cli import app
from calibayes.cli.application import print_table
from calibayes.cli.training import ranking_table
from calibayes.compare import BASELINES, MODELS, MeanResult
from calibayes.kernels.dispatch import native_kernels


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "100"})


@pytest.fixture
def flowers(tmp_path):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    frame = pl.DataFrame(X, schema=["a", "b", "c", "d"]).with_columns(
        pl.Series("kind", np.array(["setosa", "versicolor", "virginica"])[y]),
        pl.Series("tall", np.where(X[:, 0] > 5.8, "yes", "no")),
    )
    frame.write_csv(tmp_path / "flowers.csv")
    frame.write_parquet(tmp_path / "flowers.parquet")
    with gzip.open(tmp_path / "flowers.csv.gz", "wt", encoding="utf-8") as file:
        file.write(frame.write_csv())
    return tmp_path


def test_compare_on_the_penguins():
    result = call("compare", "--folds", 2)
    assert result.exit_code == 0, result.output
    assert "penguins: 344 rows, 7 columns, 3 classes; 19 missing values" in result.output
    assert "Lowest log loss on held-out rows: " in result.output
    lines = [line.split() for line in result.output.splitlines() if "±" in line]
    # Four Gaussian models have six rules. Models of counts have a prior, so DFE is valid and MAP is dropped. Kernel
    # densities and mixtures have no GD. The ensemble has one rule, baselines of scikit-learn have none.
    assert len(lines) == 4 * 6 + 6 + 6 + 5 + 5 + 1 + len(BASELINES)
    losses = [float(line[5]) for line in lines]
    assert losses == sorted(losses)
    by_name = {(line[0], line[1]): float(line[2]) for line in lines}
    assert by_name["LDA", "rc"] <= by_name["LDA", "ml"]
    assert all(by_name[name, "-"] < 10 for name in BASELINES)
    assert "Best of scikit-learn: sklearn-" in result.output
    assert "scikit-learn's LogisticRegression" in result.output


def test_baselines_can_be_left_out_or_chosen(flowers):
    arguments = ("compare", flowers / "flowers.csv", "--target", "kind", "--rule", "ml", "--folds", 2)
    assert "sklearn" not in call(*arguments, "--no-baselines").output
    assert "sklearn" not in call(*arguments, "--model", "LDA").output
    result = call(*arguments, "--model", "sklearn-HistGB")
    assert result.exit_code == 0, result.output
    assert "Lowest log loss on held-out rows: sklearn-HistGB (" in result.output
    both = call(*arguments, "--model", "sklearn-HistGB", "--model", "LDA").output
    assert "Best of this package: LDA trained by ml" in both or "Best of scikit-learn: sklearn-HistGB" in both


def test_baselines_accept_missing_values_and_new_levels(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{'' if i % 7 == 0 else rng.normal() + i % 2},{f'rare{i}' if i % 5 == 0 else 'usual'},,"
        for i in range(60)
    ]
    path = tmp_path / "table.csv"
    path.write_text("x,level,empty,y\n" + "".join(f"{line}{'ab'[i % 2]}\n" for i, line in enumerate(lines)))
    result = call("compare", path, "--target", "y", *(f"--model={name}" for name in BASELINES))
    assert result.exit_code == 0, result.output
    assert "warning" not in result.output


def test_the_table_fits_into_80_columns():
    name = max(MODELS, key=len)
    results = [
        MeanResult(name, "gdt", 0.5, 0.5, 10.0, 10.0, 1.0, 1.0, 64.0, 10.0),
        MeanResult("sklearn-HistGB", "-", 0.01, 0.5, 0.1, 0.1, 1.0, 1.0, 64.0, 0.1),
    ]
    screen = Console(width=80, force_terminal=True, color_system=None, file=io.StringIO())
    print_table(ranking_table(results, 5), screen)
    lines = screen.file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    rows = [line.split() for line in lines if "±" in line]
    assert [row[0] for row in rows] == [name, "sklearn-HistGB"]
    assert [len(row) for row in rows] == [12, 11]  # a baseline has no iterations


@pytest.mark.parametrize("name", ["flowers.csv", "flowers.csv.gz", "flowers.parquet"])
def test_compare_on_a_file(flowers, name):
    result = call(
        "compare", flowers / name, "--target", "kind", "--model", "LDA", "--rule", "rc", "--rule", "ml"
    )
    assert result.exit_code == 0, result.output
    assert "flowers: 150 rows, 5 columns, 3 classes" in result.output
    assert "missing" not in result.output


def test_compare_on_categorical_columns_only(tmp_path):
    path = tmp_path / "play.csv"
    path.write_text(
        "sky,wind,play\n" + "sun,no,yes\nrain,yes,no\nsun,yes,yes\nrain,no,no\n" * 5, encoding="utf-8-sig"
    )
    result = call("compare", path, "--target", "play", "--folds", 2)
    assert result.exit_code == 0, result.output
    assert "KernelNB" in result.output
    assert "BinnedNB" not in result.output
    assert "TreeAugmentedNB" in result.output
    assert "QDA" not in result.output


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", ["--target", "y"], "is empty"),
        ("a,y\n", ["--target", "y"], "no rows below its header"),
        ("a,y\n1,2,3\n", ["--target", "y"], "row 2 has 3 cells, but the header has 2"),
        ("a,y\n1,p\n2,q\n", [], "name the column to predict with --target NAME"),
        ("a,y\n1,p\n2,q\n", ["--target", "z"], "has no column 'z'; its columns are a, y"),
        ("y\np\nq\n", ["--target", "y"], "has only the target column 'y'"),
        ("a,y\n1,p\n2,p\n", ["--target", "y"], "only one class, 'p'"),
        ("a,y\n1,p\n2,p\n3,q\n", ["--target", "y"], "class 'q' has 1 row, fewer than the 5 folds"),
        ("a,y\n1,\n2,\n", ["--target", "y"], "all values of the target column 'y' are missing"),
        ("y,a,y\np,1,p\nq,2,q\n", ["--target", "y"], "column 'y' occurs more than once"),
        ("a,y\n1,p\n2,q\n", ["--target", "[/red]"], "has no column '[/red]'"),
        ("a,y\n" + "".join(f"{i},{i / 7}\n" for i in range(50)), ["--target", "y"], "looks like a quantity"),
        ("a,y\n1,p\n2,q\n", ["--target", "y", "--model", "SVM"], "unknown --model SVM; choose from KernelNB"),
    ],
)
def test_invalid_input_ends_with_an_error_message(tmp_path, content, options, message):
    path = tmp_path / "table.csv"
    path.write_text(content, encoding="utf-8")
    result = call("compare", path, *options)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_a_missing_file_is_an_error(tmp_path):
    result = call("compare", tmp_path / "none.csv", "--target", "y")
    assert result.exit_code == 2
    assert "there is no file" in result.output


def test_broken_archives_and_other_encodings(tmp_path):
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(np.random.default_rng(0).bytes(500))[:300])
    (tmp_path / "latin.csv").write_bytes("a,y\né,p\n".encode("latin-1"))
    for name in ("cut.csv.gz", "latin.csv"):
        result = call("compare", tmp_path / name, "--target", "y")
        assert result.exit_code == 2
        assert "is not a readable CSV file" in " ".join(result.output.split())


def test_another_column_of_the_penguins():
    result = call("compare", "--target", "sex", "--model", "BinnedNB", "--rule", "ml", "--folds", 2)
    assert result.exit_code == 0, result.output
    assert "2 classes" in result.output


def test_version():
    assert __version__ in call("--version").output


def test_info_names_the_kernels_in_use():
    result = call("info")
    assert result.exit_code == 0, result.output
    lines = dict(line.split(maxsplit=1) for line in result.output.splitlines())
    assert lines["calibayes"] == __version__
    assert lines["kernels"].startswith(
        "NumPy" if native_kernels.module is None else f"native, {native_kernels.instruction_set}"
    )
    assert {"numpy", "scikit-learn", "threads", "blas"} <= set(lines)


def test_notes_about_the_file_are_printed_on_the_error_stream(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("x,w,y\n" + "1,2,p\n3,2,q\n" * 10 + "?,-9,p\n", encoding="utf-8")
    options = ("--target", "y", "--model", "LDA", "--rule", "ml", "--folds", 2)
    result = call("compare", path, *options)
    assert result.exit_code == 0, result.output
    assert "note: column 'x': 20 of 21 cells are numbers; 1 '?' taken as missing" in result.stderr
    assert "note:" not in result.stdout
    result = call("compare", path, *options, "--missing-value", "?", "--missing-value", "-9")
    assert result.exit_code == 0, result.output
    assert "2 missing values" in result.stdout


def test_the_table_is_complete_when_the_output_is_no_terminal():
    arguments = ["compare", "--model", "QDA", "--rule", "ml", "--folds", "2"]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "40"})
    assert result.exit_code == 0, result.output
    assert "…" not in result.stdout
    row = next(line for line in result.stdout.splitlines() if line.split()[:2] == ["QDA", "ml"])
    assert len(row.split()) == 12


def test_control_characters_of_a_file_are_not_printed(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a\x1b]0;title\x07,y\n" + "1,p\x1b[31m\n2,q\n" * 5 + "\x9b2J,q\n", encoding="utf-8")
    for target in ("z\x1b[2J", "a\x1b]0;title\x07", "y"):
        result = call("compare", path, "--target", target, "--model", "LDA", "--rule", "ml")
        assert not set(result.output) & {"\x1b", "\x07", "\x9b"}
