"""The application ``calibayes``; each command is in a module of its own."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from calibayes._version import __version__
from calibayes.cli import information, predicting, reporting, training
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


app.command("compare", epilog=training.COMPARE_EXAMPLES)(training.compare_command)
app.command("fit", epilog=training.FIT_EXAMPLES)(training.fit_command)
app.command("predict", epilog=predicting.PREDICT_EXAMPLES)(predicting.predict_command)
app.command("evaluate", epilog=predicting.EVALUATE_EXAMPLES)(predicting.evaluate_command)
app.command("explain", epilog=predicting.EXPLAIN_EXAMPLES)(predicting.explain_command)
app.command("sample", epilog=information.SAMPLE_EXAMPLES)(information.sample_command)
app.command("report", epilog=reporting.REPORT_EXAMPLES)(reporting.report_command)
app.command("inspect", epilog=information.INSPECT_FILE_EXAMPLES)(information.inspect_command)
app.command("datasets", epilog=information.DATASETS_EXAMPLES)(information.datasets_command)
app.command("reproduce", epilog=reporting.REPRODUCE_EXAMPLES)(reporting.reproduce_command)
app.command("info", epilog=information.INFO_EXAMPLES)(information.info_command)
