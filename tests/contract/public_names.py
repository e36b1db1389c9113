"""The public names of the library, and the commands with their options: python -m tests.contract.public_names writes the list.

Programs of other people use these names. A change of the list is a change of the interface, and belongs into CHANGELOG.md.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import typer

from calibayes.cli import app

PATH = Path(__file__).with_suffix(".txt")
PACKAGES = (
    *("calibayes", "calibayes.checks", "calibayes.compare", "calibayes.datasets", "calibayes.dependence"),
    *("calibayes.encoders", "calibayes.engines", "calibayes.families", "calibayes.federated"),
    *("calibayes.files", "calibayes.learn", "calibayes.plots", "calibayes.report", "calibayes.rules"),
    *("calibayes.sequences", "calibayes.testing", "calibayes.trust"),
)


def public_names() -> list[str]:
    """Names of packages, in order, then those of commands."""
    named = [f"{package}.{name}" for package in PACKAGES for name in sorted(import_module(package).__all__)]
    return [*named, *command_names()]


def command_names() -> Iterator[str]:
    """Each command, then each of its arguments and options with all of its spellings."""
    group = typer.main.get_command(app)
    yield from (f"calibayes {parameter}" for parameter in _parameters(group))
    for name, command in sorted(group.commands.items()):
        yield f"calibayes {name}"
        yield from (f"calibayes {name} {parameter}" for parameter in _parameters(command.command))


def _parameters(command: typer.core.TyperCommand | typer.core.TyperGroup) -> list[str]:
    """Arguments in capitals, in their order, then options."""
    arguments = [str(p.name).upper() for p in command.params if p.param_type_name == "argument"]
    options = [
        ", ".join([*p.opts, *p.secondary_opts]) for p in command.params if p.param_type_name == "option"
    ]
    return [*arguments, *sorted(options)]


def main() -> None:
    PATH.write_text("".join(f"{name}\n" for name in public_names()), encoding="utf-8")


if __name__ == "__main__":
    main()
