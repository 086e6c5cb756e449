"""``deeptobit init``: propose a study file for a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from deeptobit.app.cli import common, studies

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
    targets = [target.column for target in proposal.targets if target.certain]
    if as_json:
        about = {
            "study": str(path),
            "id": proposal.id,
            "group": proposal.group,
            "time": proposal.time,
            "targets": targets,
            "missing": codes,
            "excluded": proposal.excluded,
            "decided": [finding.as_dict() for finding in decided],
            "findings": [finding.as_dict() for finding in left],
        }
        common.print_json(about)
    else:
        size = f"{len(table)} rows and {len(table.columns)} columns of {escape(table.file)}"
        _show(path, size, proposal, codes)
        console = Console()
        for finding in decided:
            console.print(f"decided {escape(finding.name)}: {escape(finding.fix)}", soft_wrap=True)
        for finding in left:
            common.print_finding(console, finding)
        first = "Read it, correct the targets" if targets else "Name at least one target in it"
        console.print(f"\n{first}, then: {common.command_line('check', path)}", soft_wrap=True)


def _show(path: Path, size: str, proposal: studies.propose.Proposal, codes: list[str]) -> None:
    """What was guessed, and what to do next."""
    targets = [_target(target) for target in proposal.targets if target.certain]
    common.print_written(path, f" from {size}:\n")
    excluded = [f"{name} ({why.split(';')[0]})" for name, why in proposal.excluded.items()]
    entries = {
        "targets": _listed(targets) or "none found",
        "id": proposal.id or "none; rows are numbered",
        "group": f"{proposal.group}; its rows stay together" if proposal.group else "none",
        "time": proposal.time and f"{proposal.time}; people are forecast from their visits",
        "missing": _listed(codes) and f"{_listed(codes)}, beside blank cells",
        "left out": _listed(excluded),
    }
    grid = Grid.grid(padding=(0, 2))
    for heading, entry in entries.items():
        if entry:
            grid.add_row(f"  {heading}", escape(entry))
    Console().print(grid)


def _target(target: studies.propose.ProposedTarget) -> str:
    ends = (target.bounds.get(side, "open") for side in ("lower", "upper"))
    lower, upper = (end if isinstance(end, str) else f"{end:g}" for end in ends)
    return f"{target.column} ({lower} – {upper})"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
