"""``deeptobit fit``: from a study to a model file, with numbers on rows the model has not seen."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as ProgressBar
from rich.table import Table
from rich.text import Text

from deeptobit.app.cli.init import check_output, finite, named, one_sentence, show_bound
from deeptobit.app.report import card_files, study_card, write_card
from deeptobit.app.study import (
    FittedStudy,
    MemoryCheck,
    Passes,
    Progress,
    Study,
    available_memory,
    build_data,
    check_memory,
    fit_study,
    make_network,
    read_bytes,
    read_data,
    read_study,
    save_fitted,
    stream_study,
)
from deeptobit.estimators import TobitRegressor

# ``deeptobit fit`` on a table beyond memory: why it streams, and how fast.


def fit_streamed(study: Study, memory: MemoryCheck, checkpoint: Path | None) -> FittedStudy:
    """Say what is done in place of the usual, and do it."""
    console = Console(stderr=True)
    console.print(escape(why_streamed(study, memory)), soft_wrap=True, highlight=False)
    with _pass_bar(console) as progress:
        return stream_study(study, memory.path, progress=progress, checkpoint=checkpoint)


def why_streamed(study: Study, memory: MemoryCheck) -> str:
    """What memory lacks, which model is fitted instead, and what its numbers are about."""
    network = make_network(study)
    depth = "1 layer" if network.n_layers == 1 else f"up to {network.n_layers} layers"
    group = study.data.group
    held_out = "10,000 rows (a tenth, if that is less)"
    if group is not None:
        held_out = f"a tenth of the groups of {group!r}"
    return (
        f"{memory.shortage}, so its rows are streamed: a {type(network).__name__} of {depth} and "
        f"rank {network.rank} at most is fitted without cross-validation, and measured on "
        f"{held_out} that it does not see."
    )


@contextmanager
def _pass_bar(console: Console) -> Iterator[Passes]:
    columns = (TextColumn("{task.description}"), BarColumn(), _Rows(), TimeElapsedColumn())
    with ProgressBar(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("Pass 1", total=None)
        shown = 1

        def show(number: int, done: int, total: int) -> None:
            nonlocal shown
            if number != shown:
                bar.reset(task)
                shown = number
            bar.update(task, completed=done, total=total, description=f"Pass {number}")

        yield show


class _Rows(ProgressColumn):
    """Rows of the pass that are read, and how many in a second."""

    def render(self, task: Task) -> Text:
        """The text of the column."""
        speed = "" if task.speed is None else f", {task.speed:,.0f} rows/s"
        total = "" if task.total is None else f" of {task.total:,.0f}"
        return Text(f"{task.completed:,.0f}{total} rows{speed}")


# What ``deeptobit fit`` shows at its end.

_DIGITS = "#.3g"  # three of them, also where they are 0
_R2 = "z.2f"  # no -0.00
_CRPS = "CRPS: error of the predicted distribution, in units of the target; null: without features."


def show_fitted(console: Console, fitted: FittedStudy, study: Path, path: Path) -> None:
    """What was chosen, how it does on rows it has not seen, what to mind, and what to do next."""
    console.print(_headline(fitted))
    table = fitted.held_out.table()
    console.print(_measures(table, fitted.held_out.coverage))
    console.print(f"\n{_CRPS}\n", style="dim")
    _show_doubts(console, fitted, [str(name) for name in table.index[table["r2"] <= 0.0]], study)
    cards = escape(" and ".join(file.name for file in card_files(path)))
    console.print(
        f"Wrote [bold]{escape(str(path))}[/bold] in {_time(fitted.facts)}, and its model card "
        f"({cards}). Next:\n"
        f"  {escape(_command('predict', path))} NEW.csv\n  {escape(_command('report', path))}",
        soft_wrap=True,
    )


def _time(facts: dict[str, str]) -> str:
    seconds = f"{float(facts['seconds']):.0f} s"
    rate = facts.get("rows per second")
    return seconds if rate is None else f"{seconds} ({rate} rows/s)"


def _headline(fitted: FittedStudy) -> str:
    model = fitted.model
    if isinstance(model, TobitRegressor):
        found = "a Tobit regression of every target"
    else:
        how = "streaming them gave" if fitted.streamed else "cross-validation chose"
        layers = "1 layer" if model.n_layers_ == 1 else f"{model.n_layers_} layers"
        found = f"{how} {layers} of rank {model.rank_}"
    return (
        f"[bold]{fitted.n_rows:,} rows, {model.n_features_in_} features, "
        f"{len(model.target_names_)} target(s)[/bold]; {found}.\n{_rows_below(fitted)}\n"
    )


def _rows_below(fitted: FittedStudy) -> str:
    """Which rows the numbers are about."""
    group = fitted.study.data.group
    if fitted.streamed:
        alike = "" if group is None else f", nor others of their {escape(repr(group))}"
        return f"The {fitted.n_held_out:,} rows below were held out: no model has seen them{alike}."
    others = "rows" if group is None else f"groups of {escape(repr(group))}"
    return (
        f"Every row below was predicted by a model fitted to other {others} "
        f"({fitted.facts['folds']} folds)."
    )


def _show_doubts(console: Console, fitted: FittedStudy, useless: list[str], study: Path) -> None:
    if useless:
        console.print(
            f"[yellow]R² ≤ 0[/yellow]: features do not help to predict "
            f"{escape(', '.join(useless))}; a model without them does as well."
        )
    warned = [finding for finding in fitted.findings if finding.level == "warning"]
    of_study = [finding for finding in warned if finding.about != "model"]
    for finding in warned:
        if finding.about == "model":
            console.print(f"[yellow]warning[/yellow] {escape(finding.message)}")
    if fitted.streamed:  # 'check' would read the table whole
        for finding in of_study:
            console.print(
                f"[yellow]warning[/yellow] {escape(finding.about)}: {escape(finding.message)}"
            )
    elif of_study:
        console.print(
            f"{len(of_study)} warning(s) about the study: {escape(_command('check', study))}",
            soft_wrap=True,
        )


def _command(name: str, file: Path) -> str:
    return f"deeptobit {name} {shlex.quote(str(file))}"


def _measures(table: Any, coverage: float) -> Table:
    shown = Table(header_style="bold", box=None, pad_edge=False)
    shown.add_column("target")
    for heading in ("range", "values", "R²", "CRPS", "(null)", f"in {coverage:.0%} interval"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for row in table.itertuples():
        shown.add_row(
            escape(str(row.Index)),
            f"{show_bound(row.lower)} – {show_bound(row.upper)}",
            str(row.entries),
            _known(row.r2, _R2),
            _known(row.crps, _DIGITS),
            _known(row.null_crps, _DIGITS),
            _known(row.coverage, ".0%"),
        )
    return shown


def _known(value: float, form: str) -> str:
    return "–" if value != value else format(value, form).rstrip(".")


SUFFIX = ".deeptobit"


def run_fit(
    study: Path,
    *,
    data: Path | None,
    out: Path | None,
    force: bool,
    jobs: int,
    memory: str | None,
    checkpoint: Path | None,
    as_json: bool,
) -> None:
    """Fit the model of a study, write it and its card to files, and show how it does."""
    path = out or named(study).with_suffix(SUFFIX)
    with one_sentence(as_json):
        settings = read_study(study)
        table = data or settings.data_path
        for file in (path, *card_files(path)):
            check_output(file, force, study, table)
        if checkpoint is not None:
            others = (study, table, path, *card_files(path))
            check_output(checkpoint, True, *others, option="--checkpoint")
        limit = read_bytes(memory) if memory else available_memory()
        check = check_memory(settings, table, limit, jobs)
        if check is None or check.enough:
            fitted = _fit_in_memory(settings, table, jobs)
        elif check.streamable:
            fitted = fit_streamed(settings, check, checkpoint)
        else:
            raise check.error()
        card = study_card(fitted)  # before the model is written: both appear, or neither
        save_fitted(fitted, path)
        write_card(card, path)
        if checkpoint is not None and fitted.streamed:
            checkpoint.unlink(missing_ok=True)  # a fit in memory has not touched what is there
    if as_json:
        print(json.dumps(_as_json(fitted, path), indent=2))
    else:
        show_fitted(Console(), fitted, study, path)


def _fit_in_memory(study: Study, table: Path, jobs: int) -> FittedStudy:
    with Console(stderr=True).status("Reading the table …"):
        built = build_data(study, read_data(study, table))
    with _progress_bar() as progress:
        return fit_study(study, built, n_jobs=jobs, progress=progress)


@contextmanager
def _progress_bar() -> Iterator[Progress]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with ProgressBar(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("Fitting the model", total=None)

        def show(done: int, total: int) -> None:
            folds = f"Fitting the model, and one for each of {total - 1} folds"
            bar.update(task, completed=done, total=total, description=folds)

        yield show


def _as_json(fitted: FittedStudy, path: Path) -> dict[str, Any]:
    records = fitted.held_out.table().reset_index().to_dict(orient="records")
    return {
        "model": str(path),
        "card": [str(file) for file in card_files(path)],
        "rows": fitted.n_rows,
        "held_out_rows": fitted.n_held_out,
        "streamed": fitted.streamed,
        "features": fitted.model.n_features_in_,
        "groups": fitted.n_groups,
        "n_layers": getattr(fitted.model, "n_layers_", 1),
        "rank": getattr(fitted.model, "rank_", None),
        "coverage": fitted.held_out.coverage,
        "targets": [{str(key): finite(value) for key, value in row.items()} for row in records],
        "findings": [finding._asdict() for finding in fitted.findings],
        "facts": fitted.facts,
    }
