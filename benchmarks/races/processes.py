"""Measurements that need a separate process: memory and import time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from races.race import Result
from races.timing import Duration, in_turns

HERE = Path(__file__).parents[1]
MAX_MEMORY = 150.0
"""Limit in MiB for calibration over levels, beyond the data."""


def imports(rounds):
    """Import time of calibayes with its naive Bayes, which is imported at first use, compared with that of scikit-learn's."""
    modules = {"ours": "calibayes.estimators.naive_bayes", "theirs": "sklearn.naive_bayes"}
    best = in_turns({name: lambda m=m: _import(m) for name, m in modules.items()}, rounds)
    return [Result("import calibayes", "import sklearn.naive_bayes", best["ours"], best["theirs"], 1.0 / 1.3)]


def _import(module):
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", f"import {module}"])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"cannot import {module}")
    return Duration(time.perf_counter() - start, used.ru_utime + used.ru_stime)


def memory(sizes, jobs):
    """Peak MiB of calibration beyond the memory in use before it, data included; None if not on Linux."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    code = f"from races import processes; processes.child({tuple(sizes)!r}, {jobs})"
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True)
    return float(done.stdout)


def child(sizes, jobs):
    """Print the peak MiB of a fit beyond the memory in use before it."""
    import calibayes as cb
    from calibayes.rules import RC
    from races import data

    X, y = data.codes(*sizes)
    cb.CategoricalNB(rule="ml").fit(X[:100], y[:100])  # loads libraries and starts their thread pools
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status("VmRSS")
    cb.CategoricalNB(rule=RC(step=0.1), stop=None, max_iter=3, n_jobs=jobs).fit(X, y)
    print((_status("VmHWM") - before) / 1024.0)


def _status(name):
    """An entry of /proc/self/status in KiB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name)))
