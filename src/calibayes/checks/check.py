"""The class Check: a code, a title, the inputs that it needs, and a function that examines a table or a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from calibayes.checks.findings import Finding
from calibayes.checks.subject import Subject
from calibayes.versions import DOCUMENTATION

MODEL, RESULTS = "model", "results"
"""Inputs that a check may need besides the table: a fitted model, the fold results of a comparison."""
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
    look : function
        Takes a `Subject` and returns the evidence of a problem, or None; raises `NotChecked` if it does not apply.
    needs : tuple of str
        The check is run if at least one of these is given: ``MODEL``, ``RESULTS``. Empty if the table is enough.
    """

    code: str
    title: str
    look: Callable[[Subject], Evidence | None]
    needs: tuple[str, ...] = ()

    @property
    def page(self) -> str:
        """URL of the section of the documentation about this check."""
        anchor = re.sub(r"[^a-z0-9]+", "-", f"{self.code} {self.title}".lower())
        return f"{DOCUMENTATION}/checks.html#{anchor}"

    def finding(self, subject: Subject) -> Finding | None:
        """The finding, or None. Raises NotChecked if the check cannot be run."""
        if self.needs and not any(getattr(subject, name) for name in map(_available, self.needs)):
            raise NotChecked(f"needs {' or '.join(NEEDED[name] for name in self.needs)}")
        evidence = self.look(subject)
        if evidence is None:
            return None
        return Finding(
            self.code, self.title, evidence.message, evidence.columns, dict(evidence.values), self.page
        )


def _available(name: str) -> str:
    return f"has_{name}"
