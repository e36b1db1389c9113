"""``calibayes datasets``: the data sets that are known by name; one of them as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from calibayes.cli import options
from calibayes.cli.application import examples
from calibayes.cli.printing import print_json, print_text
from calibayes.cli.progress import working
from calibayes.cli.rows.outputs import FORMATS, format_of, output_file, refuse_terminal
from calibayes.cli.rows.tables import write_frame
from calibayes.datasets import is_local, list_datasets, load
from calibayes.tables.text import text_table

EXAMPLES = examples(
    "calibayes datasets",
    "calibayes datasets penguins -o penguins.csv",
    "calibayes datasets iris --format jsonl",
)
console = Console()


def datasets_command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Data set to write. Default: list all.", autocompletion=options.complete_datasets
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write; its ending says the format. Default: standard output."
        ),
    ] = None,
    form: Annotated[
        str | None, typer.Option("--format", help=f"One of {', '.join(dict.fromkeys(FORMATS.values()))}.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the list as JSON; a data set as JSON lines.")
    ] = False,
) -> None:
    """List the data sets that are known by name, or write one of them as a table with its target as last column.

    Those that are not on this computer are downloaded from OpenML when they are written. Files NAME.csv.gz in the folder
    of the environment variable CALIBAYES_DATA are listed, too.
    """
    if name is None:
        if output is not None or form is not None:
            raise ValueError(
                "no data set given: name the one to write, as in calibayes datasets penguins -o FILE"
            )
        _list(as_json)
        return
    kind = format_of(output, form, as_json)
    refuse_terminal(output, kind)
    options.require_known("data set", name, list_datasets())
    with working(f"loading {name}"), output_file(output) as file:
        write_frame(load(name).frame, kind, file)


def _list(as_json: bool) -> None:
    local = {name: is_local(name) for name in list_datasets()}
    if as_json:
        print_json([{"name": name, "on_this_computer": here} for name, here in local.items()])
        return
    lines = [(name, "on this computer" if here else "OpenML") for name, here in local.items()]
    print_text(console, text_table([("name", "where"), *lines]))
