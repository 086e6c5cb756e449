"""One HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from deeptobit.app.report import card as _card
from deeptobit.app.report import words as _words
from deeptobit.app.report.brain import draw_cortex
from deeptobit.app.report.format import (
    UNKNOWN,
    bound,
    fewest_told,
    number,
    part,
    percent,
    share,
    significant,
)
from deeptobit.app.report.pictures import (
    N_FEATURES,
    draw_layers,
    draw_outcomes,
    draw_reliability,
    draw_similarity,
    draw_subspaces,
    drawing,
    layer_errors,
)
from deeptobit.app.report.words import (
    bound_errors,
    in_words,
    most_alike,
    published,
    shared_directions,
    task_cosines,
    undercovered,
    unhelped,
)
from deeptobit.app.study import FEWEST
from deeptobit.extras import require

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.app.study import FittedStudy


# The table of outcomes: what is shown, and what it is sorted by.

_MEASURES: dict[str, Callable[[float], str]] = {
    "r2": number,
    "anmse": lambda value: number(value, 3),
    "crps": significant,
    "coverage": percent,
}


class Cell(NamedTuple):
    """What is read, and the number it is sorted by; None is always last."""

    text: str
    key: float | None


class Row(NamedTuple):
    """One outcome."""

    name: str
    cells: list[Cell]
    filled: float  # R² as a share of its column
    remarks: list[str]


def outcome_rows(
    table: pd.DataFrame, n_rows: int, promised: float, fewest: int = FEWEST
) -> list[Row]:
    """A row for each outcome; counts that could point to a person are left out."""
    useless, narrow = set(unhelped(table)), set(undercovered(table, promised))
    rows = []
    for label, row in table.iterrows():
        name, entries = str(label), int(row["entries"])
        cells = [
            Cell(f"{bound(row['lower'])} – {bound(row['upper'])}", _key(row["lower"])),
            Cell(part(entries, n_rows, fewest), _coarse(entries, n_rows, fewest)),
            *(_share(float(row[side]), entries, fewest) for side in ("at_lower", "at_upper")),
        ]
        few = entries < fewest  # of so few values a measure would tell them
        for measure in _MEASURES:
            for column in (measure, f"null_{measure}"):
                cells.append(Cell(UNKNOWN, None) if few else _measured(measure, row[column]))
        remarks = ["no gain"] * (name in useless) + ["intervals too narrow"] * (name in narrow)
        filled = min(max(float(row["r2"]), 0.0), 1.0) if row["r2"] == row["r2"] else 0.0
        rows.append(Row(name, cells, round(filled, 3), remarks))
    return rows


def _measured(measure: str, value: float) -> Cell:
    """A measure; with more digits than are read, a share would tell of how many rows it is."""
    return Cell(_MEASURES[measure](value), _key(value, 2 if measure == "coverage" else 6))


def _share(fraction: float, entries: int, fewest: int) -> Cell:
    """A share at a bound; where it is not told, the sorting does not tell it either."""
    text = share(fraction, entries, fewest)
    if text == percent(fraction):
        return Cell(text, _key(fraction, 2))
    return Cell(text, 0.001 if fraction < 0.5 else 0.999)


def _coarse(entries: int, n_rows: int, fewest: int) -> float:
    text = part(entries, n_rows, fewest)
    return entries if text == f"{entries:,}" else (1.0 if entries < n_rows / 2 else n_rows - 1.0)


def _key(value: float, digits: int = 6) -> float | None:
    """Precise enough to sort by; an open or unknown end has no place."""
    return round(float(value), digits) if abs(value) < float("inf") else None


# The parts of pages, and what fills them in.


@cache
def template_part(name: str) -> str:
    """The text of a file beside the templates."""
    return files("deeptobit.app.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def environment() -> Any:
    """Jinja's environment, which escapes everything that is not said to be safe."""
    jinja2 = require("jinja2", "app")
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(template_part),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


_SHOWN_FIRST = 8  # pictures of outcomes; the others unfold
_N_COMPONENTS = 5


