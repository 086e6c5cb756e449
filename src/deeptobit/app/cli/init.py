"""``deeptobit init`` and ``deeptobit check``: from a table to a study that can be fitted."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from deeptobit.app.study import (
    Finding,
    Proposal,
    ProposedTarget,
    StudyData,
    StudyError,
    Table,
    build_data,
    diagnose,
    find_codes,
    propose_study,
    read_data,
    read_study,
    read_table,
    write_whole,
)
from deeptobit.exceptions import ModelFileError

# What ``deeptobit init`` shows at its end.

_SHOWN = 12  # targets or columns in one line; a table may have thousands


def show_proposal(
    console: Console, table: Table, proposal: Proposal, codes: Sequence[str], path: Path
) -> None:
    """What was guessed, line by line, and what to do next."""
    targets = [_target(target) for target in proposal.targets if target.certain]
    console.print(
        f"Wrote [bold]{escape(str(path))}[/bold] from {len(table)} rows and "
        f"{len(table.columns)} columns of {escape(table.file)}:\n",
        soft_wrap=True,
    )
    lines = {
        "targets": _listed(targets) or "none found",
        "id": proposal.id or "none; rows are numbered",
        "group": f"{proposal.group}; its rows stay together" if proposal.group else "none",
        "missing": _listed(codes) and f"{_listed(codes)}, beside blank cells",
        "left out": _listed([f"{name} ({_short(why)})" for name, why in proposal.excluded.items()]),
    }
    grid = Grid.grid(padding=(0, 2))
    for heading, said in lines.items():
        if said:
            grid.add_row(f"  {heading}", escape(said))
    console.print(grid)
    first = "Read it, correct the targets" if targets else "Name at least one target in it"
    command = f"deeptobit check {shlex.quote(str(path))}"
    console.print(f"\n{first}, then: {escape(command)}", soft_wrap=True)


def _target(target: ProposedTarget) -> str:
    lower, upper = (_end(target.bounds.get(side)) for side in ("lower", "upper"))
    return f"{target.column} ({lower} – {upper})"


def _end(bound: float | str | None) -> str:
    if bound is None:
        return "open"
    return bound if isinstance(bound, str) else f"{bound:g}"


def _short(why: str) -> str:
    return why.split(";")[0]


def _listed(said: Sequence[str]) -> str:
    more = f" and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    return ", ".join(said[:_SHOWN]) + more


# Files that commands write.


def check_output(path: Path, force: bool, *others: Path, option: str = "--out") -> None:
    """Refuse, before any work is done, a file that is there or cannot be written.

    ``others`` are files that the command reads or writes beside it; ``option`` is the one that
    names another file.
    """
    if not path.parent.is_dir():
        raise StudyError(f"{path.parent}: there is no such folder; make it first")
    if any(path.resolve() == given.resolve() for given in others):
        raise StudyError(f"{path} is what the command reads or writes; {option} writes elsewhere")
    if path.is_dir():
        raise StudyError(f"{path} is a folder; {option} must name a file")
    if path.exists() and not force:
        raise StudyError(f"{path} exists; --force replaces it, {option} writes elsewhere")
    check_folder(path.parent, option)


def named(path: Path) -> Path:
    """A path that has a name to write beside: that of the folder it stands for, if it is . or .."""
    return path if path.name not in ("", "..") else path.resolve()


def check_folder(folder: Path, option: str = "--out") -> None:
    """Refuse a folder that takes no file; by trying, since rights alone do not tell."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StudyError(
            f"the folder {folder} cannot be written to ({error.strerror}); {option} writes "
            "elsewhere"
        ) from None


WRONG, WARNED, INTERRUPTED = 1, 3, 130  # exit codes; 2 is typer's, for wrong usage


def run_init(data: Path, *, out: Path | None, force: bool, as_json: bool) -> None:
    """Write a study file for a table, and say what was guessed."""
    console = Console(stderr=as_json)
    with one_sentence(as_json):
        path = out or named(data).with_suffix(".toml")
        check_output(path, force, data)
        file = _relative(data, path)
        with console.status("Looking at the table …"):
            table = read_table(data)
            codes = find_codes(table)
            if codes:
                table = read_table(data, missing=codes)
            text, proposal = propose_study(table, file, missing=codes)
        write_whole(path, text)
    targets = [target.column for target in proposal.targets if target.certain]
    if as_json:
        found = {"id": proposal.id, "group": proposal.group, "targets": targets, "missing": codes}
        print(json.dumps({"study": str(path), **found, "excluded": proposal.excluded}, indent=2))
    else:
        show_proposal(console, table, proposal, codes, path)


