"""The TM algorithm of Edwards and Lauritzen (2001) for classification: risk-based calibration with a full step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from calibayes.core.protocols import StepControl
from calibayes.rules.risk_based_calibration import RC


@dataclass(frozen=True)
class TM(RC):
    """W = Y - P with step 1 (rc-generative-2025, section 5.2)."""

    step: float | StepControl | None = 1.0

    name: ClassVar[str] = "tm"
