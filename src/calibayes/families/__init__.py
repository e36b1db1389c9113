"""Densities with closed-form learners. Each file is one family and knows no rule, engine or table."""

from calibayes.families.bandwidths import Given, InCells, NormalReference, OverBins, SheatherJones, Silverman
from calibayes.families.bernoulli import Bernoulli
from calibayes.families.categorical import Categorical
from calibayes.families.class_prior import ClassPrior
from calibayes.families.complement import Complement
from calibayes.families.gaussian import Gaussian
from calibayes.families.kernel_density import KernelDensity
from calibayes.families.kernel_pair import KernelPair
from calibayes.families.markov_tree import MarkovTree
from calibayes.families.mixture import Mixture
from calibayes.families.multinomial import Multinomial
from calibayes.families.poisson import Poisson
from calibayes.families.priors import Dirichlet, Gamma, NormalInverseWishart
from calibayes.families.product import Product
from calibayes.families.shapes import (
    Diagonal,
    Full,
    Spherical,
    Tied,
    TiedDiagonal,
    TiedSpherical,
)
from calibayes.families.structures import AtLeast, Every, OneTree, PerClass, Significant
from calibayes.families.tree import Tree
from calibayes.families.within import WithinClasses

__all__ = [
    "AtLeast",
    "Bernoulli",
    "Categorical",
    "ClassPrior",
    "Complement",
    "Diagonal",
    "Dirichlet",
    "Every",
    "Full",
    "Gamma",
    "Gaussian",
    "Given",
    "InCells",
    "KernelDensity",
    "KernelPair",
    "MarkovTree",
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
    "Significant",
    "Silverman",
    "Spherical",
    "Tied",
    "TiedDiagonal",
    "TiedSpherical",
    "Tree",
    "WithinClasses",
]
