"""``deeptobit report``: from a fitted study to a page for people."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from deeptobit.app.cli.init import check_output, named, one_sentence
from deeptobit.app.report import render_report
from deeptobit.app.study import load_fitted, write_whole

_MARK = b'<meta name="generator" content="deeptobit">'


def run_report(
    model: Path, *, out: Path | None, force: bool, small_counts: bool, as_json: bool
) -> None:
    """Write the report of a fitted study beside it, or elsewhere."""
    console = Console(stderr=as_json)
    with one_sentence(as_json):
        path = out or named(model).with_suffix(".html")
        check_output(path, force or _is_report(path), model)
        with console.status("Reading the model …"):
            fitted = load_fitted(model)
        with console.status("Drawing the report …"):
            page = render_report(fitted, small_counts=small_counts or None)
        write_whole(path, page)
    n_outcomes = len(fitted.summary)
    if as_json:
        written = {"report": str(path), "study": fitted.name, "targets": n_outcomes}
        print(json.dumps(written | {"bytes": path.stat().st_size}, indent=2))
        return
    console.print(
        f"Wrote [bold]{escape(str(path))}[/bold]: {n_outcomes} target(s), "
        f"{path.stat().st_size / 1e6:.1f} MB. Open it in any browser; it needs no network."
    )


def _is_report(path: Path) -> bool:
    """Whether a file is a page that this command wrote, which it may write again."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _MARK in file.read(1000)
