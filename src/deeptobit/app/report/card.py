"""Model cards: data, settings, versions and scores of a model, without people in them.

A card consists of dicts, lists, text, numbers and None, the same in JSON and in Markdown. It has no
ids, no count from 1 to 4, and nothing that would reveal one, unless small counts are wanted.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from deeptobit.app.report import privacy
from deeptobit.app.report.words import UNKNOWN, bound, cautions, held_out_rows, percent, plural
from deeptobit.app.study import FEWEST, FittedStudy, measure, versions, write_whole
from deeptobit.app.study.tables import escape_markdown, templates
from deeptobit.estimators.inputs import feature_names
from deeptobit.likelihood import Noise, NoiseByTask, grid_of, of_task

Card = dict[str, Any]

_COVERAGE = 0.9
_MAX_ROWS = 50  # of a table in Markdown; the others are in the JSON file


def study_card(fitted: FittedStudy, *, small_counts: bool | None = None) -> Card:
    r"""The model card of a fitted study, with scores of held-out rows.

    Parameters
    ----------
    fitted : FittedStudy
    small_counts : bool, optional
        Whether to show counts under five and rare categories; by default what ``[report]`` of the
        study says.

    Returns
    -------
    dict
        ``name``, ``left_out``, ``model``, ``data``, ``scores``, ``cautions``, ``findings``,
        ``settings``, ``made_with``. An unknown number is None; a hidden count is text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.app.study import build_data, fit_study, read_data, read_study
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{age},{min(90 - age + age % 3, 30)}" for age in range(40, 80)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["age,MMSE", *rows]))
    ...     path = Path(folder, "clinic.toml")
    ...     _ = path.write_text(
    ...         'data.file = "a.csv"\ntargets.MMSE.upper = 30\nevaluation.folds = 2\n'
    ...         "model = {kind = 'network', max_layers = 1, ranks = [1], alphas = [0.1], cv = 2}"
    ...     )
    ...     study = read_study(path)
    ...     card = study_card(fit_study(study, build_data(study, read_data(study))))
    >>> card["name"], card["data"]["features"][0]["mean"], card["scores"]["targets"][0]["r2"]
    ('clinic', 59.5, 0.986)
    """
    shown = fitted.study.report.small_counts if small_counts is None else small_counts
    return describe_study(fitted, fitted.held_out.table(), shown)


def describe_study(fitted: FittedStudy, table: pd.DataFrame, small_counts: bool) -> Card:
    """The card of a study, given the table of its held-out results."""
    min_count, rare = (1, {}) if small_counts else (FEWEST, fitted.encoder.rare)
    data: Card = {"rows": _count(fitted.n_rows, min_count)}
    how = f"{held_out_rows(fitted, min_count)}, in {fitted.facts.get('folds')} folds."
    if fitted.streamed:
        data["held_out_rows"] = _count(fitted.n_held_out, min_count)
        how = f"{held_out_rows(fitted)}. Values, shares and scores are theirs."
    how += f" Nominal coverage of the intervals: {percent(fitted.held_out.coverage)}."
    data["groups"] = None if fitted.n_groups is None else _count(fitted.n_groups, min_count)
    data["features_with_missing_cells"] = sum(one.indicator for one in fitted.encoder.columns)
    data["targets"], scores = _outcomes(table, fitted.n_held_out, min_count)
    data["features"] = _column_rows(fitted, min_count)
    return {
        "name": fitted.name,
        "left_out": _left_out(small_counts),
        "model": _model(fitted.model, table["lower"], table["upper"]),
        "data": data,
        "scores": {"how": f"{how} null: a model without features.", "targets": scores},
        "cautions": cautions(fitted, table),
        "findings": [
            f"{finding.level}: {finding.about}: {finding.message}"
            for finding in privacy.published(fitted.findings, rare, min_count)
        ],
        "settings": {
            f"{title}.{name}": json_value(value)
            for title in ("data", "features", "model")
            for name, value in vars(getattr(fitted.study, title)).items()
            if name != "file"
        },
        "made_with": dict(fitted.facts),
    }


def model_card(
    model: Any, X: Any = None, Y: Any = None, *, name: str | None = None, small_counts: bool = False
) -> Card:
    """The model card of a fitted estimator; with X and Y, also of these rows and its scores there.

    Parameters
    ----------
    model : fitted estimator of deeptobit
    X : array, sparse matrix or DataFrame of shape (N, D), optional
    Y : array, DataFrame or CensoredTargets of shape (N,) or (N, T), optional
        Preferably of rows that the model was not fitted to.
    name : str, optional
        Name of the model; by default that of its class.
    small_counts : bool
        Whether to show counts under five.

    Returns
    -------
    dict
        As :func:`study_card`, as far as it is known.

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> y = np.clip(X[:, 0] - 5 + np.sin(X[:, 0]), 0, 10)
    >>> card = model_card(TobitRegressor(upper=10).fit(X, y), X, y)
    >>> card["data"]["targets"]
    [{'name': 'y', 'values': 20, 'at_lower': 0.3, 'at_upper': 0.25}]
    >>> card["scores"]["targets"][0]["r2"]
    0.986
    """
    check_is_fitted(model)
    if (X is None) != (Y is None):
        raise ValueError("a card describes rows by X and Y together; pass both, or neither")
    min_count = 1 if small_counts else FEWEST
    data, scores = Card(), Card()
    if hasattr(model, "best_score_"):
        scores[f"cross_validated_{model.scoring}"] = _rounded(model.best_score_)
    if Y is not None:
        targets, predictive = model._compared(X, Y)
        table = targets.describe().assign(**measure(targets, predictive, _COVERAGE))
        data["rows"] = _count(len(targets), min_count)
        scores["how"] = (
            "On the rows passed with the model; if it was fitted to them, they flatter it. "
            f"Nominal coverage of the intervals: {percent(_COVERAGE)}."
        )
        data["targets"], scores["targets"] = _outcomes(table, len(targets), min_count)
    data["features"] = [{"name": feature} for feature in feature_names(model)]
    return {
        "name": name or type(model).__name__,
        "left_out": _left_out(small_counts),
        "model": _model(model, model.lower_, model.upper_),
        "data": data,
        "scores": scores,
        "settings": {key: json_value(value) for key, value in model.get_params(deep=False).items()},
        "made_with": versions(),
    }


def _left_out(small_counts: bool) -> str:
    if small_counts:
        return "No ids are in this card; small counts are, so it is not for publication."
    return f"No ids are in this card, and no counts from 1 to {FEWEST - 1}."


# The parts of a card.


def _model(model: Any, lower: Iterable[float], upper: Iterable[float]) -> Card:
    """What was fitted: class, sizes, noise, and the bounds and σ of every target."""
    noise = model.noise_
    sizes = {"layers": "n_layers_", "rank": "rank_", "random_effects": "effects_"}
    sizes |= {"person_rank": "person_rank_", "visit_rank": "visit_rank_"}
    targets, parts = [], zip(model.target_names_, lower, upper, model.sigma_, strict=True)
    for task, (name, low, high, sigma) in enumerate(parts):
        about = {"name": name, "lower": _end(low), "upper": _end(high), "sigma": _rounded(sigma)}
        targets.append(about | _noise(noise, task))
    return {
        "class": type(model).__name__,
        "predicts": plural(len(model.target_names_), "target"),
        "from": plural(model.n_features_in_, "feature"),
        **{
            title: json_value(getattr(model, name))
            for title, name in sizes.items()
            if hasattr(model, name)
        },
        "noise": "of each target" if isinstance(noise, NoiseByTask) else noise.name,
        "targets": targets,
    }


def _end(value: float) -> float | str:
    """A bound in numbers; in words if there is none."""
    return float(value) if np.isfinite(value) else bound(value)


def _noise(noise: Noise, task: int) -> Card:
    """Noise of a target, growth of log σ per standard deviation of its scores, and score step."""
    found: Card = {"noise": repr(of_task(noise, task))}
    if isinstance(noise, NoiseByTask) and noise.spread is not None:
        found["sigma_growth"] = _rounded(float(noise.spread.growth[task]))
    grid = grid_of(noise)
    if grid is not None and grid.step[task]:
        found["step_between_scores"] = _rounded(float(grid.step[task]))
    return found


def _outcomes(table: pd.DataFrame, n_rows: int, min_count: int) -> tuple[list[Card], list[Card]]:
    """Values and shares at the bounds of every target, and its measures."""
    rows = privacy.published_outcomes(table, n_rows, min_count)
    counts = ("values", "at_lower", "at_upper")
    values = [{key: row[key] for key in ("name", *counts)} for row in rows]
    scores = [{key: _rounded(row[key]) for key in row if key not in counts} for row in rows]
    return values, scores


def _column_rows(fitted: FittedStudy, min_count: int) -> list[Card]:
    """The columns of a table. Shares of categories, or of a flag, would reveal small counts."""
    model = fitted.model
    deviations = dict(zip(model.feature_names_in_, model.feature_scale_, strict=True))
    rows = []
    for column in fitted.encoder.columns:
        kind = "numeric" if column.reference is None else f"{len(column.levels) + 1} categories"
        row = {"name": column.name, "kind": kind, "mean": None, "sd": None}
        if kind == "numeric" and not (min_count > 1 and column.few[0]):
            row |= {"mean": _rounded(column.means[0]), "sd": _rounded(deviations[column.name])}
        rows.append(row | {"missing_cells": "some" if column.indicator else "none"})
    return rows


def json_value(value: Any) -> Any:
    """A value in the types of JSON: None for NaN and infinity, the repr of other objects."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)


