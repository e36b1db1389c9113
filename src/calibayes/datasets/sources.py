"""The data sets of OpenML that can be downloaded by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OpenML:
    """A data set of openml.org; its description there has the address and the MD5 checksum of the file.

    Parameters
    ----------
    number : int
        Identifier of the data set.
    target : str, optional
        Column to predict; by default the target that OpenML names.
    md5 : str, optional
        Expected checksum of the file; by default the one in the description.
    """

    number: int
    target: str | None = None
    md5: str | None = None

    @property
    def description(self) -> str:
        """Address of the description (JSON)."""
        return f"https://api.openml.org/api/v1/json/data/{self.number}"


SOURCES: Mapping[str, OpenML] = {
    "adult": OpenML(1590),
    "australian": OpenML(40981),
    "balance-scale": OpenML(11),
    "blood-transfusion": OpenML(1464),
    "breast-cancer": OpenML(13),
    "car": OpenML(40975),
    "climate-model": OpenML(1467),
    "connect-4": OpenML(40668),
    "diabetes": OpenML(37),
    "ecoli": OpenML(39),
    "glass": OpenML(41),
    "haberman": OpenML(43),
    "heart": OpenML(53),
    "hill-valley": OpenML(1566),
    "hill-valley-noise": OpenML(1479),
    "indian-liver": OpenML(1480),
    "ionosphere": OpenML(59),
    "kr-vs-kp": OpenML(3),
    "letter": OpenML(6),
    "liver-disorders": OpenML(8),
    "lymphography": OpenML(10),
    "magic": OpenML(1120),
    "mushroom": OpenML(24),
    "optdigits": OpenML(28),
    "parkinsons": OpenML(1488),
    "qsar": OpenML(1494),
    "redwine": OpenML(40691),
    "ringnorm": OpenML(1496),
    "satellite": OpenML(182),
    "sonar": OpenML(40),
    "soybean": OpenML(42),
    "splice-uci": OpenML(46),
    "tic-tac-toe": OpenML(50),
    "vehicle": OpenML(54),
    "vote": OpenML(56),
    "wdbc": OpenML(1510),
    "zoo": OpenML(62),
}
"""Name -> source. Other archives have versions with other column names, rows or targets."""
