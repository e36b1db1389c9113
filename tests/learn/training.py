"""Training of a family's case, for the tests of rules and of the training loop."""

import numpy as np

from calibayes.core.protocols import AdaptsFamilies, Layout
from calibayes.families import ClassPrior, Product
from calibayes.learn import (
    Bootstrap,
    Data,
    Never,
    RandomLabels,
    RandomParameters,
    Run,
    data_sums,
    learn,
    start_statistics,
)
from calibayes.tables.row_blocks import ArraySource
from tests.cases import CLASSES

STARTS = {
    "data": Data(),
    "random": RandomLabels(7),
    "bootstrap": Bootstrap(7),
    "parameters": RandomParameters(7),
}


def source_of(case, rows=None):
    n = len(case.columns)
    rng = np.random.default_rng(5)
    labels = np.where(rng.random(n) < 0.2, rng.integers(0, case.k, n), np.arange(n) % case.k)
    return ArraySource({"x": case.columns}, labels, rng.uniform(0.5, 2.0, n), np.zeros(n), rows)


def begun(case, rule, engine, source, start=STARTS["data"], updates=6, class_alpha=0.0, **options):
    """A run before its first pass, and the statistics that it starts from."""
    prior = ClassPrior(alpha=class_alpha).bind(Layout(CLASSES, ()))
    family = rule.adapt(case.family) if isinstance(rule, AdaptsFamilies) else case.family
    model = Product(prior, {"x": family})
    model = model.prepare(data_sums(model, source, engine, case.k).statistics)
    begin = start_statistics(model, source, engine, start, case.k)
    return Run(model, rule, rule.begin(model, begin), stop=Never(), limit=updates, **options), begin


def run(case, rule, engine, source, start=STARTS["data"], updates=6, class_alpha=0.0, **options):
    """A run after the given number of updates."""
    run_, _ = begun(case, rule, engine, source, start, updates, class_alpha, **options)
    learn([run_], source, engine)
    return run_
