"""``deeptobit fit``: from a study to a model file, with numbers on rows the model has not seen."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from deeptobit.cli._fit_stream import fit_streamed
from deeptobit.cli._fit_summary import show_fitted
from deeptobit.cli._output_file import check_output, named
from deeptobit.cli._study_commands import finite, one_sentence
from deeptobit.report import card_files, study_card, write_card
from deeptobit.study import (
    FittedStudy,
    Progress,
    Study,
    available_memory,
    build_data,
    fit_study,
    look_for_room,
    read_bytes,
    read_data,
    read_study,
    save_fitted,
)

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
        free = read_bytes(memory) if memory else available_memory()
        room = look_for_room(settings, table, free, jobs)
        if room is None or room.enough:
            fitted = _fit_in_memory(settings, table, jobs)
        elif room.streamable:
            fitted = fit_streamed(settings, room, checkpoint)
        else:
            raise room.error()
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
        "n_layers": fitted.model.n_layers_,
        "rank": fitted.model.rank_,
        "coverage": fitted.held_out.coverage,
        "targets": [{str(key): finite(value) for key, value in row.items()} for row in records],
        "findings": [finding._asdict() for finding in fitted.findings],
        "facts": fitted.facts,
    }
