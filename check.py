"""Run the checks that must pass before a change is merged; stop at the first failure.

python check.py                     all: style, format, types, layers, tests, benchmarks, experiments
python check.py --quick             about a minute: style, format, types, layers and the tests that fail most often
python check.py --oldest            smoke tests with the oldest versions that pyproject.toml declares, in build/oldest
python check.py --newest            a smoke test and the quick tests with the newest versions, in build/newest
python check.py --no-compiler       a smoke test after an installation without a C++ compiler, in build/no-compiler
python check.py --python PYTHON     a smoke test after an installation for another interpreter, such as python3.13
python check.py --package           the wheel and the source distribution in dist/, checked as a package index would
python check.py --torch              arrays on a device: their tests with PyTorch, installed in build/torch
python check.py --docs              minutes: the documentation site in build/site, without warnings, by build/docs-environment
python check.py --sanitize          about a minute: tests of the native kernels, built with sanitizers (gcc and pip)
python check.py --attack            ten minutes: random native calls and fits, killed Dask clusters (Linux, gcc and pip)
python check.py --fuzz              minutes: every estimator on 1,000 random tables (hypothesis), 400 killed saves
python check.py --fuzz-files 60     so many seconds: load random changes of model files and of checkpoints
python check.py --laws 600          so many seconds: metamorphic laws of every estimator on random and real tables, resumed
python check.py --browser           minutes: reports in headless Chromium (Debian's chromium and chromium-driver; selenium)
python check.py -- -k tree -x       arguments after -- go to pytest
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

ROOT = Path(__file__).parent
PYTHON = sys.executable
PYTEST = [PYTHON, "-m", "pytest", "-n", "auto", "--dist=loadgroup"]
TORCH = "torch==2.13.0"
TOGETHER = 2
"""Steps of a group that run at the same time."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""For what runs beside other processes: OpenMP threads wait for each other on shared cores (5 s became 44 s in one step)."""
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
    variables: Mapping[str, str] = MappingProxyType({})
    """Environment variables."""


STATIC = [
    Step("style", [PYTHON, "-m", "ruff", "check", "."]),
    Step("format", [PYTHON, "-m", "ruff", "format", "--check", "."]),
    Step("types", [PYTHON, "-m", "mypy"]),
    Step("layers", [PYTHON, "-c", "from importlinter.cli import lint_imports_command as c; c()"]),
]
BENCHMARKS = [
    Step(f"benchmark {name}", [PYTHON, f"benchmarks/{name}.py", "--quick"])
    for name in (
        *("text", "kernel", "slb", "trees", "dependence", "structure", "missing", "files", "accuracy"),
        *("sequences", "unlabeled", "growth_end"),
    )
]
BENCHMARKS.append(Step("leaderboard", [PYTHON, "benchmarks/accuracy.py", "leaderboard", "--quick"]))
BENCHMARKS += [
    Step(f"benchmark {name}", [PYTHON, "-m", f"benchmarks.scale.{name}", "--quick"])
    for name in ("streaming", "dask_speed")
]
BENCHMARKS += [
    Step(f"benchmark {name}", [PYTHON, "-m", f"benchmarks.trust.{name}", "--quick"])
    for name in (
        *("drift", "fairness", "forgetting", "influence", "label_issues", "prediction_sets", "prior_shift"),
        *("privacy", "questions"),
    )
]
BENCHMARKS += [
    Step(f"benchmark {name}", [PYTHON, "-m", f"benchmarks.front.{name}", "--quick"])
    for name in ("onnx_speed", "sql")
]
SPEED = [Step("benchmark speed", [PYTHON, "benchmarks/speed.py", "--quick"])]
"""Compares times, so nothing runs beside it."""
REPRODUCE = ["reproduce", "--quick", "--datasets=iris", "--trials=1", "--out=build/experiments"]
EXPERIMENTS = [Step("experiments", [PYTHON, "-m", "calibayes", *REPRODUCE])]
SANITIZE = [Step("sanitize", [PYTHON, "-m", "tests.sanitize"])]
ATTACK = [
    Step("native calls with sanitizers", [PYTHON, "-m", "tests.sanitize", "--calls"]),
    Step("native tests with assertions", [PYTHON, "-m", "tests.sanitize", "--assertions"]),
    Step("native calls with assertions", [PYTHON, "-m", "tests.sanitize", "--assertions", "--calls"]),
    Step("loops of native threads", [PYTHON, "-m", "tests.sanitize", "--threads"]),
    Step("killed clusters", [PYTHON, "-m", "tests.engines.killed_cluster"]),
    Step("random fits", [PYTHON, "-m", "tests.contract.random_fits", "--fits=20000"], ONE_THREAD),
]
FUZZ_TESTS = ["tests/contract/test_any_table.py", "-k=any_table_ends"]
KILL_TESTS = ["tests/files/test_interrupted_saves.py", "-k=killed"]
FUZZ = [
    Step("random tables", [*PYTEST, *FUZZ_TESTS], {"CALIBAYES_TABLES": "1000"}),
    Step("killed processes", [*PYTEST, *KILL_TESTS], {"CALIBAYES_KILLS": "400"}),
]
BROWSER = [
    Step(
        "reports in a browser",
        [PYTHON, "-m", "pytest", "-rs", "tests/report/test_browser.py"],
        {"CALIBAYES_BROWSER": "1"},
    )
]
LAWS = [PYTHON, "-m", "tests.metamorphic.run"]
FUZZ_FILES = {"model files": "tests.files.fuzz", "checkpoints": "tests.files.checkpoint_fuzz"}
HAS_NO_NATIVE_KERNELS = "from calibayes.kernels.dispatch import native_kernels as n; assert n.is_missing, n"


