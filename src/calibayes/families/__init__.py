"""Densities p(x | class) with closed-form estimates. Families do not depend on rules, engines or tables.

Examples
--------
Gaussian classes whose covariances have each of the shapes:

>>> from calibayes import GenerativeClassifier, every
>>> X, y = [[0.0, 1.0], [1.0, 2.0], [2.0, 0.5], [4.0, 0.0], [5.0, 2.0], [6.0, 0.5]], [0, 0, 0, 1, 1, 1]
>>> for shape in (Full(), Diagonal(), Spherical(), Tied(), TiedDiagonal(), TiedSpherical()):
...     family = Gaussian(shape, prior="auto")
...     model = GenerativeClassifier(families=[("numbers", family, every)]).fit(X, y)
...     print(f"{type(shape).__name__}: {model.predict(X).tolist()}")
Full: [0, 0, 0, 1, 1, 1]
Diagonal: [0, 0, 0, 1, 1, 1]
Spherical: [0, 0, 0, 1, 1, 1]
Tied: [0, 0, 0, 1, 1, 1]
TiedDiagonal: [0, 0, 0, 1, 1, 1]
TiedSpherical: [0, 0, 0, 1, 1, 1]

A kernel density, and the class prior of a joint model:

>>> KernelDensity(bandwidth=InCells(2.0), prior_rows=5.0).prior_rows
5.0
>>> list(Product(ClassPrior(alpha=1.0), {"numbers": Gaussian()}).families)
['numbers']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibayes.families.class_centers import SoftThreshold
from calibayes.families.counts import Bernoulli, Categorical
from calibayes.families.covariance_shapes import Diagonal, Full, Spherical, Tied, TiedDiagonal, TiedSpherical
from calibayes.families.density import ColumnDensity, Density
from calibayes.families.events import Complement, Multinomial, Poisson
from calibayes.families.gaussian import Gaussian, Inflated
from calibayes.families.joint_model import ClassPrior, Product
from calibayes.families.k_dependence import KDependence
from calibayes.families.kernel_bandwidths import (
    FixedWidth,
    InCells,
    NormalReference,
    OverBins,
    SheatherJones,
    Silverman,
)
from calibayes.families.kernel_density import KernelDensity, KernelPair
from calibayes.families.mixture import Mixture
from calibayes.families.one_dependence import AveragedOneDependence
from calibayes.families.priors import Dirichlet, Gamma, NormalInverseWishart, WithinClasses
from calibayes.families.tree import Tree, TreeCovariance
from calibayes.families.tree_structures import (
    AllEdges,
    ConditionalLikelihood,
    GivenTree,
    Information,
    InformativeEdges,
    OneTree,
    PerClass,
    SignificantEdges,
    SoftError,
)

if TYPE_CHECKING:
    from calibayes.families.angles import VonMises
    from calibayes.families.compositions import DirichletDensity
    from calibayes.families.negative_binomial import NegativeBinomial
    from calibayes.families.positive_numbers import Exponential, GammaByMoments, GammaDensity, LogNormal

_LATER = {
    "angles": ("VonMises",),
    "compositions": ("DirichletDensity",),
    "negative_binomial": ("NegativeBinomial",),
    "positive_numbers": ("Exponential", "GammaByMoments", "GammaDensity", "LogNormal"),
}
"""Module -> its names here, which are imported when they are asked for: few models need them."""
_MODULES = {name: module for module, names in _LATER.items() for name in names}

__all__ = [
    "AllEdges",
    "AveragedOneDependence",
    "Bernoulli",
    "Categorical",
    "ClassPrior",
    "ColumnDensity",
    "Complement",
    "ConditionalLikelihood",
    "Density",
    "Diagonal",
    "Dirichlet",
    "DirichletDensity",
    "Exponential",
    "FixedWidth",
    "Full",
    "Gamma",
    "GammaByMoments",
    "GammaDensity",
    "Gaussian",
    "GivenTree",
    "InCells",
    "Inflated",
    "Information",
    "InformativeEdges",
    "KDependence",
    "KernelDensity",
    "KernelPair",
    "LogNormal",
    "Mixture",
    "Multinomial",
    "NegativeBinomial",
    "NormalInverseWishart",
    "NormalReference",
    "OneTree",
    "OverBins",
    "PerClass",
    "Poisson",
    "Product",
    "SheatherJones",
    "SignificantEdges",
    "Silverman",
    "SoftError",
    "SoftThreshold",
    "Spherical",
    "Tied",
    "TiedDiagonal",
    "TiedSpherical",
    "Tree",
    "TreeCovariance",
    "VonMises",
    "WithinClasses",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
