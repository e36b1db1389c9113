"""Each allocation of the installed native kernels fails in turn (`allocation_run.py`, in a process of its own)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from calibayes.kernels.dispatch import native_kernels

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libraries are preloaded on Linux only")
@pytest.mark.skipif(shutil.which("g++") is None, reason="the preloaded library needs g++")
@pytest.mark.skipif(native_kernels.module is None, reason="the native kernels are not built or disabled")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="another library is preloaded")
def test_every_failed_allocation_ends_in_a_memory_error(tmp_path):
    library = tmp_path / "allocations.so"
    source = Path(__file__).with_name("allocations.cpp")
    subprocess.run(["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    command = [sys.executable, "-m", "tests.faults.allocation_run"]
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "each ended in MemoryError" in run.stdout
