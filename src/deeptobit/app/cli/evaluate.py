"""``deeptobit evaluate``: compare methods on held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deeptobit.app.cli import common

if TYPE_CHECKING:
    from deeptobit.app.study import EvaluationData, Protocol
    from deeptobit.app.study.comparison import TextTable
    from deeptobit.app.study.evaluate import Evaluation

    Problem = tuple[EvaluationData, Protocol, Any]


def evaluate(
    study: Annotated[Path | None, typer.Argument(help="A study file.")] = None,
    data: common.OtherData = None,
    dataset: Annotated[
        Literal["help", "adni"] | None, typer.Option(help="A real cohort in place of a study.")
    ] = None,
    path: Annotated[Path | None, typer.Option(help="Folder of your ADNI downloads.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results; a stopped run continues there.")
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Some of null,ridge,lasso,mt-lasso,forest,tobit,network; default: all."),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(min=1, help="Random splits for each training share.")
    ] = None,
    train_shares: Annotated[
        str | None, typer.Option(help="Shares of rows to train on, such as 0.4,0.6,0.8.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Fits in parallel.")] = 1,
    as_json: common.AsJson = False,
) -> None:
    """Compare the network with other methods on rows that none of them has seen.

    Exit codes: 0 done; 1 the data or settings are wrong; 2 wrong usage; 130 stopped by Ctrl-C.
    """
    if (study is None) == (dataset is None):
        raise typer.BadParameter("name a study file, or a cohort with --dataset, not both")
    if study is None and data is not None:
        raise typer.BadParameter("--data goes with a study file")
    from deeptobit.app.study import evaluate, make_methods, open_store, write_summary

    console = Console(stderr=as_json)
    with common.one_sentence(as_json), common.value_errors_are_sentences():
        with console.status("Reading the data …"), _print_warnings(console):
            read = _of_dataset(dataset, path) if study is None else _of_study(study, data)
            problem, protocol, network = read
        protocol = _change(protocol, repeats, train_shares)
        names = None if methods is None else [name.strip() for name in methods.split(",")]
        chosen = make_methods(names, network=network, seed=protocol.seed)
        store = None if out is None else open_store(out, problem, chosen, protocol)
        with common.stoppable(out), _bar(console) as progress:
            found = evaluate(problem, chosen, protocol, n_jobs=jobs, store=store, progress=progress)
        if out is not None:
            write_summary(out, found, problem.name)
    if as_json:
        _print_json(problem, found)
    else:
        _show(console, problem, found, out)


def _of_study(path: Path, table: Path | None) -> Problem:
    from deeptobit.app.study import (
        Protocol,
        build_data,
        data_of_study,
        make_model,
        read_data,
        read_study,
    )

    study = read_study(path)
    data = data_of_study(build_data(study, read_data(study, table)), path.stem)
    protocol = Protocol(**asdict(study.evaluation), inner_folds=study.model.cv)
    return data, protocol, make_model(study)


def _of_dataset(dataset: str | None, path: Path | None) -> Problem:
    from deeptobit.app.study import Protocol, StudyError, data_of_cohort
    from deeptobit.datasets import load_adni, load_help

    if dataset == "help":
        return data_of_cohort(load_help(), "HELP"), Protocol(), None
    if path is None:
        raise StudyError("--dataset adni needs --path, the folder of your ADNI downloads")
    return data_of_cohort(load_adni(path), "ADNI"), Protocol(), None


def _change(protocol: Protocol, repeats: int | None, train_shares: str | None) -> Protocol:
    """The protocol with the random splits of the command line."""
    if repeats is not None:
        protocol = replace(protocol, method="splits", repeats=repeats)
    if train_shares is not None:
        protocol = replace(protocol, method="splits", train_shares=_read_shares(train_shares))
    return protocol


def _read_shares(text: str) -> tuple[float, ...]:
    from deeptobit.app.study import StudyError

    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise StudyError(
            f"--train-shares must be numbers such as 0.4,0.6,0.8; got {text!r}"
        ) from None


@contextmanager
def _print_warnings(console: Console) -> Iterator[None]:
    """Print warnings of a loader as lines, without the code that raised them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        console.print(f"[yellow]warning[/yellow]: {escape(str(warning.message))}")


@contextmanager
def _bar(console: Console) -> Iterator[Callable[[int, int, str], None]]:
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def show(done: int, total: int, label: str) -> None:
            if done and not label:
                more = "; continuing" if done < total else ""
                console.print(f"{done} of {total} fits were done before{more}.")
            bar.update(task, completed=done, total=total, description=label)

        yield show


def _show(console: Console, data: EvaluationData, found: Evaluation, out: Path | None) -> None:
    from deeptobit.app.study.comparison import notes, table_by_share, table_of_measures

    n_rows, n_targets = data.targets.shape
    console.print(
        f"[bold]{escape(data.name)}: {n_rows} rows, {data.X.shape[1]} features, "
        f"{n_targets} target(s)[/bold]\n"
    )
    for table in (table_by_share(found, "anmse"), table_of_measures(found)):
        console.print(_as_rich(table))
        console.print()
    for line in notes(found):
        console.print(escape(line), highlight=False)
    if out is not None:
        console.print(
            f"Wrote [bold]{escape(str(out))}[/bold]: results.parquet, summary.md, summary.html.",
            highlight=False,
        )


def _as_rich(table: TextTable) -> Table:
    shown = Table(title=table.title, header_style="bold", box=None, pad_edge=False)
    head, *rows = table.format(escape, "[bold green]{}[/]")
    for position, name in enumerate(head):
        shown.add_column(name, justify="right" if position else "left")
    for row in rows:
        shown.add_row(*row)
    return shown


def _print_json(data: EvaluationData, found: Evaluation) -> None:
    from deeptobit.app.study import summarise
    from deeptobit.app.study.comparison import notes

    common.print_json(
        {
            "data": data.name,
            "protocol": asdict(found.protocol),
            "summary": summarise(found).to_dict(orient="records"),
            "skipped": [skipped._asdict() for skipped in found.skipped],
            "notes": notes(found),
        }
    )
