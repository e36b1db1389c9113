"""What callbacks receive after each update."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from calibayes.learn.run import Entry


class Progress(NamedTuple):
    """Passed to a callback after each accepted state.

    Examples
    --------
    >>> from calibayes import GaussianNB, TrainingOptions
    >>> errors = []
    >>> training = TrainingOptions(callbacks=[lambda progress: errors.append(progress.entry.error)])
    >>> model = GaussianNB(training=training).fit([[0.0], [2.0], [1.0], [6.0]], [0, 0, 1, 1])
    >>> len(errors) > 0
    True
    """

    update: int
    limit: int
    entry: Entry


Callback: TypeAlias = Callable[[Progress], bool | None]
"""Called with the progress; a true result stops training."""
