"""``deeptobit report``: write the report of a fitted study."""

from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Argument, Option

from deeptobit.app.cli import common, reports, studies


def report(
    model: Annotated[Path, Argument(help="A model file, written by fit.")],
    out: common.OutFile = None,
    force: Annotated[bool, Option("--force", help="Replace a file that is not a report.")] = False,
    small_counts: Annotated[
        bool, Option("--small-counts", help="Show counts under five and rare categories.")
    ] = False,
    as_json: common.AsJson = False,
) -> None:
    """Write a page about a fitted study that opens in any browser.

    Exit codes: 0 written; 1 the model cannot be read or the page not be written; 2 wrong usage.
    """
    path = common.output_file(out, model, ".html", force)
    with Console(stderr=True).status("Drawing the report …"):
        fitted = studies.load_fitted(model)
        page = reports.render_report(fitted, small_counts=small_counts or None)
    studies.write_whole(path, page)
    n_targets, size = len(fitted.model.target_names_), path.stat().st_size
    facts = {"report": str(path), "study": fitted.name, "targets": n_targets, "bytes": size}
    rest = f": {n_targets} target(s), {size / 1e6:.1f} MB. Open it in any browser; it needs "
    common.tell_written(as_json, facts, path, f"{rest}no network.")
