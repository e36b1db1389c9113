"""Which version of the library was measured."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path


def code_digest():
    """Hash of the library's source: our own results belong to one version of it."""
    import calibayes

    digest = hashlib.sha256()
    for path in sorted(Path(calibayes.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def commit():
    """The commit that is checked out; empty outside a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return found.stdout.strip()
