"""``deeptobit predict``: from a model file and a table of new people to a table of predictions."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from deeptobit.app.cli.init import check_output, named, one_sentence
from deeptobit.app.study import (
    check_writable,
    load_fitted,
    predict_table,
    read_data,
    write_table,
)


def run_predict(
    model: Path,
    data: Path,
    *,
    out: Path | None,
    coverage: float | None,
    force: bool,
    as_json: bool,
) -> None:
    """Predict the rows of a table, and write the predictions to a file."""
    path = out or named(data).with_name(f"{named(data).stem}-predictions.csv")
    with one_sentence(as_json), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        check_output(path, force, model, data)
        check_writable(path)
        with Console(stderr=True).status("Predicting …"):
            fitted = load_fitted(model)
            table = read_data(fitted.study, data)
            predictions = predict_table(fitted, table, coverage=coverage)
        write_table(predictions, path)
    messages = [str(warning.message) for warning in caught]
    held = coverage or fitted.study.evaluation.coverage
    if as_json:
        written = {"predictions": str(path), "rows": len(table), "coverage": held}
        columns = [str(name) for name in predictions.columns]
        print(json.dumps({**written, "columns": columns, "warnings": messages}, indent=2))
        return
    console = Console()
    for message in messages:
        console.print(f"[yellow]warning[/yellow] {escape(message)}", soft_wrap=True)
    console.print(
        f"Wrote [bold]{escape(str(path))}[/bold]: {len(table)} row(s), "
        f"{len(fitted.model.target_names_)} target(s), {held:.0%} intervals.",
        soft_wrap=True,
    )
