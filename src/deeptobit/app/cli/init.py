"""``deeptobit init``: propose a study file for a table."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from deeptobit.app.cli import common, reports, studies

_SHOWN = 12  # targets or columns in one line; a table may have thousands


def init(
    data: Annotated[Path, typer.Argument(help="A CSV, Excel or Parquet file, one person per row.")],
    out: common.OutFile = None,
    force: common.Force = False,
    as_json: common.AsJson = False,
) -> None:
    """Propose a study file for a table, with comments to correct it by.

    Exit codes: 0 written; 1 the table cannot be used, or the study file exists; 2 wrong usage.
    """
    path = common.output_file(out, data, ".toml", force)
    folder, whole = path.resolve().parent, data.resolve()
    if not whole.is_relative_to(folder):
        raise studies.StudyError(
            f"the study file must lie in the folder of {data.name} or above it; {path} does not"
        )
    file = whole.relative_to(folder).as_posix()  # as the study file writes it
    with Console(stderr=True).status("Reading the table …"):
        table = studies.read_table(data)
        codes = studies.doctor.values.codes_of_table(table)
        if codes:
            table = studies.read_table(data, missing=codes)
        text, proposal = studies.propose_study(table, file, missing=codes)
        text, decided, left = studies.propose.decide(text, path, data)
    studies.write_whole(path, text)
    guessed = {
        "targets": [target.column for target in proposal.targets if target.certain],
        "id": proposal.id,
        "group": proposal.group,
        "time": proposal.time,
        "missing": codes,
        "excluded": proposal.excluded,
    }
    if as_json:
        found = {"decided": decided, "findings": left}
        about = {name: [one.as_dict() for one in each] for name, each in found.items()}
        common.print_json({"study": str(path), **guessed, **about})
        return
    console, grid = Console(), Grid.grid(padding=(0, 2))
    size = f"{len(table)} rows and {len(table.columns)} columns of {escape(table.file)}"
    common.print_written(path, f" from {size}:\n")
    for heading, entry in guessed.items():
        names = [entry] if isinstance(entry, str) else list(entry or ["none"])
        grid.add_row(f"  {heading}", escape(reports.words.listed(names, _SHOWN)))
    console.print(grid)
    for finding in decided:
        console.print(f"decided {escape(finding.name)}: {escape(finding.fix)}", soft_wrap=True)
    for finding in left:
        common.print_finding(console, finding)
    do = "Read it, correct the targets" if guessed["targets"] else "Name at least one target in it"
    console.print(f"\n{do}, then: {common.command_line('check', path)}", soft_wrap=True)
