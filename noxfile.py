#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.10.14"]
# ///
"""The checks as sessions of nox, each in its own environment: `nox -s tests`. They call check.py, which says what is run."""

import nox

nox.needs_version = ">=2025.10.14"
nox.options.default_venv_backend = "uv|virtualenv"


def _check(session: nox.Session, *arguments: str) -> None:
    session.install("-e", ".[dev]")
    session.run("python", "check.py", *arguments, *session.posargs)


@nox.session(default=True)
def quick(session: nox.Session) -> None:
    """Style, format, types, layers and the tests that fail most often."""
    _check(session, "--quick")


@nox.session(default=False)
def tests(session: nox.Session) -> None:
    """All that must pass before a change is merged."""
    _check(session)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The documentation site, in build/."""
    session.run("python", "check.py", "--docs", *session.posargs)


@nox.session(default=False)
def browser(session: nox.Session) -> None:
    """Reports in Chromium, with pictures in build/."""
    session.install("-e", ".[dev,browser]")
    session.run("python", "check.py", "--browser", *session.posargs)


@nox.session(default=False)
def package(session: nox.Session) -> None:
    """The wheel and the source distribution, checked as an index would."""
    session.install("build", "check-wheel-contents", "twine")
    session.run("python", "check.py", "--package", *session.posargs)


if __name__ == "__main__":
    nox.main()
