"""Commands that run for minutes: what stops them is one sentence, and what is done is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from deeptobit.cli._study_commands import INTERRUPTED
from deeptobit.study import StudyError


@contextmanager
def value_errors_are_sentences() -> Iterator[None]:
    """What data, settings or a missing extra do not allow is said by whoever finds out."""
    try:
        yield
    except (ValueError, ImportError) as error:
        raise StudyError(str(error)) from None


@contextmanager
def stoppable(out: Path | None) -> Iterator[None]:
    """Ctrl-C is one line that says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing was kept: --out DIR keeps what is done"
        if out is not None:
            kept = f"what is done is kept in {out}; the same command continues"
        typer.echo(f"deeptobit: stopped; {kept}", err=True)
        raise typer.Exit(INTERRUPTED) from None
