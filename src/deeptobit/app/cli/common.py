"""What the commands share: options, output files, warnings, tables and JSON.

A command is one file: a function whose parameters are its options, listed in ``app.py``. Nothing
heavy is imported before it is used, so that ``--help`` answers at once.
"""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import deeptobit
from deeptobit.app.cli import reports, studies

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
OtherData = Annotated[
    Path | None, typer.Option(help="Another table in place of the one the study names.")
]
OutFile = Annotated[
    Path | None, typer.Option(help="The file to write; by default beside the one that is read.")
]
OutTable = Annotated[
    Path | None,
    typer.Option(help="A .csv, .xlsx or .parquet file to write; by default beside the data."),
]
Coverage = Annotated[float | None, typer.Option(help="Of the intervals; default: as in the study.")]
StudyFile = Annotated[Path, typer.Argument(help="A study file.")]

_MARK = b'<meta name="generator" content="deeptobit">'
WRONG, WARNED, INTERRUPTED = 1, 3, 130  # exit codes; 2 is typer's, for wrong usage
STOPPED = "Stopped, nothing written"


def numbers(text: str, example: str) -> list[float]:
    """The numbers of an option, with commas between them."""
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of numbers such as {example}") from None


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
        raise studies.StudyError(f"{path} is already used by this command; {elsewhere}")
    if path.is_dir():
        raise studies.StudyError(f"{path} is a folder; {option} must name a file")
    if path.exists() and not force:
        raise studies.StudyError(f"{path} exists; --force replaces it, {elsewhere}")
    try:  # permissions are not enough to know
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        why = f"the folder {path.parent} cannot be written to ({error.strerror}); {elsewhere}"
        raise studies.StudyError(why) from None


def output_file(
    out: Path | None, beside: Path, ending: str, force: bool, *others: Path, option: str = "--out"
) -> Path:
    """The file to write, which is checked: ``out``, or one beside another with its name and ending.

    A page of an earlier run may be replaced.
    """
    beside = beside if beside.name not in ("", "..") else beside.resolve()
    path = out or beside.with_name(beside.stem + ending)
    is_page = path.suffix == ".html" and path.is_file() and _MARK in path.read_bytes()[:1000]
    check_output(path, force or is_page, beside, *others, option=option)
    return path


def load_model(path: Path) -> tuple[Any, studies.FittedStudy | None]:
    """The estimator of a model file, and its study if it was written by ``fit``."""
    from deeptobit.files import read_state

    if read_state(path)[0] == studies.fitted.KIND:
        fitted = studies.load_fitted(path)
        return fitted.model, fitted
    return deeptobit.load(path), None


# What is printed.


def print_error(error: str, as_json: bool) -> None:
    """What is wrong, in a sentence."""
    if as_json:
        print_json({"error": error})
    else:
        print(f"deeptobit: {error}", file=sys.stderr)


def print_json(value: Any) -> None:
    """Print JSON; an infinite or missing number is null."""
    print(json.dumps(reports.card.json_value(value), indent=2))


def print_written(path: Path, rest: str) -> None:
    """Say which file was written; ``rest`` is what follows its name."""
    Console().print(f"Wrote [bold]{escape(str(path))}[/bold]{rest}", soft_wrap=True)


def tell_written(as_json: bool, facts: Mapping[str, Any], path: Path, rest: str) -> None:
    """Say which file was written, or print what programs want to know of it."""
    if as_json:
        print_json(facts)
    else:
        print_written(path, rest)


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


@contextmanager
def record_warnings() -> Iterator[list[str]]:
    """The messages of warnings, each once, in place of lines with the code that raised them."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        yield messages
    messages += dict.fromkeys(str(warning.message) for warning in caught)


def print_warnings(console: Console, messages: Iterable[str]) -> None:
    """Warnings, a line each."""
    for message in messages:
        console.print(f"[yellow]warning:[/yellow] {escape(message)}", soft_wrap=True)


def plain_table(head: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> Table:
    """A table without lines, the first column to the left and all others to the right."""
    table = Table(title=title or None, header_style="bold", box=None, pad_edge=False)
    for position, name in enumerate(head):
        table.add_column(name, justify="right" if position else "left", no_wrap=bool(position))
    for row in rows:
        table.add_row(*row)
    return table


def size_of(data: studies.StudyData | studies.EvaluationData) -> str:
    """How many rows, features and targets there are."""
    return f"{len(data.X)} rows, {data.X.shape[1]} features, {len(data.targets.names)} target(s)"


Columns = Mapping[str, tuple[str, Callable[[float], str]]]


def target_table(table: Any, columns: Columns) -> Table:
    """A table without lines: name and range of every target, and some numbers.

    ``columns`` are headings, each with a column of the ``table`` and its format.
    """
    rows = []
    for name, row in table.iterrows():
        ends = f"{reports.bound(row['lower'])} – {reports.bound(row['upper'])}"
        cells = [text(row[column]) for column, text in columns.values()]
        rows.append([escape(str(name)), ends, *(cell.replace(" %", "%") for cell in cells)])
    return plain_table(["target", "range", *columns], rows)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[..., None]]:
    """A bar on a terminal; it is told how much is done, of how much, and its label if that changes.

    Less than before means that a new pass begins.
    """
    console = Console(stderr=True)
    count = MofNCompleteColumn()
    columns = TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn()
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(label, total=None)

        def show(done: int, total: int, label: str = label) -> None:
            if done < bar.tasks[task].completed:
                bar.reset(task)
            bar.update(task, completed=done, total=total, description=label)

        yield show


def examine(study: studies.Study, table: studies.Table) -> studies.doctor.registry.Examined:
    """All findings, and the data; with a bar where it takes long."""
    with progress_bar("Examining the table") as show:
        return studies.doctor.registry.examine(study, table, show)


def command_line(name: str, file: Path) -> str:
    """A command as one types it, escaped for printing."""
    return escape(f"deeptobit {name} {shlex.quote(str(file))}")
