"""Run the tests of the native kernels, or random calls, on an extension that stops at invalid operations.

    python -m tests.sanitize               the tests, with sanitizers
    python -m tests.sanitize --assertions  the tests, with the assertions of the C++ library
    python -m tests.sanitize --calls       100,000 random calls, with either
    python -m tests.sanitize --threads     loops of teams of threads, with the thread sanitizer

needs gcc and pip. The address and undefined behavior sanitizers stop at reads and writes out of bounds, misaligned or
through null, at divisions by zero, at overflows of integers and at numbers that no integer can hold. The assertions stop
at positions outside of a vector. Everything is built in build/sanitized and build/assertions, where only files that
changed are compiled again. pytest loads this file as a plugin, which replaces the installed extension.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src/calibayes/kernels/native"
PACKAGES = ROOT / "build/sanitized/packages"
MODULE = "calibayes.kernels.native._native"
VARIABLE = "CALIBAYES_SANITIZED"
EXAMPLES = "40"
SELECTED = "not 1000 and not 600"
"""Tests on large tables are left out: sanitizers are slow, and smaller ones run the same code."""
CALLS = "100000"
FLAGS = ["-std=c++17", "-O1", "-g1", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math"]
OPTIONS = {
    "sanitized": [
        "-fsanitize=address,undefined,float-cast-overflow",
        "-fno-sanitize-recover=undefined,float-cast-overflow",
        "-fno-omit-frame-pointer",
    ],
    "assertions": ["-D_GLIBCXX_ASSERTIONS"],
}
"""Options of each form, whose folder has its name."""
LEVELS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx2", "-mfma", *(f"-mavx512{part}" for part in ("f", "bw", "dq", "vl"))],
}
"""Options for each instruction set, as in CMakeLists.txt."""


def compiled(target: Path, source: Path, options: list[str]) -> Path:
    """The object file of a source, compiled unless it is newer than all sources."""
    newest = max(file.stat().st_mtime for file in (source, *SOURCES.glob("*.?pp")))
    if PACKAGES in source.parents:
        newest = source.stat().st_mtime
    if not target.exists() or target.stat().st_mtime < newest:
        subprocess.run(["g++", *FLAGS, *options, "-c", str(source), "-o", str(target)], check=True)
    return target


def nanobind_folder() -> Path:
    """The folder of nanobind's sources, installed into the build folder if necessary."""
    if not (PACKAGES / "nanobind").exists():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(PACKAGES)]
        subprocess.run([*install, "nanobind>=2.4"], check=True)
    return PACKAGES / "nanobind"


def build(form: str) -> Path:
    """The extension in one of the forms."""
    folder, checks = ROOT / "build" / form, OPTIONS[form]
    folder.mkdir(parents=True, exist_ok=True)
    nanobind = nanobind_folder()
    x86 = platform.machine() in ("x86_64", "AMD64")
    levels = LEVELS if x86 else {"baseline": []}
    folders = (nanobind / "include", nanobind / "ext/robin_map/include", sysconfig.get_path("include"))
    options = [
        *(f"-I{folder}" for folder in folders),
        "-DNB_DOMAIN=calibayes",
        *["-DCALIBAYES_X86_LEVELS"] * x86,
    ]
    jobs = [
        (f"kernels_{level}", SOURCES / "kernels.cpp", [*checks, f"-DCALIBAYES_LEVEL={level}", *flags])
        for level, flags in levels.items()
    ]
    for level, flags in levels.items():
        exact = [*checks, f"-DCALIBAYES_LEVEL=exact_{level}", "-ffp-contract=off", *flags]
        jobs.append((f"exact_{level}", SOURCES / "exact.cpp", exact))
    jobs += [(name, SOURCES / f"{name}.cpp", [*checks, *options]) for name in ("module", "dispatch")]
    jobs += [("nanobind", nanobind / "src/nb_combined.cpp", [*options, "-fno-strict-aliasing"])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda job: str(compiled(folder / f"{job[0]}.o", *job[1:])), jobs))
    subprocess.run(["g++", "-shared", *checks, *objects, "-o", str(folder / "_native.so")], check=True)
    return folder / "_native.so"


def loops_of_threads() -> Path:
    """A program of loops that threads share, with the thread sanitizer."""
    folder, checks = ROOT / "build/threads", ["-fsanitize=thread", f"-I{SOURCES}"]
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        ("loops", ROOT / "tests/kernels/team_loops.cpp", []),
        ("dispatch", SOURCES / "dispatch.cpp", []),
        ("kernels", SOURCES / "kernels.cpp", ["-DCALIBAYES_LEVEL=baseline"]),
        ("exact", SOURCES / "exact.cpp", ["-DCALIBAYES_LEVEL=exact_baseline", "-ffp-contract=off"]),
    ]
    objects = [str(compiled(folder / f"{name}.o", source, [*checks, *own])) for name, source, own in jobs]
    subprocess.run(["g++", *checks, *objects, "-pthread", "-o", str(folder / "loops")], check=True)
    return folder / "loops"


def runtime() -> str:
    """The libraries of the address sanitizer, which must be loaded first, and of C++, whose exceptions it intercepts."""
    commands = [["gcc", f"-print-file-name={name}"] for name in ("libasan.so", "libstdc++.so")]
    return " ".join(subprocess.check_output(command, text=True).strip() for command in commands)


def environment_of(form: str, extension: Path) -> dict[str, str]:
    """Variables of processes that use the extension."""
    preloaded = {"LD_PRELOAD": runtime()} if form == "sanitized" else {}
    return {
        **os.environ,
        **preloaded,
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "CALIBAYES_FUZZ": EXAMPLES,
        VARIABLE: str(extension),
    }


def main(arguments: list[str]) -> int:
    if "--threads" in arguments:
        return subprocess.run([loops_of_threads()], check=False).returncode
    form = "assertions" if "--assertions" in arguments else "sanitized"
    further = [argument for argument in arguments if argument not in ("--assertions", "--calls")]
    environment = environment_of(form, build(form))
    # No output is captured: the report of a sanitizer would be lost with the process.
    tests = ["pytest", "-q", "-s", "-p", "tests.sanitize", "-k", SELECTED, "-n", "auto", "tests/kernels"]
    calls = ["tests.kernels.native_calls", "--calls", CALLS]
    command = [sys.executable, "-m", *(calls if "--calls" in arguments else tests), *further]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def load() -> None:
    """Load the sanitized extension under the name of the installed one."""
    spec = importlib.util.spec_from_file_location(MODULE, os.environ[VARIABLE])
    assert spec is not None
    assert spec.loader is not None
    sys.modules[MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[MODULE])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
if VARIABLE in os.environ:
    load()
