"""The commands and their options."""

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
