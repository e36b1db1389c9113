"""What needs a process of its own: memory and imports."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from races.race import Result
from races.timing import Took, in_turns

HERE = Path(__file__).parents[1]
MOST_MEMORY = 150.0
"""MiB beyond the data that calibration over levels may take."""


def imports(rounds):
    """The time of importing calibayes beside that of scikit-learn's naive Bayes."""
    modules = {"ours": "calibayes", "theirs": "sklearn.naive_bayes"}
    best = in_turns({name: lambda m=m: _import(m) for name, m in modules.items()}, rounds)
    return [Result("import calibayes", "import sklearn.naive_bayes", best["ours"], best["theirs"], 1.0 / 1.3)]


def _import(module):
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", f"import {module}"])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{module} cannot be imported")
    return Took(time.perf_counter() - began, used.ru_utime + used.ru_stime)


def memory(sizes, jobs):
    """MiB that calibration takes at its peak beyond what was there before, data included; None off Linux."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    code = f"from races import processes; processes.child({tuple(sizes)!r}, {jobs})"
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True)
    return float(done.stdout)


def child(sizes, jobs):
    """Prints how far the peak of a fit lies above what was there before."""
    import calibayes as cb
    from calibayes.rules import RC
    from races import data

    X, y = data.codes(*sizes)
    cb.CategoricalNB(rule="ml").fit(X[:100], y[:100])  # libraries and their pools are there already
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status("VmRSS")
    cb.CategoricalNB(rule=RC(step=0.1), stop=None, max_iter=3, n_jobs=jobs).fit(X, y)
    print((_status("VmHWM") - before) / 1024.0)


def _status(name):
    """A figure of this process in KiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name)))
