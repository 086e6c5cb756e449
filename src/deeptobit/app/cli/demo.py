"""``deeptobit demo``: the commands on a simulated cohort, from a table to a report."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import deeptobit
from deeptobit.app.cli import common, studies
from deeptobit.app.cli.fit import fit
from deeptobit.app.cli.report import report


def demo(
    seed: Annotated[int, typer.Option(help="Seed of the simulated cohort.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the cohort and its report.")] = Path(
        "deeptobit-demo"
    ),
    as_json: common.AsJson = False,
) -> None:
    """Simulate a clinical cohort, fit 30 bounded scores at once, show how it does.

    The cohort, its study file, its model and a report are left in a folder.
    """
    console = Console(stderr=as_json)
    cohort = deeptobit.datasets.make_clinical_cohort(random_state=seed)
    console.print(
        f"{len(cohort.X)} simulated subjects, {cohort.X.shape[1]} regional brain features, "
        f"{cohort.Y.shape[1]} bounded scores (seed {seed})\n"
    )
    out.mkdir(parents=True, exist_ok=True)
    table = cohort.X.join(cohort.Y)
    table.insert(0, "subject", [f"S{row:04d}" for row in range(1, len(table) + 1)])
    studies.write_table(table, out / "cohort.csv")
    targets = [
        f"[targets.{studies.config.toml_key(name)}]\nlower = {cohort.lower[name]:g}\n"
        f"upper = {cohort.upper[name]:g}\n"
        for name in map(str, cohort.Y.columns)
    ]
    # Two folds and no trees, so that it takes seconds.
    model = '[model]\nmembers = ["stack"]\ncv = 2\n'
    data = '[data]\nfile = "cohort.csv"\nid = "subject"\n'
    study, fitted = out / "cohort.toml", out / "cohort.deeptobit"
    studies.write_whole(study, "\n".join([data, *targets, model]))
    fit(study, force=True, as_json=as_json)
    if as_json:
        return
    report(fitted, force=True)
    commands = [common.command_line("check", study), common.command_line("fit", study) + " --force"]
    console.print("\n  ".join(["Next:", *commands, common.command_line("open", fitted)]))
