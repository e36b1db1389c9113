"""``calibayes info``: versions, kernels and threads in use."""

from __future__ import annotations

from calibayes.cli import options
from calibayes.cli.application import examples
from calibayes.cli.printing import print_json
from calibayes.versions import show_versions, versions

EXAMPLES = examples("calibayes info", "calibayes info --json")


def info_command(as_json: options.AsJson = False) -> None:
    """Print the versions of calibayes and its dependencies, and the kernels and threads in use."""
    if as_json:
        print_json(versions())
    else:
        show_versions()
