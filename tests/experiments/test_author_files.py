"""Files of the papers' group: which lines are rows, and how the tables that need them are reported."""

import gzip
import hashlib
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

from calibayes.cli import app
from calibayes.datasets import numeric_matrix
from calibayes.reproduction.author_files import (
    FEATURES_ABSENT,
    FOLDER_VARIABLE,
    AuthorFile,
    ImageFeatures,
    author_file,
)
from calibayes.reproduction.catalog import reproduce, select_experiments
from calibayes.reproduction.experiment import ResultCache, Settings, task_key
from calibayes.reproduction.pages import agreement_counts, counts_with_versions
from calibayes.reproduction.papers.rc_probabilistic_2024 import AS_PUBLISHED, FOR_GAUSSIANS
from calibayes.reproduction.procedures import DataEntry, TrainingCurve
from calibayes.reproduction.result_tables import published_table

LINES = "3,2\n1,5,a\n2,6,b\n\n3, nan ,a\n4,b\n5,7,b,9\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files in a folder below the one that the variable names, one of them compressed."""
    below = tmp_path / "data" / "of two kinds"
    below.mkdir(parents=True)
    (below / "last.csv").write_text(LINES)
    (below / "first.csv.gz").write_bytes(gzip.compress(b"a,1,x\nb,2,y\n"))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


def test_rows_begin_after_the_skipped_lines_and_short_ones_are_dropped(folder):
    data = AuthorFile("last", 2, first_line=2).read()
    assert data.target.tolist() == ["b", "a", "b"]
    np.testing.assert_array_equal(data.data, [[2, 6], [3, np.nan], [5, 7]])
    assert len(AuthorFile("last", 2, first_line=1).read().target) == 4


def test_the_label_may_be_first_and_cells_may_be_text(folder):
    data = AuthorFile("first", 2, label_first=True).read()
    assert data.target.tolist() == ["a", "b"]
    assert data.data["x2"].tolist() == ["x", "y"]
    assert numeric_matrix(data)[0].tolist() == [[1, 0], [2, 1]]


def test_an_entry_reads_the_file_of_the_authors_only_where_it_is(folder, monkeypatch):
    entry = DataEntry("iris", "iris", authors=AuthorFile("last", 2, first_line=2))
    curve = TrainingCurve(entry, FOR_GAUSSIANS, None)
    assert (len(entry.read().target), curve.inputs()) == (3, ("authors/last",))
    key = task_key(curve)
    (folder / "data" / "of two kinds" / "last.csv").write_text(LINES + "8,8,a\n")
    assert task_key(curve) != key
    monkeypatch.delenv(FOLDER_VARIABLE)
    assert (len(entry.read().target), curve.inputs()) == (150, ("iris",))
    assert author_file("authors/last") is None
    with pytest.raises(FileNotFoundError, match=FOLDER_VARIABLE):
        AuthorFile("last", 2).read()


def test_a_folder_that_does_not_exist_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(ValueError, match="create or correct it"):
        author_file("authors/last")


def test_one_rule_leaves_the_published_columns_of_every_data_set(data_file):
    data_file("vehicle")
    sizes = published_table("rc-probabilistic-2024", "I")
    [(_, table)] = select_experiments("rc-probabilistic-2024", "IV")
    entries = Settings(quick=True).select(table.entries, {label: row["rows"] for label, row in sizes.items()})
    assert len(entries) >= 13
    for entry in entries:
        rows, columns = FOR_GAUSSIANS.apply(entry)[0].shape
        assert {"rows": rows, "columns": columns} == sizes[entry.row], entry.label


def test_further_versions_of_a_data_set_are_counted_apart(data_file, tmp_path):
    """Naive Bayes on the columns that are left out for Gaussians: the published errors of ecoli and ionosphere."""
    data_file("ecoli")
    reports = reproduce(
        select_experiments("rc-probabilistic-2024", "II"),
        Settings(("ecoli", "ionosphere")),
        ResultCache(tmp_path),
    )
    *rows, average, ecoli, ionosphere = reports[0].rows
    assert [row.label for row in rows] == ["ecoli", "ionosphere"]
    assert average.pairs["ML"].ours == pytest.approx(np.mean([row.pairs["ML"].ours for row in rows]))
    assert not ecoli.differs
    assert not ionosphere.differs
    assert all(row.differs and "only the columns" in row.reason for row in rows)
    assert agreement_counts(reports[0], apart=True) == (6, 6, 6)
    assert agreement_counts(reports[0])[0] == 6


FEATURES = np.arange(24.0).reshape(6, 4) ** 2


def write_features(folder, stem, rows, numbered, ending=".csv"):
    table = np.column_stack([FEATURES[rows], np.asarray(rows) % 2])
    lines = [",".join(map(str, [*[i] * numbered, *line])) for i, line in enumerate(table.tolist())]
    text = "\n".join(lines) + "\n"
    path = folder / f"{stem}{ending}"
    if ending == ".csv.zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(f"{stem}.csv", text)
    else:
        path.write_text(text)
    return path