def _rounded(value: Any) -> Any:
    """Three significant digits of a number, None if it is unknown; a name as it is."""
    if value is None or isinstance(value, str):
        return value
    return float(f"{value:.3g}") if np.isfinite(value) else None


def _count(value: int, min_count: int) -> int | str:
    return privacy.hidden_count(value, min_count) or value


# Markdown and files.


def card_markdown(card: Mapping[str, Any]) -> str:
    r"""A card as Markdown: lists of facts, tables of targets and features.

    Examples
    --------
    >>> data = {"rows": 80, "targets": [{"name": "a|b", "r2": 0.5}]}
    >>> print(card_markdown({"name": "clinic", "left_out": "No ids are in it.", "data": data}))
    # Model card: clinic
    <BLANKLINE>
    No ids are in it.
    <BLANKLINE>
    ## Data
    <BLANKLINE>
    - rows: 80
    <BLANKLINE>
    | targets | r2 |
    |---|---|
    | a\|b | 0.5 |
    <BLANKLINE>
    """

    def write(value: Any) -> str:
        return escape_markdown(_text(value))

    environment = templates("report/templates", finalize=write, keep_trailing_newline=True)
    tools = {"facts": facts, "is_table": _is_table, "most_rows": _MAX_ROWS}
    return str(environment.get_template("card.md.j2").render(tools, card=card))


