"""`docs/papers/code.md` names classes, tests and commands that exist, and everything that the papers number."""

import ast
import importlib
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

from calibayes.reproduction import PAPERS, select_experiments

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers" / "code.md").read_text(encoding="utf-8")
COLUMNS = ("in the paper", "in calibayes", "tests", "command", "outcome")
MODULES = (
    "calibayes",
    *(f"calibayes.{name}" for name in ("rules", "learn", "families", "dependence", "sequences")),
)


def tables():
    """Paper -> the rows of its table, each a mapping from column to cell."""
    found = {}
    for section in PAGE.split("\n## ")[1:]:
        lines = [line[1:-1].split("|") for line in section.splitlines() if line.startswith("| ")]
        header, _, *rows = [[cell.strip() for cell in cells] for cells in lines]
        if tuple(header) == COLUMNS:
            paper = section.split("\n")[0]
            found[paper] = [dict(zip(COLUMNS, cells, strict=True)) for cells in rows]
    return found


TABLES = tables()
ROWS = [(paper, row) for paper, rows in TABLES.items() for row in rows]


def spans(column):
    """All code in a column."""
    return sorted({code for _, row in ROWS for code in re.findall(r"`([^`]+)`", row[column])})


def test_every_paper_has_a_table():
    assert sorted(TABLES) == sorted(paper.name for paper in PAPERS)
    assert "What is left out" in PAGE


@cache
def public_names():
    modules = [importlib.import_module(name) for name in MODULES]
    return {name: getattr(module, name) for module in modules for name in module.__all__}


@pytest.mark.parametrize("code", spans("in calibayes"))
def test_classes_exist(code):
    """A dotted name, or an expression of public names."""
    if re.fullmatch(r"calibayes(\.\w+)+", code):
        pkgutil.resolve_name(code)
    else:
        eval(code, {"__builtins__": {}}, dict(public_names()))


@pytest.mark.parametrize("name", spans("tests"))
def test_tests_exist(name):
    path, _, function = name.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert function.startswith("test_")
    assert function in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("command", spans("command"))
def test_commands_are_known(command):
    program, verb, paper, table = command.split()
    assert (program, verb) == ("calibayes", "reproduce")
    assert len(select_experiments(paper, table)) == 1


def test_a_command_is_of_the_paper_of_its_table():
    commands = [
        (paper, command) for paper, row in ROWS for command in re.findall(r"`([^`]+)`", row["command"])
    ]
    assert [command for paper, command in commands if command.split()[2] != paper] == []


def test_every_row_has_a_class_a_test_and_an_outcome():
    for _, row in ROWS:
        assert row["in calibayes"], row
        assert "::" in row["tests"], row
        assert row["outcome"], row


ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")
NUMBERED = {
    "rc-generative-2025": {"Equation": range(1, 5), "Algorithm": [1], "Table": range(1, 13), "Figure": [1]},
    "rc-probabilistic-2024": {
        "Equation": range(1, 8),
        "Algorithm": [1],
        "Table": ROMAN,
        "Figure": range(1, 5),
        "Proposition": [1],
    },
    "gdt-2004": {"Equation": range(1, 9), "Table": [1], "Figure": [1]},
    "slb-2020": {
        "Equation": range(1, 7),
        "Algorithm": [1],
        "Table": range(1, 5),
        "Lemma": [1],
        "Remark": [1],
        "Figure": range(1, 13),
    },
}
"""What the papers number, as far as it is computed; the rest of slb-2020 is among what is left out."""


def numbers_of(kind, text):
    """The numbers after a word such as "Tables" in the first column: "Tables 3 and 4", "Figures 1 to 3"."""
    found = []
    for listed in re.findall(rf"\b{kind}s? ((?:[IVX]+|\d+)(?:(?:, | and | to )(?:[IVX]+|\d+))*)", text):
        parts = re.findall(r"[IVX]+|\d+", listed)
        first, last = parts[0], parts[-1]
        found += [str(n) for n in range(int(first), int(last) + 1)] if " to " in listed else parts
    return found


@pytest.mark.parametrize("paper", NUMBERED)
def test_what_a_paper_numbers_is_on_the_page(paper):
    text = "\n".join(row["in the paper"] for row in TABLES[paper])
    for kind, expected in NUMBERED[paper].items():
        found = numbers_of(kind, text)
        assert sorted(set(found)) == sorted(map(str, expected)), kind
