"""Hostile files with right checksums and types whose numbers are invalid. Name -> how the file is made."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.files.forging import Parts, put_together, taken_apart
from tests.files.sample_models import sample

QDA, TREE, LEVELS, MIXTURE = (
    *("QuadraticDiscriminantAnalysis", "TreeAugmentedNB"),
    *("CategoricalNB", "PosteriorMixture"),
)


def of(name: str, change: Callable[[Parts], Any]) -> Callable[[], bytes]:
    """A builder of a sample's file with a change."""

    def make() -> bytes:
        parts = taken_apart(sample(name).content)
        change(parts)
        return put_together(parts)

    return make


def entries(name: str, tensor: str, value: Any) -> Callable[[], bytes]:
    """A builder of a file in which the first entries of a tensor are set."""

    def change(p: Parts) -> None:
        p.tensors[tensor].reshape(-1)[: np.size(value)] = value

    return of(name, change)


def array(name: str, tensor: str, made: Callable[[np.ndarray], np.ndarray]) -> Callable[[], bytes]:
    """A builder of a file in which a tensor is replaced by one made from it."""
    return of(name, lambda p: p.tensors.update({tensor: np.ascontiguousarray(made(p.tensors[tensor]))}))


def fitted(name: str, **changes: Any) -> Callable[[], bytes]:
    return of(name, lambda p: p.fitted.update(changes))


def _tree(**changes: Any) -> Callable[[], bytes]:
    return of(TREE, lambda p: p.fitted["model"]["families"]["tree"].update(changes))


MEAN, VARIANCE = "fitted_.parameters.columns.mean", "fitted_.parameters.columns.variance"
PRIOR = "fitted_.parameters.class_prior.log_probability"
CELLS = "fitted_.parameters.columns.log_probability"
COVARIANCE = "fitted_.parameters.columns.covariance"
EDGES = "fitted_.binding.encoders.tree.parts[0].edges[0]"
SEEN = "fitted_.binding.encoders.columns.unpooled[0]"
GROWN = "fitted_.binding.encoders.trees"
FOREST = f"{GROWN}.forest"
INDEFINITE = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])

