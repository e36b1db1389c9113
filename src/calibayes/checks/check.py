"""The class Check: a code, a title, the inputs that it needs, and a function that examines a table or a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from calibayes.checks.subject import MODEL, RESULTS, Subject
from calibayes.core.notices import counted, listed
from calibayes.versions import DOCUMENTATION

# -- The results of the checks: problems found, checks that passed, and checks that were not run -------------


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
        passed, skipped, silenced = len(self.passed), len(self.skipped), len(self.silenced)
        checks = counted(len(self.found) + passed + skipped + silenced, "check")
        counts = f"{counted(len(self.found), 'finding')}, {passed} passed, {skipped} skipped"
        head = f"{checks} of {self.scope}: {counts}" + (f", {silenced} silenced" if silenced else "")
        reasons = [f"{code} skipped: {why}" for code, why in self.skipped.items()]
        return "\n".join([head, *map(str, self.found), *reasons])


# -- The class Check: a code, a title, the inputs that it needs, and a function that examines a table or a model

NEEDED = {MODEL: "a fitted model (model=)", RESULTS: "the results of a comparison (results=)"}


class NotChecked(Exception):
    """Raised by a check that cannot be run on this table or model; the message gives the reason."""


@dataclass(frozen=True)
class Evidence:
    """A problem that a check found.

    Attributes
    ----------
    message : str
        One to three sentences with the evidence in numbers.
    columns : tuple of str
        Names of the columns concerned.
    values : mapping
        Name -> number or text.
    """

    message: str
    columns: tuple[str, ...] = ()
    values: Mapping[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """A numbered check.

    Attributes
    ----------
    code : str
        "CB" and three digits; the code of a removed check is not used again.
    title : str
        The problem in a few words of letters and hyphens; code and title are a heading of the documentation.
    find : function
        Takes a `Subject` and returns the evidence of a problem, or None; raises `NotChecked` if it does not apply.
    needs : tuple of str
        The check is run if at least one of these is given: ``MODEL``, ``RESULTS``. Empty if the table is enough.
    """

    code: str
    title: str
    find: Callable[[Subject], Evidence | None]
    needs: tuple[str, ...] = ()

    @property
    def page(self) -> str:
        """URL of the section of the documentation about this check."""
        anchor = re.sub(r"[^a-z0-9]+", "-", f"{self.code} {self.title}".lower())
        return f"{DOCUMENTATION}/checks.html#{anchor}"

    def finding(self, subject: Subject) -> Finding | None:
        """The finding, or None. Raises NotChecked if the check cannot be run."""
        if self.needs and not subject.given.intersection(self.needs):
            raise NotChecked(f"needs {' or '.join(NEEDED[name] for name in self.needs)}")
        if (seen := self.find(subject)) is None:
            return None
        return Finding(self.code, self.title, seen.message, seen.columns, dict(seen.values), self.page)


# -- Formatting of names and numbers in the messages of the checks -------------------------------------------


def quoted(names: Sequence[str], most: int = 5) -> str:
    """Quoted names, at most ``most`` of them, followed by the number of further names.

    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b', ... and 1 more"
    """
    return listed([repr(name) for name in names], most)


def clause(names: Sequence[str], one: str, several: str) -> str:
    """The pattern ``one`` or ``several``, by the number of names, with the quoted names in its place {}.

    >>> clause(["a", "b"], "Column {} is", "Columns {} are")
    "Columns 'a', 'b' are"
    """
    return (one if len(names) == 1 else several).format(quoted(names))


def percent(share: float) -> str:
    """A share in percent, with one decimal below 10 % and above 99 %.

    >>> percent(0.256), percent(0.0123), percent(0.998), percent(1.0)
    ('26 %', '1.2 %', '99.8 %', '100 %')
    """
    digits = 1 if share < 0.0995 or 0.99 < share < 0.9995 else 0
    return f"{100 * share:.{digits}f} %"