EXTRAS = ("dask", "parquet", "plots", "sql", "onnx")
"""Extras for users, whose oldest versions are tried, too."""
TABLES = ("duckdb", "polars")
"""Packages whose tables are read; their oldest versions are declared in the extra `dev`."""


def oldest_requirements() -> list[str]:
    """The oldest declared version of each package that is used at run time, such as numpy==1.26."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(requirement for extra in EXTRAS for requirement in extras[extra])]
    declared += [requirement for requirement in extras["dev"] if requirement.startswith(TABLES)]
    return sorted({requirement.replace(">=", "==") for requirement in declared})


def python_of(environment: Path) -> str:
    """The interpreter of a virtual environment."""
    return str(environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))


def environment_steps(
    name: str, packages: list[str], variables: dict[str, str], interpreter: str = PYTHON
) -> list[Step]:
    """Make a virtual environment in build/ and install packages into it."""
    folder = Path("build") / name
    install = [python_of(folder), "-m", "pip", "install", "--quiet", *packages]
    return [
        Step("environment", [interpreter, "-m", "venv", str(folder)]),
        Step(f"installation ({name})", install, variables),
    ]


def smoke_step(name: str, variables: dict[str, str] | None = None) -> Step:
    command = [python_of(Path("build") / name), "tests/smoke.py"]
    return Step("smoke test", command, {**ONE_THREAD, **(variables or {})})


def oldest_steps() -> list[Step]:
    """The oldest versions, with the sources as they are and the NumPy kernels."""
    settings = {"CALIBAYES_NATIVE": "0", "PYTHONPATH": "src"}
    extras = smoke_step("oldest", settings)._replace(
        name="smoke test of extras", command=[python_of(Path("build/oldest")), "tests/smoke_extras.py"]
    )
    return [*environment_steps("oldest", oldest_requirements(), {}), extras, smoke_step("oldest", settings)]


def newest_steps() -> list[Step]:
    """The newest versions of all packages, those for development included."""
    tests = [python_of(Path("build/newest")), *PYTEST[1:], *QUICK_TESTS]
    install = ["--upgrade", "--upgrade-strategy", "eager", ".[dev]"]
    return [*environment_steps("newest", install, {}), smoke_step("newest"), Step("quick tests", tests)]


def no_compiler_steps() -> list[Step]:
    """An installation whose compilers cannot be found."""
    nowhere = {"CC": "no-compiler", "CXX": "no-compiler"}
    folder = Path("build/no-compiler")
    return [
        *environment_steps("no-compiler", ["--no-cache-dir", "."], nowhere),
        Step("no native kernels", [python_of(folder), "-c", HAS_NO_NATIVE_KERNELS]),
        smoke_step("no-compiler"),
    ]


def package_steps() -> list[Step]:
    """Build the source distribution and a wheel from it, check both, and try the wheel."""
    tools = ["build", "check-wheel-contents", "twine"]
    check = Step("package", [python_of(Path("build/package")), "tests/package.py"])
    return [*environment_steps("package", tools, {}), check, smoke_step("package")]


def python_steps(interpreter: str) -> list[Step]:
    """An installation for another interpreter."""
    name = f"for-{Path(interpreter).name}"
    return [*environment_steps(name, ["."], {}, interpreter), smoke_step(name)]


def torch_steps() -> list[Step]:
    """The tests of arrays on a device with PyTorch, installed first: its wheel brings what it needs."""
    python = python_of(Path("build/torch"))
    environment, install = environment_steps("torch", [TORCH], {})
    tests = [python, "-m", "pytest", "-n", "auto", "tests/array_api", "tests/contract/test_scikit_learn.py"]
    return [
        environment,
        install,
        Step("installation (calibayes)", [python, "-m", "pip", "install", "--quiet", ".[dev]"]),
        Step("tests with PyTorch", [*tests, "-k=array_api"]),
        Step("benchmark device", [python, "benchmarks/scale/device.py", "--quick"]),
    ]


def docs_steps() -> list[Step]:
    """The documentation site; a warning, such as a link to nowhere, is an error."""
    python = python_of(Path("build/docs-environment"))
    build = [python, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "-j", "2", "docs", "build/site"]
    environment, install = environment_steps("docs-environment", [".[docs]"], {})
    return [environment, install, Step("site", build, {"MPLBACKEND": "agg"})]


def fuzz_files_steps(seconds: int) -> list[Step]:
    """Random changes of files; each kind of file gets the same time."""
    share = f"--seconds={seconds / len(FUZZ_FILES)}"
    return [Step(name, [PYTHON, "-m", module, share]) for name, module in FUZZ_FILES.items()]


def groups(quick: bool, pytest_arguments: list[str]) -> list[list[Step]]:
    """Groups of steps of the quick or of the full check, in order; the steps of a group run two at a time."""
    if quick:
        return [STATIC, [Step("quick tests", [*PYTEST, *QUICK_TESTS, *pytest_arguments])]]
    # The type check takes one processor most of a minute; benchmarks and experiments use the other one.
    together = [step._replace(variables=ONE_THREAD) for step in STATIC + BENCHMARKS + EXPERIMENTS]
    return [together, [Step("tests", [*PYTEST, *pytest_arguments], ONE_THREAD)], SPEED]


def chosen_groups(options: argparse.Namespace) -> list[list[Step]]:
    """Steps of the check that the options name, in groups that run one after the other."""
    special: dict[str, Callable[[], list[Step]]] = {
        "oldest": oldest_steps,
        "newest": newest_steps,
        "no_compiler": no_compiler_steps,
        "package": package_steps,
        "torch": torch_steps,
        "docs": docs_steps,
        "sanitize": lambda: SANITIZE,
        "attack": lambda: ATTACK,
        "fuzz": lambda: FUZZ,
        "browser": lambda: BROWSER,
        "laws": lambda: [Step("laws", [*LAWS, f"--seconds={options.laws}"], ONE_THREAD)],
        "fuzz_files": lambda: fuzz_files_steps(options.fuzz_files),
    }
    for name, make in special.items():
        if getattr(options, name):
            return [[step] for step in make()]
    if options.python:
        return [[step] for step in python_steps(options.python)]
    return groups(options.quick, options.pytest_arguments)


class Ended(NamedTuple):
    """How a step ended."""

    step: Step
    status: int
    seconds: float
    output: str = ""
    """What it printed, if that was kept."""


def run(step: Step, keep: bool = False) -> Ended:
    """Run a step; what it prints is kept or appears at once."""
    begin = time.perf_counter()
    environment = {**os.environ, **step.variables}
    done = subprocess.run(
        step.command,
        cwd=ROOT,
        env=environment,
        check=False,
        text=True,
        errors="replace",
        stdout=subprocess.PIPE if keep else None,
        stderr=subprocess.STDOUT if keep else None,
    )
    return Ended(step, done.returncode, time.perf_counter() - begin, done.stdout or "")


def report(ended: Ended) -> None:
    """Print how long a step took and, if it failed, its command."""
    step = ended.step
    print(f"== {step.name}: {'failed after ' if ended.status else ''}{ended.seconds:.1f} s", flush=True)
    if ended.status:
        settings = [f"{name}={value}" for name, value in step.variables.items()]
        print(f"== To run this step again:\n{shlex.join([*settings, *step.command])}", flush=True)


def run_alone(step: Step) -> int:
    """Run a step; return its exit status."""
    print(f"== {step.name}", flush=True)
    ended = run(step)
    report(ended)
    return ended.status


def run_together(steps: list[Step]) -> int:
    """Run steps two at a time; what one has printed is shown when it has ended. Returns the first status that is not 0.

    After a failure no further step begins; one that runs already ends, and is shown, too.
    """
    failed, left, running = 0, list(steps), set[Future[Ended]]()
    with ThreadPoolExecutor(TOGETHER) as pool:
        while running or (left and not failed):
            while left and not failed and len(running) < TOGETHER:
                running.add(pool.submit(run, left.pop(0), keep=True))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for ended in (future.result() for future in done):
                print(f"== {ended.step.name}\n{ended.output}", end="", flush=True)
                report(ended)
                failed = failed or ended.status
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="run static checks and a selection of the tests")
    parser.add_argument("--sanitize", action="store_true", help="run only the native kernels with sanitizers")
    parser.add_argument("--attack", action="store_true", help="random native calls and fits, killed clusters")
    parser.add_argument("--fuzz", action="store_true", help="fit every estimator to 1,000 random tables")
    parser.add_argument(
        "--fuzz-files",
        type=int,
        help="load random changes of model files and checkpoints, for so many seconds",
    )
    parser.add_argument(
        "--laws",
        type=float,
        help="try metamorphic laws on 200 random and 12 real tables, for so many seconds",
    )
    parser.add_argument("--browser", action="store_true", help="look at reports in headless Chromium")
    parser.add_argument("--oldest", action="store_true", help="run a smoke test with the oldest versions")
    parser.add_argument("--newest", action="store_true", help="run quick tests with the newest versions")
    parser.add_argument("--package", action="store_true", help="build and check the files for a release")
    parser.add_argument(
        "--torch", action="store_true", help="run the tests of arrays on a device with PyTorch"
    )
    parser.add_argument("--docs", action="store_true", help="build the documentation site in build/site")
    parser.add_argument("--no-compiler", action="store_true", help="run a smoke test without native kernels")
    parser.add_argument("--python", help="run a smoke test with another interpreter, such as python3.13")
    parser.add_argument("pytest_arguments", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()
    begin = time.perf_counter()
    for group in chosen_groups(options):
        if status := run_alone(group[0]) if len(group) == 1 else run_together(group):
            return status
    print(f"== all checks passed in {time.perf_counter() - begin:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
