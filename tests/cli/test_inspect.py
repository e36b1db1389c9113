"""The command ``calibayes inspect``."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import calibayes
from calibayes import BayesClassifier, GaussianNB
from calibayes.cli import app
from calibayes.datasets import load_penguins
from calibayes.files import describe_file
from tests.files.headers import with_document

PAGE = (Path(__file__).parents[2] / "docs" / "saved-models.md").read_text(encoding="utf-8")


def call(*arguments):
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)], env={"COLUMNS": "100"})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.safetensors"
    calibayes.save(GaussianNB(rule="ml").fit([[0.0], [1.0], [1.5], [3.0]], ["no", "no", "yes", "yes"]), path)
    return path


def test_it_prints_the_description(path):
    result = call(path)
    assert result.exit_code == 0, result.output
    assert result.output == str(describe_file(path)) + "\n"


def without_sizes(text):
    return re.sub(r"calibayes \S+|\d+ tensors|[\d.]+ [kM]B", "...", text)


def test_the_output_in_the_documents_is_true(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = load_penguins(return_X_y=True)
    calibayes.save(BayesClassifier().fit(X, y), "penguins.safetensors")
    shown = re.search(r"```text\n(penguins.safetensors: .*?)```", PAGE, flags=re.DOTALL)[1]
    assert without_sizes(call("penguins.safetensors").output) == without_sizes(shown)


def test_all_tensors_are_listed(path):
    result = call(path, "--tensors")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines()]
    for name, tensor in describe_file(path).tensors.items():
        assert [name, tensor.dtype, *str(list(tensor.shape)).split(), str(tensor.size), "bytes"] in lines


def test_json_for_programs(path):
    result = call(path, "--json")
    assert result.exit_code == 0, result.output
    parsed = json.loads(result.stdout)
    assert parsed == json.loads(json.dumps(describe_file(path).as_json()))
    assert parsed["class"] == "GaussianNB"
    assert parsed["classes"] == ["no", "yes"]
    assert parsed["tensors"]["fitted_.parameters.columns.mean"] == {
        "dtype": "F64",
        "shape": [2, 1],
        "size": 16,
    }
    assert parsed["tensors_checked"] is False


@pytest.mark.parametrize("option", [[], ["--json"], ["--tensors"]])
def test_control_characters_and_markup_of_a_file(option, path):
    classes = ["[red]no[/red]", "a\x1b[2J\x07\x9b\x7f\u202e"]
    with_document(path, lambda document: document["contents"].update(classes=classes))
    result = call(path, *option)
    assert result.exit_code == 0, result.output
    assert not set(result.output) & set("\x1b\x07\x9b\x7f\u202e")
    assert "[red]no[/red]" in result.output
    if option == ["--json"]:
        assert json.loads(result.stdout)["classes"] == classes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a model file of calibayes"),
        (b"a,y\n1,p\n2,q\n", "is not a model file of calibayes"),
        (b"\x80\x04" + b"x" * 200, "is not a model file of calibayes"),
        (None, "there is no file"),
    ],
)
def test_errors_are_one_sentence(content, message, tmp_path):
    path = tmp_path / "file.safetensors"
    if content is not None:
        path.write_bytes(content)
    result = call(path)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert len(result.stderr.splitlines()) == 1


def test_a_folder_and_a_truncated_file_are_errors(path, tmp_path):
    assert call(tmp_path).exit_code == 2
    assert "is not a file" in call(tmp_path).stderr
    path.write_bytes(path.read_bytes()[:-5])
    result = call(path)
    assert result.exit_code == 2
    assert "is truncated: missing 5 bytes" in result.stderr
