"""``deeptobit forecast``: where the people of a table go next."""

from pathlib import Path
from typing import Annotated

from rich.console import Console
from typer import Argument, BadParameter, Option

import deeptobit
from deeptobit.app.cli import common
from deeptobit.app.cli.common import studies


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise BadParameter(f"{text!r} is not a list of numbers such as 6,12,24") from None


def forecast(
    model: Annotated[Path, Argument(help='A model file, written by fit with kind = "mixed".')],
    data: Annotated[Path, Argument(help="A table with the visits that are known.")],
    at: Annotated[str, Option(help="How long after the last visit, like 6,12,24.")],
    out: Annotated[
        Path | None,
        Option(help="A .csv, .xlsx or .parquet file to write; by default beside the data."),
    ] = None,
    coverage: Annotated[float | None, Option(help="Of intervals; default: the study's.")] = None,
    force: common.Force = False,
    as_json: common.AsJson = False,
) -> None:
    """Forecast people from their visits: a row per person, target and horizon.

    Exit codes: 0 written; 1 a file cannot be used; 2 wrong usage; 130 interrupted.
    """
    ahead = _numbers(at)
    path = out or common.named(data).with_name(f"{common.named(data).stem}-forecasts.csv")
    with common.one_sentence(as_json):
        common.check_output(path, force, model, data)
        studies.tables.check_writable(path)
        with Console(stderr=True).status("Forecasting …"):
            fitted = studies.load_fitted(model)
            if not isinstance(fitted.model, deeptobit.MixedTobitRegressor):
                raise studies.StudyError(
                    f'{model} is no model of repeated visits: fit a study with kind = "mixed"'
                )
            table = studies.read_data(fitted.study, data)
            coverage = coverage or fitted.study.evaluation.coverage
            found = studies.visits.forecast_table(
                fitted.model, fitted.study, fitted.encoder, table, ahead, coverage
            )
        studies.write_table(found, path)
    n_people = len(found) // (len(ahead) * len(fitted.model.target_names_))
    if as_json:
        written = {"forecasts": str(path), "people": n_people, "at": ahead, "coverage": coverage}
        common.print_json({**written, "columns": [str(name) for name in found.columns]})
        return
    about = f"{n_people} people, {len(ahead)} horizon(s), {coverage:.0%} intervals."
    common.print_written(Console(), path, f": {about}")
