"""Verification of a joint model: of its class prior and of each family, with their arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, cast

from calibayes.core.abilities import Verifiable, VerifiableStructure
from calibayes.core.protocols import Arrays, Trees
from calibayes.core.verify import require, require_names


class VerifiedParts(ABC):
    """A model of named parts, each `Verifiable` and over the same classes."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Any]:
        """The class prior and the families, by name."""

    def verify(self) -> None:
        """Raises ValueError if a part is invalid by itself, or the parts have different classes."""
        for part in self.parts.values():
            require(isinstance(part, Verifiable), f"{type(part).__name__} cannot be verified")
            part.verify()
        classes = {part.layout.classes for part in self.parts.values()}
        require(len(classes) == 1, "the class prior and the families have different classes")

    def verify_parameters(self, parameters: Trees) -> None:
        for part, arrays in self._with_arrays("parameters", parameters):
            part.verify_parameters(arrays)

    def verify_statistics(self, statistics: Trees) -> None:
        for part, arrays in self._with_arrays("statistics", statistics):
            part.verify_statistics(arrays)

    def verify_structure_statistics(self, structure_statistics: Trees) -> None:
        """Of the sums over the data: structure statistics, or statistics for families without a structure."""
        for part, arrays in self._with_arrays("data_statistics", structure_statistics):
            if isinstance(part, VerifiableStructure):
                part.verify_structure_statistics(arrays)
            else:
                part.verify_statistics(arrays)

    def _with_arrays(self, name: str, arrays: Trees) -> Iterator[tuple[Verifiable, Arrays]]:
        """Each part with its arrays. Raises ValueError if there are arrays of other parts."""
        require_names(name, arrays, self.parts)
        return ((cast(Verifiable, part), arrays[key]) for key, part in self.parts.items())
