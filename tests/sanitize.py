"""Run the tests of the native kernels on an extension built with sanitizers: invalid accesses to memory end the run.

    python -m tests.sanitize

needs gcc and pip. The address and undefined behavior sanitizers stop at reads and writes out of bounds, misaligned or
through null, at divisions by zero and overflows of integers. Everything is built in build/sanitized, where only files that
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
BUILD = ROOT / "build/sanitized"
EXTENSION = BUILD / "_native.so"
MODULE = "calibayes.kernels.native._native"
VARIABLE = "CALIBAYES_SANITIZED"
EXAMPLES = "40"
SELECTED = "not 1000 and not 600"
"""Tests on large tables are left out: sanitizers are slow, and smaller ones run the same code."""
FLAGS = ["-std=c++17", "-O1", "-g1", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-fno-trapping-math"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]
LEVELS = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx2", "-mfma", *(f"-mavx512{part}" for part in ("f", "bw", "dq", "vl"))],
}
"""Options for each instruction set, as in CMakeLists.txt."""


def compiled(name: str, source: Path, options: list[str]) -> Path:
    """The object file of a source, compiled unless it is newer than all sources."""
    target = BUILD / f"{name}.o"
    newest = max(file.stat().st_mtime for file in (source, *SOURCES.glob("*.?pp")))
    if source.parent != SOURCES:
        newest = source.stat().st_mtime
    if not target.exists() or target.stat().st_mtime < newest:
        subprocess.run(["g++", *FLAGS, *options, "-c", str(source), "-o", str(target)], check=True)
    return target


def nanobind_folder() -> Path:
    """The folder of nanobind's sources, installed into the build folder if necessary."""
    folder = BUILD / "packages"
    if not (folder / "nanobind").exists():
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--target",
            str(folder),
            "nanobind>=2.4",
        ]
        subprocess.run(command, check=True)
    return folder / "nanobind"


def build() -> None:
    BUILD.mkdir(parents=True, exist_ok=True)
    nanobind = nanobind_folder()
    x86 = platform.machine() in ("x86_64", "AMD64")
    levels = LEVELS if x86 else {"baseline": []}
    folders = (nanobind / "include", nanobind / "ext/robin_map/include", sysconfig.get_path("include"))
    options = [f"-I{folder}" for folder in folders] + ["-DCALIBAYES_X86_LEVELS"] * x86
    jobs = [
        (f"kernels_{level}", SOURCES / "kernels.cpp", [*SANITIZERS, f"-DCALIBAYES_LEVEL={level}", *flags])
        for level, flags in levels.items()
    ]
    jobs += [(name, SOURCES / f"{name}.cpp", [*SANITIZERS, *options]) for name in ("module", "dispatch")]
    jobs += [("nanobind", nanobind / "src/nb_combined.cpp", [*options, "-fno-strict-aliasing"])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda job: str(compiled(*job)), jobs))
    subprocess.run(["g++", "-shared", *SANITIZERS, *objects, "-o", str(EXTENSION)], check=True)


def runtime() -> str:
    """The libraries of the address sanitizer, which must be loaded first, and of C++, whose exceptions it intercepts."""
    commands = [["gcc", f"-print-file-name={name}"] for name in ("libasan.so", "libstdc++.so")]
    return " ".join(subprocess.check_output(command, text=True).strip() for command in commands)


def main() -> int:
    build()
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "CALIBAYES_FUZZ": EXAMPLES,
        VARIABLE: str(EXTENSION),
    }
    # No output is captured: the report of a sanitizer would be lost with the process.
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-p",
        "tests.sanitize",
        "-k",
        SELECTED,
        "-n",
        "auto",
    ]
    command += ["tests/kernels", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def load() -> None:
    """Load the sanitized extension under the name of the installed one."""
    spec = importlib.util.spec_from_file_location(MODULE, os.environ[VARIABLE])
    assert spec is not None
    assert spec.loader is not None
    sys.modules[MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[MODULE])


if __name__ == "__main__":
    sys.exit(main())
if VARIABLE in os.environ:
    load()
