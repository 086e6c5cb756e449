"""The parts of a model card: plain rows and facts, in which small counts are not told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.report._format import FEWEST, bound, count, part, percent, share, times

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.study import EncodedColumn, FittedStudy

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
        "noise": model.noise_.name,
        "targets": [
            {"name": name, "lower": _end(low), "upper": _end(high), "sigma": rounded(sigma)}
            for name, low, high, sigma in each
        ],
    }


def _end(value: float) -> float | str:
    """A bound; where there is no number, whether the side is open or bounded by row."""
    return float(value) if isfinite(value) else bound(value)


def column_rows(fitted: FittedStudy) -> list[Facts]:
    """The columns that a study predicts from."""
    deviations = dict(zip(fitted.model.feature_names_in_, fitted.model.feature_scale_, strict=True))
    return [_column(column, deviations) for column in fitted.encoder.columns]


def _column(column: EncodedColumn, deviations: dict[str, float]) -> Facts:
    """One column; shares of categories would tell how many people are in the rare ones."""
    numeric = column.reference is None
    return {
        "name": column.name,
        "kind": "numeric" if numeric else f"{len(column.levels) + 1} categories",
        "mean": rounded(column.means[0]) if numeric else None,
        "sd": rounded(deviations[column.name]) if numeric else None,
        "missing_cells": "some" if column.indicator else "none",
    }


def feature_rows(model: Any) -> list[Facts]:
    """The features of an estimator, with their standard deviations where it knows them."""
    names = getattr(model, "feature_names_in_", [f"x{at}" for at in range(model.n_features_in_)])
    deviations = getattr(model, "feature_scale_", [None] * len(names))
    return [
        {"name": str(name), "sd": None if deviation is None else rounded(deviation)}
        for name, deviation in zip(names, deviations, strict=True)
    ]


def target_rows(table: pd.DataFrame, n_rows: int) -> list[Facts]:
    """Values and shares at the bounds; what is not told of few rows is text."""
    found = []
    for name, row in table.iterrows():
        entries = int(row["entries"])
        shares = {side: _told_share(float(row[side]), entries) for side in ("at_lower", "at_upper")}
        found.append({"name": str(name), "values": _told_part(entries, n_rows), **shares})
    return found


def score_rows(table: pd.DataFrame, measures: list[str]) -> list[Facts]:
    """Measures of every target; of few values they would tell the values."""
    return [
        {"name": str(name)}
        | {measure: _score(row[measure], measure, int(row["entries"])) for measure in measures}
        for name, row in table.iterrows()
    ]


def _score(value: float, measure: str, entries: int) -> float | None:
    if entries < FEWEST or not isfinite(value):
        return None
    # With more digits a share would tell of how many values it is.
    return round(float(value), 2) if measure.endswith("coverage") else rounded(value)


def told(value: int) -> int | str:
    """A count, or that it is small.

    Examples
    --------
    >>> told(80), told(3), told(0)
    (80, 'fewer than 5', 0)
    """
    return count(value) if 0 < value < FEWEST else value


def _told_part(value: int, whole: int) -> int | str:
    text = part(value, whole)
    return value if text == f"{value:,}" else text


def _told_share(fraction: float, whole: int) -> float | str:
    text = share(fraction, whole)
    return round(fraction, 2) if text == percent(fraction) else text


def study_settings(fitted: FittedStudy) -> Facts:
    """What the study file says or leaves as it is; the folder of the table stays private."""
    study = fitted.study
    sections: dict[str, Any] = {
        "data": study.data,
        "features": study.features,
        "model": study.model,
    }
    found = {
        f"{title}.{field.name}": plain(getattr(section, field.name))
        for title, section in sections.items()
        for field in fields(section)
    }
    return found | {"data.file": PurePath(study.data.file).name}


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
