"""``python -m calibayes.cli``: the command where its script is not installed."""

from calibayes.cli.main import app

if __name__ == "__main__":
    app(prog_name="calibayes")
