"""The list of commands. Each is a file of its own, which declares its options and does the work."""

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from deeptobit import __version__
from deeptobit.app.cli import common, studies
from deeptobit.exceptions import MissingExtraError, ModelFileError

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

    def invoke(self, ctx: Any) -> Any:
        """Run a command.

        An error in a study, a table or a file is one sentence, not a traceback; so is Ctrl-C, also
        while the packages of a command are loaded.
        """
        as_json = "--json" in ctx.args
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # nobody reads on
            raise
        except KeyboardInterrupt as stop:
            common.print_error(str(stop) or common.STOPPED, as_json)
            raise typer.Exit(common.INTERRUPTED) from None
        except (studies.StudyError, ModelFileError, MissingExtraError, OSError) as error:
            common.print_error(_without_number(error), as_json)
            raise typer.Exit(common.WRONG) from None


def _without_number(error: Exception) -> str:
    """The message without the system's [Errno 2]."""
    match error:
        case FileNotFoundError(filename=str(file)):
            return f"{file}: there is no such file"
        case OSError(filename=str(file), strerror=str(why)):
            return f"{file}: {why}"
    return str(error)


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
