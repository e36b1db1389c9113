"""Save a model to one file, load it, and say what is in the file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibayes._version import __version__
from calibayes.files import container
from calibayes.files.codec import INVALID, Reader, Writer, reason
from calibayes.files.container import document_text, read_document
from calibayes.files.errors import ModelFileError
from calibayes.files.objects import READS, WRITES, pandas_writes
from calibayes.files.registry import ESTIMATORS
from calibayes.files.value_objects import UnknownClassError
from calibayes.model.attributes import numpy_classes
from calibayes.model.input import kept_row_count

# -- What is in a model file, in short: written into the file, so that it can be told from the header alone


def contents_of(model: Any) -> Mapping[str, Any]:
    """Class, classes, columns, training table and kept rows of a fitted estimator, as plain values."""
    table = model.training_table_
    return {
        "class": type(model).__name__,
        "classes": tuple(_plain(label) for label in numpy_classes(model).tolist()),
        "rows": table.rows,
        "columns": table.columns,
        "kinds": table.kinds,
        "missing": table.missing,
        "kept_rows": kept_row_count(model),
    }


def _plain(label: Any) -> Any:
    """A label as JSON can hold it; dates as texts."""
    plain = label.item() if isinstance(label, np.generic) else label
    return plain if type(plain) in (str, bool, int, float) else str(plain)


# -- Save a model to one file, load it, and say what is in the file ------------------------------------------

MOST_BYTES: Final = 2**33
"""Default limit of the size of a file."""
PARTS: Final = ("contents", "model")
"""Keys of the document of a model."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted estimator of this package to one file.

    The file is in the safetensors format (docs/format.md): it holds numbers and texts and no code, later versions of this
    package can read it, and a damaged one is refused. It replaces an older file as a whole: a crash or a full disk
    leaves the old one. For what it tells about the training rows see docs/saved-models.md.

    Parameters
    ----------
    model : estimator
        Fitted. Everything that it was given must be numbers, texts or objects of this package: callbacks, own functions
        and estimators of other packages cannot be saved.
    path : str or path
        By custom it ends in ".safetensors".

    Raises
    ------
    ModelFileError
        If a part of the model cannot be saved; the message names it.

    Examples
    --------
    >>> import calibayes, tempfile, pathlib
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = calibayes.GaussianNB().fit(X, y)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "iris.safetensors"
    >>> calibayes.save(model, path)
    >>> bool((calibayes.load(path).predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    entry = ESTIMATORS.get(type(model).__name__)
    if entry is None or entry.cls is not type(model) or not entry.attributes:
        raise ModelFileError(
            f"only estimators of calibayes can be saved, got {type(model).__name__}: save its parts, or use pickle"
        )
    check_is_fitted(model)
    writer = Writer({**WRITES, **pandas_writes()})
    parts = {
        "contents": writer.write(contents_of(model), "contents"),
        "model": writer.write(model, type(model).__name__),
    }
    text = document_text(parts, "the document of this model")
    _model_of(parts, writer.tensors, type(model).__name__)  # what is written can be read
    container.write(path, text, writer.tensors)


def load(path: str | os.PathLike[str], *, most_bytes: int = MOST_BYTES) -> Any:
    """Load an estimator from a file that `save` has written.

    No code of the file is run: it has none. Sizes, checksums, types, shapes and the validity of all parameters are
    checked before the estimator is made.

    Parameters
    ----------
    path : str or path
    most_bytes : int, default=2**33
        Larger files are refused.

    Raises
    ------
    ModelFileError
        If the file is no model file, damaged, truncated, too large, invalid, or of a newer version of the format.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from calibayes import GaussianNB, load, save
    >>> model = GaussianNB().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> with TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.safetensors")
    ...     load(f"{folder}/model.safetensors").predict([[3.5]])
    array([1])
    """
    name = os.fsdecode(path)
    with container.open_file(name, most_bytes) as file:
        header = container.read_header(file)
        document = read_document(header, name, *PARTS)
        tensors = container.read_tensors(file, header)
    try:
        return _model_of(document, tensors)
    except UnknownClassError as error:
        raise ModelFileError(
            f"{name}: {error}; it was written by calibayes {document['calibayes_version'][:40]}, this is {__version__}"
        ) from None
    except INVALID as error:
        raise ModelFileError(f"{name} is invalid: {reason(error)}") from error


def _model_of(document: Mapping[str, Any], tensors: Mapping[str, Any], name: str = "model") -> Any:
    """The estimator of a document. Raises ModelFileError if anything in it is invalid."""
    reader = Reader(READS, tensors)
    reader.read(document["contents"], "contents")
    model = reader.read(document["model"], name)
    if type(model).__name__ not in ESTIMATORS or not ESTIMATORS[type(model).__name__].attributes:
        raise ModelFileError("its model is no estimator")
    check_is_fitted(model, msg="its model is not fitted")
    unused = [name for name in tensors if name not in reader.used]
    if unused:
        raise ModelFileError(f"the tensor {unused[0][:80]!r} is not part of the model")
    if _text(document["contents"]) != _text(Writer(WRITES).write(contents_of(model), "contents")):
        raise ModelFileError("its contents are not those of its model")
    return model


def _text(value: Any) -> str:
    """JSON, in which true, 1 and 1.0 are different."""
    return json.dumps(value, sort_keys=True)
