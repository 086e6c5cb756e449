"""``deeptobit predict``: predict the rows of a table with a fitted study."""

from pathlib import Path
from typing import Annotated, Literal

from rich.console import Console
from typer import Argument, Option

from deeptobit.app.cli import common, studies


def predict(
    model: Annotated[Path, Argument(help="A model file, written by fit.")],
    data: Annotated[Path, Argument(help="A table with the features of the model.")],
    out: common.OutTable = None,
    formats: Annotated[
        str, Option("--format", help="Kinds of file to write: csv, xlsx, parquet, with commas.")
    ] = "",
    only: Annotated[
        Literal["id"] | None,
        Option(help="'id': the id and predictions, without the table's other columns."),
    ] = None,
    coverage: common.Coverage = None,
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
    kinds = [f".{kind.strip().lstrip('.').lower()}" for kind in formats.split(",") if kind.strip()]
    paths = []
    for kind in kinds or [".csv" if out is None else out.suffix]:
        given = None if out is None else out.with_suffix(kind)
        path = common.output_file(given, data, f"-predictions{kind}", force, model)
        studies.tables.check_writable(path)
        paths.append(path)
    with common.record_warnings() as messages, Console(stderr=True).status("Predicting …"):
        fitted = studies.load_fitted(model)
        opened = studies.open_data(fitted.study, data)
        table = opened.read()
        predictions = studies.predict_table(fitted, table, coverage=coverage)
        predictions = studies.fitted.rounded(predictions, fitted)
        if only is None:
            predictions = studies.fitted.with_input(predictions, table)
    for path in paths:
        studies.write_table(predictions, path, opened.dialect, raw=raw)
    messages += [remark.message for remark in table.remarks]
    coverage = coverage or fitted.study.evaluation.coverage
    if as_json:
        written = {"predictions": str(paths[0]), "files": list(map(str, paths))}
        measured = {"rows": len(table), "coverage": coverage}
        columns = [str(name) for name in predictions.columns]
        common.print_json({**written, **measured, "columns": columns, "warnings": messages})
        return
    common.print_warnings(Console(), messages)
    intervals = f"{len(fitted.model.target_names_)} target(s), {coverage:.0%} intervals."
    for path in paths:
        common.print_written(path, f": {len(table)} row(s), {intervals}")
