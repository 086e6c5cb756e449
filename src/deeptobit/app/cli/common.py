"""What the commands share: options, output files, errors as one sentence, tables and JSON.

A command is one file: a function whose parameters are its options, listed in ``app.py``. Nothing
heavy is imported before it is used, so that ``--help`` answers at once.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from deeptobit.exceptions import ModelFileError

if TYPE_CHECKING:
    from deeptobit.app import report, study

    reports, studies = report, study
else:

    class _OnUse:
        """A module that is imported when a name of it is used."""

        def __init__(self, module):
            self._module = module

        def __getattr__(self, name):
            return getattr(import_module(self._module), name)

    reports, studies = _OnUse("deeptobit.app.report"), _OnUse("deeptobit.app.study")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
OtherData = Annotated[
    Path | None, typer.Option(help="Another table in place of the one the study names.")
]
OutFile = Annotated[
    Path | None, typer.Option(help="The file to write; by default beside the one that is read.")
]
StudyFile = Annotated[Path, typer.Argument(help="A study file.")]

_MARK = b'<meta name="generator" content="deeptobit">'
WRONG, WARNED, INTERRUPTED = 1, 3, 130  # exit codes; 2 is typer's, for wrong usage


# Output files.


def check_output(path: Path, force: bool, *others: Path, option: str = "--out") -> None:
    """Refuse an output file that exists or cannot be written, before any work is done.

    ``others`` are the other files that the command reads or writes; ``option`` is the one that
    sets ``path``.
    """
    if not path.parent.is_dir():
        raise studies.StudyError(f"{path.parent}: there is no such folder; make it first")
    elsewhere = f"{option} writes elsewhere"
    if any(path.resolve() == given.resolve() for given in others):
        raise studies.StudyError(f"{path} is what the command reads or writes; {elsewhere}")
    if path.is_dir():
        raise studies.StudyError(f"{path} is a folder; {option} must name a file")
    if path.exists() and not force:
        raise studies.StudyError(f"{path} exists; --force replaces it, {elsewhere}")
    try:  # permissions are not enough to know
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        why = f"the folder {path.parent} cannot be written to ({error.strerror}); {elsewhere}"
        raise studies.StudyError(why) from None


def is_page(path: Path) -> bool:
    """Whether a file is a page of an earlier run, which may be replaced."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _MARK in file.read(1000)


def named(path: Path) -> Path:
    """The path, resolved if it is ``.`` or ``..``, so that it has a name to write beside."""
    return path if path.name not in ("", "..") else path.resolve()


# Errors.


@contextmanager
def one_sentence(
    as_json: bool,
    refused: tuple[type[Exception], ...] = (),
    interrupted: str = "Stopped, nothing written",
) -> Iterator[None]:
    """Report an error in a study, a table or a file as one sentence, not as a traceback.

    ``refused`` are other errors that are reported so, ``interrupted`` is the answer to Ctrl-C.
    """
    errors = studies.StudyError, ModelFileError, OSError
    expected: tuple[type[Exception], ...] = (*errors, *refused)
    try:
        yield
    except expected as error:
        _print_error(_without_number(error), as_json)
        raise typer.Exit(WRONG) from None
    except KeyboardInterrupt:
        _print_error(interrupted, as_json)
        raise typer.Exit(INTERRUPTED) from None


def _without_number(error: Exception) -> str:
    """The message without the system's [Errno 2]."""
    match error:
        case FileNotFoundError(filename=str(file)):
            return f"{file}: there is no such file"
        case OSError(filename=str(file), strerror=str(why)):
            return f"{file}: {why}"
    return str(error)


def _print_error(error: str, as_json: bool) -> None:
    if as_json:
        print_json({"error": error})
    else:
        print(f"deeptobit: {error}", file=sys.stderr)


# What is printed.


def print_json(value: Any) -> None:
    """Print JSON; an infinite or missing number is null."""
    print(json.dumps(reports.card.json_value(value), indent=2))


def print_written(console: Console, path: Path, rest: str) -> None:
    """Say which file was written; ``rest`` is what follows its name."""
    console.print(f"Wrote [bold]{escape(str(path))}[/bold]{rest}", soft_wrap=True)


_COLOURS = {"error": "red", "warning": "yellow", "note": "dim"}


def print_finding(console: Console, finding: studies.Finding, *, whole: bool = False) -> None:
    """A finding in one line, or with its evidence, consequence and fix."""
    colour = _COLOURS[finding.level]
    about = "" if finding.kind == "model" else f"[bold]{escape(finding.name)}[/bold] "
    start = f"[{colour}]{finding.level}[/{colour}] {about}"
    console.print(f"{start}{escape(finding.message)}", soft_wrap=True)
    if whole:
        parts = {"": finding.evidence, "why: ": finding.harm, "fix: ": finding.fix}
        for label, part in parts.items():
            if part and finding.level != "note":
                console.print(f"    {label}{escape(part)}", soft_wrap=True, highlight=False)


Columns = Mapping[str, tuple[str, Callable[[float], str]]]


def target_table(table: Any, columns: Columns, first: str = "target") -> Table:
    """A table without lines: name and range of every target, and some numbers.

    ``columns`` are headings, each with a column of the ``table`` and its format.
    """
    shown = Table(header_style="bold", box=None, pad_edge=False)
    shown.add_column(first)
    for heading in ("range", *columns):
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, row in table.iterrows():
        ends = f"{reports.bound(row['lower'])} – {reports.bound(row['upper'])}"
        cells = [text(row[column]) for column, text in columns.values()]
        shown.add_row(escape(str(name)), ends, *(cell.replace(" %", "%") for cell in cells))
    return shown


@contextmanager
def progress_bar(label: str, count: ProgressColumn) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on a terminal; it is told how much is done, of how much, and its label."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn()
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(label, total=None)

        def show(done: int, total: int, label: str) -> None:
            if done < bar.tasks[task].completed:  # a new pass
                bar.reset(task)
            bar.update(task, completed=done, total=total, description=label)

        yield show


def examine(
    study: studies.Study, table: studies.Table
) -> tuple[list[studies.Finding], studies.StudyData | None]:
    """All findings, and the data; with a bar where it takes long."""
    label = "Examining the table"
    with progress_bar(label, MofNCompleteColumn()) as show:
        return studies.doctor.examine(study, table, lambda done, total: show(done, total, label))


def command_line(name: str, file: Path) -> str:
    """A command as one types it, escaped for printing."""
    return escape(f"deeptobit {name} {shlex.quote(str(file))}")
