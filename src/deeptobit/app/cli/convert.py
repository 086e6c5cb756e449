"""``deeptobit convert``: write a CSV file of any size as Parquet."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from deeptobit.app.cli import common, studies


def convert(
    data: Annotated[Path, typer.Argument(help="A CSV file, of any size.")],
    out: common.OutFile = None,
    force: common.Force = False,
    as_json: common.AsJson = False,
) -> None:
    """Write a CSV file as Parquet, which fit can stream if memory is short.

    Exit codes: 0 written; 1 a file cannot be used; 2 wrong usage; 130 interrupted.
    """
    path = common.output_file(out, data, ".parquet", force)
    with Console(stderr=True).status("Converting …") as status:
        n_rows = studies.convert_table(
            data, path, progress=lambda rows: status.update(f"Converting … {rows:,} rows")
        )
    facts = {"parquet": str(path), "rows": n_rows}
    common.tell_written(as_json, facts, path, f": {n_rows:,} row(s).")
