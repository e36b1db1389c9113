"""``calibayes inspect``: what a model file says in its header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from calibayes.cli.printing import print_error, print_text
from calibayes.files import FileDescription, describe_file

console = Console()
errors = Console(stderr=True)


def inspect_command(
    file: Annotated[Path, typer.Argument(help="Model file that calibayes.save has written.")],
    tensors: Annotated[bool, typer.Option("--tensors", help="List all tensors.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with all columns and tensors.")
    ] = False,
) -> None:
    """Print what a model file contains, from its header: no tensor is read, and no model is loaded."""
    try:
        description = describe_file(file)
    except FileNotFoundError:
        _fail(ValueError(f"there is no file {file}"))
    except (ValueError, OSError) as error:
        _fail(error)
    else:
        _print(description, tensors, as_json)


def _fail(error: Exception) -> None:
    print_error(errors, error)
    raise typer.Exit(2)


def _print(description: FileDescription, tensors: bool, as_json: bool) -> None:
    if as_json:
        text = json.dumps(description.as_json(), indent=2)
        print_text(console, text.replace("\x7f", "\\u007f"))
        return
    print_text(console, str(description))
    if tensors:
        print_text(console, description.tensor_table())
