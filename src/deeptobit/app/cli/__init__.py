"""The command line. Nothing heavy is imported until a command needs it."""

import sys

from deeptobit.exceptions import MissingExtraError
from deeptobit.extras import require

__all__ = ["main"]


def main() -> None:
    """Entry point of ``deeptobit``; a missing extra is one sentence, not a traceback."""
    try:
        require("typer", "app")
        require("rich", "app")
        from deeptobit.app.cli.app import app

        app()
    except MissingExtraError as error:
        print(f"deeptobit: {error}", file=sys.stderr)
        sys.exit(1)
