"""``deeptobit forecast``: forecast later visits of the people in a table."""

from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Argument, Option

from deeptobit.app.cli import common, studies


def forecast(
    model: Annotated[Path, Argument(help='A model file, written by fit with kind = "mixed".')],
    data: Annotated[Path, Argument(help="A table with the visits that are known.")],
    at: Annotated[str, Option(help="How long after the last visit, like 6,12,24.")],
    out: common.OutTable = None,
    coverage: common.Coverage = None,
    force: common.Force = False,
    as_json: common.AsJson = False,
) -> None:
    """Forecast people from their visits: a row per person, target and horizon.

    A CSV file is written with the separator, decimal mark and encoding of the data.

    Exit codes: 0 written; 1 a file cannot be used; 2 wrong usage; 130 interrupted.
    """
    ahead = common.numbers(at, "6,12,24")
    path = common.output_file(out, data, "-forecasts.csv", force, model)
    studies.tables.check_writable(path)
    with Console(stderr=True).status("Forecasting …"):
        fitted = studies.load_fitted(model)
        opened = studies.open_data(fitted.study, data)
        coverage = coverage or fitted.study.evaluation.coverage
        found = studies.visits.forecast_table(fitted, opened.read(), ahead, coverage)
    studies.write_table(found, path, opened.dialect, raw=False)
    n_people = len(found) // (len(ahead) * len(fitted.model.target_names_))
    facts = {"forecasts": str(path), "people": n_people, "at": ahead, "coverage": coverage}
    facts |= {"columns": [str(name) for name in found.columns]}
    rest = f": {n_people} people, {len(ahead)} horizon(s), {coverage:.0%} intervals."
    common.tell_written(as_json, facts, path, rest)
