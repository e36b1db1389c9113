"""Densities with closed-form learners. Each file is one family and knows no rule, engine or table."""

from calibayes.families.bandwidths import Given, NormalReference, OverBins, SheatherJones, Silverman
from calibayes.families.bernoulli import Bernoulli
from calibayes.families.categorical import Categorical
from calibayes.families.class_prior import ClassPrior
from calibayes.families.complement import Complement
from calibayes.families.gaussian import Gaussian
from calibayes.families.kernel_density import KernelDensity
from calibayes.families.kernel_pair import KernelPair
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

__all__ = [
    "Bernoulli",
    "Categorical",
    "ClassPrior",
    "Complement",
    "Diagonal",
    "Dirichlet",
    "Full",
    "Gamma",
    "Gaussian",
    "Given",
    "KernelDensity",
    "KernelPair",
    "Multinomial",
    "NormalInverseWishart",
    "NormalReference",
    "OverBins",
    "Poisson",
    "Product",
    "SheatherJones",
    "Silverman",
    "Spherical",
    "Tied",
    "TiedDiagonal",
    "TiedSpherical",
]
