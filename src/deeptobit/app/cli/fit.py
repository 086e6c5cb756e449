"""``deeptobit fit``: fit the model of a study, and measure it on held-out rows."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.console import Console
from rich.markup import escape
from typer import BadParameter, Option

import deeptobit
from deeptobit.app.cli import common, reports, studies

_MOST_WARNINGS = 8
_SOME_ROWS = 10_000  # of a streamed table, to look at before it is fitted
_CRPS = "CRPS: error of the predicted distribution, in units of the target; null: without features."


def _some_jobs(jobs: int) -> int:
    if jobs == 0:
        raise BadParameter("it must be at least 1, or -1 for all cores")
    return jobs


def fit(
    study: common.StudyFile,
    out: common.OutFile = None,
    data: common.OtherData = None,
    jobs: Annotated[int, Option(callback=_some_jobs, help="Processes; -1 takes all cores.")] = -1,
    memory: Annotated[str | None, Option(help="Memory limit, like 4GB; default: all free.")] = None,
    checkpoint: Annotated[
        Path | None, Option(help="Where a streamed fit saves its progress, to continue if stopped.")
    ] = None,
    accept: Annotated[
        list[str] | None, Option(help="Fit in spite of a finding of 'check', by its name.")
    ] = None,
    force: common.Force = False,
    as_json: common.AsJson = False,
) -> None:
    """Fit the model of a study, and measure it on rows it has not seen.

    A table that would take more than half of the memory is streamed.

    Exit codes: 0 written; 1 the study or its table is wrong; 2 wrong usage; 130 interrupted.
    """
    settings = studies.read_study(study)
    table = data or settings.data_path
    path = common.output_file(out, study, ".deeptobit", force, table)
    cards = reports.card_files(path)
    for file in cards:
        common.check_output(file, force, study, table)
    if checkpoint is not None:
        common.check_output(checkpoint, True, study, table, path, *cards, option="--checkpoint")
    limit = studies.stream.read_bytes(memory) if memory else studies.stream.available_memory()
    with Console(stderr=True).status("Opening the table …"):
        opened = studies.open_data(settings, data)
    check = studies.check_memory(settings, opened, limit, jobs)
    if check.enough:
        fitted = _fit_in_memory(settings, opened, jobs, accept or [])
    else:
        why = f"{check.shortage}, so its rows are streamed, and a network is fitted to nine "
        why += "tenths of them or more without cross-validation."
        Console(stderr=True).print(escape(why), soft_wrap=True, highlight=False)
        fitted = _fit_streamed(settings, opened, checkpoint, accept or [])
    card = reports.study_card(fitted)  # before the model is written: both appear, or neither
    studies.save_fitted(fitted, path)
    reports.write_card(card, path)
    if checkpoint is not None and fitted.streamed:
        checkpoint.unlink(missing_ok=True)  # a fit in memory has not touched what is there
    if as_json:
        about = {
            "model": str(path),
            "card": [str(file) for file in cards],
            "rows": fitted.n_rows,
            "held_out_rows": fitted.n_held_out,
            "streamed": fitted.streamed,
            "features": fitted.model.n_features_in_,
            "groups": fitted.n_groups,
            "n_layers": getattr(fitted.model, "n_layers_", 1),
            "rank": getattr(fitted.model, "rank_", None),
            "coverage": fitted.held_out.coverage,
            "targets": fitted.held_out.table().reset_index().to_dict(orient="records"),
            "findings": [finding.as_dict() for finding in fitted.findings],
            "facts": fitted.facts,
            "forecasts": list(fitted.forecasts),
        }
        common.print_json(about)
    else:
        _show(fitted, study, path, cards)


# Fitting, with progress on a terminal.


def _fit_in_memory(
    study: studies.Study, table: studies.formats.TableFile, jobs: int, accepted: list[str]
) -> studies.FittedStudy:
    with Console(stderr=True).status("Reading the table …"):
        read = table.read()
    findings, built = common.examine(study, read)
    studies.doctor.registry.refuse(findings, accepted if built is not None else ())
    assert built is not None  # without data there is an error, which was refused
    with common.progress_bar("Fitting the model, and one for each fold") as show:
        return studies.fit_study(study, built, findings=findings, n_jobs=jobs, progress=show)


def _fit_streamed(
    study: studies.Study,
    table: studies.formats.TableFile,
    checkpoint: Path | None,
    accepted: list[str],
) -> studies.FittedStudy:
    """Look at the first rows and refuse what is certainly wrong; then fit to all."""
    findings: list[studies.Finding] = []
    with suppress(studies.StudyError):  # of these rows alone; the fit sees all
        findings, _ = common.examine(study, next(table.chunks(None, _SOME_ROWS))[0])
    studies.doctor.registry.refuse(findings, accepted)
    for finding in findings:
        if finding.level != "note":
            common.print_finding(Console(stderr=True), finding)
    with common.progress_bar("Pass 1") as show:

        def progress(number: int, done: int, total: int) -> None:
            show(done, total, f"Pass {number}, rows")

        return studies.stream_study(study, table, progress=progress, checkpoint=checkpoint)


# The result.


def _show(fitted: studies.FittedStudy, study: Path, path: Path, cards: tuple[Path, ...]) -> None:
    """What was chosen, its measures on held-out rows, warnings, and what to do next."""
    console, model, table = Console(), fitted.model, fitted.held_out.table()
    console.print(
        f"[bold]{fitted.n_rows:,} rows, {model.n_features_in_} features, "
        f"{len(model.target_names_)} target(s)[/bold]; {_what_model(fitted)}.\n"
        f"{reports.words.held_out_rows(fitted)}.\n"
    )
    measured, coverage = reports.measured, f"in {fitted.held_out.coverage:.0%} interval"
    columns: common.Columns = {
        "values": ("entries", "{:.0f}".format),
        "R²": ("r2", partial(measured, "r2")),
        "CRPS": ("crps", partial(measured, "crps")),
        "(null)": ("null_crps", partial(measured, "crps")),
        coverage: ("coverage", partial(measured, "coverage")),
    }
    console.print(common.target_table(table, columns))
    console.print(f"\n{_CRPS}\n", style="dim")
    if fitted.forecasts:
        console.print(studies.visits.horizon_text(fitted.forecasts))
        console.print("\nCRPS of last visits in standard deviations, by time ahead.\n", style="dim")
    useless = [str(name) for name in table.index[table["r2"] <= 0.0]]
    if useless:
        console.print(
            f"[yellow]R² ≤ 0[/yellow]: features do not help to predict "
            f"{escape(', '.join(useless))}; a model without them does as well."
        )
    _show_warnings(console, fitted, study)
    names = escape(" and ".join(card.name for card in cards))
    rest = f" in {float(fitted.facts['seconds']):.0f} s, and its model card ({names}). Next:"
    commands = ["report", "forecast"] if fitted.mixed else ["report", "open", "predict"]
    *others, last = (common.command_line(name, path) for name in commands)
    last += " NEW.csv --at 6,12,24" if fitted.mixed else " NEW.csv"
    common.print_written(path, "\n  ".join([rest, *others, last]))


def _what_model(fitted: studies.FittedStudy) -> str:
    """The model in a few words."""
    if isinstance(fitted.model, deeptobit.TobitRegressor):
        return "a Tobit regression of every target"
    if isinstance(fitted.model, deeptobit.MixedTobitRegressor):
        effects = " and ".join(f"{effect}s" for effect in fitted.model.effects_) or "no effects"
        factors = f"{fitted.model.person_rank_} factor(s) of people, {fitted.model.visit_rank_}"
        return f"a mixed model with {effects} of people, {factors} of visits"
    n_layers = fitted.model.n_layers_
    how = "streaming them gave" if fitted.streamed else "cross-validation chose"
    layers = "1 layer" if n_layers == 1 else f"{n_layers} layers"
    above = " above trees" if hasattr(fitted.model, "trees_") else ""
    return f"{how} {layers} of rank {fitted.model.rank_}{above}"


def _show_warnings(console: Console, fitted: studies.FittedStudy, study: Path) -> None:
    """Warnings about the study and the model, in a line each."""
    warned = [finding for finding in fitted.findings if finding.level != "note"]
    for finding in warned[:_MOST_WARNINGS]:
        common.print_finding(console, finding)
    if any(finding.kind != "model" for finding in warned) and not fitted.streamed:
        said = f"{len(warned)} warning(s) in all" if len(warned) > _MOST_WARNINGS else "More"
        console.print(f"{said}: {common.command_line('check', study)}", soft_wrap=True)
