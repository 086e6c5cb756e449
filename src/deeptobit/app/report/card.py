"""The card that goes with a model: data, settings, versions and scores, without people in it.

A card is plain: dicts, lists, text, numbers and None, the same in JSON and in Markdown. What could
point to a person is not in it: no ids, and no count from 1 to 4, nor what would tell one, unless
small counts are asked for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from deeptobit.app.report.format import (
    UNKNOWN,
    bound,
    count,
    fewest_told,
    part,
    percent,
    share,
    some,
    times,
)
from deeptobit.app.report.words import cautions, held_out_by_lot, published
from deeptobit.app.study import FEWEST, measure, reveals_small_count, versions, write_whole
from deeptobit.arrays import FloatArray
from deeptobit.estimators import AutoTobitRegressor, SubspaceNetworkRegressor, TobitRegressor
from deeptobit.likelihood import Noise, NoiseByTask, Predictive, grid_of, of_task
from deeptobit.targets import CensoredTargets

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.app.study import EncodedColumn, FittedStudy


# The parts of a model card: plain rows and facts, in which small counts are not told.

Facts = dict[str, Any]


def model_part(model: Any, lower: Iterable[float], upper: Iterable[float]) -> Facts:
    """What was fitted: class, sizes, noise, and the bounds and σ of every target."""
    depth = {"layers": model.n_layers_} if hasattr(model, "n_layers_") else {}
    rank = {"rank": model.rank_} if hasattr(model, "rank_") else {}
    each = zip(model.target_names_, lower, upper, model.sigma_, strict=True)
    return {
        "class": type(model).__name__,
        "predicts": times(len(model.target_names_), "target"),
        "from": times(model.n_features_in_, "feature"),
        **depth,
        **rank,
        "noise": noise_words(model.noise_),
        "targets": [
            {
                "name": name,
                "lower": _end(low),
                "upper": _end(high),
                "sigma": rounded(sigma),
                "noise": repr(of_task(model.noise_, task)),
                **_growth(model.noise_, task),
                **_step(model.noise_, task),
            }
            for task, (name, low, high, sigma) in enumerate(each)
        ],
    }


def noise_words(noise: Noise) -> str:
    """The noise of a model, in words where every target has its own.

    Examples
    --------
    >>> from deeptobit.likelihood import Gaussian, Logistic
    >>> noise_words(Gaussian()), noise_words(NoiseByTask([Gaussian(), Logistic()]))
    ('gaussian', 'tails and skew of every outcome by itself')
    """
    if not isinstance(noise, NoiseByTask):
        return noise.name
    if noise.spread is None:
        return "tails and skew of every outcome by itself"
    return "tails, skew and a spread that changes with the score, of every outcome by itself"


def _growth(noise: Noise, task: int) -> Facts:
    """By how much log σ of a target grows per standard deviation of its scores, where it does."""
    if not isinstance(noise, NoiseByTask) or noise.spread is None:
        return {}
    return {"sigma_growth": rounded(float(noise.spread.growth[task]))}


def _step(noise: Noise, task: int) -> Facts:
    """The distance between neighbouring scores of a target, where it has one."""
    grid = grid_of(noise)
    if grid is None or not grid.step[task]:
        return {}
    return {"step_between_scores": rounded(float(grid.step[task]))}


def _end(value: float) -> float | str:
    """A bound; where there is no number, whether the side is open or bounded by row."""
    return float(value) if isfinite(value) else bound(value)


def column_rows(fitted: FittedStudy, fewest: int) -> list[Facts]:
    """The columns that a study predicts from."""
    deviations = dict(zip(fitted.model.feature_names_in_, fitted.model.feature_scale_, strict=True))
    return [_column(column, deviations, fewest) for column in fitted.encoder.columns]


def _column(column: EncodedColumn, deviations: dict[str, float], fewest: int) -> Facts:
    """One column; shares of categories would tell how many people are in the rare ones.

    So would the mean of a flag.
    """
    numeric = column.reference is None
    told = numeric and not (fewest > 1 and column.few[0])
    return {
        "name": column.name,
        "kind": "numeric" if numeric else f"{len(column.levels) + 1} categories",
        "mean": rounded(column.means[0]) if told else None,
        "sd": rounded(deviations[column.name]) if told else None,
        "missing_cells": "some" if column.indicator else "none",
    }


def feature_rows(model: Any, X: Any, fewest: int) -> list[Facts]:
    """The features of an estimator, with their standard deviations where it knows them.

    Beside the number of rows, the deviation of a flag would tell how many have it; without the
    rows, any feature may be such a flag.
    """
    names = getattr(model, "feature_names_in_", [f"x{at}" for at in range(model.n_features_in_)])
    deviations = getattr(model, "feature_scale_", [None] * len(names))
    hidden = [False] * len(names) if fewest == 1 else _telling(model, X)
    return [
        {"name": str(name), "sd": None if hide or deviation is None else rounded(deviation)}
        for name, deviation, hide in zip(names, deviations, hidden, strict=True)
    ]


def _telling(model: Any, X: Any) -> list[bool]:
    """Features of which too much would be told; with a formula, X holds other columns: all."""
    if X is None or hasattr(model, "formula_"):
        return [True] * model.n_features_in_
    return [reveals_small_count(column) for column in _columns(X)]


def _columns(X: Any) -> Iterator[FloatArray]:
    if hasattr(X, "tocsc"):  # sparse
        by_column = X.tocsc()
        return (by_column[:, [at]].toarray().ravel() for at in range(by_column.shape[1]))
    return iter(np.asarray(X, dtype=np.float64).T)


def target_rows(table: pd.DataFrame, n_rows: int, fewest: int) -> list[Facts]:
    """Values and shares at the bounds; what is not told of few rows is text."""
    found = []
    for name, row in table.iterrows():
        entries = int(row["entries"])
        shares = {
            side: _told_share(float(row[side]), entries, fewest)
            for side in ("at_lower", "at_upper")
        }
        found.append({"name": str(name), "values": _told_part(entries, n_rows, fewest), **shares})
    return found


def score_rows(table: pd.DataFrame, measures: list[str], fewest: int) -> list[Facts]:
    """Measures of every target; of few values they would tell the values."""
    return [
        {"name": str(name)}
        | {
            measure: _score(row[measure], measure, int(row["entries"]), fewest)
            for measure in measures
        }
        for name, row in table.iterrows()
    ]


def _score(value: float, measure: str, entries: int, fewest: int) -> float | None:
    if entries < fewest or not isfinite(value):
        return None
    # With more digits a share would tell of how many values it is.
    return round(float(value), 2) if measure.endswith("coverage") else rounded(value)


def told(value: int, fewest: int = FEWEST) -> int | str:
    """A count, or that it is small.

    Examples
    --------
    >>> told(80), told(3), told(0), told(3, fewest=1)
    (80, 'fewer than 5', 0, 3)
    """
    return count(value, fewest) if 0 < value < fewest else value


def _told_part(value: int, whole: int, fewest: int) -> int | str:
    text = part(value, whole, fewest)
    return value if text == f"{value:,}" else text


def _told_share(fraction: float, whole: int, fewest: int) -> float | str:
    text = share(fraction, whole, fewest)
    return round(fraction, 2) if text == percent(fraction) else text


def study_settings(fitted: FittedStudy) -> Facts:
    """What the study file says or leaves as it is; the name of the table stays private."""
    study = fitted.study
    sections: dict[str, Any] = {
        "data": study.data,
        "features": study.features,
        "model": study.model,
    }
    return {
        f"{title}.{field.name}": plain(getattr(section, field.name))
        for title, section in sections.items()
        for field in fields(section)
        if field.name != "file"
    }


def plain(value: Any) -> Any:
    """A setting as JSON has it; an object is described by itself."""
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else repr(value)


def rounded(value: Any) -> float | None:
    """Three digits; an unknown number is None."""
    return float(f"{value:.3g}") if isfinite(value) else None


Card = dict[str, Any]

_COVERAGE = 0.9
_MEASURES = ("r2", "anmse", "crps", "coverage")
_LEFT_OUT = f"No ids are in this card, and no counts from 1 to {FEWEST - 1}."
_SMALL = "No ids are in this card; small counts are, so that it is not for publication."
_GIVEN = "On the rows passed with the model; if it was fitted to them, they flatter it."


def study_card(fitted: FittedStudy, *, small_counts: bool | None = None) -> Card:
    r"""The card of a fitted study; its scores are those of held-out rows.

    Parameters
    ----------
    fitted : FittedStudy
    small_counts : bool, optional
        Whether counts under five and rare categories are told after all; by default as
        ``[report]`` of the study says.

    Returns
    -------
    dict
        ``name``, ``left_out``, ``model``, ``data``, ``scores``, ``cautions``, ``findings``,
        ``settings``, ``made_with``. An unknown number is None; a count that is not told is text.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import build_data, fit_study, read_data, read_study
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
    table = fitted.held_out.table()
    shown = fitted.study.report.small_counts if small_counts is None else small_counts
    fewest, rare = fewest_told(shown), {} if shown else fitted.encoder.rare
    how = (
        f"{_held_out(fitted)} Intervals promise {percent(fitted.held_out.coverage)}. "
        "null: a model without features."
    )
    measures = [name for measure in _MEASURES for name in (measure, f"null_{measure}")]
    return {
        "name": fitted.name,
        "left_out": _SMALL if shown else _LEFT_OUT,
        "model": model_part(fitted.model, table["lower"], table["upper"]),
        "data": {
            "rows": told(fitted.n_rows, fewest),
            **({"held_out_rows": told(fitted.n_held_out, fewest)} if fitted.streamed else {}),
            "groups": None if fitted.n_groups is None else told(fitted.n_groups, fewest),
            "targets": target_rows(table, fitted.n_held_out, fewest),
            "features": column_rows(fitted, fewest),
        },
        "scores": {"how": how, "targets": score_rows(table, measures, fewest)},
        "cautions": cautions(fitted, table),
        "findings": [
            f"{remark.level}: {remark.about}: {remark.message}"
            for remark in published(fitted.findings, rare, fewest)
        ],
        "settings": study_settings(fitted),
        "made_with": dict(fitted.facts),
    }


