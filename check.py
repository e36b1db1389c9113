"""Run the checks that must pass before a change is merged; stop at the first failure.

python check.py                     all: style, format, types, layers, tests, benchmarks, experiments
python check.py --quick             about a minute: style, format, types, layers and the tests that fail most often
python check.py --oldest            a smoke test with the oldest versions that pyproject.toml declares, in build/oldest
python check.py --sanitize          a few minutes: tests of the native kernels, built with sanitizers (gcc and pip)
python check.py --fuzz              minutes: every estimator on 1,000 random tables (hypothesis)
python check.py -- -k tree -x       arguments after -- go to pytest
"""

import argparse
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent
PYTHON = sys.executable
PYTEST = [PYTHON, "-m", "pytest", "-n", "auto"]
QUICK_TESTS = [
    "tests/laws/test_families.py",
    "tests/laws/test_laws.py",
    "tests/rules/test_identities.py",
    "tests/contract/test_scikit_learn.py",
    "tests/test_documents.py",
    # Of scikit-learn's checks one for each estimator: two fits to the same rows predict the same.
    "-k=not test_scikit_learn_check or check_fit_idempotent",
]


class Step(NamedTuple):
    """One check: its name and the command that runs it from the root of the repository."""

    name: str
    command: list[str]


STATIC = [
    Step("style", [PYTHON, "-m", "ruff", "check", "."]),
    Step("format", [PYTHON, "-m", "ruff", "format", "--check", "."]),
    Step("types", [PYTHON, "-m", "mypy"]),
    Step("layers", [PYTHON, "-c", "from importlinter.cli import lint_imports_command as c; c()"]),
]
BENCHMARKS = [
    Step(f"benchmark {name}", [PYTHON, f"benchmarks/{name}.py", "--quick"])
    for name in ("text", "kernel", "slb", "trees", "speed", "accuracy")
]
REPRODUCE = ["reproduce", "--quick", "--datasets=iris", "--trials=1", "--out=build/experiments"]
EXPERIMENTS = [Step("experiments", [PYTHON, "-m", "calibayes", *REPRODUCE])]
SANITIZE = [Step("sanitize", [PYTHON, "-m", "tests.sanitize"])]
FUZZ = [
    Step(
        "random tables",
        ["env", "CALIBAYES_TABLES=1000", *PYTEST, "tests/contract/test_any_table.py", "-k=any_table_ends"],
    )
]
OLDEST = Path("build/oldest")
OLDEST_PYTHON = str(OLDEST / "bin" / "python")


def oldest_requirements() -> list[str]:
    """The oldest declared version of each package that is required at run time, such as numpy==1.26."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    return [requirement.replace(">=", "==") for requirement in declared]


def oldest_steps() -> list[Step]:
    """Make a virtual environment of the oldest versions, then run the smoke test there, with the NumPy kernels."""
    settings = ["env", "CALIBAYES_NATIVE=0", "PYTHONPATH=src"]
    return [
        Step("environment", [PYTHON, "-m", "venv", str(OLDEST)]),
        Step("oldest versions", [OLDEST_PYTHON, "-m", "pip", "install", "--quiet", *oldest_requirements()]),
        Step("smoke test", [*settings, OLDEST_PYTHON, "tests/smoke.py"]),
    ]


def steps(quick: bool, pytest_arguments: list[str]) -> list[Step]:
    """Steps of the quick or of the full check, in order."""
    if quick:
        return [*STATIC, Step("quick tests", [*PYTEST, *QUICK_TESTS, *pytest_arguments])]
    return [*STATIC, Step("tests", [*PYTEST, *pytest_arguments]), *BENCHMARKS, *EXPERIMENTS]


def run(step: Step) -> int:
    """Run a step, print how long it took and, if it failed, its command; return its exit status."""
    print(f"== {step.name}", flush=True)
    begin = time.perf_counter()
    status = subprocess.run(step.command, cwd=ROOT, check=False).returncode
    seconds = time.perf_counter() - begin
    print(f"== {step.name}: {'failed after ' if status else ''}{seconds:.1f} s", flush=True)
    if status:
        print(f"== To run this step again:\n{shlex.join(step.command)}", flush=True)
    return status


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="run static checks and a selection of the tests")
    parser.add_argument("--oldest", action="store_true", help="run a smoke test with the oldest versions")
    parser.add_argument("--sanitize", action="store_true", help="run only the native kernels with sanitizers")
    parser.add_argument("--fuzz", action="store_true", help="fit every estimator to 1,000 random tables")
    parser.add_argument("pytest_arguments", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()
    begin = time.perf_counter()
    if options.oldest:
        chosen = oldest_steps()
    elif options.sanitize:
        chosen = SANITIZE
    elif options.fuzz:
        chosen = FUZZ
    else:
        chosen = steps(options.quick, options.pytest_arguments)
    for step in chosen:
        if status := run(step):
            return status
    print(f"== all checks passed in {time.perf_counter() - begin:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
