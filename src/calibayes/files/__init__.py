"""Model files: saved without code, refused when damaged, readable by later versions."""

from calibayes.files.errors import ModelFileError
from calibayes.files.model_file import load, save

__all__ = ["ModelFileError", "load", "save"]
