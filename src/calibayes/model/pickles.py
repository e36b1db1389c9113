"""Pickles of estimators hold the version of the library that wrote them; another version warns when it loads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator

from calibayes._version import __version__
from calibayes.core.notices import warn
from calibayes.model.training_rows import PROCESS_ONLY

KEY = "_calibayes_version"
"""Entry of a pickled state that holds its `WritingVersion`; a loaded estimator has no such attribute."""
UNKNOWN = "unknown"
"""The version of a pickle that holds none."""


class PickledByAnotherVersionWarning(UserWarning):
    """A pickle was written by another version of this package than the one that loads it.

    Attributes
    ----------
    estimator_name : str
        The class of the estimator in the pickle that was loaded first: of nested ones, the innermost.
    original_version : str
        The version that wrote the pickle; "unknown" for a pickle without a version.
    current_version : str

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", PickledByAnotherVersionWarning)  # an error instead of a warning
    """

    def __init__(self, estimator_name: str, original_version: str, current_version: str) -> None:
        super().__init__(estimator_name, original_version, current_version)
        self.estimator_name = estimator_name
        self.original_version = original_version
        self.current_version = current_version

    def __str__(self) -> str:
        # The same text for all estimators of a pickle: Python shows a text once for a line of code.
        is_known = self.original_version != UNKNOWN
        writer = f"calibayes {self.original_version}" if is_known else "an unknown version of calibayes"
        return (
            f"this pickle was written by {writer} and is loaded by calibayes {self.current_version}: it may fail or give "
            "other results. Fit the model again, or save it with calibayes.save in the version that wrote it: later "
            "versions can read such files with calibayes.load"
        )


@dataclass
class WritingVersion:
    """The version that wrote a pickle. All estimators of one pickle share this object, so that loading warns once."""

    version: str
    is_reported: bool = False

    def report(self, estimator_name: str) -> None:
        """Warn if another version wrote the pickle, unless an estimator of the same pickle did."""
        if self.version != CURRENT.version and not self.is_reported:
            self.is_reported = True
            warn(PickledByAnotherVersionWarning(estimator_name, self.version, CURRENT.version))


CURRENT = WritingVersion(__version__)


def get_state(self: Any) -> dict[str, Any]:
    """The attributes, without the reference to training rows, and the version of the library, for a pickle or a copy."""
    state = BaseEstimator.__getstate__(self).items()
    return {**{name: value for name, value in state if name not in PROCESS_ONLY}, KEY: CURRENT}


def set_state(self: Any, state: dict[str, Any]) -> None:
    """Take the attributes of a pickle or a copy; warns if another version of the library wrote them."""
    written_by = state.get(KEY, WritingVersion(UNKNOWN))
    written_by.report(type(self).__name__)
    BaseEstimator.__setstate__(self, {name: value for name, value in state.items() if name != KEY})
