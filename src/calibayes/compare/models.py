"""The models and rules that are compared, and which of them can be combined on a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from calibayes.compare.baselines import BASELINES, NO_RULE
from calibayes.core.abilities import Conjugate
from calibayes.core.protocols import AdaptsFamilies
from calibayes.encoders.clusters import Clusters
from calibayes.estimators.ensemble.bayes import BayesClassifier
from calibayes.estimators.generative.binding import categorical, numeric, positions
from calibayes.estimators.generative.estimator import GenerativeEstimator
from calibayes.estimators.generative.recipe import TrainingOptions
from calibayes.estimators.presets.classifier import GenerativeClassifier
from calibayes.estimators.presets.tabular import KernelNB, NaiveBayes
from calibayes.estimators.presets.tree import TreeAugmentedNB
from calibayes.families import Categorical, Diagonal, Full, Gaussian, Mixture, Tied, TiedDiagonal
from calibayes.families.gaussian.shape import Shape
from calibayes.rules import rule_named
from calibayes.tables.read import read_frame
from calibayes.tables.table import Table

RULES = ("ml", "map", "rc", "tm", "gdt", "dfe", "gd")


def _gaussian(shape: Shape) -> Callable[[], GenerativeEstimator]:
    """A Gaussian with this covariance shape over the numeric columns, independent categorical columns otherwise."""
    numbers = ("numbers", Gaussian(shape, prior="auto"), numeric)
    levels = ("levels", Categorical(alpha=1.0), categorical)
    return lambda: GenerativeClassifier(families=[numbers, levels])


def _mixture() -> GenerativeEstimator:
    """MixtureDiscriminantAnalysis (three components per class, tied covariance) plus independent categorical columns."""
    numbers = ("numbers", Mixture(Gaussian(Tied(), prior="auto")), numeric, Clusters(3))
    levels = ("levels", Categorical(alpha=1.0), categorical)
    return GenerativeClassifier(families=[numbers, levels], training=TrainingOptions(start="likelihood"))


MODELS: Mapping[str, Callable[[], Any]] = {
    "KernelNB": KernelNB,
    "BinnedNB": lambda: NaiveBayes(discretize="kmeans"),
    "TreeAugmentedNB": TreeAugmentedNB,
    "GaussianNB": _gaussian(Diagonal()),
    "Logistic": _gaussian(TiedDiagonal()),
    "LDA": _gaussian(Tied()),
    "QDA": _gaussian(Full()),
    "Mixture": _mixture,
    "BayesClassifier": BayesClassifier,
}
"""Name -> function that creates the model. The models differ in how they treat numeric columns: kernel densities (the
default of `NaiveBayes`), five k-means bins as in the papers, bins in a dependence tree, a Gaussian with one of four
covariance shapes, a mixture of three Gaussians. BayesClassifier is an ensemble."""

ENSEMBLES = ("BayesClassifier",)
"""Models whose members have rules of their own; listed under "rc", which trains most members."""


def model_rule_pairs(frame: Any, models: Sequence[str], rules: Sequence[str]) -> list[tuple[str, str]]:
    """The (model, rule) combinations that are valid and distinct on a data frame; baselines have no rule.

    Without numeric columns all models except the tree and the ensemble are the same, and only KernelNB is kept. A rule
    is valid if every family of the model has the abilities that it needs. "map" is dropped where every family already
    has a prior, because it would equal "ml".
    """
    table = read_frame(frame)
    ours = [model for model in models if model not in BASELINES]
    usable = [model for model in ours if isinstance(MODELS[model], type) or numeric(table)]
    pairs = [(model, rule) for model in usable for rule in rules if _is_valid(model, rule, table)]
    return pairs + [(model, NO_RULE) for model in models if model in BASELINES]


def _is_valid(model: str, rule_name: str, table: Table) -> bool:
    if model in ENSEMBLES:
        return rule_name == "rc"
    rule = rule_named(rule_name)
    specifications = MODELS[model]().specifications()
    families = [family for _, family, selection, *_ in specifications if positions(selection, table)]
    able = all(isinstance(family, ability) for family in families for ability in rule.needs)
    if not able or not isinstance(rule, AdaptsFamilies) or Conjugate not in rule.needs:
        return able
    return any(rule.adapt(family) is not family for family in families)
