"""``deeptobit check``: read a study and its table, and warn of what may go wrong."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from deeptobit.app.cli import common
from deeptobit.app.cli.common import reports, studies


def check(
    study: common.StudyFile,
    data: common.OtherData = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 on a warning.")] = False,
    as_json: common.AsJson = False,
) -> None:
    """Read a study and its table, and say what may go wrong.

    Exit codes: 0 usable; 1 the study or its table is wrong; 2 wrong usage; 3 warnings (--strict).
    """
    console = Console(stderr=as_json)
    with common.one_sentence(as_json), console.status("Checking the study …"):
        settings = studies.read_study(study)
        built = studies.build_data(settings, studies.read_data(settings, data))
        findings = studies.diagnose(settings, built)
    if as_json:
        common.print_json(
            {
                "rows": len(built.X),
                "features": built.X.shape[1],
                "groups": None if built.groups is None else len(set(built.groups)),
                "targets": built.targets.describe().reset_index().to_dict(orient="records"),
                "findings": [finding._asdict() for finding in findings],
            }
        )
    else:
        _show(console, built, findings)
    if strict and any(finding.level == "warning" for finding in findings):
        raise typer.Exit(common.WARNED)


def _show(console: Console, data: studies.StudyData, findings: list[studies.Finding]) -> None:
    console.print(
        f"[bold]{len(data.X)} rows, {data.X.shape[1]} features, "
        f"{len(data.targets.names)} target(s)[/bold]\n"
    )
    columns: common.Columns = {
        "values": ("entries", "{:.0f}".format),
        "missing": ("missing", "{:.0f}".format),
        "at lower": ("at_lower", reports.percent),
        "at upper": ("at_upper", reports.percent),
    }
    console.print(common.target_table(data.targets.describe(), columns))
    console.print()
    for finding in findings:
        common.print_finding(console, finding)
    warned = sum(finding.level == "warning" for finding in findings)
    console.print(f"{warned} warning(s)." if warned else "Nothing stands in the way of a model.")
