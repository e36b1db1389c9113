"""Load random changes of valid model files of every estimator: python -m tests.files.fuzz --seconds 60 --seed 1

Checksums are right, so that what refuses a file is behind them. A file must be refused as ModelFileError, or its model must
predict valid probabilities (or raise ValueError), within seconds and bounded memory. Files run in a process of their own,
so that a crash is seen. Each case follows from the seed and its number; findings are written to build/fuzz-files.
"""

import argparse
import contextlib
import faulthandler
import random
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import calibayes
from calibayes.files import ModelFileError
from tests.files.cases import VARIANTS
from tests.files.forging import Parts, put_together, taken_apart
from tests.files.limits import limit_memory
from tests.files.mutations import MUTATIONS, pick
from tests.files.sample_models import NAMES, sample

SAMPLES = [*NAMES, *VARIANTS]
FOLDER = Path("build/fuzz-files")
OUTPUTS = ("predict_proba", "decision_function", "transform")
"""Methods, the first of which that a model has is called."""
MEMORY = 2**31
MOST_SECONDS = 5.0
"""Longest time of one file."""


def changed(seed: int, case: int) -> tuple[str, list[str], bytes]:
    """The sample, the changes and the file of a case."""
    rng = np.random.default_rng([seed, case])
    name = str(pick(SAMPLES, rng))
    parts = taken_apart(sample(name).content)
    mutations = [pick(MUTATIONS, rng) for _ in range(1 + int(rng.integers(2)))]
    for mutation in mutations:
        _apply(mutation, parts, rng)
    return name, [mutation.__name__ for mutation in mutations], put_together(parts)


def _apply(mutation, parts: Parts, rng: np.random.Generator) -> None:
    """Apply a change that fits what the changes before it have left."""
    with contextlib.suppress(TypeError, KeyError, AttributeError, IndexError, ValueError):
        mutation(parts, rng)


def problem(path: Path, rows, outcomes: Counter[str]) -> str:
    """What is wrong with how a file is loaded and its model predicts; empty if nothing is."""
    begin = time.perf_counter()
    try:
        model = calibayes.load(path)
    except ModelFileError:
        outcomes["refused"] += 1
        return _if_slow(begin)
    except Exception:  # noqa: BLE001  every other error is a finding
        return f"load: {traceback.format_exc(limit=-4)}"
    try:
        predicted = next(getattr(model, name) for name in OUTPUTS if hasattr(model, name))(rows)
    except ValueError:
        outcomes["could not predict"] += 1
        return _if_slow(begin)
    except Exception:  # noqa: BLE001  every other error is a finding
        return f"predict: {traceback.format_exc(limit=-4)}"
    outcomes["predicted"] += 1
    return _if_invalid(model, np.asarray(predicted)) or _if_slow(begin)


def _if_slow(begin: float) -> str:
    seconds = time.perf_counter() - begin
    return f"took {seconds:.1f} s" if seconds > MOST_SECONDS else ""


def _if_invalid(model, predicted: np.ndarray) -> str:
    if np.isnan(predicted).any():
        return "predict: NaN"
    is_posterior = hasattr(model, "predict_proba")
    if is_posterior and not np.allclose(predicted.sum(axis=1), 1.0):
        return f"predict: rows sum to {predicted.sum(axis=1)}"
    return ""


def work(seed: int, first: int, seconds: float) -> None:
    """Run cases one after another; the number of the current one is in a file."""
    warnings.simplefilter("ignore")
    for name in SAMPLES:
        sample(name)
    limit_memory(MEMORY)
    end, case, outcomes = time.monotonic() + seconds, first, Counter[str]()
    while time.monotonic() < end:
        (FOLDER / "case").write_text(str(case), encoding="utf-8")
        path = FOLDER / f"{seed}-{case}.safetensors"
        name, mutations, content = changed(seed, case)
        path.write_bytes(content)
        faulthandler.dump_traceback_later(6 * MOST_SECONDS, exit=True)
        found = problem(path, sample(name).rows, outcomes)
        faulthandler.cancel_dump_traceback_later()
        if found:
            print(f"FOUND {path}: {name}, {', '.join(mutations)}: {found}", flush=True)
        else:
            path.unlink()
        case += 1
    print(", ".join(f"{outcome}: {count:,}" for outcome, count in outcomes.items()), flush=True)
    (FOLDER / "case").write_text(str(case), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if options.work:
        work(options.seed, options.first, options.seconds)
        return 0
    print(f"seed {options.seed}", flush=True)
    found, case = run_workers(options.seed, options.first, options.seconds)
    print(f"{case - options.first} files, {found} findings", flush=True)
    return 1 if found else 0


def run_workers(seed: int, case: int, seconds: float) -> tuple[int, int]:
    """Run workers until the time is over, a new one after each crash. Number of findings, and of the next case."""
    end, found = time.monotonic() + seconds, 0
    while (left := end - time.monotonic()) > 0:
        command = [sys.executable, "-m", "tests.files.fuzz", "--work", f"--seed={seed}", f"--first={case}"]
        worker = subprocess.run(
            [*command, f"--seconds={left}"], stdout=subprocess.PIPE, text=True, check=False
        )
        sys.stdout.write(worker.stdout)
        found += worker.stdout.count("FOUND ")
        case = int((FOLDER / "case").read_text(encoding="utf-8"))
        if worker.returncode:
            print(f"FOUND {FOLDER}/{seed}-{case}.safetensors: crash, status {worker.returncode}", flush=True)
            found, case = found + 1, case + 1
    return found, case


if __name__ == "__main__":
    sys.exit(main())
