"""The command line interface, ``calibayes``."""

from calibayes.cli.main import app

__all__ = ["app"]
