"""The engine of arrays on a device: encoded rows are copied to it once, as a single block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from calibayes.backends.device.array import DeviceArray, Placement
from calibayes.core.protocols import AnyArray, Array, Block, Parts
from calibayes.kernels.event_counts import is_sparse

GROWING = ("torch", "cupy")
"""Libraries with whose arrays trees are grown."""


@dataclass(frozen=True)
class DeviceEngine:
    """Functions of blocks are computed with arrays of one library on one device.

    Kernels split the rows themselves, so that temporary arrays are bounded.

    Parameters
    ----------
    placement : Placement
        The library and the device.
    table : pair of arrays, optional
        The rows as NumPy array and on the device: encoded columns that are the NumPy array are not copied again.
    """

    placement: Placement
    table: tuple[Array, Any] | None = None
    blocks: dict[int, tuple[Parts, Block]] = field(default_factory=dict, repr=False, compare=False)
    """Number of a source object -> the source and its rows on the device."""

    is_on_device: ClassVar[bool] = True

    def total(self, function: Callable[[Any], Mapping[str, Any]], source: Parts) -> Any:
        return function(self._block(source))

    def each(self, function: Callable[[Any], Any], source: Parts) -> list[Any]:
        """``function(block)`` of the only block."""
        return [function(self._block(source))]

    def growth_blocks(self, blocks: Any) -> Any:
        """Rows in memory, on which trees are to be grown, on the device if that computes with PyTorch or CuPy."""
        from calibayes.backends.device.growth import DeviceBlock

        grows = self.placement.xp.__name__.split(".")[-1] in GROWING
        return DeviceBlock(blocks.rows, self.placement) if grows else blocks

    def _block(self, source: Parts) -> Block:
        if id(source) not in self.blocks:
            self.blocks[id(source)] = source, self._moved(source)
        return self.blocks[id(source)][1]

    def _moved(self, source: Parts) -> Block:
        """All rows of a source on the device."""
        blocks = [load() for load in source.parts()]
        names = blocks[0].columns
        columns = {name: self._columns([block.columns[name] for block in blocks]) for name in names}
        labels, weight, held_out = (
            self._array(np.concatenate([getattr(block, name) for block in blocks]), kind)
            for name, kind in (("labels", "int64"), ("weight", "float64"), ("held_out", "float64"))
        )
        return Block(columns, labels, weight, held_out)

    def _columns(self, parts: Sequence[Array]) -> DeviceArray:
        if any(is_sparse(part) for part in parts):
            raise TypeError("a sparse table cannot be copied to a device")
        if self.table is not None and _are_rows_of(parts, self.table[0]):
            return self._complete(DeviceArray(self.table[1], self.placement))
        return self._complete(self._array(np.concatenate(parts) if len(parts) > 1 else parts[0]))

    def _complete(self, columns: DeviceArray) -> DeviceArray:
        """The columns. Raises ValueError if a number is missing."""
        if columns.dtype.kind == "f" and np.isnan(columns).any():
            raise ValueError(
                "Input X contains NaN: missing values are not supported for arrays on a device. Fill them, or pass a "
                "NumPy array, such as X.cpu().numpy(), for which they are"
            )
        return columns

    def _array(self, values: Array, kind: str | None = None) -> AnyArray:
        return DeviceArray(self.placement.array(values, kind), self.placement)


def _are_rows_of(parts: Sequence[Array], table: Array) -> bool:
    """Whether consecutive blocks of rows are the memory of all rows of a table."""
    if sum(len(part) for part in parts) != len(table) or not len(table):
        return False
    starts = np.cumsum([0] + [len(part) for part in parts[:-1]])
    views = [table[start : start + len(part)] for start, part in zip(starts, parts, strict=True)]
    pairs = zip(parts, views, strict=True)
    return all(part.__array_interface__ == view.__array_interface__ for part, view in pairs)
