"""The list of commands. Each is a file of its own, which declares its options and does the work."""

from typing import Annotated

import typer

from deeptobit import __version__
from deeptobit.app.cli.check import check
from deeptobit.app.cli.convert import convert
from deeptobit.app.cli.demo import demo
from deeptobit.app.cli.evaluate import evaluate
from deeptobit.app.cli.export import export
from deeptobit.app.cli.fit import fit
from deeptobit.app.cli.init import init
from deeptobit.app.cli.predict import predict
from deeptobit.app.cli.report import report

COMMANDS = (init, check, fit, convert, predict, export, evaluate, report, demo)

app = typer.Typer(
    name="deeptobit", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
for command in COMMANDS:
    app.command()(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"deeptobit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Multi-task censored regression for bounded scores and detection limits."""
