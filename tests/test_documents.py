"""The documents are correct: their code runs, and every public name is in the reference."""

import doctest
import importlib
import pkgutil
import re
import runpy
import tomllib
from inspect import isclass, isfunction, isroutine
from pathlib import Path

import pytest

import calibayes
from calibayes.engines import computing, one_thread
from calibayes.files import describe_file

ROOT = Path(__file__).parents[1]
DOCUMENTS = (
    *("README.md", "CONTRIBUTING.md", "docs/explanations.md", "docs/scikit-learn.md"),
    *("docs/saved-models.md", "docs/format.md", "docs/checkpoints.md", "docs/federated.md"),
    "docs/scale.md",
    "docs/held-out.md",
    "docs/forgetting.md",
    "docs/privacy.md",
    "docs/prior-shift.md",
    "docs/prediction-sets.md",
    "docs/slb.md",
    "docs/drift.md",
    "docs/label-issues.md",
    "docs/questions.md",
    "docs/fairness.md",
    "docs/influence.md",
    "docs/trees.md",
    "docs/checks.md",
    "docs/plots.md",
    "docs/report.md",
    "docs/command.md",
    "docs/onnx.md",
    "docs/sql.md",
    "docs/index.md",
)
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(calibayes.__path__, "calibayes.")
    if "__main__" not in module.name
)


REPOSITORY = "https://github.com/calibayes/calibayes/blob/main/"


def test_the_links_of_the_readme_work_on_other_sites():
    """The README is also the page of the package index, where links to files of the repository must be absolute."""
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    assert all(link.startswith("https://") for link in links)
    files = [link.removeprefix(REPOSITORY) for link in links if link.startswith(REPOSITORY)]
    assert [name for name in files if not (ROOT / name).exists()] == []


def code_blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name in DOCUMENTS for number in range(len(code_blocks(name)))],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_code_in_documents_runs(name, number, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some save a model
    script = tmp_path / "document.py"
    script.write_text(code_blocks(name)[number], encoding="utf-8")
    runpy.run_path(str(script))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *(("README.md", 0), ("docs/saved-models.md", 0), ("docs/reference.md", 0)),
        *(("docs/papers/index.md", number) for number in range(2)),
        *(("docs/papers/toy.md", number) for number in range(3)),
        *(("docs/checkpoints.md", 0), ("docs/federated.md", 0), ("docs/federated.md", 1)),
        *(("docs/scale.md", 0), ("docs/scale.md", 1)),
        ("docs/scikit-learn.md", 0),
        ("docs/held-out.md", 0),
        ("docs/held-out.md", 1),
        ("docs/forgetting.md", 0),
        ("docs/privacy.md", 0),
        ("docs/prior-shift.md", 0),
        ("docs/prediction-sets.md", 0),
        ("docs/prediction-sets.md", 1),
        ("docs/drift.md", 0),
        ("docs/drift.md", 1),
        ("docs/label-issues.md", 0),
        ("docs/fairness.md", 0),
        ("docs/influence.md", 0),
        ("docs/influence.md", 1),
        ("docs/sql.md", 0),
        ("docs/sql.md", 1),
        ("docs/checks.md", 0),
        ("docs/checks.md", 1),
        ("docs/plots.md", 0),
        ("docs/onnx.md", 0),
        ("docs/onnx.md", 1),
        *(("docs/start.md", number) for number in range(5)),
        *(
            (f"docs/how-to/{name}.md", 0)
            for name in ("missing-values", "costs", "text", "unlabeled-rows", "extend")
        ),
        *((f"docs/how-to/{name}.md", 1) for name in ("missing-values", "costs", "extend")),
        ("docs/how-to/extend.md", 2),
        *((f"docs/explained/{name}.md", 0) for name in ("equation", "statistics", "calibration", "default")),
    ],
    ids=lambda value: str(value).removeprefix("docs/").removesuffix(".md"),
)
def test_output_in_documents_is_true(name, number, tmp_path, monkeypatch, capsys):
    """The text block after a code block is what the code prints."""
    monkeypatch.chdir(tmp_path)  # some write files
    text = (ROOT / name).read_text(encoding="utf-8")
    code, shown = re.findall(r"```python\n((?:(?!```).)*)```\n\n```text\n(.*?)```", text, flags=re.DOTALL)[
        number
    ]
    script = tmp_path / "document.py"
    script.write_text(code, encoding="utf-8")
    runpy.run_path(str(script))
    assert capsys.readouterr().out == shown


PATH = re.compile(r"`((?:[\w.-]+/)+(?:[\w.-]+\.(?:py|md|hpp|cpp))?)`")
"""A path of a file, or of a folder, in backticks."""


