"""The checkpoint of a fit: which fit it is of, and a recorder for each of its trainings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from calibayes._version import __version__
from calibayes.core.fingerprint import fingerprint
from calibayes.core.notices import warn
from calibayes.core.protocols import Array
from calibayes.core.replaced_file import require_replaceable
from calibayes.files import codec, container
from calibayes.files.container import ModelFileError, document_text
from calibayes.files.value_objects import value_codec
from calibayes.learn import Recorder, RunSnapshot
from calibayes.learn.checkpoint import PointSnapshot
from calibayes.model.recipe import Recipe

# -- The file of a checkpoint: the format of model files, with a short closed list of classes ----------------

MOST_BYTES: Final = 2**33


@dataclass(frozen=True)
class TrainingSnapshot:
    """A training: its fingerprints, and its runs by name."""

    fingerprints: Mapping[str, str] = field(default_factory=dict)
    runs: Mapping[str, RunSnapshot] = field(default_factory=dict)


@dataclass(frozen=True)
class FitSnapshot:
    """A fit: its fingerprints, and its trainings by name."""

    fingerprints: Mapping[str, str]
    trainings: Mapping[str, TrainingSnapshot] = field(default_factory=dict)


VALUES: Final[Mapping[str, type]] = {
    cls.__name__: cls for cls in (FitSnapshot, TrainingSnapshot, RunSnapshot, PointSnapshot)
}
"""Name -> class: all that a checkpoint can hold, besides arrays and plain values."""

_WRITES, _READS = codec.writes_and_reads(
    {**codec.PLAIN_VALUES, **codec.ARRAYS, **dict.fromkeys(VALUES.values(), value_codec(VALUES))}
)


def write(snapshot: FitSnapshot, path: str) -> None:
    """Replace the file. Raises OSError if that fails; then the old one is as it was."""
    writer = codec.Writer(_WRITES)
    written = {"checkpoint": writer.write(snapshot, "checkpoint")}
    container.write(path, document_text(written, "the document of this checkpoint"), writer.tensors)


def read(path: str) -> FitSnapshot:
    """What is in a file. Raises ModelFileError if it is no checkpoint, damaged, truncated or of another version."""
    document, tensors = container.read(path, MOST_BYTES, "checkpoint")
    if document["calibayes_version"] != __version__:
        version = document["calibayes_version"][:40]
        raise ModelFileError(f"{path} was written by calibayes {version}, and this is {__version__}")
    try:
        return _snapshot_of(document["checkpoint"], tensors)
    except codec.INVALID as error:
        raise ModelFileError(f"{path} is invalid: {codec.reason(error)}") from error


def _snapshot_of(node: Any, tensors: Mapping[str, Any]) -> FitSnapshot:
    reader = codec.Reader(_READS, tensors)
    snapshot = reader.read(node, "checkpoint")
    if not isinstance(snapshot, FitSnapshot) or reader.used != tensors.keys():
        raise ValueError("it is not the state of a fit")
    return snapshot


# -- The checkpoint of a fit: which fit it is of, and a recorder for each of its trainings -------------------


def open_checkpoint(recipe: Recipe, classes: Array, path: Any) -> Checkpoint:
    """The checkpoint at a path, which the training options name.

    Raises ValueError if the file cannot be written, or is there and not the checkpoint of such a fit.
    """
    return Checkpoint(os.fsdecode(path), _fingerprints(recipe, classes))


def _fingerprints(recipe: Recipe, classes: Array) -> dict[str, str]:
    """Fingerprints of what must be the same; what is not here may differ (docs/checkpoints.md)."""
    plan, options = recipe.plan(), recipe.options
    parts = {
        "rule": plan.rule,
        "stop": plan.stop,
        "start": plan.start,
        "batch_size": plan.batch_size,
        "validation_fraction": options.validation_fraction,
        "random_state": _random_state(recipe),
        "classes": classes,
    }
    return {name: fingerprint(part) for name, part in parts.items()}


def _random_state(recipe: Recipe) -> object:
    """The random state if something is drawn from it. Raises ValueError if it differs from process to process."""
    plan, fraction = recipe.plan(), recipe.options.validation_fraction
    if (
        plan.batch_size is None
        and fraction is None
        and plan.start not in ("random", "bootstrap", "random_parameters")
    ):
        return None
    if recipe.random_state is None:
        raise ValueError(
            "a checkpoint with batch_size, validation_fraction or a random start needs a random_state, such as "
            "random_state=0: random numbers of another process would differ"
        )
    return recipe.seeds


class Checkpoint:
    """A file with the state of a fit after its last finished pass."""

    def __init__(self, path: str, fingerprints: Mapping[str, str]) -> None:
        self.path, self._has_failed = path, False
        try:
            require_replaceable(path)
            kept = read(path) if os.path.exists(path) else FitSnapshot(fingerprints)
        except ModelFileError as error:
            raise self.refusal(str(error).replace(f"{path} ", "it ", 1)) from error
        except OSError as error:
            raise ValueError(
                f"the checkpoint {path} cannot be read and written: {error}; choose a path at which files can be replaced"
            ) from error
        self.require_same(kept.fingerprints, fingerprints)
        self.fingerprints, self.trainings = fingerprints, dict(kept.trainings)

    def recorder(self, name: str, columns: Sequence[str]) -> Recorder:
        """The recorder of the training of this name, on these columns."""
        return TrainingRecorder(self, name, tuple(columns))

    def write(self) -> None:
        """Write the file. If that fails, the fit goes on with a warning, and the last file that was written stays."""
        try:
            write(FitSnapshot(self.fingerprints, self.trainings), self.path)
        except OSError as error:
            if not self._has_failed:
                warn(
                    f"the checkpoint {self.path} could not be written ({error}): training goes on, and would continue "
                    "from an earlier pass, if there is one, after an interruption"
                )
            self._has_failed = True

    def remove(self) -> None:
        """Remove the file after a successful fit."""
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass  # nothing had to be trained, or no pass could be written
        except OSError as error:
            warn(f"the checkpoint {self.path} of a finished fit could not be removed ({error}): delete it")

    def require_same(self, kept: Mapping[str, str], now: Mapping[str, str]) -> None:
        """Raises ValueError, naming what differs, unless fingerprints are equal."""
        if dict(kept) != dict(now):
            differ = [name for name in now if kept.get(name) != now[name]]
            raise self.refusal(f"it is of another training, with different {' and '.join(differ)}")

    def refusal(self, problem: str) -> ValueError:
        """The error for a file that cannot be continued."""
        return ValueError(
            f"the checkpoint {self.path} cannot be continued: {problem}; delete the file, or choose another path"
        )


@dataclass(frozen=True)
class TrainingRecorder:
    """Keeps the runs of one training in the checkpoint of a fit."""

    checkpoint: Checkpoint
    name: str
    columns: tuple[str, ...]

    def begin(self, fingerprints: Mapping[str, str]) -> None:
        fingerprints = {"columns": fingerprint(self.columns), **fingerprints}
        kept = self.checkpoint.trainings.setdefault(self.name, TrainingSnapshot(fingerprints))
        self.checkpoint.require_same(kept.fingerprints, fingerprints)

    def load(self, name: str) -> RunSnapshot | None:
        return self._training().runs.get(name)

    def save(self, name: str, snapshot: RunSnapshot) -> None:
        kept = self._training()
        self.checkpoint.trainings[self.name] = replace(kept, runs={**kept.runs, name: snapshot})
        self.checkpoint.write()

    def _training(self) -> TrainingSnapshot:
        """The state of the training; without fingerprints if it has not begun."""
        return self.checkpoint.trainings.get(self.name, TrainingSnapshot())

    def refusal(self, problem: str) -> ValueError:
        return self.checkpoint.refusal(problem)
