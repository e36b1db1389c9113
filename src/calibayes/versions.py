"""Versions of calibayes and its dependencies, and the kernels and threads in use; for bug reports."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires, version

from joblib import effective_n_jobs
from threadpoolctl import threadpool_info

from calibayes._version import __version__
from calibayes.kernels.dispatch import ENVIRONMENT_VARIABLE, native_kernels

DOCUMENTATION = "https://calibayes.readthedocs.io/en/stable"
"""Address of the documentation of the released version."""


def versions() -> Mapping[str, str]:
    """Name -> version or state of calibayes, its kernels and threads, Python, the machine and the dependencies."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "calibayes": __version__,
        "kernels": _kernels(),
        "threads": f"{effective_n_jobs(-1)} for n_jobs=-1, {effective_n_jobs(None)} by default",
        "python": sys.version.split()[0],
        "machine": f"{platform.system()} {platform.machine()}",
        **{name: _version(name) for name in _dependencies()},
        "blas": "; ".join(sorted({f"{pool['internal_api']} {pool['version']}" for pool in pools})),
    }


def show_versions() -> None:
    """Print versions, kernels and threads in use, one per line, and what to do if the native kernels are missing.

    >>> show_versions()  # doctest: +ELLIPSIS
    calibayes ...
    """
    entries = versions()
    width = max(map(len, entries))
    for name, text in entries.items():
        print(f"{name:<{width}}  {text}")
    if native_kernels.is_missing:
        print(f"NATIVE KERNELS ARE MISSING\n{native_kernels.advice}")


def _kernels() -> str:
    if native_kernels.module is None:
        return f"NumPy ({native_kernels.reason or 'switched off'})"
    return f"native, {native_kernels.instruction_set} (of {', '.join(native_kernels.module.levels())}; {ENVIRONMENT_VARIABLE}=0 for NumPy)"


def _dependencies() -> list[str]:
    """Names of the packages required at run time; none if calibayes runs from its source without an installation."""
    try:
        declared = requires("calibayes") or []
    except PackageNotFoundError:
        return []
    required = [line for line in declared if "extra ==" not in line]
    return sorted(re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in required)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
