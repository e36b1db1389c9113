"""Models with objects that no case of `tests.files.cases` has, so that the golden files hold every class of the registry."""

from datetime import UTC, datetime

import numpy as np
import pandas as pd
from sklearn.covariance import OAS

import calibayes as cb
from calibayes import families as f
from calibayes import learn
from calibayes.dependence import (
    HSIC,
    MutualInformation,
    Pearson,
    SignificantPairs,
    TopFraction,
    benjamini_hochberg,
    bonferroni,
)
from calibayes.encoders import Flags, Grid, InformedBins, KMeansBins, Levels, UniformBins
from calibayes.ensemble.standard_members import varying
from calibayes.families.covariance_shapes import Ridge, TowardsIdentity, TowardsSphere
from calibayes.rules import RC
from calibayes.sequences import HiddenMarkov, MarkovChain, SequenceClassifier, Sequences
from calibayes.trust import Privacy
from tests.files.cases import ModelCase, counts, gappy, mixed, single, texts


def wide():
    """More columns than rows."""
    rng, y = np.random.default_rng(6), np.arange(12) % 2
    return (rng.normal(size=(12, 14)) + y[:, None] * (np.arange(14) < 5)).round(2), y


def durations():
    """A column of durations, and one of dates without a time."""
    X, y = counts()
    hours = pd.to_timedelta(X[:, 0] * 3 + X[:, 1] / 2, unit="h")
    return pd.DataFrame({"wait": hours, "day": pd.to_datetime("2024-01-01") + hours.round("D")}), y


def dated():
    X, y = mixed()
    return X[["a", "text", "day"]], y


def flags():
    X, y = counts(("no", "yes", "yes"))
    return (X > 1).astype(float), y


def positive():
    X, y = counts()
    return X + 0.5, y


def shares():
    """A column of counts, one of hours, and three that sum to 1."""
    X, y = counts()
    parts = X[:, 1:] + 0.5
    return np.column_stack([X[:, :2], parts / parts.sum(axis=1, keepdims=True)]), y


def by_hand(*parts, **options):
    return cb.GenerativeClassifier(families=list(parts), **options)


def gaussian(shape, **options):
    return by_hand(("g", f.Gaussian(shape, prior=f.WithinClasses(), **options), cb.every))


def clicks():
    """A column of paths of several lengths, with a gap, and one of words."""
    X, y = counts()
    pages = np.array(["home", "help", "cart", "", "pay"])
    paths = [
        ">".join(pages[(codes * (label + 1)) % 5]) for codes, label in zip(X.astype(int), y, strict=True)
    ]
    words = ["ab" * (label + 1) + "c" * int(codes[0] % 4) for codes, label in zip(X, y, strict=True)]
    return pd.DataFrame({"path": paths, "word": words}), y


def trained(start, stop):
    return cb.GaussianNB(training=cb.TrainingOptions(start=start), stop=stop, max_iter=5)


