"""Load random changes of the checkpoints of interrupted fits: python -m tests.files.checkpoint_fuzz --seconds 60 --seed 1

Most files have right checksums, so that what refuses them is behind the checksums; others are truncated or are the checkpoint of
another training. `fit` must refuse a file as one that cannot be continued, or train to valid probabilities, within seconds.
Each case follows from the seed and its number; the files of findings are written to build/fuzz-checkpoints.
"""

import argparse
import contextlib
import faulthandler
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

from tests.estimators.generative import checkpoint_cases
from tests.files.forging import Parts, put_together, taken_apart
from tests.files.limits import limit_memory
from tests.files.mutations import MUTATIONS, pick

FOLDER = Path("build/fuzz-checkpoints")
MEMORY = 2**32
MOST_SECONDS = 10.0
"""Longest time of one fit."""
NAMES = tuple(checkpoint_cases.CASES)
REFUSALS = ("cannot be continued", "the likelihood of the training rows is not finite at the start")
"""What errors say. The second one is that of a run that begins at possible but senseless numbers of an earlier run."""
WHOLE = ("truncated", "checkpoint of")
"""Changes of the file as a whole."""


class Interrupted(BaseException):
    """The end of a process after an update."""


def interrupt(progress):
    if progress.update == 2:
        raise Interrupted


@cache
def checkpoint(name: str) -> bytes:
    """The file that an interrupted fit of a case leaves."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        with contextlib.suppress(Interrupted):
            checkpoint_cases.fit(name, path, [interrupt])
        return path.read_bytes()


@cache
def rows(name: str):
    """The training rows of a case."""
    return checkpoint_cases.CASES[name][1]()[0]


def changed(seed: int, case: int) -> tuple[str, list[str], bytes]:
    """The fit, the changes and the file of a case."""
    rng = np.random.default_rng([seed, case])
    name, kind = str(pick(NAMES, rng)), rng.random()
    if kind < 0.05:
        return name, ["truncated"], checkpoint(name)[: rng.integers(len(checkpoint(name)))]
    if kind < 0.1:
        other = str(pick(NAMES, rng))
        return name, [f"checkpoint of {other}"], checkpoint(other)
    parts = taken_apart(checkpoint(name))
    if kind < 0.2:
        other = str(pick(NAMES, rng))
        return name, [f"trainings of {other}"], with_trainings_of(name, other)
    mutations = [pick(MUTATIONS, rng) for _ in range(1 + int(rng.integers(2)))]
    model = Parts({"model": {"attributes": parts.document["checkpoint"]}}, parts.tensors)
    for mutation in mutations:
        with contextlib.suppress(TypeError, KeyError, AttributeError, IndexError, ValueError):
            mutation(model, rng)
    found = model.document.get("model")  # a mutation may have put anything in its place
    parts.document["checkpoint"] = found.get("attributes") if isinstance(found, dict) else found
    content = put_together(Parts(parts.document, model.tensors))
    return name, [mutation.__name__ for mutation in mutations], content


def with_trainings_of(name: str, other: str) -> bytes:
    """The trainings of another fit under the fingerprints of a fit."""
    parts, theirs = taken_apart(checkpoint(name)), taken_apart(checkpoint(other))
    for training, ours in zip(_trainings(theirs), _trainings(parts), strict=False):
        training["fingerprints"] = ours["fingerprints"]
    theirs.document["checkpoint"]["fingerprints"] = parts.document["checkpoint"]["fingerprints"]
    return put_together(theirs)


def _trainings(parts: Parts) -> list[dict]:
    return list(parts.document["checkpoint"]["trainings"].values())


def problem(path: Path, name: str, outcomes: Counter[str], refused_as_a_whole: bool = False) -> str:
    """What is wrong with how a fit continues from a file; empty if nothing is.

    A file that is incomplete or of another fit is refused before anything is trained, and stays as it is.
    """
    begin, content = time.perf_counter(), path.read_bytes()
    try:
        model = checkpoint_cases.fit(name, path)
    except ValueError as error:
        outcomes["refused"] += 1
        if not any(text in str(error) for text in REFUSALS):
            return f"fit: {traceback.format_exc(limit=-4)}"
        if refused_as_a_whole and path.read_bytes() != content:
            return "a file that was refused has changed"
    except Exception:  # noqa: BLE001  every other error is a finding
        return f"fit: {traceback.format_exc(limit=-4)}"
    else:
        outcomes["trained"] += 1
        if path.exists():
            return "the file stays after the fit"
        if not np.allclose(model.predict_proba(rows(name)).sum(axis=1), 1.0):
            return "invalid probabilities"
    seconds = time.perf_counter() - begin
    return f"took {seconds:.1f} s" if seconds > MOST_SECONDS else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(f"seed {options.seed}", flush=True)
    limit_memory(MEMORY)
    end, case, found, outcomes = time.monotonic() + options.seconds, options.first, 0, Counter[str]()
    while time.monotonic() < end:
        name, mutations, content = changed(options.seed, case)
        path = FOLDER / f"{options.seed}-{case}.safetensors"
        path.write_bytes(content)
        faulthandler.dump_traceback_later(6 * MOST_SECONDS, exit=True)
        report = problem(path, name, outcomes, mutations[0].startswith(WHOLE))
        faulthandler.cancel_dump_traceback_later()
        if report:
            found += 1
            path.write_bytes(content)
            print(f"FOUND {path}: {name}, {', '.join(mutations)}: {report}", flush=True)
        else:
            path.unlink(missing_ok=True)
        case += 1
    print(", ".join(f"{outcome}: {count:,}" for outcome, count in outcomes.items()), flush=True)
    print(f"{case - options.first} checkpoints, {found} findings", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
