"""One case for each component; the laws run over all of them."""

from dataclasses import replace
from itertools import product

import numpy as np

from calibayes import families as f
from calibayes import rules
from calibayes.core.protocols import Layout
from calibayes.core.verify import require
from calibayes.encoders import AdaptiveBins, Grid
from calibayes.families import (
    AveragedOneDependence,
    Bernoulli,
    Categorical,
    ColumnDensity,
    Diagonal,
    Dirichlet,
    Full,
    Gamma,
    Gaussian,
    InCells,
    InformativeEdges,
    KDependence,
    KernelDensity,
    KernelPair,
    Mixture,
    Multinomial,
    NormalInverseWishart,
    NormalReference,
    OneTree,
    OverBins,
    PerClass,
    Poisson,
    SheatherJones,
    SignificantEdges,
    Silverman,
    Spherical,
    Tied,
    TiedDiagonal,
    TiedSpherical,
    Tree,
    TreeCovariance,
    WithinClasses,
)
from calibayes.families.covariance_shapes import Ridge, TowardsIdentity, TowardsSphere, VarianceSmoothing
from calibayes.families.hidden_markov import HiddenMarkov
from calibayes.families.markov_chain import MarkovChain
from calibayes.kernels import cut_points
from calibayes.tables.memory_summary import summary_of
from calibayes.tables.read import read_array
from calibayes.testing import FamilyCase
from tests.seeds import generator

K = 3
CLASSES = ("a", "b", "c")
LEVELS = (2, 4, 3)
PAIRS = ("count", "single", "pair")
"""Names of the statistics of levels and pairs of levels."""
N = 120


def _names(d):
    return tuple(f"x{j}" for j in range(d))


def _codes():
    rng = generator(0)
    codes = np.stack([rng.integers(0, r, N) for r in LEVELS], axis=1)
    codes[:, 1] = np.where(np.arange(N) % K == 0, np.minimum(codes[:, 1], 1), codes[:, 1])
    return codes


def _flags():
    rng = generator(1)
    return (rng.random((N, 3)) < np.array([0.2, 0.5, 0.8])[(np.arange(N) % K)][:, None]).astype(float)


def _numbers(d=2):
    rng = generator(2)
    mixing = np.array([[1.0, 0.6], [0.0, 0.8]])
    shift = np.array([[0.0, 0.0], [1.5, -1.0], [-1.0, 2.0]])
    return rng.normal(size=(N, d)) @ mixing + shift[np.arange(N) % K] + 5.0


def _events(d, rng):
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


def _branching():
    """Levels that hang together in other ways in other classes; the last column is constant."""
    rng = generator(6)
    a, c = np.arange(N) % K, rng.integers(0, 4, N)
    b = np.where(rng.random(N) < 0.7, c % 2, rng.integers(0, 2, N))
    e = np.where(rng.random(N) < 0.6, np.where(a == 0, b, c) % 3, rng.integers(0, 3, N))
    return np.stack([b, c, e, np.zeros(N, dtype=int)], axis=1)


def tree(scale_free=False, **options):
    levels = (2, 4, 3, 1)
    layout = Layout(CLASSES, _names(4), levels=levels, ordered=(0, 4, 3, 0))
    support = (_everything(levels), 1.0)
    return FamilyCase(Tree(**options).bind(layout), _branching(), K, support, scale_free, nonnegative=PAIRS)


def k_dependence(scale_free=False, **options):
    """A column depends on three others, so that two parents cannot describe the rows exactly.

    There are more rows than elsewhere: tables of three columns have many cells, and those of a single row would depend on
    rounding.
    """
    rng, n, levels = generator(10), 5 * N, (2, 4, 3, 1, 2)
    a, c = np.arange(n) % K, rng.integers(0, 4, n)
    b = np.where(rng.random(n) < 0.6, c % 2, rng.integers(0, 2, n))
    e = np.where(rng.random(n) < 0.5, (a + b + c) % 3, rng.integers(0, 3, n))
    f = np.where(rng.random(n) < 0.5, (b + c + e) % 2, rng.integers(0, 2, n))
    columns = np.stack([b, c, e, np.zeros(n, dtype=int), f], axis=1)
    layout = Layout(CLASSES, _names(5), levels=levels, ordered=(0, 4, 3, 0, 0))
    family = KDependence(**options).bind(layout)
    support, names = (_everything(levels), 1.0), PAIRS
    if family.counts_triples:
        names += ("triple",)
    return FamilyCase(family, columns, K, support, scale_free, nonnegative=names)


