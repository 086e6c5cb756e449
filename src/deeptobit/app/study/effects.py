"""What features do to outcomes in their own units, and how predictions err in parts of the rows.

Both need the rows, which a fitted study does not keep; so they are computed when it is fitted.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deeptobit.app.study.data import Encoder
from deeptobit.app.study.measures import HeldOut, Predicted, covered
from deeptobit.arrays import FloatArray
from deeptobit.estimators import MixedTobitRegressor, TobitRegressor
from deeptobit.likelihood import Predictive

_MOST_NUMBERS = 1_000_000  # predictions whose differences are averaged
_MOST_WITH_INTERVALS = 300  # features; standard errors of more take minutes
_MOST_FEATURES = 1000  # of a model whose score is not linear; beyond, effects are left out


@dataclass(frozen=True, eq=False)
class Effects:
    """How many points a step in a feature moves E[y|x], on average over the rows.

    Attributes
    ----------
    step : array of shape (D,)
        The power of ten next to the standard deviation; 1 for a category, against the most
        frequent one.
    effect : array of shape (T, D)
        In units of the outcomes.
    low, high : arrays of shape (T, D)
        Ends of 95 % confidence intervals, NaN where the model has none.
    """

    step: FloatArray
    effect: FloatArray
    low: FloatArray
    high: FloatArray


def learn_effects(model: Any, X: pd.DataFrame, encoder: Encoder) -> Effects:
    """Average effects over the rows of X, or over some of them where they are many.

    Examples
    --------
    >>> from deeptobit.app.study.data import EncodedColumn
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.normal(70.0, 8.0, size=300)})
    >>> model = TobitRegressor(lower=None).fit(X, 50 - 0.4 * X["age"] + rng.normal(size=300))
    >>> column = EncodedColumn("age", (), None, (70.0,), False, (False,))
    >>> found = learn_effects(model, X, Encoder((column,), "impute"))
    >>> found.step, found.effect.round(1), found.low.round(1)
    (array([10.]), array([[-3.9]]), array([[-4.1]]))
    """
    deviation = X.to_numpy(dtype=np.float64).std(axis=0)
    known = np.where(deviation > 0.0, deviation, 1.0)
    step, place = np.power(10.0, np.round(np.log10(known)), dtype=np.float64), 0
    levels: dict[int, slice] = {}  # of the category that a feature belongs to
    for column in encoder.columns:
        own, end = slice(place, place + len(column.levels)), place + len(column.features)
        levels |= dict.fromkeys(range(own.start, own.stop), own)
        step[own] = step[end - column.indicator : end] = 1.0
        place = end
    few = X.shape[1] <= _MOST_WITH_INTERVALS
    if few and isinstance(model, TobitRegressor) and hasattr(model, "_trained"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is not determined, whose interval is unknown
            table = model.marginal_effects(X)
        shape = len(model.target_names_), X.shape[1]
        parts = (table[name].to_numpy().reshape(shape) for name in ("effect", "ci_low", "ci_high"))
        return Effects(step, *(part * step for part in parts))
    n_tasks = len(model.target_names_)
    n_rows = int(np.clip(_MOST_NUMBERS // (n_tasks * X.shape[1]), 20, len(X)))
    rows = X.iloc[:: -(-len(X) // n_rows)]
    slope = _slope_of_scores(model, rows)
    effect = np.full((n_tasks, X.shape[1]), np.nan)
    if slope is not None:
        effect = model.coef_ * slope[:, None] * step
    elif X.shape[1] <= _MOST_FEATURES:
        for feature in range(X.shape[1]):
            effect[:, feature] = _difference(model, rows, feature, levels.get(feature), step)
    unknown = np.full_like(effect, np.nan)
    return Effects(step, effect, unknown, unknown)


def _slope_of_scores(model: Any, rows: pd.DataFrame) -> FloatArray | None:
    """Average slope of E[y|x] by the score, (T,); None if the score is not linear in x.

    None too of a mixed model: people differ by more than its σ.
    """
    if not hasattr(model, "coef_") or isinstance(model, MixedTobitRegressor):
        return None
    score = model.predict(rows, kind="latent").reshape(len(rows), -1)
    linear = rows.to_numpy(dtype=np.float64) @ model.coef_.T + model.intercept_
    if not np.allclose(score, linear, rtol=1e-6, atol=1e-6 * float(model.sigma_.min())):
        return None
    y = Predictive(model.noise_, score, model.sigma_, model.lower_, model.upper_)
    return np.asarray(y.mean_slopes()[0].mean(axis=0))


def _difference(
    model: Any, rows: pd.DataFrame, feature: int, category: slice | None, step: FloatArray
) -> FloatArray:
    """Average difference of E[y|x] by a step, half of it on either side, (T,)."""
    means = []
    for sign in (-1.0, 1.0):
        moved = rows.to_numpy(dtype=np.float64).copy()
        if category is None:
            moved[:, feature] += 0.5 * sign * step[feature]
        else:
            moved[:, category] = 0.0
            moved[:, feature] = sign > 0.0
        table = pd.DataFrame(moved, columns=rows.columns)
        means.append(model.predict(table).reshape(len(rows), -1).mean(axis=0))
    return np.asarray(means[1] - means[0])


# Parts of the rows.

FEWEST_IN_PART = 20  # rows; errors of fewer are chance
_MOST_PARTS = 20


@dataclass(frozen=True, eq=False)
class Subgroups:
    """Held-out errors in parts of the rows: the categories of a column, or a few large groups.

    Attributes
    ----------
    column, level : lists of str
        What the part is, G of them.
    rows : array of shape (G,)
        Number of rows, to the nearest ten.
    error : array of shape (G, T)
        Mean absolute error; NaN where fewer than 20 values are known.
    bias : array of shape (G, T)
        Mean of prediction less value, likewise.
    coverage : array of shape (G, T)
        Share of values inside their prediction interval, likewise.
    """

    column: list[str]
    level: list[str]
    rows: FloatArray
    error: FloatArray
    bias: FloatArray
    coverage: FloatArray


def measure_parts(
    held_out: HeldOut,
    X: pd.DataFrame,
    encoder: Encoder,
    groups: tuple[str, NDArray[Any]] | None = None,
) -> Subgroups:
    """Errors by category of each column, and by group if there are few large ones.

    ``groups`` are the name of their column and the labels of the rows.
    """
    labels: list[tuple[str, NDArray[Any]]] = []
    for column in encoder.columns:
        if column.reference is not None:
            flags = X[list(column.features[: len(column.levels)])].to_numpy() == 1.0
            names = np.array([*column.levels, column.reference], dtype=object)
            place = np.where(flags.any(axis=1), flags.argmax(axis=1), len(column.levels))
            found = names[place]
            if column.indicator:
                found[X[column.features[-1]].to_numpy() == 1.0] = ""
            labels.append((column.name, found))
    if groups is not None and len(set(groups[1])) <= _MOST_PARTS:
        labels.append((groups[0], np.asarray(groups[1], dtype=object)))
    targets, point = held_out.targets, held_out.predictive.mean()
    inside = covered(Predicted(targets, held_out.predictive, point, held_out.coverage))
    difference = np.where(targets.has_value, point - targets.values, np.nan)
    parts: list[tuple[str, str, float, FloatArray, FloatArray, FloatArray]] = []
    for name, found in labels:
        for level in sorted(set(found) - {""}):
            rows = found == level
            if rows.sum() < FEWEST_IN_PART:
                continue
            tables = map(pd.DataFrame, (np.abs(difference[rows]), difference[rows], inside[rows]))
            means = (table.mean().where(table.count() >= FEWEST_IN_PART) for table in tables)
            error, bias, held = (mean.to_numpy() for mean in means)
            n_rows = float(np.round(rows.sum(), -1))
            parts.append((name, str(level), n_rows, error, bias, held))
    if len({name for name, *_ in parts}) == len(parts):  # each alone: nothing to compare
        parts = []
    n_tasks = point.shape[1]
    columns, levels, counts, *measures = zip(*parts, strict=True) if parts else ((),) * 6
    stacked = (np.array(measure, dtype=np.float64).reshape(-1, n_tasks) for measure in measures)
    return Subgroups(list(columns), list(levels), np.array(counts, dtype=np.float64), *stacked)
