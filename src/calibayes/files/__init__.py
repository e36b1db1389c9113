"""Model files: saved without code, refused when damaged, readable by later versions."""

from calibayes.files.container import ModelFileError
from calibayes.files.description import FileDescription, describe_file
from calibayes.files.model_file import load, save

__all__ = ["FileDescription", "ModelFileError", "describe_file", "load", "save"]
