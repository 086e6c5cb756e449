"""``deeptobit convert``: from a CSV file to Parquet, whatever its size."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from deeptobit.cli._output_file import check_output, named
from deeptobit.cli._study_commands import one_sentence
from deeptobit.study import convert_table


def run_convert(data: Path, *, out: Path | None, force: bool, as_json: bool) -> None:
    """Write a CSV file as Parquet beside it, or elsewhere."""
    path = out or named(data).with_suffix(".parquet")
    with one_sentence(as_json):
        check_output(path, force, data)
        with Console(stderr=True).status("Converting …") as status:
            n_rows = convert_table(
                data, path, progress=lambda rows: status.update(f"Converting … {rows:,} rows")
            )
    if as_json:
        print(json.dumps({"parquet": str(path), "rows": n_rows}, indent=2))
        return
    Console().print(f"Wrote [bold]{escape(str(path))}[/bold]: {n_rows:,} row(s).", soft_wrap=True)
