"""``python -m paper NAME…``: the paper's tables, figures and claims, computed again."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deeptobit.datasets import load_adni
from paper.page import LISTS, conclusion, write_page
from paper.registry import NAMES, finished, reproduce
from paper.section import PAPER, SMALL, Context, Scale, Section, TableOf
from paper.verdicts import JudgedClaim, Summary, judged_claims

ALL = "all"
_SCALES = {"small": SMALL, "paper": PAPER}
_COLOURS: dict[Summary, str] = {
    "holds": "green",
    "holds only with": "cyan",
    "does not hold": "red",
    "cannot be told": "yellow",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns 0 (done), 1 (failed) or 130 (stopped by Ctrl-C)."""
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except KeyboardInterrupt:
        kept = "nothing was kept: --out DIR keeps what is done"
        if options.out is not None:
            kept = f"what is done is kept in {options.out}; the same command continues"
        return _fail(f"stopped; {kept}", 130)
    except (ValueError, ImportError, OSError) as error:
        return _fail(str(error), 1)
    return 0


def _fail(message: str, code: int) -> int:
    print(f"paper: {message}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m paper",
        description="Compute tables, figures and claims of the paper again.",
        epilog="names:\n  " + "\n  ".join([*NAMES, ALL]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="+", choices=[*NAMES, ALL], metavar="NAME")
    parser.add_argument(
        "--scale", choices=_SCALES, default="small", help="small sizes, or those of the paper"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for a page, tables and figures; a stopped run continues there",
    )
    parser.add_argument(
        "--path",
        type=Path,
        metavar="DIR",
        help="folder of your ADNI downloads, in place of open data",
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="fits to run in parallel")
    parser.add_argument(
        "--protocol",
        choices=["honest", "paper"],
        default="honest",
        help="tune on training rows, or, as the paper, by the best test value",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of everything random")
    parser.add_argument("--json", action="store_true", help="print tables and claims as JSON")
    return parser


def _run(options: argparse.Namespace) -> None:
    console = Console(stderr=options.json)
    out: Path | None = options.out
    names = list(NAMES) if ALL in options.names else list(dict.fromkeys(options.names))
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):  # fails before hours of work if nothing can be written there
            pass
    if options.path is not None:
        _look_at_adni(console, options.path)
    context = Context(options.jobs, options.seed, options.protocol, options.path, out)
    scale = _SCALES[options.scale]
    sections = [_section(console, name, scale, context) for name in names]
    files = []
    if out is not None:
        with console.status("Drawing the page …"):
            one = len(names) == 1 and ALL not in options.names
            files = write_page(out, sections, names[0] if one else "index")
    if options.json:
        print(json.dumps([_as_json(section) for section in sections], indent=2))
        return
    if out is None:
        for section in sections:
            _show(console, section)
    _conclude(console, sections, files)


def _look_at_adni(console: Console, path: Path) -> None:
    """Before hours of work: a wrong folder fails now, and what is left out of the files is said."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_adni(path)
    for warning in caught:
        console.print(f"warning: {warning.message}", markup=False, highlight=False)


def _section(console: Console, name: str, scale: Scale, context: Context) -> Section:
    before = finished(name, scale, context)
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

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # hundreds of fits would repeat the same ones
            section = reproduce(name, scale, replace(context, progress=tell))
    console.print(f"{name}: done in {section.seconds:.0f} s.", highlight=False)
    return section


def _show(console: Console, section: Section) -> None:
    console.print(f"\n[bold]{escape(section.title)}[/bold]\n")
    console.print(section.text, markup=False, highlight=False)
    for table in section.tables:
        console.print()
        console.print(_as_rich(table))
    for by, heading in LISTS.items():
        claims = judged_claims(section.claims, by)
        if claims:
            console.print(f"\n[bold]{heading}[/bold]")
        for claim in claims:
            console.print(_claim_in_words(claim), highlight=False)


def _claim_in_words(claim: JudgedClaim) -> str:
    """The verdict on the whole, then what was found in every row."""
    lines = [
        f"\n{_coloured(claim.verdict, claim.summary)}: [bold]{escape(claim.text)}[/bold]",
        f"  paper: {escape(claim.rows[0].paper)}",
    ]
    for one in claim.rows:
        row = f"{escape(one.row)}: " if one.row else ""
        verdict = f"{_coloured(one.verdict, one.verdict)}. " if len(claim.rows) > 1 else ""
        lines += [f"  here: {row}{verdict}{escape(one.ours)}", f"  [dim]{escape(one.test)}[/dim]"]
    return "\n".join(lines)


def _coloured(words: str, verdict: Summary) -> str:
    return f"[{_COLOURS[verdict]}]{words}[/{_COLOURS[verdict]}]"


def _as_rich(table: TableOf) -> Table:
    shown = Table(
        title=escape(table.caption),
        title_justify="left",
        caption=escape(table.settings),
        caption_justify="left",
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
    console.print()
    for by in LISTS:
        console.print(conclusion(sections, by) or f"No claim of {by}.", highlight=False)
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
        "tables": [
            {"caption": table.caption, "settings": table.settings, "rows": _records(table)}
            for table in section.tables
        ],
        "seconds": section.seconds,
        "settings": section.settings,
    }


def _records(table: TableOf) -> list[dict[str, Any]]:
    """Rows as JSON has them, which knows no NaN and no infinity."""
    return [
        {
            str(key): None if isinstance(value, float) and not isfinite(value) else value
            for key, value in row.items()
        }
        for row in table.frame.to_dict(orient="records")
    ]


if __name__ == "__main__":
    sys.exit(main())
