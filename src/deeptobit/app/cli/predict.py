"""``deeptobit predict``: predict the rows of a table with a fitted study."""

import warnings
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.markup import escape
from typer import Argument, Option

from deeptobit.app.cli import common
from deeptobit.app.cli.common import studies


def predict(
    model: Annotated[Path, Argument(help="A model file, written by fit.")],
    data: Annotated[Path, Argument(help="A table with the features of the model.")],
    out: Annotated[
        Path | None,
        Option(help="A .csv, .xlsx or .parquet file to write; by default beside the data."),
    ] = None,
    coverage: Annotated[float | None, Option(help="Of intervals; default: the study's.")] = None,
    force: common.Force = False,
    as_json: common.AsJson = False,
) -> None:
    """Predict the targets of new rows, with intervals.

    Exit codes: 0 written; 1 a file cannot be used; 2 wrong usage; 130 interrupted.
    """
    path = out or common.named(data).with_name(f"{common.named(data).stem}-predictions.csv")
    with common.one_sentence(as_json), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        common.check_output(path, force, model, data)
        studies.tables.check_writable(path)
        with Console(stderr=True).status("Predicting …"):
            fitted = studies.load_fitted(model)
            table = studies.read_data(fitted.study, data)
            predictions = studies.predict_table(fitted, table, coverage=coverage)
        studies.write_table(predictions, path)
    messages = [str(warning.message) for warning in caught]
    coverage = coverage or fitted.study.evaluation.coverage
    if as_json:
        written = {"predictions": str(path), "rows": len(table), "coverage": coverage}
        columns = [str(name) for name in predictions.columns]
        common.print_json({**written, "columns": columns, "warnings": messages})
        return
    console = Console()
    for message in messages:
        console.print(f"[yellow]warning[/yellow] {escape(message)}", soft_wrap=True)
    n_targets = len(fitted.model.target_names_)
    intervals = f"{n_targets} target(s), {coverage:.0%} intervals."
    common.print_written(console, path, f": {len(table)} row(s), {intervals}")
