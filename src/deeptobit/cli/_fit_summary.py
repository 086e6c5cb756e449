"""What ``deeptobit fit`` shows at its end."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deeptobit.cli._study_commands import show_bound
from deeptobit.report import card_files
from deeptobit.study import FittedStudy

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
    layers = "1 layer" if model.n_layers_ == 1 else f"{model.n_layers_} layers"
    how = "streaming them gave" if fitted.streamed else "cross-validation chose"
    return (
        f"[bold]{fitted.n_rows:,} rows, {model.n_features_in_} features, "
        f"{len(model.target_names_)} target(s)[/bold]; {how} {layers} of rank "
        f"{model.rank_}.\n{_rows_below(fitted)}\n"
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
