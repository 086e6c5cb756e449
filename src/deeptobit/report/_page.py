"""One HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from deeptobit.report import _card, _words
from deeptobit.report._cortex import draw_cortex
from deeptobit.report._directions import in_words, most_alike, shared_directions, task_cosines
from deeptobit.report._findings import published
from deeptobit.report._format import fewest_told, percent
from deeptobit.report._panels import draw_outcomes
from deeptobit.report._pictures import (
    N_FEATURES,
    draw_layers,
    draw_reliability,
    draw_similarity,
    draw_subspaces,
    layer_errors,
)
from deeptobit.report._reliability import bound_errors
from deeptobit.report._rows import outcome_rows
from deeptobit.report._svg import drawing
from deeptobit.report._templates import environment, template_part
from deeptobit.study import FEWEST

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.study import FittedStudy

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
        "deep": model.n_layers_ > 1,
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
