"""The list of commands. Each is a file of its own, which declares its options and does the work."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from deeptobit import __version__

COMMANDS = [
    "init",
    "check",
    "plan",
    "fit",
    "report",
    "open",
    "predict",
    "forecast",
    "evaluate",
    "export",
    "convert",
    "demo",
]


class _Commands(TyperGroup):
    """Commands whose files are imported when they are run or described."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings | {"commands": dict.fromkeys(COMMANDS)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        one = typer.Typer(add_completion=False)
        one.command()(getattr(import_module(f"deeptobit.app.cli.{cmd_name}"), cmd_name))
        return typer.main.get_command(one)

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Read the command line."""
        with _one_line_on_interrupt():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with _one_line_on_interrupt():
            return super().invoke(ctx)


@contextmanager
def _one_line_on_interrupt() -> Iterator[None]:
    """Say that Ctrl-C was seen, also while the packages of a command are loaded."""
    try:
        yield
    except KeyboardInterrupt:
        print("deeptobit: Stopped, nothing written", file=sys.stderr)
        raise typer.Exit(130) from None


app = typer.Typer(
    name="deeptobit",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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
