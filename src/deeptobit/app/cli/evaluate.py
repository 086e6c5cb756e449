"""``deeptobit evaluate``: methods compared on rows that none of them has seen."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from deeptobit.app.cli.init import finite, one_sentence, stoppable, value_errors_are_sentences
from deeptobit.app.study import (
    Evaluation,
    EvaluationData,
    Protocol,
    StudyError,
    TextTable,
    build_data,
    data_of_cohort,
    data_of_study,
    evaluate,
    make_methods,
    make_model,
    notes,
    open_store,
    read_data,
    read_study,
    summarise,
    table_by_share,
    table_of_measures,
    write_summary,
)
from deeptobit.datasets import load_adni, load_help


def run_evaluate(
    study: Path | None,
    *,
    data: Path | None,
    dataset: str | None,
    path: Path | None,
    out: Path | None,
    methods: str | None,
    repeats: int | None,
    train_shares: str | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Compare, show the tables, and keep them where a folder is named."""
    console = Console(stderr=as_json)
    with one_sentence(as_json), value_errors_are_sentences():
        with console.status("Reading the data …"), _warnings_are_lines(console):
            read = _of_dataset(dataset, path) if study is None else _of_study(study, data)
            problem, protocol, network = read
        protocol = _change(protocol, repeats, train_shares)
        names = None if methods is None else [name.strip() for name in methods.split(",")]
        chosen = make_methods(names, network=network, seed=protocol.seed)
        store = None if out is None else open_store(out, problem, chosen, protocol)
        with stoppable(out), _bar(console) as progress:
            found = evaluate(problem, chosen, protocol, n_jobs=jobs, store=store, progress=progress)
        if out is not None:
            write_summary(out, found, problem.name)
    if as_json:
        print(json.dumps(_as_json(problem, found), indent=2))
    else:
        _show(console, problem, found, out)


def _of_study(path: Path, table: Path | None) -> tuple[EvaluationData, Protocol, Any]:
    study = read_study(path)
    data = data_of_study(build_data(study, read_data(study, table)), path.stem)
    protocol = Protocol(**asdict(study.evaluation), inner_folds=study.model.cv)
    return data, protocol, make_model(study)


def _of_dataset(dataset: str | None, path: Path | None) -> tuple[EvaluationData, Protocol, Any]:
    if dataset == "help":
        return data_of_cohort(load_help(), "HELP"), Protocol(), None
    if path is None:
        raise StudyError("--dataset adni needs --path, the folder of your ADNI downloads")
    return data_of_cohort(load_adni(path), "ADNI"), Protocol(), None


def _change(protocol: Protocol, repeats: int | None, train_shares: str | None) -> Protocol:
    """The protocol with what the command line says of random splits."""
    if repeats is not None:
        protocol = replace(protocol, method="splits", repeats=repeats)
    if train_shares is not None:
        protocol = replace(protocol, method="splits", train_shares=_read_shares(train_shares))
    return protocol


def _read_shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise StudyError(
            f"--train-shares must be numbers such as 0.4,0.6,0.8; got {text!r}"
        ) from None


@contextmanager
def _warnings_are_lines(console: Console) -> Iterator[None]:
    """What a loader warns of is a line, without the code that said it."""
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

        def tell(done: int, total: int, label: str) -> None:
            if done and not label:
                more = "; continuing" if done < total else ""
                console.print(f"{done} of {total} fits were done before{more}.")
            bar.update(task, completed=done, total=total, description=label)

        yield tell


def _show(console: Console, data: EvaluationData, found: Evaluation, out: Path | None) -> None:
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
    for position, name in enumerate(table.head):
        shown.add_column(escape(name), justify="right" if position else "left")
    for i, row in enumerate(table.rows):
        cells = [escape(cell) for cell in row]
        shown.add_row(
            *(f"[bold green]{c}[/]" if (i, j) in table.best else c for j, c in enumerate(cells))
        )
    return shown


def _as_json(data: EvaluationData, found: Evaluation) -> dict[str, Any]:
    summary = summarise(found).to_dict(orient="records")
    return {
        "data": data.name,
        "protocol": asdict(found.protocol),
        "summary": [{str(key): finite(value) for key, value in row.items()} for row in summary],
        "skipped": [skipped._asdict() for skipped in found.skipped],
        "notes": notes(found),
    }
