"""The commands and their options."""

from pathlib import Path
from typing import Annotated

import typer

from deeptobit import __version__

app = typer.Typer(
    name="deeptobit",
    help="Multi-task censored regression for bounded scores and detection limits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"deeptobit {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Multi-task censored regression for bounded scores and detection limits."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the simulated cohort.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON for machines instead of a table.")
    ] = False,
) -> None:
    """Simulate a clinical cohort, fit a Tobit model to 30 bounded scores, show how it does."""
    from deeptobit.cli._demo import run_demo

    run_demo(seed=seed, as_json=as_json)


@app.command()
def init(
    data: Annotated[Path, typer.Argument(help="A CSV, Excel or Parquet file, people in rows.")],
    out: Annotated[
        Path | None, typer.Option(help="The study file to write; by default beside the data.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a study file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Look at a table and write a commented study file for it.

    Exit codes: 0 written; 1 the table cannot be used, or the study file exists; 2 wrong usage.
    """
    from deeptobit.cli._study_commands import run_init

    run_init(data, out=out, force=force, as_json=as_json)


@app.command()
def check(
    study: Annotated[Path, typer.Argument(help="A study file.")],
    data: Annotated[
        Path | None, typer.Option(help="Another table in place of the study's own.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 3 on a warning.")] = False,
    as_json: AsJson = False,
) -> None:
    """Read a study and its table, and say what may go wrong.

    Exit codes: 0 usable; 1 the study or its table is wrong; 2 wrong usage; 3 warnings (--strict).
    """
    from deeptobit.cli._study_commands import run_check

    run_check(study, data=data, strict=strict, as_json=as_json)
