"""The application ``calibayes``; the commands are those of ``COMMANDS``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from calibayes._version import __version__
from calibayes.cli.application import DEBUG_OPTION, DEBUG_VARIABLE, Commands, examples

console = Console()
app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Generative classifiers with discriminative training.",
    epilog=examples(
        "calibayes datasets penguins -o penguins.csv",
        "calibayes compare penguins.csv --target species --model LDA,QDA",
        "calibayes fit penguins.csv --target species -o penguins.safetensors",
        "calibayes predict penguins.safetensors penguins.csv -o predictions.csv",
    ),
)


def _print_version(requested: bool) -> None:
    if requested:
        console.print(f"calibayes {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            DEBUG_OPTION, help=f"Print the traceback of an error; at any place. Also: {DEBUG_VARIABLE}=1."
        ),
    ] = False,
) -> None:
    """Generative classifiers with discriminative training."""
