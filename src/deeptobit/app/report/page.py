"""The report and the comparison of methods: HTML pages that need no other file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.resources import files
from math import isfinite
from typing import Any, NamedTuple

import pandas as pd

from deeptobit.app import study
from deeptobit.app.report import effects, pictures, privacy, words
from deeptobit.app.report.brain import draw_cortex
from deeptobit.app.report.card import describe_study, facts
from deeptobit.app.study.measures import Cell
from deeptobit.estimators.resampling import EffectsRegressor
from deeptobit.extras import require

_SHOWN_FIRST = 8  # pictures of outcomes; the others unfold
_N_COMPONENTS = 5


def render_report(fitted: study.FittedStudy, *, small_counts: bool | None = None) -> str:
    r"""One self-contained HTML page about a fitted study.

    It loads nothing from elsewhere, is readable without JavaScript, and has no ids, no counts under
    five and no names of categories with fewer rows. The same study gives the same page.

    Parameters
    ----------
    fitted : FittedStudy
    small_counts : bool, optional
        Whether to show counts under five and rare categories; by default what ``[report]`` of the
        study says.

    Returns
    -------
    str

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import build_data, fit_study, read_data, read_study
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{age},{min(30, 80 - age + age % 3)}" for age in range(45, 75)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["age,MMSE", *rows]))
    ...     path = Path(folder, "clinic.toml")
    ...     _ = path.write_text(
    ...         'data.file = "a.csv"\ntargets.MMSE = {lower = 0, upper = 30}\n'
    ...         'model.members = ["stack"]\nmodel.cv = 2'
    ...     )
    ...     study = read_study(path)
    ...     fitted = fit_study(study, build_data(study, read_data(study)))
    >>> page = render_report(fitted)
    >>> page[page.index("<title>") : page.index("</title>")]
    '<title>clinic: model report'
    """
    held_out, model, table = fitted.held_out, fitted.model, fitted.held_out.table()
    shown = fitted.study.report.small_counts if small_counts is None else small_counts
    min_count, rare = (1, {}) if shown else (study.FEWEST, fitted.encoder.rare)
    at_bounds = privacy.bound_errors(held_out.targets, held_out.predictive, min_count)
    reliability = words.reliability_words(at_bounds)
    errors = pictures.layer_errors(held_out, table)
    deep = errors.size > 0 and len(errors) > 1  # one layer has nothing to compare
    n_bounded, n_often = words.count_bounded(table)
    relative_error = table["mae"] / table["null_mae"].where(table["null_mae"] > 0.0)
    known = table.dropna(subset="r2").sort_values("r2", ascending=False, kind="stable")
    components = effects.shared_directions(model, _N_COMPONENTS, rare, fitted.stable)
    cosines = effects.task_cosines(model)
    similarity = effects.similarity_words(cosines)
    with pictures.drawing():
        outcomes = pictures.draw_outcomes(held_out, table, min_count)
        curves, heat_map = f"Reliability curves. {reliability}", f"Heat map. {similarity}"
        drawn = {
            "outcomes": outcomes[:_SHOWN_FIRST],
            "more_outcomes": outcomes[_SHOWN_FIRST:],
            "reliability": pictures.draw_reliability(held_out, curves, min_count),
            "layers": pictures.draw_layers(errors) if deep else None,
            "trajectories": pictures.draw_trajectories(fitted),
            "subspaces": pictures.draw_subspaces(components) if components else None,
            "brain": draw_cortex(components) if components else None,
            "similarity": pictures.draw_similarity(cosines, heat_map) if similarity else None,
        }
    card = describe_study(fitted, table, shown)
    content = drawn | {
        "fitted": fitted,
        "model": model,
        "model_class": type(model).__name__,
        "n_rows": privacy.count(fitted.n_rows, min_count),
        "n_bounded": n_bounded,
        "n_often": n_often,
        "often": words.percent(words.OFTEN),
        "held_out_rows": words.held_out_rows(fitted, min_count),
        "known": known.reset_index(names="name").to_dict("records"),
        "table": table,
        "less_error": 1.0 - relative_error.mean(),
        "n_improved": len(table) - len(words.without_gain(table)),
        "cautions": card["cautions"],
        "coverage": words.percent(held_out.coverage),
        "measures": [measure for measure in study.MEASURES.values() if measure.reported],
        "rows": outcome_rows(table, fitted.n_held_out, held_out.coverage, min_count),
        "findings": privacy.published(fitted.findings, rare, min_count),
        "min_count": min_count,
        "small_counts": shown,
        "card": {part: facts(card[part]) for part in ("data", "model", "settings", "made_with")},
        "features": [column.name for column in fitted.encoder.columns],
        "reliability_words": reliability,
        "layer_errors": errors.mean(axis=1).tolist() if deep else [],
        "effects": effects.effect_rows(fitted, rare),
        "resampled": isinstance(model, EffectsRegressor),
        "parts": effects.part_rows(fitted, table),
        "trajectory_words": pictures.TRAJECTORY_WORDS,
        "horizons": effects.horizon_rows(fitted, min_count),
        "deep": getattr(model, "n_layers_", 1) > 1,
        "components": effects.in_words(components) if components else [],
        "n_hidden": max(len(model.feature_names_in_) - pictures.N_FEATURES, 0),
        "similarity_words": similarity,
    }
    return render_page("report", fitted.name, content)


class OutcomeRow(NamedTuple):
    """One outcome."""

    name: str
    cells: list[Cell]
    remarks: list[str]


def outcome_rows(
    table: pd.DataFrame, n_rows: int, coverage: float, min_count: int = study.FEWEST
) -> list[OutcomeRow]:
    """A row for each outcome, without counts that could point to a person."""
    useless = set(words.without_gain(table))
    narrow = set(words.undercovered(table, coverage))
    write: dict[str, Callable[[Any], str]] = {"values": "{:,}".format}
    write |= {"at_lower": words.percent, "at_upper": words.percent}
    for name, measure in study.MEASURES.items():
        if measure.reported:
            write |= dict.fromkeys((name, f"null_{name}"), partial(words.measured, name))
    published = privacy.published_outcomes(table, n_rows, min_count)
    rows = []
    for lower, upper, row in zip(table["lower"], table["upper"], published, strict=True):
        name, ends = row["name"], f"{words.bound(lower)} – {words.bound(upper)}"
        cells = [Cell(ends, lower if isfinite(lower) else None)]
        cells += [_cell(row[key], write[key]) for key in write]
        remarks = ["no gain"] * (name in useless) + ["intervals too narrow"] * (name in narrow)
        rows.append(OutcomeRow(name, cells, remarks))
    return rows


def _cell(value: float | str | None, write: Callable[[Any], str]) -> Cell:
    """A number as it is read and as it is sorted by; what is hidden has no place in the order."""
    if value is None or isinstance(value, str):
        return Cell(value or words.UNKNOWN, None)
    return Cell(write(value), round(value, 6))


def render_comparison(evaluation: study.evaluation.Evaluation, name: str) -> str:
    """One self-contained HTML page about methods that were compared on held-out rows."""
    # ``study`` loads comparisons on use: their methods need much of scikit-learn.
    first, *others = study.comparison.notes(evaluation)
    tables = study.comparison.all_tables(evaluation)
    return render_page("comparison", name, {"lede": first, "notes": others, "tables": tables})


# Templates.


@cache
def template_part(name: str) -> str:
    """The text of a file in ``templates``."""
    return files("deeptobit.app.report").joinpath("templates", name).read_text(encoding="utf-8")


def render_page(
    kind: str, name: str, content: dict[str, Any], scripts: Sequence[str] = ("tables.js",)
) -> str:
    """A page of one kind with its scripts; its policy allows no others."""
    script = "".join(map(template_part, scripts))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = {"name": name, "script": script, "script_hash": digest}
    return str(environment().get_template(f"{kind}.html.j2").render(content | page))


@cache
def environment() -> Any:
    """Jinja's environment, which escapes everything that is not marked as safe."""
    strict = require("jinja2", "app").StrictUndefined
    made = study.tables.templates("report/templates", autoescape=True, undefined=strict)
    for write in (words.number, words.percent, words.plural, words.significant):
        made.globals[write.__name__] = write
    return made
