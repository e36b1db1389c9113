"""Modules above the model that a training or a method needs only if an option or a call asks for them.

The model does not import what lies above it. This table is the exception: name -> module, imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

MODULES = {
    "checkpoint": "calibayes.files.checkpoint",
    "keep_summary": "calibayes.analysis.kept_encoders",
    "privacy": "calibayes.analysis.private_training",
}


def feature(name: str) -> Any:
    """The module of a feature."""
    return import_module(MODULES[name])
