"""Cells that a spreadsheet would execute: tables are written as they are, or with --escape-formulas as text."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calibayes
from calibayes import NaiveBayes
from calibayes.cli import rows
from calibayes.cli.outputs import FORMULA_STARTS, escaped
from tests.cli.conftest import call

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"]
HARMLESS = ["a=b", "x", "-1.5", "+3", "-1e-3", "1,5", ""]


@given(st.text())
def test_no_escaped_text_is_a_formula_and_nothing_else_changes(text):
    written = escaped(text)
    assert written in (text, f"'{text}")
    if written == text and text.startswith(FORMULA_STARTS):
        float(text.replace(",", "."))  # a number
    assert (written == text) or text.startswith(FORMULA_STARTS)


@pytest.mark.parametrize(("texts", "is_changed"), [(FORMULAS, True), (HARMLESS, False)])
def test_formulas_are_escaped_and_numbers_are_not(texts, is_changed):
    assert [escaped(text) != text for text in texts] == [is_changed] * len(texts)


@pytest.fixture
def formulas(tmp_path):
    """A model of columns, levels and classes that begin like formulas, and its table."""
    n = 70
    rng = np.random.default_rng(0)
    y = np.array(FORMULAS)[np.arange(n) % len(FORMULAS)]
    X = pd.DataFrame(
        {"=x": rng.normal(size=n) + np.arange(n) % 7, "+level": np.array(FORMULAS)[rng.integers(0, 7, n)]}
    )
    calibayes.save(NaiveBayes(rule="ml").fit(X, y), tmp_path / "nb.safetensors")
    table = X.assign(**{"@id": np.where(np.arange(n) % 2, "-5", "=1")})
    with (tmp_path / "table.csv").open("wb") as file:
        rows.write_frame(table, "csv", file)
    return tmp_path


def commands(folder):
    model = folder / "nb.safetensors"
    return [
        ("predict", model, folder / "table.csv", "--id", "@id"),
        ("sample", model, "--rows", 30),
    ]


def cells(output):
    return [cell for line in csv.reader(io.StringIO(output, newline="")) for cell in line]


@pytest.mark.parametrize("place", range(2))
@pytest.mark.parametrize("has_pyarrow", [True, False])
def test_commands_write_no_formula_if_they_are_asked_to(place, has_pyarrow, formulas, monkeypatch):
    if not has_pyarrow:
        monkeypatch.setattr("calibayes.cli.outputs.find_spec", lambda name: None)
    words = commands(formulas)[place]
    plain, safe = call(*words), call(*words, "--escape-formulas")
    assert plain.exit_code == safe.exit_code == 0, safe.output
    assert any(cell.startswith(FORMULA_STARTS) and escaped(cell) != cell for cell in cells(plain.stdout))
    assert cells(safe.stdout) == [escaped(cell) for cell in cells(plain.stdout)]


def test_data_sets_and_other_formats(monkeypatch, formulas, tmp_path):
    frame = pd.DataFrame({"=a": ["=1", None, "b"], "n": [-1.0, 2.0, np.nan]})
    file = io.BytesIO()
    rows.write_frame(frame, "csv", file, escape=True)
    assert file.getvalue().decode() == "'=a,n\n'=1,-1\n,2\nb,\n"
    result = call(
        "predict", formulas / "nb.safetensors", formulas / "table.csv", "--json", "--escape-formulas"
    )
    assert result.exit_code == 2
    assert "--escape-formulas is for CSV files, not for jsonl" in result.stderr
