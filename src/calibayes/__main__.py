"""``python -m calibayes``."""

from calibayes.cli import app

app()
