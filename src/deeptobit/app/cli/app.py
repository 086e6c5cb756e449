"""The commands and their options."""

from enum import StrEnum
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


class KindName(StrEnum):
    """What a model predicts."""

    MEAN = "mean"
    CLIP = "clip"
    LATENT = "latent"


class PrecisionName(StrEnum):
    """Types of numbers in an exported file."""

    FLOAT32 = "float32"
    FLOAT64 = "float64"


class Dataset(StrEnum):
    """Real cohorts that come with loaders."""

    HELP = "help"
    ADNI = "adni"


def _some_jobs(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("0 processes do nothing; name at least 1, or -1 for all cores")
    return jobs


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
    from deeptobit.app.cli.init import run_init

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
    from deeptobit.app.cli.init import run_check

    run_check(study, data=data, strict=strict, as_json=as_json)


@app.command()
def fit(
    study: Annotated[Path, typer.Argument(help="A study file.")],
    out: Annotated[
        Path | None, typer.Option(help="The model file to write; by default beside the study.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Another table in place of the study's own.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(callback=_some_jobs, help="Processes; -1 takes all cores.")
    ] = -1,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory to do with, such as 4GB; by default what is free."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Where a streamed fit notes how far it is, and goes on if stopped."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a model file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit the model of a study, and measure it on rows it has not seen.

    A Parquet table that would take more than half of the memory is streamed.

    Exit codes: 0 written; 1 the study or its table is wrong; 2 wrong usage; 130 interrupted.
    """
    from deeptobit.app.cli.fit import run_fit

    run_fit(
        study,
        data=data,
        out=out,
        force=force,
        jobs=jobs,
        memory=memory,
        checkpoint=checkpoint,
        as_json=as_json,
    )


@app.command()
def convert(
    data: Annotated[Path, typer.Argument(help="A CSV file, of any size.")],
    out: Annotated[
        Path | None, typer.Option(help="The Parquet file to write; by default beside the data.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a Parquet file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a CSV file as Parquet, which fit can stream where memory is short.

    Exit codes: 0 written; 1 a file cannot be used; 2 wrong usage; 130 interrupted.
    """
    from deeptobit.app.cli.export import run_convert

    run_convert(data, out=out, force=force, as_json=as_json)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model file, written by fit.")],
    data: Annotated[Path, typer.Argument(help="A table with the features of the model.")],
    out: Annotated[
        Path | None,
        typer.Option(help="A .csv, .xlsx or .parquet file to write; by default beside the data."),
    ] = None,
    coverage: Annotated[
        float | None, typer.Option(help="Of the intervals; by default as the study says.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Predict the targets of new rows, with intervals.

    Exit codes: 0 written; 1 a file cannot be used; 2 wrong usage; 130 interrupted.
    """
    from deeptobit.app.cli.predict import run_predict

    run_predict(model, data, out=out, coverage=coverage, force=force, as_json=as_json)


@app.command()
def export(
    model: Annotated[Path, typer.Argument(help="A model file, written by fit or by save.")],
    onnx: Annotated[
        Path | None, typer.Option(help="The ONNX file to write; by default beside the model.")
    ] = None,
    kind: Annotated[
        KindName, typer.Option(help=r"E\[y|x], the score clipped to the bounds, or the score.")
    ] = KindName.MEAN,
    dtype: Annotated[
        PrecisionName,
        typer.Option(help="Of input and output; float64 for features such as 1000000 ± 1."),
    ] = PrecisionName.FLOAT32,
    force: Annotated[bool, typer.Option("--force", help="Replace the ONNX file.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the predictions of a model as an ONNX file, for systems without Python.

    Exit codes: 0 written; 1 the model cannot be read or exported; 2 wrong usage.
    """
    from deeptobit.app.cli.export import run_export

    run_export(model, onnx=onnx, kind=kind.value, dtype=dtype.value, force=force, as_json=as_json)


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


@app.command()
def report(
    model: Annotated[Path, typer.Argument(help="A model that 'deeptobit fit' wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; by default beside the model.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a file that is not a report.")
    ] = False,
    small_counts: Annotated[
        bool,
        typer.Option("--small-counts", help="Tell counts under five and rare categories, too."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a page about a fitted study that opens in any browser.

    Exit codes: 0 written; 1 the model cannot be read or the page not be written; 2 wrong usage.
    """
    from deeptobit.app.cli.report import run_report

    run_report(model, out=out, force=force, small_counts=small_counts, as_json=as_json)


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Seed of the simulated cohort.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate a clinical cohort, fit 30 bounded scores at once, show how it does."""
    from deeptobit.app.cli.demo import run_demo

    run_demo(seed=seed, as_json=as_json)
