"""``python -m calibayes``."""

from calibayes.cli import main

main()