CASES = {
    "wide table": ModelCase(cb.BayesClassifier(), wide),
    "trees on members": ModelCase(cb.BayesClassifier(families=["tied", "trees"]), counts),
    "columns that vary": ModelCase(by_hand(("v", f.Gaussian(), varying)), counts),
    "dates": ModelCase(cb.JointKernelClassifier(), dated),
    "durations": ModelCase(cb.NaiveBayes(), durations),
    "spherical": ModelCase(gaussian(f.Spherical(), means=f.SoftThreshold(0.2)), counts),
    "tied diagonal": ModelCase(gaussian(f.TiedDiagonal(), regularizer=f.Inflated(1.2, Ridge(0.1))), single),
    "identity by hand": ModelCase(gaussian(f.Full(), regularizer=TowardsIdentity(0.2)), gappy),
    "sphere by hand": ModelCase(gaussian(f.Tied(), regularizer=TowardsSphere(0.2)), gappy),
    "class weights of the covariance": ModelCase(
        cb.LinearDiscriminantAnalysis(solver="lsqr", priors=[0.2, 0.3, 0.5]), counts
    ),
    "covariance by OAS": ModelCase(
        cb.LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=OAS()), counts
    ),
    "flags and levels": ModelCase(
        by_hand(
            ("flags", f.Bernoulli(prior=f.Dirichlet(2.0)), [0, 1], Flags(0.5)),
            ("levels", f.Categorical(), [2, 3], Levels()),
        ),
        flags,
    ),
    "text by hand": ModelCase(by_hand(("t", f.Categorical(), cb.categorical)), mixed),
    "densities of positive numbers": ModelCase(
        by_hand(
            ("e", f.Exponential(), [0]),
            ("g", f.GammaDensity(), [1]),
            ("m", f.GammaByMoments(prior_rows=2.0), [2]),
            ("l", f.LogNormal(prior_rows=2.0), [3]),
        ),
        positive,
    ),
    "counts, angles and compositions": ModelCase(
        by_hand(
            ("n", f.NegativeBinomial(prior_rows=1.0), [0]),
            ("v", f.VonMises(period=24.0), [1]),
            ("d", f.DirichletDensity(prior_rows=1.0), [2, 3, 4]),
        ),
        shares,
    ),
    "fixed width": ModelCase(by_hand(("k", f.KernelDensity(f.FixedWidth(0.7)), cb.every, Grid(32))), counts),
    "width in cells": ModelCase(cb.KernelNB(bandwidth=f.InCells(1.5)), counts),
    "normal reference": ModelCase(cb.KernelNB(bandwidth=f.NormalReference()), counts),
    "bins by k-means": ModelCase(cb.NaiveBayes(discretize=KMeansBins(4)), counts),
    "bins of one width": ModelCase(cb.NaiveBayes(discretize=UniformBins(4)), counts),
    "informed bins": ModelCase(cb.NaiveBayes(discretize=InformedBins()), counts),
    "informative edges": ModelCase(cb.TreeAugmentedNB(edges=f.InformativeEdges(0.01)), counts),
    "tree by soft error": ModelCase(cb.TreeAugmentedNB(structure=f.SoftError(), rule="ml"), texts),
    "network by likelihood": ModelCase(
        cb.KDependenceBayes(max_parents=1, structure=f.ConditionalLikelihood(2)), counts
    ),
    "information by name of its class": ModelCase(cb.TreeAugmentedNB(structure=f.Information()), counts),
    "bootstrap": ModelCase(trained(learn.Bootstrap(), learn.Never()), counts),
    "random parameters": ModelCase(trained(learn.RandomParameters(seed=1), learn.Never()), counts),
    "several starts": ModelCase(trained(learn.SeveralStarts.of(learn.Bootstrap, 2), learn.Never()), counts),
    "rule of the papers": ModelCase(cb.GaussianNB(rule=RC.paper(invalid="by_class")), counts),
    "even weights": ModelCase(trained(learn.EvenWeights(), learn.LastState()), counts),
    "start with the data": ModelCase(trained(learn.Data(), learn.NoGain()), counts),
    "time limit": ModelCase(trained(learn.Likelihood(), learn.TimeLimit(1e6)), counts),
    "held-out rows": ModelCase(
        cb.GaussianNB(
            training=cb.TrainingOptions(validation_fraction=0.3),
            stop=learn.ValidationLoss(learn.NoGain(), rounds=3),
            random_state=0,
        ),
        counts,
    ),
    "counts of values": ModelCase(
        cb.NaiveBayes(rule="ml", max_levels=2, training=cb.TrainingOptions(keep_summary=True)), mixed
    ),
    "record of held-out rows": ModelCase(
        cb.GaussianNB(), counts, lambda model, X, y: model.with_held_out(X, y, cv=2)
    ),
    "receipt of forgotten rows": ModelCase(
        cb.GaussianNB(max_iter=5),
        counts,
        lambda model, X, y: model.forget(X[:3], y[:3], date=datetime(2025, 3, 1, tzinfo=UTC)),
    ),
    "privacy": ModelCase(
        cb.GaussianNB(
            rule="ml",
            training=cb.TrainingOptions(
                privacy=Privacy(5.0, 1e-6, classes=[0, 1, 2], bounds=(0, 10), seed=0)
            ),
        ),
        counts,
    ),
    "adapted class frequencies": ModelCase(
        cb.GaussianNB(), counts, lambda model, X, y: model.adapt_priors(X[y != 0], bootstrap=20)
    ),
    "references of surprise and drift": ModelCase(
        cb.NaiveBayes(rule="ml"), gappy, lambda model, X, y: model.with_held_out(X, y, cv=2)
    ),
    "significant pairs": ModelCase(
        cb.LogDensityFeatures(measure=HSIC(), selection=SignificantPairs(0.5, benjamini_hochberg)), counts
    ),
    "bonferroni": ModelCase(
        cb.LogDensityFeatures(measure=MutualInformation(4), selection=SignificantPairs(0.5, bonferroni)),
        counts,
    ),
    "paths of clicks": ModelCase(
        SequenceClassifier(family=MarkovChain(1, back_off=2.0, prior=f.Dirichlet(3.0)), separator=">"),
        clicks,
    ),
    "hidden states": ModelCase(SequenceClassifier(family=HiddenMarkov(2, alpha=0.5), separator=">"), clicks),
    "sequences by hand": ModelCase(
        by_hand(("s", MarkovChain(order=1, alpha=1.0, positions=2), ["word"], Sequences())), clicks
    ),
    "top pairs": ModelCase(
        cb.SparseLogBivariateClassifier(measure=Pearson(), selection=TopFraction(0.5), cv=2), counts
    ),
}
