"""The only loop: it owns iteration, step control, stopping and history, and sees protocols alone."""

from calibayes.learn.history import Entry, as_arrays
from calibayes.learn.lane import Lane
from calibayes.learn.loop import brought_statistics, learn, mini_batches, start_statistics, survey
from calibayes.learn.path import TAUS, walk
from calibayes.learn.progress import PrintProgress, Progress
from calibayes.learn.starts import Bootstrap, Data, Even, Likelihood, RandomLabels, Start, start_named
from calibayes.learn.stops import (
    AnyOf,
    MaxPasses,
    Never,
    NoGain,
    Patience,
    SoftErrorRises,
    Stop,
    TimeLimit,
    ToTheEnd,
    ValidationLoss,
    stop_named,
)

__all__ = [
    "TAUS",
    "AnyOf",
    "Bootstrap",
    "Data",
    "Entry",
    "Even",
    "Lane",
    "Likelihood",
    "MaxPasses",
    "Never",
    "NoGain",
    "Patience",
    "PrintProgress",
    "Progress",
    "RandomLabels",
    "SoftErrorRises",
    "Start",
    "Stop",
    "TimeLimit",
    "ToTheEnd",
    "ValidationLoss",
    "as_arrays",
    "brought_statistics",
    "learn",
    "mini_batches",
    "start_named",
    "start_statistics",
    "stop_named",
    "survey",
    "walk",
]
