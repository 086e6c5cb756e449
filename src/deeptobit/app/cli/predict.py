"""``deeptobit predict``: predict the rows of a table with a fitted study."""

import warnings
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.markup import escape
from typer import Argument, BadParameter, Option

from deeptobit.app.cli import common
from deeptobit.app.cli.common import studies


def predict(
    model: Annotated[Path, Argument(help="A model file, written by fit.")],
    data: Annotated[Path, Argument(help="A table with the features of the model.")],
    out: Annotated[
        Path | None,
        Option(help="A .csv, .xlsx or .parquet file to write; by default beside the data."),
    ] = None,
    formats: Annotated[
        str, Option("--format", help="Kinds of file to write: csv, xlsx, parquet, with commas.")
    ] = "",
    only: Annotated[
        str | None, Option(help="'id': the id and predictions, without the table's other columns.")
    ] = None,
    coverage: Annotated[float | None, Option(help="Of intervals; default: the study's.")] = None,
    raw: Annotated[
        bool, Option("--raw", help="Keep text such as =1+1, which a spreadsheet would run.")
    ] = False,
    force: common.Force = False,
    as_json: common.AsJson = False,
) -> None:
    """Predict the targets of new rows, with intervals.

    A CSV file is written with the separator, decimal mark and encoding of the data.

    Exit codes: 0 written; 1 a file cannot be used; 2 wrong usage; 130 interrupted.
    """
    if only not in (None, "id"):
        raise BadParameter("--only id writes the id and the predictions; there is nothing else")
    default = out or common.named(data).with_name(f"{common.named(data).stem}-predictions.csv")
    kinds = [kind.strip().lstrip(".").lower() for kind in formats.split(",") if kind.strip()]
    paths = [default.with_suffix(f".{kind}") for kind in kinds] or [default]
    with common.one_sentence(as_json), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        for path in paths:
            common.check_output(path, force, model, data)
            studies.tables.check_writable(path)
        with Console(stderr=True).status("Predicting …"):
            fitted = studies.load_fitted(model)
            opened = studies.open_data(fitted.study, data)
            table = opened.read()
            predictions = studies.predict_table(fitted, table, coverage=coverage)
            predictions = studies.fitted.rounded(predictions, fitted)
            if only is None:
                predictions = studies.fitted.with_input(predictions, table)
        for path in paths:
            safe = path.suffix.lower() != ".csv" or raw
            shown = predictions if safe else studies.tables.without_formulas(predictions)
            studies.write_table(shown, path, opened.dialect)
    messages = [str(warning.message) for warning in caught]
    messages += [remark.message for remark in table.remarks]
    coverage = coverage or fitted.study.evaluation.coverage
    if as_json:
        written = {"predictions": str(paths[0]), "files": list(map(str, paths))}
        measured = {"rows": len(table), "coverage": coverage}
        columns = [str(name) for name in predictions.columns]
        common.print_json({**written, **measured, "columns": columns, "warnings": messages})
        return
    console = Console()
    for message in messages:
        console.print(f"[yellow]warning[/yellow] {escape(message)}", soft_wrap=True)
    n_targets = len(fitted.model.target_names_)
    intervals = f"{n_targets} target(s), {coverage:.0%} intervals."
    for path in paths:
        common.print_written(console, path, f": {len(table)} row(s), {intervals}")
