"""Training: the only loop. It owns iteration, step control, stopping and history, and uses protocols alone."""

from calibayes.learn.loop import TOTAL_STEPS, follow_path, learn, mini_batches, problem_of
from calibayes.learn.progress import Callback, Progress
from calibayes.learn.run import Entry, Run, as_arrays
from calibayes.learn.starts import (
    Bootstrap,
    Data,
    EvenWeights,
    Likelihood,
    RandomLabels,
    Start,
    start_named,
)
from calibayes.learn.stops import (
    AnyOf,
    LastState,
    MaxPasses,
    Never,
    NoGain,
    Patience,
    SoftErrorRises,
    Stop,
    TimeLimit,
    ValidationLoss,
    stop_named,
)
from calibayes.learn.train import DataSums, Plan, Trained, data_sums, start_statistics, train

__all__ = [
    "TOTAL_STEPS",
    "AnyOf",
    "Bootstrap",
    "Callback",
    "Data",
    "DataSums",
    "Entry",
    "EvenWeights",
    "LastState",
    "Likelihood",
    "MaxPasses",
    "Never",
    "NoGain",
    "Patience",
    "Plan",
    "Progress",
    "RandomLabels",
    "Run",
    "SoftErrorRises",
    "Start",
    "Stop",
    "TimeLimit",
    "Trained",
    "ValidationLoss",
    "as_arrays",
    "data_sums",
    "follow_path",
    "learn",
    "mini_batches",
    "problem_of",
    "start_named",
    "start_statistics",
    "stop_named",
    "train",
]
