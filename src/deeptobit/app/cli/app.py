"""The list of commands. Each is a file of its own, which declares its options and does the work."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from deeptobit import __version__
from deeptobit.app.cli.check import check
from deeptobit.app.cli.common import AsJson
from deeptobit.app.cli.convert import convert
from deeptobit.app.cli.demo import demo
from deeptobit.app.cli.export import export
from deeptobit.app.cli.fit import fit
from deeptobit.app.cli.init import init
from deeptobit.app.cli.predict import predict
from deeptobit.app.cli.report import report

app = typer.Typer(
    name="deeptobit",
    help="Multi-task censored regression for bounded scores and detection limits.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class ScaleName(StrEnum):
    """Sizes of the experiments of the paper."""

    SMALL = "small"
    PAPER = "paper"


class ProtocolName(StrEnum):
    """By what methods are tuned in the experiments of the paper."""

    HONEST = "honest"
    PAPER = "paper"


class Dataset(StrEnum):
    """Real cohorts that come with loaders."""

    HELP = "help"
    ADNI = "adni"


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


for command in (init, check, fit, convert, predict, export):
    app.command()(command)


@app.command()
def evaluate(
    study: Annotated[Path | None, typer.Argument(help="A study file.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Another table in place of the study's own.")
    ] = None,
    dataset: Annotated[
        Dataset | None, typer.Option(help="A real cohort in place of a study.")
    ] = None,
    path: Annotated[Path | None, typer.Option(help="Folder of your ADNI downloads.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results; a stopped run continues there.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Some of null,ridge,lasso,mt-lasso,forest,tobit,network; all if absent."),
    ] = None,
    repeats: Annotated[int | None, typer.Option(min=1, help="Splits for every share.")] = None,
    train_shares: Annotated[
        str | None, typer.Option(help="Shares to train on, such as 0.4,0.6,0.8.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Fits side by side.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Compare the network with other methods on rows that none of them has seen.

    Exit codes: 0 done; 1 the data or settings are wrong; 2 wrong usage; 130 stopped by Ctrl-C.
    """
    if (study is None) == (dataset is None):
        raise typer.BadParameter("name a study file, or a cohort with --dataset, not both")
    if study is None and data is not None:
        raise typer.BadParameter("--data goes with a study file")
    from deeptobit.app.cli.evaluate import run_evaluate

    run_evaluate(
        study,
        data=data,
        dataset=None if dataset is None else dataset.value,
        path=path,
        out=out,
        methods=methods,
        repeats=repeats,
        train_shares=train_shares,
        jobs=jobs,
        as_json=as_json,
    )


app.command()(report)


@app.command()
def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            help="One of fig-network, fig-subspace, fig-weights, theory, table-recovery, "
            "table-synthetic, table-layers, table-runtime, table-real, table-real-layers, "
            "table-rank, table-calibration, fig-brain; or all."
        ),
    ],
    scale: Annotated[
        ScaleName, typer.Option(help="Small sizes, or those of the paper.")
    ] = ScaleName.SMALL,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for a page, tables and figures; a stopped run continues there."),
    ] = None,
    path: Annotated[
        Path | None, typer.Option(help="Folder of your ADNI downloads, in place of open data.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Fits side by side.")] = 1,
    protocol: Annotated[
        ProtocolName,
        typer.Option(help="Tune on training rows, or as the paper by the best test value."),
    ] = ProtocolName.HONEST,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compute tables, figures and claims of the paper again, and judge them.

    Exit codes: 0 done; 1 it cannot be done; 2 wrong usage; 130 stopped by Ctrl-C.
    """
    from paper.__main__ import run_reproduce

    run_reproduce(
        name,
        scale=scale.value,
        out=out,
        path=path,
        jobs=jobs,
        protocol=protocol.value,
        seed=seed,
        as_json=as_json,
    )


app.command()(demo)
