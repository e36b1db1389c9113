"""Densities with closed-form learners. Each file is one family and knows no rule, engine or table."""

from calibayes.families.bernoulli import Bernoulli
from calibayes.families.categorical import Categorical
from calibayes.families.class_prior import ClassPrior
from calibayes.families.complement import Complement
from calibayes.families.gaussian import Gaussian
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
    "Mixture",
    "Multinomial",
    "NormalInverseWishart",
    "Poisson",
    "Product",
    "Spherical",
    "Tied",
    "TiedDiagonal",
    "TiedSpherical",
]
