"""Random Bayesian networks over twenty columns, one for each of two classes (slb-2020, section 5.1).

The paper does not specify how graphs are drawn. With the choices here, random forests, support vector machines and
nearest neighbors have errors close to the published ones:

- Forests: one to three roots, the parent of every later node uniform among the earlier ones, nodes labeled at random
  and independently in each class.
- Networks: both classes have the same order of nodes, of which the first ten are roots; each later node has three
  parents, uniform among the earlier nodes, drawn independently for each class unless the node is shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from calibayes.core.protocols import Array
from calibayes.experiments.procedures.fitting import fit_clone

COLUMNS, ROOTS, TEST_ROWS = 20, 10, 1000

Parents = list[tuple[int, list[int]]]
"""Nodes with their parents, in topological order (parents first)."""


class GraphSampler(Protocol):
    """Draws a graph for each class."""

    @property
    def complex(self) -> bool:
        """Whether nodes have the complex conditional distribution of the paper; see `sample`."""

    def graphs(self, rng: np.random.Generator) -> tuple[Parents, Parents]:
        """One graph for each class."""


@dataclass(frozen=True)
class Forests:
    """Random directed forests: each node except the roots has one parent."""

    complex: bool = False

    def graphs(self, rng: np.random.Generator) -> tuple[Parents, Parents]:
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
            low, high = (
                (total - 1, total + 1)
                if len(parents) == 1
                else (rows[:, parents[:2]].sum(axis=1), rows[:, parents[1:]].sum(axis=1))
            )
            mixed = np.where(first_component, low, high) + noise
            rows[:, node] = np.where(heavy_tailed, total + rng.standard_t(5, size=n), mixed)
    return rows


@dataclass(frozen=True)
class NetworkTrials:
    """Task: test errors of several models; each trial draws new networks, training rows and balanced test rows."""

    sampler: GraphSampler
    models: tuple[tuple[str, Any], ...]
    training_rows: int
    share: float
    """Share of the first class among the training rows."""
    trials: tuple[int, ...]

    def inputs(self) -> tuple[str, ...]:
        """No data set."""
        return ()

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