@pytest.fixture
def features(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    return ImageFeatures("tiny", 6, 4)


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("ending", [".csv", ".csv.zip"])
def test_features_are_read_from_all_files_with_and_without_row_numbers(features, tmp_path, numbered, ending):
    write_features(tmp_path, "tiny_features_resnet18_test", [4, 5], numbered, ending)
    write_features(tmp_path, "tiny_features_resnet18_train_1", [0, 1], numbered, ending)
    write_features(tmp_path, "tiny_features_resnet18_train_2", [2, 3], numbered, ending)
    write_features(tmp_path, "another_tiny_features_resnet18_1", [0], numbered, ending)
    data = features.read()
    np.testing.assert_array_equal(data.data, FEATURES)
    assert data.target.tolist() == [0, 1, 0, 1, 0, 1]
    entry = DataEntry("tiny-resnet18", "tiny", authors=features)
    inputs = TrainingCurve(entry, FOR_GAUSSIANS, None).inputs()
    assert inputs == tuple(
        f"authors/tiny_features_resnet18_{part}" for part in ("train_1", "train_2", "test")
    )
    assert Settings().select([entry], {"tiny": 6.0}) == [entry]


def test_incomplete_and_other_files_of_features_are_errors(features, tmp_path):
    path = write_features(tmp_path, "tiny_features_resnet18_1", [0, 1], True)
    with pytest.raises(ValueError, match=r"have 2 rows, expected 6: a file is missing"):
        features.read()
    path.write_text("1,2\n3,4\n")
    with pytest.raises(ValueError, match=r"has 2 columns; expected 4 features and the label"):
        features.read()


def test_a_file_that_is_not_the_known_one_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path))
    path = write_features(tmp_path, "mnist_features_resnet18_test", range(6), True)
    content = path.read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    with pytest.warns(UserWarning, match=f"its git blob is {blob}, expected 2d703bd7cdd1"):
        assert len(ImageFeatures("mnist", 6, 4).read().target) == 6


def test_absent_features_are_named_in_a_sentence(monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    for paper, table in (("rc-generative-2025", "5"), ("rc-probabilistic-2024", "II")):
        [(_, experiment)] = select_experiments(paper, table)
        settings = Settings(datasets=("iris",), trials=1, quick=True)
        results = {task_key(task): task.run() for task in experiment.tasks(settings)}
        (sentence,) = [
            n for n in experiment.report(results, settings).notes if n.startswith("Data sets not run")
        ]
        assert "fashion mnist" in sentence
        assert sentence.endswith(FEATURES_ABSENT)


def test_the_command_knows_the_data_sets_of_the_authors(tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    words = [
        "reproduce",
        "rc-generative-2025",
        "5",
        "--datasets",
        "mnist-resnet18,german-numer",
        "--out",
        str(tmp_path),
    ]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "not run" in result.output


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (
            "II",
            (
                "diabetes",
                "climate-model",
                "blood-transfusion",
                "haberman",
                "liver-disorders",
                "splice",
                "iris",
            ),
        ),
        ("III", ("vehicle", "diabetes", "climate-model", "blood-transfusion", "haberman", "splice", "iris")),
        ("IV", ("vehicle", "diabetes", "climate-model", "ionosphere", "haberman", "liver-disorders", "iris")),
    ],
)
def test_published_errors_come_from_other_updates(table, names, data_file, tmp_path, monkeypatch):
    """The start, the lowest errors and their iterations, of calibration and of gradient descent."""
    data_file("vehicle")
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    experiments = select_experiments("rc-probabilistic-2024", table)
    [report] = reproduce(experiments, Settings(names), ResultCache(tmp_path), jobs=1)
    rows = [row for row in report.rows if row.label.endswith(AS_PUBLISHED)]
    assert len(rows) == len(names)
    assert all(pair.exact for row in rows for name, pair in row.pairs.items() if name != "reach")
    assert all(pair.apart for row in rows for pair in row.pairs.values() if pair.unit)
    assert agreement_counts(report)[1] < 21 == agreement_counts(report)[0]
    assert counts_with_versions(report)[::2] == (21, 21)


def test_a_published_update_that_fails_has_a_row_with_its_reason(data_file, tmp_path):
    """Two columns of this table are proportional: their covariance has no inverse."""
    data_file("blood-transfusion")
    experiments = select_experiments("rc-probabilistic-2024", "IV")
    [report] = reproduce(experiments, Settings(("blood-transfusion",)), ResultCache(tmp_path), jobs=1)
    [row] = [row for row in report.rows if row.label.endswith(AS_PUBLISHED)]
    assert not row.pairs or row.reason
    assert "rounding errors" in row.reason
