"""``deeptobit check``: examine a study and its table, say what may go wrong, and fix it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from deeptobit.app.cli import common, reports, studies

_MOST_ROUNDS = 5


def check(
    study: common.StudyFile,
    data: common.OtherData = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(help="Write the fix of a finding into the study file; 'all' for all."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 on a warning.")] = False,
    as_json: common.AsJson = False,
) -> None:
    """Examine a study and its table, and say what may go wrong.

    Exit codes: 0 usable; 1 the study or its table is wrong; 2 wrong usage; 3 warnings (--strict).
    """
    findings, built = _examine(study, data)
    fixed = list[studies.Finding]()
    for _ in range(_MOST_ROUNDS if fix and "all" in fix else 1):  # a fix may show what it hid
        chosen = studies.doctor.registry.choose(findings, ["all"] if fixed else fix or [])
        before = study.read_text(encoding="utf-8-sig")
        after = studies.doctor.registry.edit_study(before, chosen, explain=True)
        if after == before:
            break
        # Written if the study file can still be read with them.
        studies.config.parse_study(studies.config.Source(study, after))
        studies.write_whole(study, after)
        fixed += chosen
        findings, built = _examine(study, data)
    if as_json:
        about: dict[str, Any] = dict.fromkeys(("rows", "features", "groups")) | {"targets": []}
        if built is not None:
            about = {"rows": len(built.X), "features": built.X.shape[1], "groups": built.n_groups}
            about["targets"] = built.targets.describe().reset_index().to_dict(orient="records")
        found = [finding.as_dict() for finding in findings]
        common.print_json(about | {"findings": found, "fixed": [one.name for one in fixed]})
    else:
        for one in fixed:
            common.print_written(study, escape(f": {one.name}: {one.fix}"))
        _show(study, built, findings)
    levels = {finding.level for finding in findings}
    if "error" in levels:
        raise typer.Exit(common.WRONG)
    if strict and "warning" in levels:
        raise typer.Exit(common.WARNED)


def _examine(study: Path, data: Path | None) -> studies.doctor.registry.Examined:
    settings = studies.read_study(study)
    with Console(stderr=True).status("Reading the table …"):
        table = studies.read_data(settings, data)
    return common.examine(settings, table)


def _show(study: Path, data: studies.StudyData | None, findings: list[studies.Finding]) -> None:
    console = Console()
    if data is not None:
        console.print(f"[bold]{common.size_of(data)}[/bold]\n")
        columns: common.Columns = {
            "values": ("entries", "{:.0f}".format),
            "missing": ("missing", "{:.0f}".format),
            "at lower": ("at_lower", reports.percent),
            "at upper": ("at_upper", reports.percent),
        }
        console.print(common.target_table(data.targets.describe(), columns))
        console.print()
    for finding in findings:
        common.print_finding(console, finding, whole=True)
    counts = {level: sum(one.level == level for one in findings) for level in ("error", "warning")}
    said = [f"{count} {level}(s)" for level, count in counts.items() if count]
    console.print(f"{', '.join(said)}." if said else "Nothing stands in the way of a model.")
    if any(one.edits and one.level != "note" for one in findings):
        command = common.command_line("check", study)
        console.print(f"What has a fix: {command} --fix NAME, or --fix all", soft_wrap=True)
