"""The source tree keeps to its rules: sizes of files and folders, privacy, depth of inheritance, order of parameters."""

import ast
import inspect
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import calibayes

SOURCE = Path(calibayes.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
ESTIMATORS = [
    thing
    for name in calibayes.__all__
    if isinstance(thing := getattr(calibayes, name), type) and issubclass(thing, BaseEstimator)
]
NAMED_TUPLE = {"_replace", "_asdict", "_fields"}
PYTHON_OWN = {"_getframe", "_exit"}
TRAINING = ["rule", "max_iter", "stop", "training", "costs", "random_state", "engine", "n_jobs", "verbose"]


def test_no_file_has_more_than_600_lines():
    assert [str(file) for file in FILES if len(file.read_text(encoding="utf-8").splitlines()) > 600] == []


def test_no_folder_has_more_than_30_modules():
    folders = {file.parent for file in FILES}
    sizes = {folder: sum(file.name != "__init__.py" for file in folder.glob("*.py")) for folder in folders}
    assert [str(folder) for folder, size in sizes.items() if size > 30] == []


def is_own(node: ast.Attribute) -> bool:
    """Whether an attribute belongs to the object whose method reads it."""
    value = node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super":
        return True
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def defined_names(tree: ast.Module) -> set[str]:
    """Names of functions, methods and attributes that a module defines."""
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    stored = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    } | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return functions | stored


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_private_attribute_of_another_module_is_read(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    allowed = defined_names(tree) | NAMED_TUPLE | PYTHON_OWN
    foreign = [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not is_own(node)
        and node.attr not in allowed
    ]
    assert foreign == []


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
def test_inheritance_is_shallow(estimator):
    ours = [base.__name__ for base in estimator.__mro__ if base.__module__.startswith("calibayes")]
    assert len(ours) <= 5, ours


@pytest.mark.parametrize(
    "estimator",
    [estimator for estimator in ESTIMATORS if "rule" in inspect.signature(estimator).parameters],
    ids=lambda estimator: estimator.__name__,
)
def test_parameters_of_training_come_last(estimator):
    assert list(inspect.signature(estimator).parameters)[-len(TRAINING) :] == TRAINING
