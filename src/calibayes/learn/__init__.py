"""Training: the only loop. It owns iteration, step control, stopping and history, and uses protocols alone.

Examples
--------
Stops, and initial statistics, are parameters of the estimators:

>>> from calibayes import GaussianNB, TrainingOptions
>>> X, y = [[0.0], [2.0], [1.0], [6.0]], [0, 0, 1, 1]
>>> stops = (NoGain(1e-3), SoftErrorRises(), Never(), LastState(), Patience("error", 3))
>>> for stop in (*stops, AnyOf((MaxPasses(5), TimeLimit(60.0)))):
...     model = GaussianNB(stop=stop, max_iter=8).fit(X, y)
>>> validated = ValidationLoss(Never(), rounds=3)  # the stop of validation_fraction
>>> starts = (Data(), Likelihood(), RandomLabels(seed=0), RandomParameters(seed=0), Bootstrap(seed=0))
>>> for start in (*starts, SeveralStarts(starts)):
...     model = GaussianNB(training=TrainingOptions(start=start)).fit(X, y)
>>> stop_named("soft_error"), start_named("random", seed=1)
(SoftErrorRises(), RandomLabels(seed=1))

Below the estimators, a model is trained on blocks of encoded rows:

>>> import numpy as np
>>> from calibayes.core.protocols import Layout
>>> from calibayes.engines import Serial
>>> from calibayes.families import ClassPrior, Gaussian, Product
>>> from calibayes.rules import RC
>>> from calibayes.tables.row_blocks import ArraySource
>>> x, labels, classes = np.arange(12.0)[:, None], np.arange(12) // 5 % 2, ("a", "b")
>>> source = ArraySource({"x": x}, labels, np.ones(12), np.zeros(12), rows_per_block=5)
>>> layout = Layout(classes, ("x",), center=x.mean(axis=0))
>>> model = Product(ClassPrior(), {"x": Gaussian()}).bind({"x": layout}, classes)
>>> trained = train(model, source, Serial(), Plan(RC(), stop=Never(), max_iter=5), k=2)
>>> isinstance(trained, Trained), trained.updates, trained.problem
(True, 5, '')
>>> isinstance(data_sums(model, source, Serial(), k=2), DataSums)
True

A run is one training, which can be followed, measured and continued:

>>> even = start_statistics(trained.model, source, Serial(), EvenWeights(), k=2)  # any Start
>>> statistics = start_statistics(trained.model, source, Serial(), Data(), k=2)
>>> begin = RC().begin(trained.model, statistics)
>>> run = Run(trained.model, RC(), begin, stop=Never(), limit=3)  # any Stop
>>> learn([run], source, Serial())
>>> isinstance(run.snapshot(), RunSnapshot), run.updates, problem_of(run)
(True, 3, '')
>>> Plan(RC(), recorder=None).recorder is None  # or a Recorder, which keeps the snapshots
True
>>> batches = mini_batches(source, size=4, seed=0)
>>> path = Run(trained.model, RC(step=0.1), begin, stop=LastState(), limit=8, sweep=batches)
>>> next(follow_path([path], source, Serial(), total_steps=(0.1, 0.2)))
0.1
"""

from calibayes.learn.checkpoint import Recorder, RunSnapshot
from calibayes.learn.run import (
    TOTAL_STEPS,
    Callback,
    Entry,
    Progress,
    Run,
    as_arrays,
    follow_path,
    learn,
    mini_batches,
    problem_of,
)
from calibayes.learn.starts_and_stops import (
    AnyOf,
    Bootstrap,
    Data,
    EvenWeights,
    LastState,
    Likelihood,
    MaxPasses,
    Never,
    NoGain,
    Patience,
    Plan,
    RandomLabels,
    RandomParameters,
    SeveralStarts,
    SoftErrorRises,
    Start,
    Stop,
    TimeLimit,
    ValidationLoss,
    start_named,
    stop_named,
)
from calibayes.learn.train import DataSums, Trained, data_sums, start_statistics, train

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
    "RandomParameters",
    "Recorder",
    "Run",
    "RunSnapshot",
    "SeveralStarts",
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
