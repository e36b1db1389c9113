"""What trees over columns of levels say of rows: densities, reasons, samples, missing cells."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from calibayes.core.protocols import Array, Arrays, Layout
from calibayes.families.tree.branching import Branch, Branching
from calibayes.families.tree.structures import Parents
from calibayes.kernels.levels import counts
from calibayes.kernels.levels.trees import beliefs, draw_missing, upward_pass


class TreeRows:
    """Rows under trees over their columns, one for all classes or one for each."""

    layout: Layout
    parents: tuple[Parents, ...] | None

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """The trees that were found, each once; before, none has an edge."""
        k, d = len(self.layout.classes), len(self.layout.columns)
        parents = self.parents or ((-1,) * d,) * k
        return tuple(
            Branch(np.array([c for c in range(k) if parents[c] == tree]), Branching(tree, self.layout.levels))
            for tree in dict.fromkeys(parents)
        )

    def has_hidden(self, columns: Array) -> bool:
        return False  # a pair of which one is missing is not counted, whatever the parameters

    def log_density(self, columns: Array, parameters: Arrays) -> Array:
        if np.min(columns, initial=0) < 0:
            return self._with_gaps(columns, parameters) - self._log_volume(columns)
        return self._of_whole(columns, parameters) - self._log_volume(columns)

    def _of_whole(self, columns: Array, parameters: Arrays) -> Array:
        """Of rows without gaps."""
        density = np.empty((len(columns), len(self.layout.classes)))
        for branch in self.branches:
            table, codes = branch.own(parameters["log_probability"]), branch.tree.codes(columns)
            density[:, branch.classes] = counts.look_up(codes, table, branch.tree.first)
        return density

    def _with_gaps(self, columns: Array, parameters: Arrays) -> Array:
        density = np.empty((len(columns), len(self.layout.classes)))
        whole = (columns >= 0).all(axis=1)
        density[whole] = self._of_whole(columns[whole], parameters)
        for branch in self.branches:
            found = upward_pass(columns[~whole], branch.filled(parameters)).total.T
            density[np.ix_(~whole, branch.classes)] = found
        return density

    def _log_volume(self, columns: Array) -> Array:
        """log of the volume of the known cells of each row, (n, 1)."""
        if not np.any(self.layout.log_volume):
            return np.zeros((len(columns), 1))
        return counts.look_up(columns, self.layout.log_volume[None], counts.offsets(self.layout.levels))

    @property
    def groups(self) -> tuple[str, ...]:
        """A column given the one it hangs on; trees that differ from class to class have the column alone."""
        names = self.layout.columns
        if len(self.branches) > 1:
            return names
        parents = self.branches[0].tree.parents
        return tuple(
            name if parent < 0 else f"{name} | {names[parent]}"
            for name, parent in zip(names, parents, strict=True)
        )

    def terms(self, columns: Array, parameters: Arrays) -> Array:
        terms = np.empty((len(columns), len(self.layout.classes), len(self.layout.columns)))
        whole = (columns >= 0).all(axis=1)
        for branch in self.branches:
            table = branch.own(parameters["log_probability"])
            found = np.empty((len(columns), len(branch.classes), columns.shape[1]))
            found[whole] = counts.look_up_each(branch.tree.codes(columns[whole]), table, branch.tree.first)
            found[~whole] = _one_by_one(columns[~whole], branch, parameters)
            terms[:, branch.classes] = found
        return terms

    def sample(
        self, parameters: Arrays, classes: Array, rng: np.random.Generator, given: Array | None = None
    ) -> Array:
        rows = np.full((len(classes), len(self.layout.columns)), -1) if given is None else given.copy()
        for branch in self.branches:
            mine = np.isin(classes, branch.classes)
            own = np.searchsorted(branch.classes, classes[mine])
            rows[mine] = draw_missing(rows[mine], own, branch.filled(parameters), rng)
        return rows

    def fill(self, columns: Array, parameters: Arrays, posterior: Array) -> Array:
        """The most probable level of each missing cell given the known ones of its row, all classes considered."""
        filled, incomplete = columns.copy(), np.flatnonzero((columns < 0).any(axis=1))
        rows, likely = columns[incomplete], [np.zeros((1, 1))] * columns.shape[1]
        for branch in self.branches:
            gaps, belief = beliefs(rows, branch.filled(parameters))
            for j, (where, levels) in enumerate(zip(gaps, belief, strict=True)):
                share = posterior[np.ix_(incomplete[where], branch.classes)].T[:, :, None]
                likely[j] = likely[j] + (share * levels).sum(axis=0)
        for j, levels in enumerate(likely):
            filled[columns[:, j] < 0, j] = np.argmax(levels, axis=1)
        return filled


def _one_by_one(columns: Array, branch: Branch, parameters: Arrays) -> Array:
    """log p of each known cell given the known ones before it in the tree's order, (n, k, d)."""
    tree, terms = branch.filled(parameters), np.zeros((len(columns), len(branch.classes), columns.shape[1]))
    told, before = np.full_like(columns, -1), np.zeros(terms.shape[:2])
    for j in tree.order if len(columns) else ():
        told[:, j] = columns[:, j]
        total = upward_pass(told, tree).total.T
        terms[:, :, j], before = total - before, total
    return terms