def _held_out(fitted: FittedStudy) -> str:
    """Which rows the scores are about."""
    if fitted.streamed:
        return f"{held_out_by_lot(fitted)}. Values, shares and scores are theirs."
    kept = "" if fitted.n_groups is None else ", nor any other row of its group"
    return (
        f"Every row was predicted by a model that had not seen it{kept} "
        f"({fitted.facts['folds']} folds)."
    )


def model_card(
    model: Any,
    X: Any = None,
    Y: Any = None,
    *,
    name: str | None = None,
    small_counts: bool = False,
) -> Card:
    """The card of a fitted estimator; with rows X and Y it describes them and scores the model.

    Parameters
    ----------
    model : fitted estimator of deeptobit
    X : array, sparse matrix or DataFrame of shape (N, D), optional
    Y : array, DataFrame or CensoredTargets of shape (N,) or (N, T), optional
        Best of rows that the model was not fitted to.
    name : str, optional
        Of the model; that of its class by default.
    small_counts : bool
        Whether counts under five are told after all.

    Returns
    -------
    dict
        As of :func:`study_card`, as far as it is known.

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
    fewest = fewest_told(small_counts)
    known: dict[str, Any] = {"features": feature_rows(model, X, fewest)}
    scores: dict[str, Any] = {}
    if hasattr(model, "best_score_"):
        scores[f"cross_validated_{model.scoring}"] = rounded(model.best_score_)
    if Y is not None:
        targets = _read(model, Y)
        table = _measured(model, X, targets)
        known = {
            "rows": told(len(targets), fewest),
            "targets": target_rows(table, len(targets), fewest),
        } | known
        how = f"{_GIVEN} Intervals promise {percent(_COVERAGE)}."
        scores |= {"how": how, "targets": score_rows(table, list(_MEASURES), fewest)}
    return {
        "name": name or type(model).__name__,
        "left_out": _SMALL if small_counts else _LEFT_OUT,
        "model": model_part(model, model.lower_, model.upper_),
        "data": known,
        "scores": scores,
        "settings": {key: plain(value) for key, value in model.get_params(deep=False).items()},
        "made_with": versions(),
    }


def _read(model: Any, Y: Any) -> CensoredTargets:
    if isinstance(Y, CensoredTargets):
        return Y
    return CensoredTargets.from_bounds(
        Y, model.lower_, model.upper_, names=model.target_names_, outside=model.outside
    )


def _measured(model: Any, X: Any, targets: CensoredTargets) -> pd.DataFrame:
    latent = model.predict(X, kind="latent").reshape(targets.shape)
    sigma = np.broadcast_to(model.sigma_, targets.shape)
    bounds = (targets.lower_bounds, targets.upper_bounds)
    predictive = Predictive(model.noise_, latent, sigma, *bounds)
    return targets.describe().assign(**measure(targets, predictive, _COVERAGE))


# The model card in a report: data, settings, versions.

_LISTED = 8

Entries = list[tuple[str, str]]


def data_entries(fitted: FittedStudy, fewest: int = FEWEST) -> Entries:
    """What the model was fitted to."""
    columns = fitted.encoder.columns
    categorical = sum(column.reference is not None for column in columns)
    incomplete = sum(column.indicator for column in columns)
    groups = "none: rows were taken as independent"
    if fitted.n_groups is not None:
        groups = f"{count(fitted.n_groups, fewest)}, never split between training and held-out rows"
    return [
        ("Rows", count(fitted.n_rows, fewest)),
        ("Groups", groups),
        (
            "Features",
            f"{len(columns)}: {len(columns) - categorical} numeric, {categorical} categorical",
        ),
        ("With missing cells", f"{times(incomplete, 'feature')}"),
        ("Outcomes", times(len(fitted.summary), "outcome")),
    ]


def model_entries(fitted: FittedStudy) -> Entries:
    """What was chosen."""
    model = fitted.model
    if isinstance(model, TobitRegressor):
        return [
            ("Kind", "Tobit regression of every target, prediction E[y | x]"),
            ("Noise", noise_words(model.noise_)),
        ]
    return [
        ("Kind", "Subspace Network: censored low-rank layers, prediction E[y | x]"),
        ("Layers", str(model.n_layers_)),
        ("Shared directions (rank)", str(model.rank_)),
        ("Strength of the prior", _prior(fitted)),
        ("Noise", noise_words(model.noise_)),
    ]


def _prior(fitted: FittedStudy) -> str:
    if isinstance(fitted.model, SubspaceNetworkRegressor):
        return "by a rule, since rows were streamed"
    if isinstance(fitted.model, AutoTobitRegressor):
        return "learned from the data" if fitted.model.n_layers_ == 1 else "by a rule"
    return "chosen on a grid"


def setting_entries(fitted: FittedStudy) -> Entries:
    """What the study file says or leaves as it is, but for the table's name.

    Bounds are in the table of outcomes.
    """
    study = fitted.study
    sections: dict[str, Any] = {
        "data": study.data,
        "features": study.features,
        "model": study.model,
    }
    return [
        (f"{title}.{field.name}", _shown(getattr(section, field.name)))
        for title, section in sections.items()
        for field in fields(section)
        if field.name != "file"
    ]


def _shown(value: Any) -> str:
    if value is None or value == ():
        return "not set"
    return some([str(item) for item in value], _LISTED) if isinstance(value, tuple) else str(value)


# A model card for people.

_SHOWN = 50  # rows of a table; the others are in the JSON file


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
    blocks = [f"# Model card: {_text(card['name'])}"]
    if "left_out" in card:
        blocks.append(_text(card["left_out"]))
    for title, content in card.items():
        if title not in ("name", "left_out") and content:
            blocks += [f"## {_heading(title).capitalize()}", *_blocks(content)]
    return "\n\n".join(blocks) + "\n"


def _blocks(content: Mapping[str, Any] | Sequence[str]) -> list[str]:
    """Facts first, then tables."""
    if not isinstance(content, Mapping):
        return ["\n".join(f"- {_text(item)}" for item in content)]
    tables = {title: value for title, value in content.items() if _is_table(value)}
    facts = [
        f"- {_text(title)}: {_text(value)}"
        for title, value in content.items()
        if title not in tables
    ]
    shown = ["\n".join(facts)] if facts else []
    return shown + [_table(title, rows) for title, rows in tables.items()]


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _table(title: str, rows: list[dict[str, Any]]) -> str:
    headings = [_heading(name) for name in (title, *list(rows[0])[1:])]
    lines = [_row(headings), "|" + "---|" * len(headings)]
    lines += [_row(row.values()) for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines += ["", f"and {len(rows) - _SHOWN:,} more in the JSON file"]
    return "\n".join(lines)


def _row(cells: Any) -> str:
    return f"| {' | '.join(_text(cell) for cell in cells)} |"


def _heading(key: str) -> str:
    return key.replace("_", " ")


def _text(value: Any) -> str:
    """Text that no Markdown or HTML is read into."""
    if value is None:
        return UNKNOWN
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(item) for item in value) or UNKNOWN
    written = f"{value:g}" if isinstance(value, float) else str(value)
    plain = " ".join(written.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", plain)


# The files of a model card.


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
