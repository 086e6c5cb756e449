"""``deeptobit reproduce``: the paper's tables, figures and claims, computed again."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deeptobit.app.cli.common import (
    check_folder,
    finite,
    one_sentence,
    stoppable,
    value_errors_are_sentences,
)
from deeptobit.app.study import StudyError
from paper.page import write_reproduction
from paper.registry import NAMES, finished, reproduce
from paper.section import PAPER, SMALL, Context, Section, TableOf

ALL = "all"
_SCALES = {"small": SMALL, "paper": PAPER}
_COLOURS = {"holds": "green", "does not hold": "red", "cannot be told": "yellow"}


def run_reproduce(
    name: str,
    *,
    scale: str,
    out: Path | None,
    path: Path | None,
    jobs: int,
    protocol: Literal["honest", "paper"],
    seed: int,
    as_json: bool,
) -> None:
    """Compute sections, show them or write them as a page with its files."""
    console = Console(stderr=as_json)
    names = list(NAMES) if name == ALL else [name]
    context = Context(n_jobs=jobs, seed=seed, protocol=protocol, path=path, store=out)
    with one_sentence(as_json), stoppable(out):
        _check(name, out)
        sections = [_section(console, one, scale, context) for one in names]
        files = []
        if out is not None:
            with console.status("Drawing the page …"):
                page = "index" if name == ALL else name
                files = write_reproduction(out, sections, page)
    if as_json:
        print(json.dumps([_as_json(section) for section in sections], indent=2))
        return
    if out is None:
        for section in sections:
            _show(console, section)
    _conclude(console, sections, files)


def _check(name: str, out: Path | None) -> None:
    if name != ALL and name not in NAMES:
        raise StudyError(f"there is nothing called {name!r}; name one of {ALL}, {', '.join(NAMES)}")
    if out is not None and out.exists() and not out.is_dir():
        raise StudyError(f"{out} is a file; --out names a folder")
    if out is not None:
        _make(out)


def _make(folder: Path) -> None:
    """Before anything is computed that it could not hold."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"{folder} cannot be made: {error.strerror}") from None
    check_folder(folder)


def _section(console: Console, name: str, scale: str, context: Context) -> Section:
    before = finished(name, _SCALES[scale], context)
    if before is not None:
        console.print(f"{name}: finished before with the same settings; read, not run.")
        return before
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, TextColumn("{task.description}"), console=console, transient=True
    ) as bar:
        task = bar.add_task("", total=None)

        def tell(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label)

        with value_errors_are_sentences(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # many fits would say the same many times
            section = reproduce(name, _SCALES[scale], replace(context, progress=tell))
    console.print(f"{name}: done in {section.seconds:.0f} s.", highlight=False)
    return section


def _show(console: Console, section: Section) -> None:
    console.print(f"\n[bold]{escape(section.title)}[/bold]\n")
    console.print(section.text, markup=False, highlight=False)
    for table in section.tables:
        console.print()
        console.print(_as_rich(table))
    for claim in section.claims:
        colour = _COLOURS[claim.verdict]
        console.print(
            f"\n[{colour}]{claim.verdict}[/{colour}]: [bold]{escape(claim.text)}[/bold]\n"
            f"  paper: {escape(claim.paper)}\n  here: {escape(claim.ours)}\n"
            f"  [dim]{escape(claim.test)}[/dim]",
            highlight=False,
        )


def _as_rich(table: TableOf) -> Table:
    shown = Table(
        title=escape(table.caption),
        title_justify="left",
        header_style="bold",
        box=None,
        pad_edge=False,
    )
    for position, column in enumerate(table.frame.columns):
        shown.add_column(escape(str(column)), justify="right" if position else "left")
    for row in table.frame.itertuples(index=False):
        cells = (f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row)
        shown.add_row(*(escape(cell) for cell in cells))
    return shown


def _conclude(console: Console, sections: list[Section], files: list[Path]) -> None:
    claims = [claim for section in sections for claim in section.claims]
    counts = ", ".join(
        f"{sum(claim.verdict == verdict for claim in claims)} {verdict}" for verdict in _COLOURS
    )
    console.print(f"\n{len(claims)} claim(s): {counts}.", highlight=False)
    if files:
        console.print(
            f"Wrote [bold]{escape(str(files[0]))}[/bold] and {len(files) - 1} files of tables and "
            "figures. It opens in any browser and needs no network.",
            highlight=False,
        )


def _as_json(section: Section) -> dict[str, Any]:
    return {
        "name": section.name,
        "title": section.title,
        "claims": [asdict(claim) for claim in section.claims],
        "tables": [{"caption": table.caption, "rows": _records(table)} for table in section.tables],
        "seconds": section.seconds,
        "settings": section.settings,
    }


def _records(table: TableOf) -> list[dict[str, Any]]:
    rows = table.frame.to_dict(orient="records")
    return [{str(key): finite(value) for key, value in row.items()} for row in rows]
