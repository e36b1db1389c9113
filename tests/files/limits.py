"""A limit of the memory that a process may take beyond what it has now."""

from pathlib import Path


def limit_memory(more_bytes: int) -> bool:
    """Limit the address space; False where the system cannot do it."""
    try:
        import resource
    except ImportError:
        return False
    pages = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
    limit = pages * resource.getpagesize() + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return True
