"""The report: one HTML page that needs no other file."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import pandas as pd

from deeptobit.app.report import directions, pictures, points, privacy, words
from deeptobit.app.report.brain import draw_cortex
from deeptobit.app.report.card import noise_words, study_settings
from deeptobit.app.report.points import Cell
from deeptobit.app.report.words import UNKNOWN, bound, listed, measured, percent, plural
from deeptobit.app.study import FEWEST, MEASURES, FittedStudy
from deeptobit.app.study.fitted import StudyModel
from deeptobit.estimators import AutoTobitRegressor, SubspaceNetworkRegressor, TobitRegressor
from deeptobit.extras import require

_SHOWN_FIRST = 8  # pictures of outcomes; the others unfold
_N_COMPONENTS = 5
_N_ITEMS = 8  # of a setting that is a list


def render_report(fitted: FittedStudy, *, small_counts: bool | None = None) -> str:
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
    table = fitted.held_out.table()
    shown = fitted.study.report.small_counts if small_counts is None else small_counts
    min_count, rare = (1, {}) if shown else (FEWEST, fitted.encoder.rare)
    held_out, model, script = fitted.held_out, fitted.model, template_part("tables.js")
    at_bounds = privacy.bound_errors(held_out.targets, held_out.predictive, min_count)
    reliability = words.reliability_words(at_bounds)
    errors = pictures.layer_errors(held_out, table)
    deep = errors.size > 0 and len(errors) > 1  # one layer has nothing to compare
    components = directions.shared_directions(model, _N_COMPONENTS, rare)
    cosines = directions.task_cosines(model)
    similarity = directions.similarity_words(cosines)
    with pictures.drawing():
        outcomes = pictures.draw_outcomes(held_out, table, min_count)
        curves, heat_map = f"Reliability curves. {reliability}", f"Heat map. {similarity}"
        drawn = {
            "outcomes": outcomes[:_SHOWN_FIRST],
            "more_outcomes": outcomes[_SHOWN_FIRST:],
            "reliability": pictures.draw_reliability(held_out, curves, min_count),
            "layers": pictures.draw_layers(errors) if deep else None,
            "subspaces": pictures.draw_subspaces(components) if components else None,
            "brain": draw_cortex(components) if components else None,
            "similarity": pictures.draw_similarity(cosines, heat_map) if similarity else None,
        }
    effects = points.effect_rows(fitted, rare)
    content = drawn | {
        "name": fitted.name,
        "script": script,
        "style": template_part("style.css"),
        "script_hash": script_hash(script),
        "study": words.the_study(fitted, table, min_count),
        "result": words.the_result(table),
        "figures": words.key_figures(fitted, table),
        "cautions": words.cautions(fitted, table),
        "coverage": percent(held_out.coverage),
        "measures": [measure for measure in MEASURES.values() if measure.reported],
        "rows": outcome_rows(table, fitted.n_held_out, held_out.coverage, min_count),
        "findings": privacy.published(fitted.findings, rare, min_count),
        "min_count": min_count,
        "small_counts": min_count < FEWEST,
        "card": _card(fitted, min_count),
        "features": [column.name for column in fitted.encoder.columns],
        "reliability_words": reliability,
        "layer_words": words.layer_words(errors) if deep else "",
        "effects": effects,
        "effects_alone": [row[:-1] for row in effects],
        "n_outcomes": len(table),
        "labels": _labels(),
        "effect_words": points.effect_words(fitted),
        "has_intervals": points.has_intervals(fitted),
        "parts": points.part_rows(fitted, table),
        "methods": points.methods_paragraph(fitted, table, min_count),
        "tripod": points.tripod_items(fitted),
        "deep": getattr(model, "n_layers_", 1) > 1,
        "components": directions.in_words(components) if components else [],
        "n_features": len(model.feature_names_in_),
        "n_hidden": max(len(model.feature_names_in_) - pictures.N_FEATURES, 0),
        "similarity_words": similarity,
    }
    return str(environment().get_template("report.html.j2").render(content))


# The table of outcomes.


def _labels() -> list[str]:
    """What the cells of a row are, where a narrow screen has no room for headings."""
    labels = ["Outcome", "Bounds", "Values", "At lower bound", "At upper bound"]
    for measure in MEASURES.values():
        if measure.reported:
            title = measure.title[:1].upper() + measure.title[1:]
            labels += [title, f"{title}, null"]
    return labels


class Row(NamedTuple):
    """One outcome; ``filled`` is R² as a share of the width of its column."""

    name: str
    cells: list[Cell]
    filled: float
    remarks: list[str]


def outcome_rows(
    table: pd.DataFrame, n_rows: int, coverage: float, min_count: int = FEWEST
) -> list[Row]:
    """A row for each outcome, without counts that could point to a person."""
    useless = set(words.without_gain(table))
    narrow = set(words.undercovered(table, coverage))
    reported = {name: one.style for name, one in MEASURES.items() if one.reported}
    rows = []
    for label, row in table.iterrows():
        name, entries = str(label), int(row["entries"])
        hidden = privacy.hidden_part(entries, n_rows, min_count)
        coarse = 1.0 if entries < n_rows / 2 else n_rows - 1.0
        cells = [
            Cell(f"{bound(row['lower'])} – {bound(row['upper'])}", _key(row["lower"])),
            Cell(hidden or f"{entries:,}", coarse if hidden else entries),
            *(_share(float(row[side]), entries, min_count) for side in ("at_lower", "at_upper")),
        ]
        for measure, style in reported.items():
            digits = 2 if style == "percent" else 6  # more of a share reveal the number of rows
            for value in (row[measure], row[f"null_{measure}"]):
                hide = entries < min_count  # measures of few values would reveal them
                shown = Cell(measured(measure, value), _key(value, digits))
                cells.append(Cell(UNKNOWN, None) if hide else shown)
        remarks = ["no gain"] * (name in useless) + ["intervals too narrow"] * (name in narrow)
        filled = min(max(float(row["r2"]), 0.0), 1.0) if row["r2"] == row["r2"] else 0.0
        rows.append(Row(name, cells, round(filled, 3), remarks))
    return rows


def _share(fraction: float, entries: int, min_count: int) -> Cell:
    """A share at a bound; if it is hidden, so is its place among the others."""
    hidden = privacy.hidden_share(fraction, entries, min_count)
    if hidden:
        return Cell(hidden, 0.001 if fraction < 0.5 else 0.999)
    return Cell(percent(fraction), _key(fraction, 2))


def _key(value: float, digits: int = 6) -> float | None:
    """A number to sort by; an open or unknown end has none."""
    return round(float(value), digits) if abs(value) < float("inf") else None


# The model card at the end of the page.

Entries = list[tuple[str, str]]


def _card(fitted: FittedStudy, min_count: int) -> dict[str, Entries]:
    columns, model = fitted.encoder.columns, fitted.model
    categorical = sum(column.reference is not None for column in columns)
    kinds = f"{len(columns) - categorical} numeric, {categorical} categorical"
    groups = "none: rows were taken as independent"
    if fitted.n_groups is not None:
        n_groups = privacy.count(fitted.n_groups, min_count)
        groups = f"{n_groups}, never split between training and held-out rows"
    return {
        "Data": [
            ("Rows", privacy.count(fitted.n_rows, min_count)),
            ("Groups", groups),
            ("Features", f"{len(columns)}: {kinds}"),
            ("With missing cells", plural(sum(column.indicator for column in columns), "feature")),
            ("Outcomes", plural(len(fitted.summary), "outcome")),
        ],
        "Model": [*_model(model), ("Noise", noise_words(model.noise_))],
        "Settings": [(name, _setting(value)) for name, value in study_settings(fitted).items()],
        "Made with": list(fitted.facts.items()),
    }


def _model(model: StudyModel) -> Entries:
    if isinstance(model, TobitRegressor):
        return [("Kind", "Tobit regression of every target, prediction E[y | x]")]
    prior = "chosen on a grid"
    if isinstance(model, SubspaceNetworkRegressor):
        prior = "by a rule, since rows were streamed"
    elif isinstance(model, AutoTobitRegressor):
        prior = "learned from the data" if model.n_layers_ == 1 else "by a rule"
    return [
        ("Kind", "Subspace Network: censored low-rank layers, prediction E[y | x]"),
        ("Layers", str(model.n_layers_)),
        ("Shared directions (rank)", str(model.rank_)),
        ("Strength of the prior", prior),
    ]


def _setting(value: Any) -> str:
    if value is None or value == []:
        return "not set"
    if isinstance(value, list):
        return listed([str(item) for item in value], _N_ITEMS)
    return str(value)


# Templates.


@cache
def template_part(name: str) -> str:
    """The text of a file in ``templates``."""
    return files("deeptobit.app.report").joinpath("templates", name).read_text(encoding="utf-8")


def script_hash(script: str) -> str:
    """What a content security policy allows a script by."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def environment() -> Any:
    """Jinja's environment, which escapes everything that is not marked as safe."""
    jinja2 = require("jinja2", "app")
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(template_part),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
