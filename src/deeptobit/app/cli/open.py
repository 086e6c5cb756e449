"""``deeptobit open``: write the patient page of a model, and open it."""

import hashlib
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, launch

from deeptobit.app.cli import common, reports, studies


def open(
    model: Annotated[Path, Argument(help="A model file, written by fit or by save.")],
    out: common.OutFile = None,
    show: Annotated[bool, Option(help="Open the page in a browser.")] = True,
    small_counts: Annotated[
        bool, Option("--small-counts", help="Name categories with fewer than five rows.")
    ] = False,
    force: Annotated[bool, Option("--force", help="Replace a file that is not a page.")] = False,
    as_json: common.AsJson = False,
) -> None:
    """Write a page that predicts the outcomes of one person, and open it in a browser.

    Exit codes: 0 written; 1 the model cannot be read or the page not be written; 2 wrong usage.
    """
    path = common.output_file(out, model, "-patient.html", force)
    estimator, fitted = common.load_model(model)
    with studies.formats.as_study_error():
        page = reports.render_patient_page(
            fitted or estimator,
            name=model.stem,
            fingerprint=hashlib.sha256(model.read_bytes()).hexdigest()[:16],
            small_counts=small_counts or None,
        )
    studies.write_whole(path, page)
    size = path.stat().st_size
    opened = show and not as_json and launch(str(path.resolve())) == 0
    hint = "" if opened else " Open it in any browser; it needs no network."
    facts = {"page": str(path), "bytes": size}
    common.tell_written(as_json, facts, path, f": {size / 1e3:,.0f} kB.{hint}")