def one_dependence(scale_free=False, stars=3, likeliest=False, **options):
    levels = (2, 4, 3, 1)
    layout = Layout(CLASSES, _names(4), levels=levels, ordered=(0, 4, 3, 0))
    family, support = AveragedOneDependence(**options).bind(layout), (_everything(levels), 1.0)
    counts_per_row = np.full(N, stars * len(levels))
    return FamilyCase(
        family, _branching(), K, support, scale_free, counts_per_row, likeliest, nonnegative=PAIRS
    )


def bernoulli(**options):
    layout = Layout(CLASSES, _names(3))
    support = (_everything((2, 2, 2)).astype(float), 1.0)
    return FamilyCase(
        Bernoulli(**options).bind(layout),
        _flags(),
        K,
        support,
        scale_free=not options,
        nonnegative=("zeros", "ones"),
    )


def poisson(**options):
    support = (_everything((26, 26)).astype(float), 1.0)
    layout = Layout(CLASSES, _names(2))
    return FamilyCase(
        Poisson(**options).bind(layout),
        _events(2, generator(4)),
        K,
        support,
        scale_free=not options,
        nonnegative=("count", "sum"),
    )


def multinomial(**options):
    rows, layout = _everything((5, 5, 5)).astype(float), Layout(CLASSES, _names(3))
    support = (rows[rows.sum(axis=1) == 4], 1.0)
    events = _events(3, generator(4))
    return FamilyCase(
        Multinomial(**options).bind(layout),
        events,
        K,
        support,
        not options,
        counts_per_row=events.sum(axis=1),
        nonnegative=("count", "rows"),
    )


def gaussian(shape, **options):
    columns = _numbers()
    layout = Layout(CLASSES, _names(2), center=columns.mean(axis=0), variance=columns.var(axis=0))
    return FamilyCase(
        Gaussian(shape, **options).bind(layout), columns, K, _grid(), scale_free="prior" not in options
    )


