"""What all commands have in common: help with examples that run, JSON, errors in one line, exit codes."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import pytest
import typer.main

from calibayes import compare
from calibayes.cli import app, options
from calibayes.cli.application import EXIT_CODES, exit_code, noting_interruptions, raise_noted_interruption
from calibayes.cli.options import complete_datasets, complete_models, complete_rules, pairs, several
from tests.cli.conftest import call

COMMANDS = sorted(typer.main.get_command(app).commands)
EXAMPLE = re.compile(r"^    ((?:cat \S+ \| )?calibayes .*)$", flags=re.MULTILINE)


def examples(command):
    return EXAMPLE.findall(call(command, "--help").output)


SLOW = ("calibayes fit penguins.csv --target species -o penguins.safetensors",)
"""Trains the default model, as other tests do."""
ALL_EXAMPLES = [example for command in COMMANDS for example in examples(command) if example not in SLOW]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_exit_codes(command):
    result = call(command, "--help")
    assert result.exit_code == 0
    assert examples(command)
    text = " ".join(result.output.split())
    assert all(f"{code} {meaning}" in text for code, meaning in EXIT_CODES.items())


@pytest.mark.parametrize("example", ALL_EXAMPLES)
def test_examples_run(example, penguins, tmp_path, monkeypatch):
    for file in penguins.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    source, _, command = example.rpartition(" | ")
    words = shlex.split(command.partition(" > ")[0])[1:]
    result = call(*words, input=(tmp_path / source.split()[1]).read_bytes() if source else None)
    assert result.exit_code == 0, result.output
    assert result.stdout or "-o" in words
    if "--json" in words:
        json.loads(result.stdout)


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (("compare", "--model", "LDA", "--rule", "ml", "--folds", 2), False),
        (("fit", "penguins.csv", "--target", "sex", "--model", "LDA", "-o", "new.safetensors"), False),
        (("predict", "nb.safetensors", "penguins.csv"), True),
        (("evaluate", "nb.safetensors", "penguins.csv", "--target", "species"), False),
        (("explain", "nb.safetensors", "penguins.csv"), False),
        (("explain", "nb.safetensors", "penguins.csv", "--row", 3), False),
        (("sample", "nb.safetensors"), True),
        (("inspect", "nb.safetensors"), False),
        (("datasets",), False),
        (("datasets", "iris"), True),
        (("info",), False),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_every_command_prints_json(words, lines, penguins, tmp_path, monkeypatch):
    for file in penguins.iterdir():
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    result = call(*words, "--json")
    assert result.exit_code == 0, result.output
    documents = result.stdout.splitlines() if lines else [result.stdout]
    assert documents
    assert all(json.loads(document) for document in documents)


def test_every_command_with_results_has_json():
    commands = typer.main.get_command(app).commands
    assert {
        name for name, one in commands.items() if any("--json" in p.opts for p in one.command.params)
    } == set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit"], "Missing"),
        (["fit", "penguins.csv", "--targt", "x"], "--targt"),
        (["unknown"], "unknown"),
        (["fit", "penguins.csv", "-o", "m.safetensors"], "--target NAME"),
        (["fit", "penguins.csv", "--target", "species"], "-o FILE"),
        (["fit", "penguins.csv", "--target", "y", "-o", "m.safetensors"], "has no column 'y'"),
        (["fit", "penguins.csv", "--target", "species", "-o", "none/m.safetensors"], "cannot be written"),
        (["fit", "none.csv", "--target", "y", "-o", "m.safetensors"], "there is no file none.csv"),
        (["fit", ".", "--target", "y", "-o", "m.safetensors"], "is a folder"),
        (["fit", "nb.safetensors", "--target", "y", "-o", "m.safetensors"], "is a model file"),
        (
            ["fit", "penguins.csv", "--target", "sex", "-o", "m.safetensors", "--model", "LDB"],
            "did you mean LDA",
        ),
        (["fit", "penguins.csv", "--target", "sex", "-o", "m", "--rule", "ml"], "has no training rule"),
        (["fit", "penguins.csv", "--target", "sex", "-o", "m", "--set", "cvv=3"], "did you mean cv?"),
        (["fit", "penguins.csv", "--target", "sex", "-o", "m", "--set", "cv"], "the form name=value"),
        (["fit", "penguins.csv", "--target", "sex", "-o", "m", "--set", "cv=3", "--set", "cv=4"], "twice"),
        (
            ["fit", "penguins.csv", "--target", "sex", "-o", "m", "--kind", "z=kernel"],
            "unknown column in --kind z",
        ),
        (["fit", "penguins.csv", "--target", "sex", "-o", "m", "--set", "=3"], "the form name=value"),
        (["fit", "penguins.csv", "--target", "sex", "-o", "m", "--ignore", "z"], "has no column 'z'"),
        (
            ["fit", "penguins.csv", "--target", "sex", "-o", "m", "--weights", "island"],
            "does not hold numbers",
        ),
        (["fit", "penguins.csv", "--target", "sex", "-o", "m", "--separator", "::"], "must be one character"),
        (["predict", "penguins.csv", "penguins.csv"], "is not a model file"),
        (["predict", "none.safetensors", "penguins.csv"], "there is no model file"),
        (["predict", "nb.safetensors", "empty.csv"], "is empty"),
        (["predict", "nb.safetensors", "lacking.csv"], "has no columns 'island', 'bill_length_mm'"),
        (
            ["predict", "nb.safetensors", "uneven.csv"],
            "row 1 below the header (counted from 0) has 8 cells, but the header has 7",
        ),
        (["predict", "nb.safetensors", "words.csv"], "but 'heavy' is no number"),
        (["predict", "nb.safetensors", "twice.csv"], "occurs more than once"),
        (["predict", "nb.safetensors", "latin.csv"], "--encoding"),
        (["predict", "nb.safetensors", "penguins.csv", "--id", "z"], "has no column 'z'"),
        (["predict", "nb.safetensors", "penguins.csv", "--only", "class"], "choose from prediction"),
        (["predict", "nb.safetensors", "penguins.csv", "--format", "xls"], "choose from csv"),
        (["predict", "nb.safetensors", "penguins.csv", "-o", "p.xls"], "cannot be told from its ending"),
        (["evaluate", "nb.safetensors", "penguins.csv"], "--target NAME"),
        (["evaluate", "nb.safetensors", "penguins.csv", "--target", "island"], "the model predicts from"),
        (["explain", "nb.safetensors", "penguins.csv", "--row", "-1"], "the first row below the header is 0"),
        (["explain", "nb.safetensors", "penguins.csv", "--row", "344"], "has 344 rows, from 0 to 343"),
        (["explain", "nb.safetensors", "penguins.csv", "--against", "Emperor"], "unknown --against"),
        (["sample", "nb.safetensors", "--class", "Emperor"], "unknown --class"),
        (["sample", "nb.safetensors", "--given", "year=old"], "holds numbers"),
        (["report", "penguins.csv", "--target", "sex"], "-o FILE"),
        (["report", "penguins.csv", "--target", "sex", "-o", "r.html", "--silence", "CB999"], "CB999"),
        (["report", "penguins.csv", "--target", "sex", "-o", "r.html", "--costs", "[["], "is no JSON"),
        (["datasets", "penguin"], "did you mean penguins?"),
        (["reproduce", "none"], "none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_input_is_an_error_of_one_line(words, message, penguins, tmp_path, monkeypatch):
    for file in penguins.iterdir():
        shutil.copy(file, tmp_path)
    header = "island,bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g,sex,year\n"
    row = "Biscoe,40,17,190,4000,male,2007\n"
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "lacking.csv").write_text("a,b\n1,2\n")
    (tmp_path / "uneven.csv").write_text(header + row + row.strip() + ",1\n")
    (tmp_path / "words.csv").write_text(header + row.replace("4000", "heavy"))
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    (tmp_path / "latin.csv").write_bytes("é,b\n1,2\n".encode("latin-1"))
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    result = call(*words)
    assert result.exit_code == 2
    lines = [line for line in result.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert sorted(tmp_path.iterdir()) == before


def test_no_arguments_print_the_help():
    result = call()
    assert result.exit_code == 2
    assert "predict" in result.stderr


def test_debug_prints_the_traceback_at_any_place(tmp_path, monkeypatch):
    assert "Traceback" not in call("predict", "none", "none").output
    assert "Traceback" in call("--debug", "predict", "none", "none").output
    assert "Traceback" in call("predict", "none", "none", "--debug").output
    monkeypatch.setenv("CALIBAYES_DEBUG", "1")
    assert "Traceback" in call("predict", "none", "none").output


def test_other_exit_codes(capsys):
    def fails(error):
        def raises():
            raise error

        return exit_code(raises, debug=False)

    assert fails(KeyboardInterrupt()) == 130
    assert fails(RuntimeError("a bug")) == 1
    assert "internal error: RuntimeError: a bug" in capsys.readouterr().err


def test_names_are_completed():
    assert complete_models("Q") == ["QDA"]
    assert complete_rules("m") == ["ml", "map"]
    assert "penguins" in complete_datasets("peng")


def test_repeated_and_separated_options_are_the_same(penguins):
    table = penguins / "penguins.csv"
    common = ("compare", table, "--target", "species", "--folds", 2, "--json")
    repeated = call(*common, "--model", "LDA", "--model", "QDA", "--rule", "ml", "--rule", "map")
    separated = call(*common, "--model", "LDA,QDA", "--rule", "ml,map")
    names = [
        [(one["model"], one["rule"]) for one in json.loads(result.stdout)["ranking"]]
        for result in (repeated, separated)
    ]
    assert names[0] == names[1]
    assert len(names[0]) == 4
    twice = call(*common, "--model", "LDA,LDA", "--rule", "ml")
    assert "note: LDA given more than once" in twice.stderr


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (["a", "b"], ["a", "b"]),
        (["a, b", "c,"], ["a", "b", "c"]),
        (['"weight, kg",b'], ["weight, kg", "b"]),
        (['a "quoted" b'], ['a "quoted" b']),
        (["a\nb"], ["a", "b"]),
        ([""], []),
        (None, []),
    ],
)
def test_values_that_can_be_repeated(given, values):
    assert several(given) == values


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (["a=1", "b=2"], {"a": "1", "b": "2"}),
        (["a=1, b=2"], {"a": "1", "b": "2"}),
        (["a=[[0,1],[5,0]],b=x"], {"a": "[[0,1],[5,0]]", "b": "x"}),
        (["a=Smith, John", "weight, kg=3"], {"a": "Smith, John", "weight, kg": "3"}),
        (["x=y=2,a=z=1"], {"x=y": "2", "a": "z=1"}),
        (["a="], {"a": ""}),
        (None, {}),
    ],
)
def test_pairs_that_can_be_repeated(given, values):
    assert pairs("--set", given, "column", ["a", "b", "x", "x=y", "weight, kg"]) == values


def test_a_rule_that_fits_no_model_is_noted(penguins):
    result = call("compare", "--model", "LDA", "--rule", "ml,dfe", "--folds", 2)
    assert "note: not compared, as no combination is valid on this table: dfe" in result.stderr


def run(*words, **options):
    return subprocess.run([sys.executable, "-m", "calibayes", *map(str, words)], check=False, **options)


def test_a_closed_output_is_no_error(penguins):
    reader, writer = os.pipe()
    os.close(reader)
    result = run(
        "predict",
        penguins / "nb.safetensors",
        penguins / "penguins.csv",
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert result.returncode == 141
    assert not result.stderr or result.stderr.startswith("note: ")


can_interrupt = pytest.mark.skipif(
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN, reason="a background job of a shell ignores Ctrl-C"
)


@can_interrupt
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_in_code_that_ignores_exceptions_is_not_lost(monkeypatch):
    class Ignoring:
        def __del__(self):  # of which Python ignores exceptions
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    raise_noted_interruption()
    with noting_interruptions():
        Ignoring()
        with pytest.raises(KeyboardInterrupt):
            raise_noted_interruption()
    raise_noted_interruption()


WITH_AN_INTERRUPTED_IMPORT = """
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED"]:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
runpy.run_module("calibayes", run_name="__main__")
"""


@can_interrupt
@pytest.mark.parametrize(
    "module", ["typer", "calibayes.cli.application", "calibayes.cli.information", "numpy", "scipy.stats"]
)
def test_an_interruption_while_modules_are_imported(module):
    result = subprocess.run(
        [sys.executable, "-c", WITH_AN_INTERRUPTED_IMPORT, "info"],
        capture_output=True,
        text=True,
        env={**os.environ, "INTERRUPTED": module},
        check=False,
    )
    assert result.returncode == 130
    assert result.stderr == "interrupted; no file was changed\n"
    assert result.stdout == ""


@can_interrupt
def test_an_error_after_an_interruption_is_one(capsys):
    def call():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("a module was not imported to its end") from None

    assert exit_code(call, debug=False) == 130
    assert "interrupted" in capsys.readouterr().err


@can_interrupt
def test_an_interruption_leaves_the_old_file(penguins, tmp_path):
    output = tmp_path / "out.csv"
    output.write_text("old")
    words = [sys.executable, "-m", "calibayes", "predict", penguins / "nb.safetensors", "-", "-o", output]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write((penguins / "penguins.csv").read_bytes()[:300])
        process.stdin.flush()
        process.stdin.write(b"\n" * 2**20)  # more than is looked at before the output is opened
        process.stdin.flush()
        while not list(tmp_path.glob(".*.part")):
            assert process.poll() is None
            time.sleep(0.1)
        time.sleep(1.0)  # until it waits for more rows
        process.send_signal(signal.SIGINT)
        message = process.stderr.read().decode()
        process.wait()
    assert process.returncode == 130
    assert "interrupted" in message
    assert "Traceback" not in message
    assert output.read_text() == "old"
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.parametrize("words", [["--version"], ["--help"]], ids=" ".join)
def test_what_is_known_without_them_imports_no_large_packages(words):
    script = "import sys\nfrom calibayes.cli import app\ntry:\n    app()\nfinally:\n    print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True
    )
    assert not {"sklearn", "pandas", "scipy", "numpy"} & set(result.stdout.split())


def test_summaries_of_commands_are_the_beginning_of_their_help():
    commands = typer.main.get_command(app).commands
    summaries = {name: command.help for name, command in commands.items()}
    assert summaries == {
        name: " ".join(command.command.help.split("\n\n")[0].split()) for name, command in commands.items()
    }


def test_names_in_help_are_those_of_models_and_rules():
    assert list(compare.MODELS) == list(options.OWN_MODELS)
    assert list(compare.BASELINES) == list(options.BASELINES)
    assert compare.RULES == options.RULES
