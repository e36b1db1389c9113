"""What checks found, which of them passed, and which were not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calibayes.tables.text import counted


@dataclass(frozen=True)
class Finding:
    """A probable fault of a table or a model.

    Attributes
    ----------
    code : str
        Number of the check, such as "CB004".
    title : str
        What the check is about.
    message : str
        One to three sentences with the evidence in numbers.
    columns : tuple of str
        Names of the columns concerned; empty if it is about rows, classes or a model.
    evidence : mapping
        Name -> number or text.
    page : str
        Address of the page that says how it is measured and what to do.
    """

    code: str
    title: str
    message: str
    columns: tuple[str, ...]
    evidence: Mapping[str, float | str]
    page: str

    def __str__(self) -> str:
        return f"{self.code} {self.title}. {self.message} ({self.page})"


@dataclass(frozen=True)
class Findings:
    """The results of all checks.

    Attributes
    ----------
    found : tuple of Finding
    passed : tuple of str
        Codes of the checks that found nothing.
    skipped : mapping
        Code -> why a check was not run.
    silenced : tuple of str
        Codes that were given as ``ignore``.
    scope : str
        Which rows and columns were looked at.
    """

    found: tuple[Finding, ...]
    passed: tuple[str, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    silenced: tuple[str, ...] = ()
    scope: str = ""

    def __str__(self) -> str:
        counts = [f"{len(self.found)} found", f"{len(self.passed)} passed", f"{len(self.skipped)} skipped"]
        counts += [f"{len(self.silenced)} silenced"] if self.silenced else []
        total = len(self.found) + len(self.passed) + len(self.skipped) + len(self.silenced)
        head = f"{counted(total, 'check')} of {self.scope}: {', '.join(counts)}"
        skipped = [f"{code} skipped: {why}" for code, why in self.skipped.items()]
        return "\n".join([head, *map(str, self.found), *skipped])
