"""The command line. Nothing heavy is imported until a command needs it."""

import sys

from deeptobit.app import report as reports  # both load a file when a name of it is used
from deeptobit.app import study as studies

__all__ = ["main", "reports", "studies"]


def main() -> None:
    """Entry point of ``deeptobit``; a missing extra is one sentence, not a traceback.

    A terminal that lacks a character shows ``?`` in its place. Ctrl-C is one line at any time,
    also while packages are loaded.
    """
    try:
        import io

        from deeptobit.exceptions import MissingExtraError
        from deeptobit.extras import require

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        require("typer", "app")
        require("rich", "app")
        from deeptobit.app.cli.app import app

        app()
    except KeyboardInterrupt:
        print("deeptobit: Stopped, nothing written", file=sys.stderr)
        sys.exit(130)
    except MissingExtraError as error:
        print(f"deeptobit: {error}", file=sys.stderr)
        sys.exit(1)
