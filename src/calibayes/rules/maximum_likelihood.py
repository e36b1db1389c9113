"""Maximum likelihood and maximum a posteriori: the closed form on the labels as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calibayes.core.abilities import Conjugate
from calibayes.core.protocols import Family
from calibayes.rules.steps import Fixed
from calibayes.rules.update import Blend


@dataclass(frozen=True)
class ML(Blend):
    """Maximum likelihood: W = Y, one pass. With a prior inside the family it is maximum a posteriori."""

    name: ClassVar[str] = "ml"
    closed_form: ClassVar[bool] = True
    climbs: ClassVar[bool] = True

    @property
    def control(self) -> Fixed:
        return Fixed(1.0)

    @property
    def shrink(self) -> float:
        return 1.0

    @property
    def generative(self) -> float:
        return 1.0


@dataclass(frozen=True)
class MAP(ML):
    """Maximum a posteriori: maximum likelihood with the default conjugate prior where a family has none."""

    name: ClassVar[str] = "map"
    needs: ClassVar[tuple[type, ...]] = (Conjugate,)

    def adapt(self, family: Family) -> Family:
        return family.conjugate() if isinstance(family, Conjugate) else family
