"""The one error of model files."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A model file that cannot be read or written, with the reason in one sentence."""