INVALID_VALUES = {
    "NaN in means": entries("GaussianNB", MEAN, np.nan),
    "infinity in means": entries("GaussianNB", MEAN, np.inf),
    "negative variance": entries("GaussianNB", VARIANCE, -1.0),
    "variance of zero": entries("GaussianNB", VARIANCE, 0.0),
    "NaN in a class prior": entries("GaussianNB", PRIOR, np.nan),
    "class prior above one": entries("GaussianNB", PRIOR, 0.5),
    "class prior that does not sum to one": entries("GaussianNB", PRIOR, [-2.0, -2.0]),
    "cells that do not sum to one": entries(LEVELS, CELLS, -9.0),
    "negative counts": entries("GaussianNB", "fitted_.state.class_prior.count", -5.0),
    "NaN in counts": entries("MultinomialNB", "fitted_.state.columns.count", np.nan),
    "indefinite covariance": entries(QDA, COVARIANCE, INDEFINITE.reshape(-1)),
    "asymmetric covariance": entries(QDA, COVARIANCE, [1.0, 0.5, 0.0, -0.5, 1.0]),
    "NaN in a covariance": entries(QDA, COVARIANCE, np.nan),
    "means of other columns": array("GaussianNB", MEAN, lambda mean: mean[:, :2]),
    "means of other classes": array("GaussianNB", MEAN, lambda mean: np.vstack([mean, mean])),
    "means along one axis": array("GaussianNB", MEAN, lambda mean: mean.reshape(-1)),
    "means of whole numbers": array("GaussianNB", MEAN, lambda mean: mean.astype(np.int64)),
    "means in another order": array("GaussianNB", MEAN, lambda mean: mean.T),
    "classes twice": entries("GaussianNB", "fitted_.classes", [1, 1]),
    "classes in another order": entries("GaussianNB", "fitted_.classes", [1, 0]),
    "class that is missing": array("GaussianNB", "fitted_.classes", lambda classes: classes[:1]),
    "unsorted edges": array(TREE, EDGES, lambda edges: edges[::-1]),
    "NaN in edges": entries(TREE, EDGES, np.nan),
    "edges of one bin too many": array(TREE, EDGES, lambda edges: np.append(edges, 1e9)),
    "unsorted levels": array(LEVELS, SEEN, lambda levels: levels[::-1]),
    "level twice": entries(LEVELS, SEEN, [1.0, 1.0]),
    "levels and pooled levels of different types": of(
        "levels", lambda p: p.fitted["binding"]["encoders"]["columns"]["pooled"].reverse()
    ),
    "tree with a circle": _tree(parents=[[1, 2, 0], [1, 2, 0]]),
    "tree with a column that is its own parent": _tree(parents=[[0, -1, -1], [-1, -1, -1]]),
    "tree with a parent outside of the table": _tree(parents=[[9, -1, -1], [-1, -1, -1]]),
    "tree of one class": _tree(parents=[[-1, -1, -1]]),
    "node that leads to itself": entries("few trees", f"{FOREST}.children", [0, 0]),
    "node that leads out of its tree": entries("few trees", f"{FOREST}.children", [1, 9999]),
    "node that leads backwards": entries("few trees", f"{FOREST}.children", [-1, 1]),
    "node with a column outside of the table": entries("few trees", f"{FOREST}.column", 99),
    "node without a code": entries("few trees", f"{FOREST}.most", 0),
    "first nodes out of order": entries("few trees", f"{FOREST}.first", [0, 2**62]),
    "trees of whole numbers of other types": array(
        "few trees", f"{FOREST}.column", lambda a: a.astype(np.int64)
    ),
    "side of missing values that is no boolean": array(
        "few trees", f"{FOREST}.missing_left", lambda sides: sides.astype(np.uint8) + 2
    ),
    "too few codes of nodes": array("few trees", f"{FOREST}.most", lambda most: most[:-1]),
    "NaN in factors of leaves": entries("few trees", f"{GROWN}.log_factor", np.nan),
    "factors of other leaves": array("few trees", f"{GROWN}.log_factor", lambda factor: factor[:, :-1]),
    "bytes of too few bins": array("few trees", f"{GROWN}.bytes.orders[0]", lambda order: order[:-1]),
    "rate of trees above one": of(
        "few trees", lambda p: p.fitted["binding"]["encoders"]["trees"]["settings"].update(rate=2.0)
    ),
    "temperature of zero": fitted("GaussianNB", temperature=0.0),
    "negative temperature": fitted("GaussianNB", temperature=-1.0),
    "temperature that is no normal number": fitted("MultinomialNB", temperature=1e-320),
    "infinite temperature": fitted("GaussianNB", temperature={"$float": "inf"}),
    "columns outside of the table": of(
        "GaussianNB", lambda p: p.fitted["binding"]["chosen"].update(columns=[0, 1, 99])
    ),
    "negative columns": of(
        "GaussianNB", lambda p: p.fitted["binding"]["encoders"]["columns"].update(indices=[-1, 0, 1])
    ),
    "names of other columns": of("GaussianNB", lambda p: p.fitted["binding"].update(names=["x0"])),
    "parameters of another family": of(
        "GaussianNB", lambda p: p.fitted["parameters"].update(other=p.fitted["parameters"].pop("columns"))
    ),
    "number of columns": of("GaussianNB", lambda p: p.model["attributes"].update(n_features_in_=2)),
    "class frequencies of an ensemble": entries(MIXTURE, "fitted_.class_frequencies", -1.0),
    "NaN in the rows of a kernel classifier": entries(
        "JointKernelClassifier mixed", "density_.centers.rows", np.nan
    ),
    "negative weights of a kernel classifier": entries(
        "JointKernelClassifier mixed", "density_.centers.weight", -1.0
    ),
    "NaN in coefficients": of(
        "LogUnivariateClassifier",
        lambda p: p.tensors[p.model["attributes"]["coef_"]["$tensor"]].reshape(-1).__setitem__(0, np.nan),
    ),
}
