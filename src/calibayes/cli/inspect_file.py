"""``calibayes inspect``: what a model file says in its header."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from calibayes.cli.application import examples
from calibayes.cli.printing import print_json, print_text
from calibayes.files import describe_file

EXAMPLES = examples(
    "calibayes inspect penguins.safetensors",
    "calibayes inspect penguins.safetensors --tensors",
    "calibayes inspect penguins.safetensors --json",
)
console = Console()


def inspect_command(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Model file that calibayes fit (or calibayes.save) has written."
        ),
    ],
    tensors: Annotated[bool, typer.Option("--tensors", help="List all tensors.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with all columns and tensors.")
    ] = False,
) -> None:
    """Print what a model file contains, from its header: no tensor is read, and no model is loaded."""
    try:
        description = describe_file(file)
    except FileNotFoundError:
        raise ValueError(f"there is no file {file}") from None
    if as_json:
        print_json(description.as_json())
        return
    print_text(console, str(description))
    if tensors:
        print_text(console, description.tensor_table())
