"""The results of the checks: problems found, checks that passed, and checks that were not run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calibayes.tables.text import counted


@dataclass(frozen=True)
class Finding:
    """A probable problem of a table or a model.

    Attributes
    ----------
    code : str
        Code of the check, such as "CB004".
    title : str
        The problem in a few words.
    message : str
        One to three sentences with the evidence in numbers.
    columns : tuple of str
        Names of the columns concerned; empty if it is about rows, classes or a model.
    evidence : mapping
        Name -> number or text.
    page : str
        URL of the documentation: how the problem is measured and what to do.
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
        Code -> reason why the check was not run.
    silenced : tuple of str
        Codes that were given as ``ignore``.
    scope : str
        Which rows and columns were examined.
    """

    found: tuple[Finding, ...]
    passed: tuple[str, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    silenced: tuple[str, ...] = ()
    scope: str = ""

    def __str__(self) -> str:
        counts = [
            counted(len(self.found), "finding"),
            f"{len(self.passed)} passed",
            f"{len(self.skipped)} skipped",
        ]
        counts += [f"{len(self.silenced)} silenced"] if self.silenced else []
        total = len(self.found) + len(self.passed) + len(self.skipped) + len(self.silenced)
        head = f"{counted(total, 'check')} of {self.scope}: {', '.join(counts)}"
        skipped = [f"{code} skipped: {why}" for code, why in self.skipped.items()]
        return "\n".join([head, *map(str, self.found), *skipped])
