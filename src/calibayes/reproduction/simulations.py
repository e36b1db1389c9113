"""Simulated data, and models and trials that only one paper has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler

from calibayes.core.protocols import Array, Arrays
from calibayes.datasets import find_file
from calibayes.dependence import Dependence, TopFraction
from calibayes.estimators.discriminant_analysis import LinearDiscriminantAnalysis
from calibayes.estimators.generative import GenerativeClassifier
from calibayes.estimators.sparse_log_density import LogDensityFeatures
from calibayes.families import ColumnDensity
from calibayes.learn import LastState
from calibayes.model.binding import every
from calibayes.reproduction.procedures import TableTask, fit_clone
from calibayes.rules import RC

TEST_SEED = 10**6
"""Differs from the seeds of all training samples."""


class SimulatedTask:
    """A task that reads no data set."""

    def inputs(self) -> tuple[str, ...]:
        """No data set."""
        return ()


@dataclass(frozen=True)
class TwoGaussians:
    """Two Gaussians with unit covariance and means at plus and minus ``distance`` in the first column."""

    distance: float = 1.25

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """Columns (n, 4) and classes (n,)."""
        target = rng.integers(0, 2, n)
        columns = rng.normal(size=(n, 4))
        columns[:, 0] += self.distance * (2 * target - 1)
        return columns, target


@dataclass(frozen=True)
class UniformChain:
    """Each column is uniform between the previous column and that plus one; the class depends on the first.

    p(class 1 | x) = 1 / (1 + exp(-slope x)); the paper prints 1 / exp(-slope x), which is not a probability.
    """

    slope: float = 2.5

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
        columns = np.cumsum(rng.uniform(size=(n, 4)), axis=1)
        probability = 1.0 / (1.0 + np.exp(-self.slope * columns[:, 0]))
        return columns, (rng.uniform(size=n) < probability).astype(int)


Simulation: TypeAlias = TwoGaussians | UniformChain


@dataclass(frozen=True)
class SimulatedTrials(SimulatedTask):
    """Task: log loss of several models on a large test sample, trained on a new small sample in each trial."""

    simulation: Simulation
    models: tuple[tuple[str, Any], ...]
    training_rows: int
    test_rows: int
    trials: tuple[int, ...]

    def run(self) -> dict[str, Any]:
        """Label of the model -> losses, one for each trial."""
        columns, target = self.simulation.draw(self.test_rows, np.random.default_rng(TEST_SEED))
        rows = np.arange(len(target))
        losses: dict[str, list[float]] = {label: [] for label, _ in self.models}
        for trial in self.trials:
            sample = self.simulation.draw(self.training_rows, np.random.default_rng(trial))
            for label, estimator in self.models:
                model, _ = fit_clone(estimator, *sample)
                log_posterior = model.predict_log_proba(columns)
                losses[label].append(float(-np.mean(log_posterior[rows, target])))
        return {"loss": losses}


# -- Training errors over the updates on raw pixels of images (rc-probabilistic-2024, Figures 1 to 4) --------

ENDING = ".npz"


@dataclass(frozen=True)
class ImageCurve:
    """Task: fit one model on the first images of a set; entry 0 of the curve is the start.

    Parameters
    ----------
    name : str
        Name of a file ``NAME.npz`` with arrays ``x_train`` (n, height, width) and ``y_train`` (n,).
    rows : int
        Number of images.
    pool : int
        Pixels are averaged over squares of this side.
    within_classes : bool
        Drop pixels that are constant within a class, and standardize the others.
    """

    name: str
    model: Any
    rows: int
    pool: int
    within_classes: bool

    def inputs(self) -> tuple[str, ...]:
        """The file of images."""
        return (self.name + ENDING,)

    def run(self) -> dict[str, Any]:
        """The training errors, the shape of the columns and warnings (notes)."""
        columns, target = self._table()
        groups = (
            [columns[target == label] for label in np.unique(target)] if self.within_classes else [columns]
        )
        columns = columns[:, np.all([np.ptp(group, axis=0) > 0 for group in groups], axis=0)]
        if self.within_classes:
            columns = StandardScaler().fit_transform(columns)
        model, notes = fit_clone(self.model, columns, target)
        return {"error": model.history_["error"].tolist(), "shape": list(columns.shape), "notes": notes}

    def _table(self) -> tuple[Array, Array]:
        path = find_file(self.name, ending=ENDING)
        if path is None:
            raise ValueError(
                f"file {self.name}{ENDING} not found: put it into the folder given by CALIBAYES_DATA"
            )
        with np.load(path) as file:
            images, target = file["x_train"][: self.rows], file["y_train"][: self.rows]
        n, height, width = images.shape
        pooled_height, pooled_width = height // self.pool, width // self.pool
        cropped = images[:, : pooled_height * self.pool, : pooled_width * self.pool].astype(np.float64)
        squares = cropped.reshape(n, pooled_height, self.pool, pooled_width, self.pool)
        return squares.mean(axis=(2, 4)).reshape(n, -1), target


# -- Naive Bayes and tree-augmented naive Bayes with the kernel densities of SLB (slb-2020) ------------------


@dataclass(frozen=True)
class SpanningTrees:
    """Selects the edges of the maximum spanning tree of dependence of each class (Chow and Liu 1968)."""

    def candidates(self, table: Dependence) -> list[Array]:
        d, pairs = len(table.names), table.pairs
        pair_number = np.zeros((d, d), dtype=np.int64)
        pair_number[pairs[0], pairs[1]] = np.arange(pairs.shape[1])
        selected = []
        for label, statistics in enumerate(table.statistics):
            gain = np.triu(np.maximum(statistics, 1e-12), 1)
            tree = minimum_spanning_tree(np.where(gain > 0, 1.0 + gain.max() - gain, 0.0)).tocoo()
            edges = np.sort(np.stack([tree.row, tree.col]), axis=0)
            selected.append(label * pairs.shape[1] + pair_number[edges[0], edges[1]])
        return [np.concatenate(selected).astype(np.int64)]


@dataclass(eq=False, repr=False, kw_only=True)
class KernelDensityBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Bayes' rule with kernel densities: independent columns, or a tree by mutual information for each class."""

    trees: bool = False

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the densities and the class probabilities."""
        selection = SpanningTrees() if self.trees else TopFraction(0.0)
        self.features_ = LogDensityFeatures(
            measure="mutual_information", selection=selection, floor=1e-10
        ).fit(X, y)
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior_ = np.log(counts / counts.sum())
        return self

    def predict(self, X: Any) -> Array:
        """The most probable class of each row."""
        logs, densities = self.features_.transform(X), self.features_.densities_
        d, k = len(densities.varying), len(self.classes_)
        joint = np.empty((len(logs), k))
        for c in range(k):
            class_pairs = np.flatnonzero(densities.pair_codes == c)
            degree = np.bincount(densities.pairs[:, class_pairs].ravel(), minlength=d)  # Lemma 1 of the paper
            joint[:, c] = logs[:, c * d : (c + 1) * d] @ (1.0 - degree)
            joint[:, c] += logs[:, densities.n_univariate + class_pairs].sum(axis=1) + self.log_prior_[c]
        return self.classes_[joint.argmax(axis=1)]


# -- Dimension reduction by Fisher's discriminant directions and principal components of the residuals (gdt-2004)


@dataclass(frozen=True)
class Projection:
    """A linear projection of standardized columns, fitted on training rows."""

    mean: Array
    scale: Array
    directions: Array

    def apply(self, columns: Array) -> Array:
        """Coordinates (n, count) of rows (n, d)."""
        return np.asarray((columns - self.mean) / self.scale @ self.directions)


def fit_projection(columns: Array, target: Array, count: int) -> Projection:
    """Discriminant directions of the standardized columns, then principal components of the residuals, ``count`` in all.

    Discriminant directions have unit variance within the classes; components have unit length.
    """
    mean, spread = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0)
    standard = (columns - mean) / scale
    fisher = LinearDiscriminantAnalysis(rule="ml").fit(standard, target).scalings_[:, :count]
    basis, _ = np.linalg.qr(fisher)
    residuals = standard - standard @ basis @ basis.T
    _, _, components = np.linalg.svd(residuals - residuals.mean(axis=0), full_matrices=False)
    return Projection(mean, scale, np.hstack([fisher, components[: count - fisher.shape[1]].T]))


# -- Random Bayesian networks over twenty columns, one for each of two classes (slb-2020, section 5.1) -------
#
# The paper does not specify how graphs are drawn. With the choices here, random forests, support vector machines and
# nearest neighbors have errors close to the published ones:
#
# - Forests: one to three roots, the parent of every later node uniform among the earlier ones, nodes labeled at random
#   and independently in each class.
# - Networks: both classes have the same order of nodes, of which the first ten are roots; each later node has three
#   parents, uniform among the earlier nodes, drawn independently for each class unless the node is shared.

COLUMNS, ROOTS, TEST_ROWS = 20, 10, 1000

Parents = list[tuple[int, list[int]]]
"""Nodes with their parents, in topological order (parents first)."""


@dataclass(frozen=True)
class Forests:
    """Random directed forests: each node except the roots has one parent."""

    complex: bool = False
    """Whether nodes have the complex conditional distribution of the paper; see `sample`."""

    def graphs(self, rng: np.random.Generator) -> tuple[Parents, Parents]:
        """One graph for each class."""
        return self._forest(rng), self._forest(rng)

    def _forest(self, rng: np.random.Generator) -> Parents:
        roots, label = int(rng.integers(1, 4)), rng.permutation(COLUMNS).tolist()
        return [(label[i], [] if i < roots else [label[int(rng.integers(i))]]) for i in range(COLUMNS)]


@dataclass(frozen=True)
class Networks:
    """Random directed graphs: each node except the roots has three parents, the same in both classes for a share of nodes."""

    complex: bool = False
    shared: float = 0.0

    def graphs(self, rng: np.random.Generator) -> tuple[Parents, Parents]:
        label = rng.permutation(COLUMNS).tolist()
        first, second = self._network(label, rng), self._network(label, rng)
        same = rng.choice(np.arange(ROOTS, COLUMNS), round(self.shared * (COLUMNS - ROOTS)), replace=False)
        return first, [first[i] if i in same else second[i] for i in range(COLUMNS)]

    def _network(self, label: list[int], rng: np.random.Generator) -> Parents:
        positions = [[] if i < ROOTS else rng.choice(i, 3, replace=False).tolist() for i in range(COLUMNS)]
        return [(label[i], [label[j] for j in parents]) for i, parents in enumerate(positions)]


GraphSampler: TypeAlias = Forests | Networks


def sample(graph: Parents, n: int, complex: bool, rng: np.random.Generator) -> Array:
    """Rows (n, 20): roots are standard normal, other nodes the sum of their parents plus standard normal noise.

    If ``complex``, half of the rows have noise of Student's t with 5 degrees of freedom, the other half a mixture of two
    normals, with means parent - 1 and parent + 1, or the sums of the first two and of the last two of three parents.
    """
    rows = np.zeros((n, COLUMNS))
    for node, parents in graph:
        total, noise = rows[:, parents].sum(axis=1), rng.normal(size=n)
        rows[:, node] = total + noise
        if complex and parents:
            heavy_tailed, first_component = rng.random(n) < 0.5, rng.random(n) < 0.5
            low, high = total - 1, total + 1
            if len(parents) > 1:
                low, high = (rows[:, some].sum(axis=1) for some in (parents[:2], parents[1:]))
            mixed = np.where(first_component, low, high) + noise
            rows[:, node] = np.where(heavy_tailed, total + rng.standard_t(5, size=n), mixed)
    return rows


@dataclass(frozen=True)
class NetworkTrials(SimulatedTask):
    """Task: test errors of several models; each trial draws new networks, training rows and balanced test rows."""

    sampler: GraphSampler
    models: tuple[tuple[str, Any], ...]
    training_rows: int
    share: float
    """Share of the first class among the training rows."""
    trials: tuple[int, ...]

    def run(self) -> dict[str, Any]:
        """Label of the model -> errors, one for each trial."""
        errors: dict[str, list[float]] = {label: [] for label, _ in self.models}
        for trial in self.trials:
            rng = np.random.default_rng([trial, self.training_rows])
            graphs = self.sampler.graphs(rng)
            training, training_target = self._draw(graphs, self.training_rows, self.share, rng)
            test, test_target = self._draw(graphs, TEST_ROWS, 0.5, rng)
            for label, estimator in self.models:
                model, _ = fit_clone(estimator, training, training_target)
                errors[label].append(float(np.mean(model.predict(test) != test_target)))
        return {"error": errors}

    def _draw(
        self, graphs: tuple[Parents, Parents], n: int, share: float, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        sizes = (round(share * n), n - round(share * n))
        parts = [sample(graph, m, self.sampler.complex, rng) for graph, m in zip(graphs, sizes, strict=True)]
        return np.concatenate(parts), np.repeat([0, 1], sizes)


# -- Test errors of models trained on small random samples; all other rows are test rows (gdt-2004, Table 1)


@dataclass(frozen=True)
class SubsampleTrials(TableTask):
    """Task: some trials of several models on one data set.

    Parameters
    ----------
    data : DataEntry
    cleaning : Cleaning
    models : pairs of label and estimator
    training_rows : int
    directions : int
        Number of directions of the projection, which is fitted on the training rows.
    trials : tuple of int
        Numbers of the trials, which are the seeds of their samples.
    costs : (k, k) nested tuples, optional
        Cost of each decision (column) for each true class (row); by default each error costs 1.
    """

    models: tuple[tuple[str, Any], ...]
    training_rows: int
    directions: int
    trials: tuple[int, ...]
    costs: tuple[tuple[float, ...], ...] | None = None

    def run(self) -> dict[str, Any]:
        """Label of the model -> mean costs on the test rows; and the chosen lam of models that choose one."""
        columns, target = self.cleaning.apply(self.data)
        losses: dict[str, list[float]] = {label: [] for label, _ in self.models}
        lams: dict[str, list[float]] = {}
        for trial in self.trials:
            training, test = self._split(len(target), trial)
            projection = fit_projection(columns[training], target[training], self.directions)
            for label, estimator in self.models:
                model, _ = fit_clone(estimator, projection.apply(columns[training]), target[training], trial)
                losses[label].append(self._loss(model, projection.apply(columns[test]), target[test]))
                if hasattr(model, "lam_"):
                    lams.setdefault(label, []).append(model.lam_)
        return {"loss": losses, "lam": lams}

    def _split(self, n: int, trial: int) -> tuple[Array, Array]:
        order = np.random.default_rng(trial).permutation(n)
        return order[: self.training_rows], order[self.training_rows :]

    def _loss(self, model: Any, columns: Array, target: Array) -> float:
        truth = np.searchsorted(model.classes_, target)
        if self.costs is None:
            return float(np.mean(model.predict(columns) != target))
        costs = np.asarray(self.costs)
        decisions = np.argmin(model.predict_proba(columns) @ costs, axis=1)
        return float(np.mean(costs[truth, decisions]))


# -- Two Gaussian classes with known parameters, so that the Bayes rule is known (generative-models-notes) ---


@dataclass(frozen=True)
class TwoGaussianClasses:
    """Two classes with Gaussian columns: probability of the second class, means and covariances of both."""

    probability: float
    means: tuple[tuple[float, float], tuple[float, float]]
    covariances: tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]

    def draw(self, n: int, seed: int) -> tuple[Array, Array]:
        """Columns (n, 2) and classes (n,)."""
        rng = np.random.default_rng(seed)
        target = (rng.uniform(size=n) < self.probability).astype(int)
        noise = rng.normal(size=(n, 2))
        roots = np.linalg.cholesky(np.array(self.covariances))
        columns = np.array(self.means)[target] + np.einsum("nij,nj->ni", roots[target], noise)
        return columns, target

    def posterior(self, columns: Array) -> Array:
        """True p(class | x), (n, 2)."""
        prior = (1.0 - self.probability, self.probability)
        joint = np.stack(
            [
                share * multivariate_normal(mean, covariance).pdf(columns)
                for share, mean, covariance in zip(prior, self.means, self.covariances, strict=True)
            ],
            axis=1,
        )
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class WorkedExample(SimulatedTask):
    """Task: errors and costs of models and of the Bayes rule on a large sample."""

    distribution: TwoGaussianClasses
    models: tuple[tuple[str, Any], ...]
    costs: tuple[tuple[float, float], tuple[float, float]]
    training_rows: int
    test_rows: int

    def run(self) -> dict[str, Any]:
        """Under "scores": label -> error, mean cost of the most probable class, mean cost of the lowest expected cost."""
        columns, target = self.distribution.draw(self.test_rows, seed=1)
        posteriors = {"Bayes rule": self.distribution.posterior(columns)}
        for label, model in self.models:
            trained, _ = fit_clone(model, *self.distribution.draw(self.training_rows, seed=0))
            posteriors[label] = trained.predict_proba(columns)
        return {"scores": {label: self._scores(p, target) for label, p in posteriors.items()}}

    def _scores(self, posterior: Array, target: Array) -> list[float]:
        costs = np.array(self.costs)
        most_probable = np.argmax(posterior, axis=1)
        cheapest = np.argmin(posterior @ costs, axis=1)
        return [
            float(np.mean(most_probable != target)),
            float(np.mean(costs[target, most_probable])),
            float(np.mean(costs[target, cheapest])),
        ]


# -- The toy example: three rows, two classes, only the means are learned (rc-generative-2025, section 4.1) ----

TOY_ROWS, TOY_CLASSES = (0.0, 1.0, 4.0), (1, 2, 2)
"""The column x of the three training rows, and their classes."""
TOY_STEP = 0.5


class UnitVariance(ColumnDensity):
    """A normal distribution about the mean of each class, of variance 1.

    The paper prints exp(-(x - mean)^2); its numbers are those of exp(-(x - mean)^2 / 2).
    """

    def cell_statistics(self, x: Array) -> Arrays:
        return {"sum": x}

    def parameters(self, statistics: Arrays) -> Arrays:
        return {"mean": statistics["sum"] / statistics["count"]}

    def cell_log_density(self, x: Array, parameters: Arrays) -> Array:
        return np.asarray(-0.5 * ((x - parameters["mean"]) ** 2 + np.log(2 * np.pi)))


@dataclass(frozen=True)
class ToyStates(SimulatedTask):
    """Task: the state of the toy after some numbers of updates; both classes have probability 1/2 throughout."""

    updates: tuple[int, ...]

    def run(self) -> dict[str, Any]:
        """For each number of updates: statistics (count and sum of class 1, then of class 2), means, posterior (3, 2)."""
        states = [self._state(number) for number in self.updates]
        return {name: [state[name].tolist() for state in states] for name in states[0]}

    def _state(self, updates: int) -> dict[str, Array]:
        model = GenerativeClassifier(
            families=[("x", UnitVariance(), every)],
            priors=np.array([0.5, 0.5]),
            rule=RC(step=TOY_STEP),
            stop=LastState(),
            max_iter=updates,
        )
        columns = np.reshape(TOY_ROWS, (-1, 1))
        model.fit(columns, TOY_CLASSES)
        sums = model.statistics_["x"]
        return {
            "statistics": np.stack([sums["count"][:, 0], sums["sum"][:, 0]], axis=1).ravel(),
            "means": model.parameters_["x"]["mean"][:, 0],
            "posterior": model.predict_proba(columns),
        }