def facts(part: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a part of a card says beside its tables, as text.

    Examples
    --------
    >>> facts({"rows": 80, "groups": None, "ranks": [1, 2], "targets": [{"name": "MMSE"}]})
    [('rows', '80'), ('groups', '–'), ('ranks', '1, 2')]
    """
    return [(title, _text(value)) for title, value in part.items() if not _is_table(value)]


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _text(value: Any) -> str:
    if value is None or value == []:
        return UNKNOWN
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def card_files(model: Path) -> tuple[Path, Path]:
    """Where the card of a model file belongs: Markdown and JSON, beside it.

    Examples
    --------
    >>> [file.name for file in card_files(Path("cohort.deeptobit"))]
    ['cohort-card.md', 'cohort-card.json']
    """
    return model.with_name(f"{model.stem}-card.md"), model.with_name(f"{model.stem}-card.json")


def write_card(card: Mapping[str, Any], model: Path | str) -> tuple[Path, Path]:
    """Write a card as Markdown and as JSON beside the file of its model; returns both paths.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     files = write_card({"name": "clinic"}, Path(folder, "clinic.model"))
    ...     print(files[0].read_text().splitlines()[0])
    # Model card: clinic
    """
    for_people, for_machines = card_files(Path(model))
    write_whole(for_people, card_markdown(card))
    write_whole(for_machines, json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    return for_people, for_machines
