"""The command line interface, ``calibayes``."""

from calibayes.cli.application import app

__all__ = ["app"]
