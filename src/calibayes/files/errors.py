"""The one error of model files."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A model file that cannot be read or written, with the reason in one sentence.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import calibayes
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.safetensors")
    ...     _ = path.write_bytes(b"no model")
    ...     try:
    ...         calibayes.load(path)
    ...     except calibayes.ModelFileError as error:
    ...         print("refused")
    refused
    """
