"""The parts of a model card: plain rows and facts, in which small counts are not told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise, NoiseByTask, grid_of, of_task
from deeptobit.report._format import bound, count, part, percent, share, times
from deeptobit.study import FEWEST, tells_few

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
    return [tells_few(column) for column in _columns(X)]


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
