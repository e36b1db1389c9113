"""Everything that must hold before a change goes in: style, types, layers, benchmarks, experiments, tests; ends at a failure."""

import subprocess
import sys
from pathlib import Path

PYTHON = sys.executable
CHECKS = (
    ("style", [PYTHON, "-m", "ruff", "check", "."]),
    ("format", [PYTHON, "-m", "ruff", "format", "--check", "."]),
    ("types", [PYTHON, "-m", "mypy"]),
    ("layers", [PYTHON, "-c", "from importlinter.cli import lint_imports_command as c; c()"]),
    ("benchmark of text, quickly", [PYTHON, "benchmarks/text.py", "--quick"]),
    ("benchmark of kernels, quickly", [PYTHON, "benchmarks/kernel.py", "--quick"]),
    ("benchmark of log densities, quickly", [PYTHON, "benchmarks/slb.py", "--quick"]),
    ("benchmark of trees, quickly", [PYTHON, "benchmarks/trees.py", "--quick"]),
    ("ratios of speed", [PYTHON, "benchmarks/speed.py", "--quick"]),
    ("benchmark of accuracy, quickly", [PYTHON, "benchmarks/accuracy.py", "--quick"]),
    (
        "experiments, quickly",
        [
            PYTHON,
            "-m",
            "calibayes",
            "reproduce",
            "--quick",
            "--datasets=iris",
            "--trials=1",
            "--out=build/experiments",
        ],
    ),
    ("tests", [PYTHON, "-m", "pytest", "-n", "auto", *sys.argv[1:]]),
)


def main() -> int:
    for name, command in CHECKS:
        print(f"== {name}", flush=True)
        done = subprocess.run(command, cwd=Path(__file__).parent, check=False)
        if done.returncode:
            print(f"== {name} failed", flush=True)
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
