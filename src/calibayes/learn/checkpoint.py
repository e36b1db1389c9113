"""The state of an interrupted training: what is kept of a run after each pass, and what says which training it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibayes.core.fingerprint import fingerprint
from calibayes.core.named_arrays import map_leaves
from calibayes.core.protocols import Array, Block, Engine, Model, ModelArrays, Source
from calibayes.core.verify import require, require_array
from calibayes.kernels.event_counts import is_sparse

MOST_COUNTED = 2**53
"""Largest number of passes or statistics: whole numbers up to here are exact as floats."""


@dataclass(frozen=True)
class PointSnapshot:
    """The value of a rule's state, and the step that led to it; the parameters follow from the value."""

    value: ModelArrays
    step: float
    frozen: int
    total_step: float

    def verify(self) -> None:
        """Raises ValueError if a number, which may come from a file, is impossible."""
        require(0 <= self.frozen <= MOST_COUNTED, f"{self.frozen} frozen statistics")


@dataclass(frozen=True)
class RunSnapshot:
    """A `Run` between two passes.

    Attributes
    ----------
    candidate, accepted, best : PointSnapshot
        The state to measure next, the last one that was accepted, and the best one.
    best_iter : int
        The entry of the history that the best state has.
    direction : mapping
        Statistics from which the next step is taken; empty if none will be.
    history : mapping
        Measurement -> array over the accepted states.
    size : float
        Total weight of the rows.
    previous, wanted : float
        The last step that was accepted or rejected (None at the start), and the one proposed, before it was shortened.
    rejections, passes : int
        Rejected steps of the current update, and all passes over the data.
    seconds : float
        Time of training.
    limit : int
        Largest number of updates.
    done, converged, diverged : bool
    batches : mapping or None
        State of the random generator that orders mini-batches.
    """

    candidate: PointSnapshot
    accepted: PointSnapshot
    best: PointSnapshot
    best_iter: int
    direction: ModelArrays
    history: Mapping[str, Array]
    size: float
    previous: float | None
    wanted: float
    rejections: int
    passes: int
    seconds: float
    limit: int
    done: bool
    converged: bool
    diverged: bool
    batches: Mapping[str, Any] | None = None

    @property
    def updates(self) -> int:
        """Number of updates that were accepted."""
        return len(self.history["objective"]) - 1

    def verify(self) -> None:
        """Raises ValueError if the parts, which may come from a file, do not fit together."""
        require("objective" in self.history, "history has no objective")
        for name, values in self.history.items():
            require_array(f"history {name!r}", values, (len(self.history["objective"]),))
        require(self.updates >= 0, "history has no entry")
        require(0 <= self.best_iter <= self.updates, f"best_iter is {self.best_iter}")
        # Steps that overflow, or that a rule refuses, are rejected without a pass.
        is_possible = self.updates < self.passes <= MOST_COUNTED and 0 <= self.rejections <= MOST_COUNTED
        counts = f"{self.passes} passes for {self.updates} updates, and {self.rejections} rejections"
        require(is_possible, counts)

    def verify_limit(self, limit: int) -> None:
        """Raises ValueError if a run of another limit would have been another one up to here.

        The last update of a run is measured without the statistics of a further step.
        """
        measured = self.updates + bool(self.rejections)
        require(
            limit == self.limit or measured < min(limit, self.limit),
            f"its largest number of updates (max_iter) was {self.limit} and is now {limit}, after {measured} updates",
        )


def verify_like(name: str, given: ModelArrays, expected: ModelArrays) -> None:
    """Raises ValueError unless named arrays have the names, shapes and types of others."""

    def compare(known: Any, value: Any) -> None:
        require_array(name, np.asarray(value), np.shape(known), np.asarray(known).dtype.kind)

    map_leaves(compare, expected, given)


class Recorder(Protocol):
    """Where the state of a training is kept, so that another process can continue it."""

    def begin(self, fingerprints: Mapping[str, str]) -> None:
        """Begin or continue the training with these fingerprints.

        Raises ValueError, naming what differs, if what is kept is of another training.
        """

    def load(self, name: str) -> RunSnapshot | None:
        """The run of this name after its last finished pass; None if it has not begun."""

    def save(self, name: str, snapshot: RunSnapshot) -> None:
        """Keep the state of the run of this name."""

    def refusal(self, problem: str) -> ValueError:
        """The error for what is kept and cannot be continued: where it is, and what to do."""


def training_fingerprints(model: Model, source: Source, engine: Engine) -> dict[str, str]:
    """Fingerprints of a prepared model and of the content and the order of its encoded rows."""
    checksum = engine.total(lambda block: {"checksum": _block_checksum(block)}, source)["checksum"]
    return {"families": fingerprint(model), "rows": checksum.tobytes().hex()}


def _block_checksum(block: Block) -> Array:
    """Four numbers that depend on every cell, label and weight of a block, and on its place; sums over blocks wrap around."""
    digest = hashlib.blake2b(f"{block.first} {len(block.weight)}".encode(), digest_size=32)
    for array in _arrays(block):
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return np.frombuffer(digest.digest(), dtype="<u8").copy()


def _arrays(block: Block) -> Iterator[Array]:
    yield np.asarray(block.labels, dtype="<i8")
    yield np.asarray(block.weight, dtype="<f8")
    yield np.asarray(block.held_out, dtype="<f8")
    for columns in block.columns.values():
        yield from (columns.data, columns.indices, columns.indptr) if is_sparse(columns) else (columns,)