def mixture(shape, counts=(2, 2, 2), **options):
    """Clumps of points for every component, twice as many rows as elsewhere: each has but a part of its class's."""
    rng, n = generator(6), 2 * N
    middles = np.array([[2.0, 3.0], [6.5, 4.5], [4.0, 7.5], [8.0, 8.0]])
    which, label = rng.permutation(n), np.arange(n) % K
    middle = middles[which % np.array(counts)[label]] + 0.8 * label[:, None]
    columns = middle + rng.normal(size=(n, 2)) @ np.array([[0.8, 0.3], [0.0, 0.6]])
    seeds = tuple(
        cut_points.cluster_centers(columns[c::K], np.ones(n // K), count, seed=0)
        for c, count in enumerate(counts)
    )
    layout = Layout(
        CLASSES, _names(2), center=columns.mean(axis=0), variance=columns.var(axis=0), seeds=seeds
    )
    family = Mixture(Gaussian(shape, **options)).bind(layout)
    return FamilyCase(family, columns, K, _grid(), "prior" not in options, nonnegative=("component", "count"))


def gaussian_tree(shape, **options):
    """Three columns, the last of which hangs on another one in each class."""
    rng, pair = generator(9), _numbers()
    third = np.where(np.arange(N) % K == 0, pair[:, 0], pair[:, 1]) + rng.normal(scale=0.8, size=N)
    columns = np.column_stack([pair, third])
    side = np.linspace(-7.0, 17.0, 61)
    support = (np.array(list(product(side, side, side))), float((side[1] - side[0]) ** 3))
    layout = Layout(CLASSES, _names(3), center=columns.mean(axis=0), variance=columns.var(axis=0))
    return FamilyCase(
        Gaussian(shape, **options).bind(layout), columns, K, support, scale_free="prior" not in options
    )


class LogNormal(ColumnDensity):
    """The logarithms of the numbers have a normal distribution: a family with nothing but what the base class gives."""

    requirement = "two different values"

    def cell_statistics(self, x):
        return {"sum": np.log(x), "squares": np.log(x) ** 2}

    def parameters(self, statistics):
        mean, squares = (statistics[name] / statistics["count"] for name in ("sum", "squares"))
        return {"mean": mean, "variance": squares - mean**2}

    def is_valid(self, statistics):
        variance = self.parameters(statistics)["variance"]
        return (statistics["count"] > 0) & (variance > 1e-9 * statistics["squares"] / statistics["count"])

    def cell_log_density(self, x, parameters):
        squares = (np.log(x) - parameters["mean"]) ** 2 / parameters["variance"]
        return -0.5 * (squares + np.log(2.0 * np.pi * parameters["variance"])) - np.log(x)

    def verify_parameters(self, parameters):
        super().verify_parameters(parameters)
        require(bool((parameters["variance"] > 0).all()), "variance contains numbers that are not positive")


def log_normal():
    """Points of equal distance on a logarithmic scale; some of the logarithms, and a mean of them, are negative."""
    side, step = np.linspace(-9.0, 8.0, 240, retstep=True)
    points = np.exp(np.array(list(product(side, side))))
    family = LogNormal().bind(Layout(CLASSES, _names(2)))
    return FamilyCase(family, np.exp(0.5 * _numbers() - 2.5), K, (points, step * points))


def _waits():
    """Numbers above 0 with other means, and other shapes, in each class."""
    shape, scale = (
        np.array([[1.0, 4.0], [2.5, 1.5], [6.0, 0.7]]),
        np.array([[2.0, 1.0], [0.5, 2.0], [1.0, 3.0]]),
    )
    labels = np.arange(N) % K
    return generator(11).gamma(shape[labels], scale[labels])


def positive(family, **options):
    """A density of positive numbers, over points of equal distance on a logarithmic scale."""
    side, step = np.linspace(-18.0, 6.0, 500, retstep=True)
    points = np.exp(np.array(list(product(side, side))))
    bound = family.bind(Layout(CLASSES, _names(2)))
    return FamilyCase(
        bound, _waits(), K, (points, step * points), scale_free=not family.prior_rows, **options
    )


def overdispersed(family, **options):
    """Counts, of which one class has a variance below the mean in one column."""
    rng, labels = generator(12), np.arange(N) % K
    mean = np.array([[2.0, 5.0], [6.0, 1.0], [3.0, 3.0]])[labels]
    columns = rng.poisson(mean * rng.gamma(1.5, 1.0 / 1.5, mean.shape)).astype(float)
    columns[labels == 2, 1] = 3.0 + (np.arange(np.sum(labels == 2)) % 2)
    support = (_everything((150, 150)).astype(float), 1.0)
    bound = family.bind(Layout(CLASSES, _names(2)))
    return FamilyCase(
        bound, columns, K, support, not family.prior_rows, None, False, ("count", "sum", "squares"), **options
    )


def angles(family):
    """Angles about other means, more or less concentrated, in units of the period of the family."""
    labels = np.arange(N) % K
    mean, many = (
        np.array([[0.5, 2.0], [2.5, 4.0], [5.0, 1.0]]),
        np.array([[0.5, 9.0], [2.0, 4.0], [30.0, 1.0]]),
    )
    columns = generator(13).vonmises(mean[labels], many[labels]) * family.period / (2 * np.pi)
    side, step = np.linspace(0.0, family.period, 200, endpoint=False, retstep=True)
    bound = family.bind(Layout(CLASSES, _names(2)))
    points = np.array(list(product(side, side)))
    return FamilyCase(bound, columns, K, (points, step**2), scale_free=not family.prior_rows)


def composition(family):
    """Three parts that sum to 1; the points are the middles of the cells of the first two parts."""
    alpha = np.array([[4.0, 2.0, 3.0], [2.0, 5.0, 4.0], [3.0, 3.0, 9.0]])
    columns = generator(14).standard_gamma(alpha[np.arange(N) % K])
    side = (np.arange(500) + 0.5) / 500
    first, second = (part.ravel() for part in np.meshgrid(side, side, indexing="ij"))
    inside = first + second < 1.0 - 1e-9
    points = np.stack([first, second, 1.0 - first - second], axis=1)[inside]
    widths = np.broadcast_to([1 / 500, 1 / 500, 1.0], points.shape)
    bound = family.bind(Layout(CLASSES, _names(3)))
    parts = columns / columns.sum(axis=1, keepdims=True)
    return FamilyCase(bound, parts, K, (points, widths), scale_free=not family.prior_rows)


def _beyond(points, step):
    """Points above a grid, and widths: a Lomax density of shape 2 has the same probability in each of them."""
    scale, many = points - 1.0, 50
    away = (1.0 - (np.arange(many) + 0.5) / many) ** -0.5
    return scale + scale * (away - 1.0), step * scale * away**3 / 2.0 / many


def _of_positions(encoder):
    """All points of a grid and some beyond it, and how wide each is."""
    last, step = encoder.points - 1.0, encoder.step
    sides = []
    for width in step:
        inside = np.where(np.isin(np.arange(encoder.points), [0, last]), 0.5, 1.0) * width
        above, wide = _beyond(encoder.points, width)
        points = np.concatenate([np.arange(encoder.points), above, last - above])
        sides.append((points, np.concatenate([inside, wide, wide])))
    return tuple(np.array(list(product(*(side[part] for side in sides)))) for part in (0, 1))


def _of_codes(layout):
    """All pairs of cells, and how wide each is."""
    widths = np.split(np.exp(layout.log_volume), np.cumsum(layout.levels)[:-1])
    return _everything(layout.levels), np.array(list(product(*widths)))


def kernel(family, encoder, **options):
    table = read_array(_numbers())
    fitted = encoder.fit(summary_of(table, np.ones(N)), [0, 1])
    layout = Layout(CLASSES, _names(2), **fitted.layout())
    support = _of_positions(fitted) if layout.gridded else _of_codes(layout)
    return FamilyCase(
        family.bind(layout),
        fitted.encode(table),
        K,
        support,
        scale_free=not family.prior_rows,
        maximizes_likelihood=family.bandwidth == OverBins(0.0) and not layout.gridded,
        **options,
    )


def pair(family, encoder):
    return kernel(family, encoder, counts_per_row=np.ones(N))


def kernel_levels(**options):
    return replace(
        categorical(), family=KernelDensity(**options).bind(categorical().layout), scale_free=False
    )


def sequences(family, symbols=3, length=4, **options):
    """Sequences of few symbols that come in other orders in other classes; each position is a column."""
    rng, n = generator(11), 3 * N
    codes = np.zeros((n, length), dtype=np.int8)
    codes[:, 0] = rng.integers(0, symbols, n)
    for t in range(1, length):
        step = np.where(rng.random(n) < 0.6, np.arange(n) % K, rng.integers(0, symbols, n))
        codes[:, t] = (codes[:, t - 1] + step) % symbols
    layout, counts = Layout(CLASSES, ("x0",), levels=(symbols,)), np.full(n, length)
    support = (_everything((symbols,) * length), 1.0)
    return FamilyCase(family.bind(layout), codes, K, support, counts_per_row=counts, **options)


def hidden_states(family, **options):
    return replace(sequences(family, **options), nonnegative=("initial", "transition", "emission"))


BINS, GRID = AdaptiveBins(few=8, parts=6), Grid(24)
SHAPES = (Full(), Tied(), Diagonal(), TiedDiagonal(), Spherical(), TiedSpherical())

FAMILIES = {
    "categorical": categorical(),
    "categorical-alpha": categorical(alpha=1.0),
    "categorical-dirichlet": categorical(prior=Dirichlet(4.0)),
    "tree": tree(scale_free=True),
    "tree-alpha": tree(alpha=0.5),
    "tree-dirichlet": tree(prior=Dirichlet(4.0)),
    "tree-back-off": tree(alpha=0.5, back_off=5.0),
    "tree-per-class": tree(search=PerClass(), scale_free=True),
    "tree-per-class-back-off": tree(search=PerClass(), back_off=2.0),
    "tree-threshold": tree(search=OneTree(InformativeEdges(0.1)), scale_free=True),
    "tree-test": tree(search=PerClass(SignificantEdges()), alpha=1.0),
    "tree-without-pairs": tree(max_cells=1),
    "tree-smoothed": replace(tree(bandwidth=InCells(0.8), alpha=0.1), maximizes_likelihood=False),
    "k-dependence-1": k_dependence(max_parents=1, scale_free=True),
    "k-dependence-2": k_dependence(scale_free=True),
    "k-dependence-2-dirichlet": k_dependence(prior=Dirichlet(4.0)),
    "k-dependence-2-back-off": k_dependence(alpha=0.5, back_off=5.0),
    "k-dependence-2-test": k_dependence(edges=SignificantEdges(), alpha=1.0),
    "k-dependence-without-triples": k_dependence(max_cells=12, alpha=0.5),
    "k-dependence-2-smoothed": replace(
        k_dependence(bandwidth=InCells(0.8), alpha=0.1), maximizes_likelihood=False
    ),
    "one-dependence": one_dependence(scale_free=True),
    "one-dependence-dirichlet": one_dependence(prior=Dirichlet(4.0)),
    "one-dependence-back-off": one_dependence(alpha=0.5, back_off=5.0),
    "one-dependence-least-rows": one_dependence(least_rows=35.0, stars=2, scale_free=True),
    "one-dependence-smoothed": one_dependence(bandwidth=InCells(0.8), alpha=0.1),
    "one-dependence-few-pairs": one_dependence(max_cells=6, alpha=0.5),
    "one-dependence-divided": one_dependence(divides_rows=True, scale_free=True, likeliest=True),
    "one-dependence-divided-back-off": one_dependence(
        divides_rows=True, alpha=0.5, back_off=5.0, likeliest=True
    ),
    "one-dependence-divided-smoothed": one_dependence(divides_rows=True, bandwidth=InCells(0.8), alpha=0.1),
    "bernoulli": bernoulli(),
    "bernoulli-alpha": bernoulli(alpha=0.5),
    "kernel-levels": replace(kernel_levels(prior_rows=0.0), scale_free=True),
    "kernel-levels-prior": kernel_levels(),
    "kernel-histogram": kernel(KernelDensity(OverBins(0.0), 0.0), BINS),
    "kernel-histogram-prior": kernel(KernelDensity(OverBins(0.0)), BINS),
    "kernel-bins": kernel(KernelDensity(OverBins(), 0.0), BINS),
    "kernel-bins-prior": kernel(KernelDensity(OverBins()), BINS),
    "kernel-grid": kernel(KernelDensity(NormalReference(), 0.0), GRID),
    "kernel-grid-prior": kernel(KernelDensity(SheatherJones()), GRID),
    "kernel-pair-histogram": pair(KernelPair(OverBins(0.0)), BINS),
    "kernel-pair-bins": pair(KernelPair(OverBins(), 0.0), BINS),
    "kernel-pair-grid": pair(KernelPair(Silverman()), GRID),
    "log-normal": log_normal(),
    "chain-0": sequences(MarkovChain(order=0)),
    "chain": sequences(MarkovChain(order=2)),
    "chain-map": sequences(MarkovChain(order=1, alpha=0.5), scale_free=False),
    "chain-back-off": sequences(
        MarkovChain(order=2, alpha=0.5, back_off=3.0), scale_free=False, maximizes_likelihood=False
    ),
    "chain-positions": sequences(MarkovChain(order=1, positions=2)),
    "hidden-markov": hidden_states(HiddenMarkov(states=2)),
    "hidden-markov-alpha": hidden_states(HiddenMarkov(states=3, alpha=0.5, seed=1), scale_free=False),
    "hidden-markov-one": hidden_states(HiddenMarkov(states=1)),
    "exponential": positive(f.Exponential(), nonnegative=("count", "sum")),
    "exponential-prior": positive(f.Exponential(prior_rows=2.0), nonnegative=("count", "sum")),
    "gamma-density": positive(f.GammaDensity(), nonnegative=("count", "sum")),
    "gamma-density-prior": positive(f.GammaDensity(prior_rows=2.0), nonnegative=("count", "sum")),
    "gamma-by-moments": positive(
        f.GammaByMoments(), maximizes_likelihood=False, nonnegative=("count", "sum", "squares")
    ),
    "gamma-by-moments-prior": positive(f.GammaByMoments(prior_rows=2.0), maximizes_likelihood=False),
    "log-normal-with-abilities": positive(f.LogNormal(), nonnegative=("count", "squares")),
    "log-normal-prior": positive(f.LogNormal(prior_rows=2.0), nonnegative=("count", "squares")),
    "negative-binomial": overdispersed(f.NegativeBinomial()),
    "negative-binomial-prior": overdispersed(f.NegativeBinomial(prior_rows=2.0)),
    "von-mises": angles(f.VonMises()),
    "von-mises-hours": angles(f.VonMises(prior_rows=2.0, period=24.0)),
    "dirichlet-density": composition(f.DirichletDensity()),
    "dirichlet-density-prior": composition(f.DirichletDensity(prior_rows=2.0)),
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
    "gaussian-tree": gaussian_tree(TreeCovariance()),
    "gaussian-tree-per-class": gaussian_tree(TreeCovariance(PerClass())),
    "gaussian-tree-map": gaussian_tree(TreeCovariance(PerClass()), prior=NormalInverseWishart()),
    "gaussian-auto": gaussian(Full(), prior="auto"),
    "gaussian-within": gaussian(Full(), prior=WithinClasses(rows=0.0, rows_per_column=20.0, diagonal=0.5)),
    "gaussian-tied-within": gaussian(Tied(), prior=WithinClasses()),
    "gaussian-diagonal-within": gaussian(Diagonal(), prior=WithinClasses(rows=5.0)),
    "gaussian-smoothed": gaussian(Diagonal(), regularizer=VarianceSmoothing(1e-9)),
    "gaussian-identity": gaussian(Full(), regularizer=TowardsIdentity(0.0)),
    "gaussian-sphere": gaussian(Tied(), regularizer=TowardsSphere(0.0)),
    **{f"mixture-{type(shape).__name__}": mixture(shape) for shape in SHAPES},
    "mixture-one": mixture(Diagonal(), (1, 1, 1)),
    "mixture-ragged": mixture(Full(), (3, 1, 2)),
    "mixture-ragged-tied": mixture(Tied(), (1, 4, 2)),
    **{
        f"mixture-{type(shape).__name__}-map": mixture(shape, prior=NormalInverseWishart())
        for shape in SHAPES
    },
    "mixture-auto": mixture(Full(), (1, 2, 3), prior="auto"),
    "mixture-ridge": mixture(Spherical(), regularizer=Ridge(1e-9)),
}

LIKELIEST = [name for name, case in FAMILIES.items() if case.maximizes_likelihood]
"""Those whose learner finds what is most likely, so that rules which climb end at a summit."""

RULES = {
    "ml": rules.ML(),
    "map": rules.MAP(),
    "rc": rules.RC(),
    "rc-fixed": rules.RC(step=0.1),
    "rc-schedule": rules.RC(step=rules.Schedule(lambda update: 1.0 / update)),
    "tm": rules.TM(),
    "tm-by-class": rules.TM(invalid="by_class"),
    "rc-stop": rules.RC(invalid="stop"),
    "dfe": rules.DFE(),
    "gdt": rules.GDT(lam=0.5),
    "gdt-unlabeled": rules.GDT(lam=0.5, unlabeled=0.5),
    "gdt-prior": rules.GDT(lam=0.3, prior_weight=1.0),
    "em": rules.EM(),
    "gd": rules.GD(),
}
