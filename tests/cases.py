"""One case for each component; the laws run over all of them."""

from itertools import product

import numpy as np

from calibayes import rules
from calibayes.core.protocols import Layout
from calibayes.families import (
    Bernoulli,
    Categorical,
    Diagonal,
    Dirichlet,
    Full,
    Gamma,
    Gaussian,
    Mixture,
    Multinomial,
    NormalInverseWishart,
    Poisson,
    Spherical,
    Tied,
    TiedDiagonal,
    TiedSpherical,
)
from calibayes.families.regularisers import Ridge, TowardsIdentity, TowardsSphere, VarianceSmoothing
from calibayes.kernels import clusters
from calibayes.testing import FamilyCase

K = 3
CLASSES = ("a", "b", "c")
LEVELS = (2, 4, 3)
N = 120


def _names(d):
    return tuple(f"x{j}" for j in range(d))


def _codes():
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, r, N) for r in LEVELS], axis=1)
    codes[:, 1] = np.where(np.arange(N) % K == 0, np.minimum(codes[:, 1], 1), codes[:, 1])
    return codes


def _flags():
    rng = np.random.default_rng(1)
    return (rng.random((N, 3)) < np.array([0.2, 0.5, 0.8])[(np.arange(N) % K)][:, None]).astype(float)


def _numbers(d=2):
    rng = np.random.default_rng(2)
    mixing = np.array([[1.0, 0.6], [0.0, 0.8]])
    shift = np.array([[0.0, 0.0], [1.5, -1.0], [-1.0, 2.0]])
    return rng.normal(size=(N, d)) @ mixing + shift[np.arange(N) % K] + 5.0


def _events(d):
    rng = np.random.default_rng(4)
    rates = np.array([[1.0, 3.0, 0.5], [2.0, 1.0, 1.5], [3.5, 0.7, 2.0]])[:, :d]
    return rng.poisson(rates[np.arange(N) % K]).astype(float)


def _everything(levels):
    return np.array(list(product(*(range(r) for r in levels))))


def _grid():
    side = np.linspace(-7.0, 17.0, 241)
    points = np.array(list(product(side, side)))
    return points, float((side[1] - side[0]) ** 2)


def categorical(**options):
    layout = Layout(CLASSES, _names(3), levels=LEVELS)
    return FamilyCase(
        Categorical(**options).bind(layout), _codes(), K, (_everything(LEVELS), 1.0), scale_free=not options
    )


def bernoulli(**options):
    layout = Layout(CLASSES, _names(3))
    support = (_everything((2, 2, 2)).astype(float), 1.0)
    return FamilyCase(Bernoulli(**options).bind(layout), _flags(), K, support, scale_free=not options)


def poisson(**options):
    support = (_everything((26, 26)).astype(float), 1.0)
    layout = Layout(CLASSES, _names(2))
    return FamilyCase(Poisson(**options).bind(layout), _events(2), K, support, scale_free=not options)


def multinomial(**options):
    rows, layout = _everything((5, 5, 5)).astype(float), Layout(CLASSES, _names(3))
    support = (rows[rows.sum(axis=1) == 4], 1.0)
    events = _events(3)
    return FamilyCase(
        Multinomial(**options).bind(layout), events, K, support, not options, counted=events.sum(axis=1)
    )


def gaussian(shape, **options):
    columns = _numbers()
    layout = Layout(CLASSES, _names(2), centre=columns.mean(axis=0), variance=columns.var(axis=0))
    return FamilyCase(
        Gaussian(shape, **options).bind(layout), columns, K, _grid(), scale_free="prior" not in options
    )


def mixture(shape, counts=(2, 2, 2), **options):
    """Clumps of points for every component, twice as many rows as elsewhere: each has but a part of its class's."""
    rng, n = np.random.default_rng(6), 2 * N
    middles = np.array([[2.0, 3.0], [6.5, 4.5], [4.0, 7.5], [8.0, 8.0]])
    which, label = rng.permutation(n), np.arange(n) % K
    middle = middles[which % np.array(counts)[label]] + 0.8 * label[:, None]
    columns = middle + rng.normal(size=(n, 2)) @ np.array([[0.8, 0.3], [0.0, 0.6]])
    seeds = tuple(
        clusters.centres(columns[c::K], np.ones(n // K), count, seed=0) for c, count in enumerate(counts)
    )
    layout = Layout(
        CLASSES, _names(2), centre=columns.mean(axis=0), variance=columns.var(axis=0), seeds=seeds
    )
    family = Mixture(Gaussian(shape, **options)).bind(layout)
    return FamilyCase(family, columns, K, _grid(), scale_free="prior" not in options)


SHAPES = (Full(), Tied(), Diagonal(), TiedDiagonal(), Spherical(), TiedSpherical())

FAMILIES = {
    "categorical": categorical(),
    "categorical-alpha": categorical(alpha=1.0),
    "categorical-dirichlet": categorical(prior=Dirichlet(4.0)),
    "bernoulli": bernoulli(),
    "bernoulli-alpha": bernoulli(alpha=0.5),
    "poisson": poisson(),
    "poisson-gamma": poisson(prior=Gamma(2.0, 1.0)),
    "poisson-gamma-mean": poisson(prior=Gamma()),
    "multinomial": multinomial(),
    "multinomial-alpha": multinomial(alpha=1.0),
    "multinomial-dirichlet": multinomial(prior=Dirichlet(2.0)),
    **{f"gaussian-{type(shape).__name__}": gaussian(shape) for shape in SHAPES},
    **{
        f"gaussian-{type(shape).__name__}-map": gaussian(shape, prior=NormalInverseWishart())
        for shape in SHAPES
    },
    "gaussian-auto": gaussian(Full(), prior="auto"),
    "gaussian-smoothed": gaussian(Diagonal(), regulariser=VarianceSmoothing(1e-9)),
    "gaussian-identity": gaussian(Full(), regulariser=TowardsIdentity(0.0)),
    "gaussian-sphere": gaussian(Tied(), regulariser=TowardsSphere(0.0)),
    **{f"mixture-{type(shape).__name__}": mixture(shape) for shape in SHAPES},
    "mixture-one": mixture(Diagonal(), (1, 1, 1)),
    "mixture-ragged": mixture(Full(), (3, 1, 2)),
    "mixture-ragged-tied": mixture(Tied(), (1, 4, 2)),
    **{
        f"mixture-{type(shape).__name__}-map": mixture(shape, prior=NormalInverseWishart())
        for shape in SHAPES
    },
    "mixture-auto": mixture(Full(), (1, 2, 3), prior="auto"),
    "mixture-ridge": mixture(Spherical(), regulariser=Ridge(1e-9)),
}

RULES = {
    "ml": rules.ML(),
    "map": rules.MAP(),
    "rc": rules.RC(),
    "rc-fixed": rules.RC(step=0.1),
    "rc-schedule": rules.RC(step=rules.Schedule(lambda update: 1.0 / update)),
    "tm": rules.TM(),
    "dfe": rules.DFE(),
    "gdt": rules.GDT(lam=0.5),
    "em": rules.EM(),
    "gd": rules.GD(),
}
