"""Files that tests of commands share: a table, two models of it, and a function that runs a command."""

import pytest
from typer.testing import CliRunner

from calibayes.cli import app


def call(*arguments, **options):
    return CliRunner().invoke(
        app, [str(argument) for argument in arguments], env={"COLUMNS": "100"}, **options
    )


@pytest.fixture(scope="session")
def penguins(tmp_path_factory):
    """A folder with penguins.csv, penguins.safetensors and nb.safetensors, as in the examples of the help texts."""
    folder = tmp_path_factory.mktemp("penguins")
    table = folder / "penguins.csv"
    assert call("datasets", "penguins", "-o", table).exit_code == 0
    for name, options in (
        ("penguins", ["--model", "LDA"]),
        ("nb", ["--model", "NaiveBayes", "--rule", "ml"]),
    ):
        result = call("fit", table, "--target", "species", "-o", folder / f"{name}.safetensors", *options)
        assert result.exit_code == 0, result.output
    return folder
