"""Memory of Dask workers: temporary arrays of a pass are allocated in memory that was freed before."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache

TRIM_VARIABLE = "MALLOC_TRIM_THRESHOLD_"
"""Environment variable of the C library, which Dask sets for its workers."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Numbers of the parameters in `mallopt`."""
LARGEST_REUSED = 2**25
"""Arrays of up to so many bytes are allocated in freed memory: the largest value that the C library chooses itself."""


@cache
def reuse_freed_memory() -> None:
    """Let a worker reuse freed memory, as other processes do, at most 64 MB of it; once in a process.

    Dask tells workers to return freed memory to the system at once. Each temporary array of a pass then is a new mapping,
    whose pages are cleared by the system, which can take longer than to compute the array.
    """
    if sys.platform != "linux" or TRIM_VARIABLE not in os.environ:
        return
    set_parameter = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_parameter is not None:  # C libraries other than glibc have none
        set_parameter(MMAP_THRESHOLD, LARGEST_REUSED)
        set_parameter(TRIM_THRESHOLD, 2 * LARGEST_REUSED)
