"""The command ``calibayes``."""

from calibayes.cli.main import app

__all__ = ["app"]