def run_check(study: Path, *, data: Path | None, strict: bool, as_json: bool) -> None:
    """Read a study and its table, and show what may go wrong."""
    console = Console(stderr=as_json)
    with one_sentence(as_json), console.status("Checking the study …"):
        settings = read_study(study)
        built = build_data(settings, read_data(settings, data))
        findings = diagnose(settings, built)
    if as_json:
        print(json.dumps(_as_json(built, findings), indent=2))
    else:
        _show(console, built, findings)
    if strict and any(finding.level == "warning" for finding in findings):
        raise typer.Exit(WARNED)


@contextmanager
def one_sentence(as_json: bool) -> Iterator[None]:
    """What is wrong with a study, a table or a file is one sentence, not a traceback."""
    try:
        yield
    except (StudyError, ModelFileError, OSError) as error:
        _say(_without_number(error), as_json)
        raise typer.Exit(WRONG) from None
    except KeyboardInterrupt:
        _say("interrupted; no file was changed", as_json)
        raise typer.Exit(INTERRUPTED) from None


def _without_number(error: Exception) -> str:
    """What is wrong, without the system's [Errno 2]."""
    match error:
        case FileNotFoundError(filename=str(file)):
            return f"{file}: there is no such file"
        case OSError(filename=str(file), strerror=str(why)):
            return f"{file}: {why}"
    return str(error)


def _say(error: str, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": error}, indent=2))
    else:
        print(f"deeptobit: {error}", file=sys.stderr)


def _relative(data: Path, study: Path) -> str:
    """The table as its study file names it."""
    folder = study.resolve().parent
    if not data.resolve().is_relative_to(folder):
        raise StudyError(
            f"the study file must lie in the folder of {data.name} or above it; {study} does not"
        )
    return data.resolve().relative_to(folder).as_posix()


def _as_json(data: StudyData, findings: list[Finding]) -> dict[str, Any]:
    shares = data.targets.describe().reset_index().to_dict(orient="records")
    return {
        "rows": len(data.X),
        "features": data.X.shape[1],
        "groups": None if data.groups is None else len(set(data.groups)),
        "targets": [{str(key): finite(value) for key, value in row.items()} for row in shares],
        "findings": [finding._asdict() for finding in findings],
    }


def finite(value: Any) -> Any:
    """JSON has no infinity: an open side, or one that differs by row, is null."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _show(console: Console, data: StudyData, findings: list[Finding]) -> None:
    console.print(
        f"[bold]{len(data.X)} rows, {data.X.shape[1]} features, "
        f"{len(data.targets.names)} target(s)[/bold]\n"
    )
    console.print(_target_table(data))
    console.print()
    for level, name, message in findings:
        colour = "yellow" if level == "warning" else "dim"
        console.print(f"[{colour}]{level}[/{colour}] {escape(name)}: {escape(message)}")
    warned = sum(finding.level == "warning" for finding in findings)
    console.print(f"{warned} warning(s)." if warned else "Nothing stands in the way of a model.")


def _target_table(data: StudyData) -> Grid:
    shown = Grid(header_style="bold", box=None, pad_edge=False)
    shown.add_column("target")
    for heading in ("range", "values", "missing", "at lower", "at upper"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in data.targets.describe().itertuples():
        shown.add_row(
            escape(str(row.Index)),
            f"{show_bound(row.lower)} – {show_bound(row.upper)}",
            str(row.entries),
            str(row.missing),
            f"{row.at_lower:.0%}",
            f"{row.at_upper:.0%}",
        )
    return shown


def show_bound(value: Any) -> str:
    """A bound in a table: a number, ``open``, or ``by row``."""
    if value != value:
        return "by row"
    return f"{value:g}" if isfinite(value) else "open"


# Commands that run for minutes: what stops them is one sentence, and what is done is kept.


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