def render_report(fitted: FittedStudy, *, small_counts: bool | None = None) -> str:
    r"""One self-contained HTML page about a fitted study.

    It loads nothing from anywhere, is readable without JavaScript, and holds neither ids nor
    counts under five, nor categories of so few rows. The same study gives the same page.

    Parameters
    ----------
    fitted : FittedStudy
    small_counts : bool, optional
        Whether counts under five and rare categories are told after all; by default as
        ``[report]`` of the study says.

    Returns
    -------
    str

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import build_data, fit_study, read_data, read_study
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{age},{min(30, 80 - age + age % 3)}" for age in range(45, 75)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["age,MMSE", *rows]))
    ...     path = Path(folder, "clinic.toml")
    ...     _ = path.write_text('[data]\nfile = "a.csv"\n[targets.MMSE]\nlower = 0\nupper = 30')
    ...     study = read_study(path)
    ...     fitted = fit_study(study, build_data(study, read_data(study)))
    >>> page = render_report(fitted)
    >>> page[page.index("<title>") : page.index("</title>")]
    '<title>clinic: model report'
    """
    table = fitted.held_out.table()
    told = fitted.study.report.small_counts if small_counts is None else small_counts
    rare = {} if told else fitted.encoder.rare
    fewest = fewest_told(told)
    with drawing():
        content = _content(fitted, table, rare, fewest) | _pictures(fitted, table, rare, fewest)
    template = environment().get_template("report.html.j2")
    return str(template.render(content))


def _content(
    fitted: FittedStudy, table: pd.DataFrame, rare: dict[str, str], fewest: int
) -> dict[str, Any]:
    coverage = fitted.held_out.coverage
    script, style = template_part("sort.js"), template_part("style.css")
    return {
        "name": fitted.name,
        "script": script,
        "style": style,
        "policy": _policy(script),
        "study": _words.the_study(fitted, table, fewest),
        "result": _words.the_result(table),
        "figures": _words.key_figures(fitted, table),
        "cautions": _words.cautions(fitted, table),
        "coverage": percent(coverage),
        "rows": outcome_rows(table, fitted.n_held_out, coverage, fewest),
        "findings": published(fitted.findings, rare, fewest),
        "fewest": fewest,
        "small_counts": fewest < FEWEST,
        "card": {
            "Data": _card.data_entries(fitted, fewest),
            "Model": _card.model_entries(fitted),
            "Settings": _card.setting_entries(fitted),
            "Made with": list(fitted.facts.items()),
        },
        "features": [column.name for column in fitted.encoder.columns],
    }


def _pictures(
    fitted: FittedStudy, table: pd.DataFrame, rare: dict[str, str], fewest: int
) -> dict[str, Any]:
    held_out, model = fitted.held_out, fitted.model
    outcomes = draw_outcomes(held_out, table, fewest)
    reliability = _words.reliability_words(
        bound_errors(held_out.targets, held_out.predictive, fewest)
    )
    errors = layer_errors(held_out, table)
    directions = shared_directions(model, _N_COMPONENTS, rare)
    cosines = task_cosines(model)
    alike = most_alike(cosines)
    likeness = "" if alike is None else _words.likeness_words(alike)
    return {
        "outcomes": outcomes[:_SHOWN_FIRST],
        "more_outcomes": outcomes[_SHOWN_FIRST:],
        "reliability": draw_reliability(held_out, f"Reliability curves. {reliability}", fewest),
        "reliability_words": reliability,
        "layers": draw_layers(errors) if errors.size else None,
        "layer_words": _words.layer_words(errors) if errors.size else "",
        "deep": getattr(model, "n_layers_", 1) > 1,
        "subspaces": draw_subspaces(directions) if directions else None,
        "components": in_words(directions) if directions else [],
        "brain": draw_cortex(directions) if directions else None,
        "n_features": len(model.feature_names_in_),
        "n_hidden": max(len(model.feature_names_in_) - N_FEATURES, 0),
        "similarity": draw_similarity(cosines, f"Heat map. {likeness}") if alike else None,
        "likeness": likeness,
    }


def _policy(script: str) -> str:
    """Nothing may be loaded, and no script may run but the one that sorts the table."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
