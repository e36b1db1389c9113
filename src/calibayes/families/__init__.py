"""Densities p(x | class) with closed-form estimates. Families do not depend on rules, engines or tables."""

from calibayes.families.counts.bernoulli import Bernoulli
from calibayes.families.counts.categorical import Categorical
from calibayes.families.counts.complement import Complement
from calibayes.families.counts.multinomial import Multinomial
from calibayes.families.counts.poisson import Poisson
from calibayes.families.gaussian.gaussian import Gaussian
from calibayes.families.gaussian.inflated import Inflated
from calibayes.families.gaussian.mean_shrinkage import SoftThreshold
from calibayes.families.gaussian.mixture import Mixture
from calibayes.families.gaussian.shapes import Diagonal, Full, Spherical, Tied, TiedDiagonal, TiedSpherical
from calibayes.families.gaussian.tree_covariance import TreeCovariance
from calibayes.families.kernel.bandwidths import (
    FixedWidth,
    InCells,
    NormalReference,
    OverBins,
    SheatherJones,
    Silverman,
)
from calibayes.families.kernel.density import KernelDensity
from calibayes.families.kernel.pair import KernelPair
from calibayes.families.model import ClassPrior, Product
from calibayes.families.priors import Dirichlet, Gamma, NormalInverseWishart, WithinClasses
from calibayes.families.tree.averaged_one_dependence import AveragedOneDependence
from calibayes.families.tree.k_dependence import KDependence
from calibayes.families.tree.structures import AllEdges, InformativeEdges, OneTree, PerClass, SignificantEdges
from calibayes.families.tree.tree import Tree

__all__ = [
    "AllEdges",
    "AveragedOneDependence",
    "Bernoulli",
    "Categorical",
    "ClassPrior",
    "Complement",
    "Diagonal",
    "Dirichlet",
    "FixedWidth",
    "Full",
    "Gamma",
    "Gaussian",
    "InCells",
    "Inflated",
    "InformativeEdges",
    "KDependence",
    "KernelDensity",
    "KernelPair",
    "Mixture",
    "Multinomial",
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
    "SoftThreshold",
    "Spherical",
    "Tied",
    "TiedDiagonal",
    "TiedSpherical",
    "Tree",
    "TreeCovariance",
    "WithinClasses",
]
