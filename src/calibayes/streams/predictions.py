"""Predictions for the rows of files and streams, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score

from calibayes.core.protocols import Array
from calibayes.model.labels import require_labels
from calibayes.streams.chunks import Chunk, read_ahead
from calibayes.streams.stream_labels import opened


def predicted_by_chunk(model: Any, predict: Callable[[Any, Any], Array], source: Any) -> Array:
    """The predictions for all rows of a source. Columns that the model does not know, such as the target, are not read."""
    return np.concatenate([predict(model, chunk.table) for chunk in _chunks(model, source, None, None)])


def accuracy_by_chunk(model: Any, source: Any, y: Any, sample_weight: Any) -> float:
    """The share of the rows of a source, by weight, whose class is predicted."""
    require_labels(model, y)
    chunks = (
        (np.asarray(chunk.labels), model.predict(chunk.table), chunk.weight)
        for chunk in _chunks(model, source, y, sample_weight)
    )
    labels, predicted, weights = zip(*chunks, strict=True)
    weight = None if weights[0] is None else np.concatenate(weights)
    return float(accuracy_score(np.concatenate(labels), np.concatenate(predicted), sample_weight=weight))


def _chunks(model: Any, source: Any, y: Any, sample_weight: Any) -> Iterator[Chunk]:
    """The chunks of a source, with the columns of the model; the next one is read while one is used."""
    stream = opened(source, y, sample_weight)
    known = getattr(model, "feature_names_in_", None)
    columns = None if known is None else _present(stream.names, tuple(known))
    with closing(read_ahead(stream.parts(columns))) as loaders:
        for load in loaders:
            yield load()


def _present(names: tuple[str, ...], known: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of the model. Raises ValueError if the source lacks one."""
    lacking = [name for name in known if name not in names]
    if lacking:
        raise ValueError(f"the source has no column {lacking[0]!r}, which the model was trained on")
    return known