NAMING = (
    *("README.md", "CONTRIBUTING.md", "src/calibayes/README.md"),
    *(
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.md", "how-to/*.md", "explained/*.md", "papers/*.md", "quality/*.md")
        for path in sorted((ROOT / "docs").glob(pattern))
    ),
)
"""Documents whose paths and dotted names must exist; records of decisions tell of their time."""


BY_NAME = re.compile(r"\binstall\b[\s`'\"]+(-\S+\s+)*[`'\"]*calibayes\b(?![/.])", re.IGNORECASE)
TEXTS = (
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("src/**/*.py"),
    *ROOT.glob("examples/*.py"),
)


def test_nothing_tells_to_install_the_package_by_its_name():
    """An index may not have it, or a package of somebody else: it is installed from a clone or from a wheel."""
    for text in ("pip install 'calibayes[sql]'", "Install\n`calibayes`", "pip install -U calibayes"):
        assert BY_NAME.search(text)
    for text in ("pip install '.[sql]'", "pip install calibayes.whl", "install the extra of calibayes"):
        assert not BY_NAME.search(text)
    texts = [path for path in TEXTS if "lab" not in path.relative_to(ROOT).parts]
    assert [path for path in texts if BY_NAME.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("name", NAMING)
def test_paths_that_documents_name_exist(name):
    """From the root of the repository, or from the folder of the package."""
    named = PATH.findall((ROOT / name).read_text(encoding="utf-8"))
    places = (ROOT, ROOT / "src", ROOT / "src" / "calibayes")
    lost = [path for path in named if not any((place / path).exists() for place in places)]
    assert [path for path in lost if not path.startswith(("build/", "dist/"))] == []


def dotted_names(name):
    return re.findall(r"`(calibayes(?:\.\w+)+)", (ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NAMING)
def test_dotted_names_in_documents_exist(name):
    for dotted in dotted_names(name):
        pkgutil.resolve_name(dotted)


def test_the_readme_of_the_source_tree_names_every_folder():
    package = ROOT / "src" / "calibayes"
    folders = {f"`{path.parent.name}/`" for path in package.glob("*/__init__.py")}
    text = (package / "README.md").read_text(encoding="utf-8")
    assert folders
    assert sorted(folder for folder in folders if folder not in text) == []


def test_the_description_of_a_saved_model_is_true(tmp_path, monkeypatch):
    """The text that starts with a file name is what `describe_file` prints, without the sizes, which vary a little."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "document.py").write_text(code_blocks("docs/saved-models.md")[0], encoding="utf-8")
    runpy.run_path(str(tmp_path / "document.py"))
    page = (ROOT / "docs/saved-models.md").read_text(encoding="utf-8")
    shown = re.search(r"```text\n(penguins.safetensors: .*?)\n```", page, flags=re.DOTALL)[1].splitlines()
    printed = str(describe_file("penguins.safetensors")).splitlines()
    assert [line for line in shown if " kB" not in line] == [line for line in printed if " kB" not in line]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The number of unique classes is greater:UserWarning")  # of random tables
@pytest.mark.filterwarnings("ignore:.* no known value:calibayes.ColumnWarning")  # of random tables
def test_examples_in_docstrings_run(name):
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0


PUBLIC = (
    "calibayes",
    *(
        f"calibayes.{part}"
        for part in (
            "families",
            "rules",
            "learn",
            "engines",
            "encoders",
            "plots",
            "testing",
            "datasets",
            "ranks",
            "reproduction",
            "federated",
            "files",
            "trust",
            "dependence",
            "checks",
            "report",
            "export.onnx",
            "export.sql",
        )
    ),
)


def examples_in(text):
    """The code of the examples of a docstring."""
    return [example.source for example in doctest.DocTestParser().get_examples(text or "")]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name):
    """In its own docstring, or in that of its module. `test_examples_in_docstrings_run` runs them."""
    module = importlib.import_module(name)
    in_module = "\n".join(examples_in(module.__doc__))
    things = {public: getattr(module, public) for public in module.__all__}
    documented = {public: thing for public, thing in things.items() if isclass(thing) or isroutine(thing)}
    without = [public for public, thing in documented.items() if not examples_in(thing.__doc__)]
    assert [public for public in without if not re.search(rf"\b{public}\b", in_module)] == []


@pytest.mark.parametrize("function", [computing, one_thread])
def test_examples_of_context_managers_run(function):
    """doctest does not find them in their module: the decorator is of another one."""
    namespace = dict(vars(importlib.import_module(function.__wrapped__.__module__)))
    test = doctest.DocTestParser().get_doctest(function.__doc__, namespace, function.__name__, None, None)
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_in_the_reference(name):
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    missing = [public for public in importlib.import_module(name).__all__ if f"`{public}`" not in text]
    assert [public for public in missing if public != "__version__"] == []


def test_only_methods_that_upper_packages_implement_are_ignored_by_the_layers():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    ignored = [line for contract in contracts for line in contract.get("ignore_imports", [])]
    assert [line for line in ignored if not line.startswith("calibayes.model.delegates -> ")] == []


def test_every_public_function_has_a_docstring():
    for name in MODULES:
        module = importlib.import_module(name)
        assert module.__doc__, name
        for public in getattr(module, "__all__", []):
            thing = getattr(module, public)
            assert not (isclass(thing) or isfunction(thing)) or thing.__doc__, f"{name}.{public}"
