"""Effects in units, errors in parts of the rows, and the words of a methods section."""

from collections.abc import Mapping
from math import isfinite, isnan
from typing import NamedTuple

import numpy as np
import pandas as pd

from deeptobit.app.report import words
from deeptobit.app.report.privacy import count
from deeptobit.app.study import FEWEST, FittedStudy
from deeptobit.arrays import FloatArray
from deeptobit.estimators import AutoTobitRegressor, MixedTobitRegressor, TobitRegressor

_PER_OUTCOME = 8  # effects that are shown of one outcome
_LEAST = 0.02  # an effect in units of the noise that is shown


class Cell(NamedTuple):
    """The text that is read, what is sorted by (None is always last), and whether it is best."""

    text: str
    key: float | str | None
    mark: str = ""


# Effects in units.


def effect_rows(fitted: FittedStudy, rare: Mapping[str, str]) -> list[list[Cell]]:
    """The strongest effects of every outcome: outcome, step in the feature, points, interval.

    Strength is measured in units of the noise. Rare categories are left out, and so is the interval
    if the model has none.
    """
    effects = fitted.effects
    if effects is None:
        return []
    features, sigma = fitted.encoder.features, fitted.model.sigma_
    strength = np.abs(effects.effect) / sigma[:, None]
    strength[:, [place for place, name in enumerate(features) if name in rare]] = 0.0
    strongest = np.argsort(-strength, axis=1, kind="stable")[:, :_PER_OUTCOME]
    pairs = [(task, place) for task, places in enumerate(strongest) for place in places]
    has_intervals, rows = np.isfinite(effects.low).any(), []
    for task, place in sorted(pairs, key=lambda pair: -strength[pair]):
        if not strength[task, place] >= _LEAST:
            continue
        target, feature = fitted.model.target_names_[task], features[place]
        step = f"+{effects.step[place]:g} {feature}"
        step = feature.replace("=", ": ") if "=" in feature else step
        effect, low, high = (
            float(values[task, place]) for values in (effects.effect, effects.low, effects.high)
        )
        cells = [Cell(target, target), Cell(step, feature)]
        cells.append(Cell(_signed(effect), round(effect, 6)))
        if has_intervals:
            interval = f"{_signed(low)} to {_signed(high)}"
            cells.append(Cell(words.UNKNOWN if isnan(low) else interval, None))
        rows.append(cells)
    return rows


def _signed(value: float) -> str:
    text = words.significant(value)
    return text if value < 0.0 or not isfinite(value) else f"+{text}"


# Parts of the rows.


def part_rows(fitted: FittedStudy, table: pd.DataFrame) -> list[list[Cell]]:
    """Errors in parts of the rows against those in all rows, averaged over outcomes.

    Column, part, rows, error relative to all rows, bias in units of the noise, coverage; for a
    single outcome the error is in points.
    """
    parts = fitted.subgroups
    if parts is None or not len(parts.level):
        return []
    alone = len(table) == 1
    relative = parts.error if alone else parts.error / table["mae"].to_numpy()
    bias = parts.bias / (1.0 if alone else fitted.model.sigma_)
    rows = []
    for place, (column, level) in enumerate(zip(parts.column, parts.level, strict=True)):
        values = [_mean(values[place]) for values in (relative, bias, parts.coverage)]
        if isnan(values[0]):
            continue
        error = words.significant(values[0]) if alone else f"{words.number(values[0])} ×"
        shift = _signed(values[1]) if alone else words.number(values[1])
        rows.append(
            [
                Cell(column, column),
                Cell(level, level),
                Cell(f"about {parts.rows[place]:,.0f}", float(parts.rows[place])),
                Cell(error, round(values[0], 4)),
                Cell(shift, round(values[1], 4)),
                Cell(words.percent(values[2]), round(values[2], 2)),
            ]
        )
    return rows


def _mean(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else np.nan


# A methods section.


def methods_paragraph(fitted: FittedStudy, table: pd.DataFrame, min_count: int = FEWEST) -> str:
    """What was done, as the methods section of a paper says it."""
    n_columns = len(fitted.encoder.columns)
    bounded = table[["lower", "upper"]].apply(np.isfinite).any(axis=1)
    outcomes = words.plural(len(table), "outcome")
    model, facts = fitted.model, fitted.facts
    if isinstance(model, TobitRegressor):
        fit = "Each outcome was modelled by a Tobit regression on all features"
    elif isinstance(model, MixedTobitRegressor):
        effects = " and ".join(f"{effect}s" for effect in model.effects_)
        fit = "Outcomes were modelled jointly by a mixed Tobit regression on all features with " + (
            f"random {effects} of people" if effects else "no random effects of people"
        )
    elif isinstance(model, AutoTobitRegressor) and model.n_layers_ == 1:
        fit = (
            "Outcomes were modelled jointly by a stack of censored linear layers whose prior "
            "variances were learned from the data (empirical Bayes) and whose weights minimise the "
            "squared error of inner held-out rows"
        )
        if hasattr(model, "trees_"):
            fit += ", above trees boosted on the censored likelihood"
    else:
        fit = (
            f"Outcomes were modelled jointly by a Subspace Network of "
            f"{words.plural(model.n_layers_, 'layer')} and rank {model.rank_}, chosen by "
            "cross-validation within the training rows"
        )
    censored = (
        " Values at a bound of a scale entered the likelihood as censored, not as exact."
        if bounded.any()
        else ""
    )
    gaps = (
        "Missing features were replaced by the mean of the training rows and marked by an indicator"
        if fitted.encoder.missing != "error"
        else "Rows with missing features were not allowed"
    )
    how = words.held_out_rows(fitted, min_count)
    if not fitted.mixed and not fitted.streamed:
        how += (
            f" ({facts.get('folds', 'repeated')}-fold cross-validation); all choices were made "
            "again within the training rows of each fold"
        )
    return (
        f"We predicted {outcomes} from {words.plural(n_columns, 'feature')} in "
        f"{count(fitted.n_rows, min_count)} rows. {fit}.{censored} Predictions are the expected "
        f"value and the central {words.percent(fitted.held_out.coverage)} interval of the "
        f"predictive distribution. {gaps}; missing outcomes were left out entry by entry. {how}. "
        "We report the mean absolute error in points, R², the continuous ranked probability score "
        "and the coverage of intervals, each beside a censored model without features. Analyses "
        f"used deeptobit {facts.get('deeptobit', '')} (Python {facts.get('python', '')}, seed "
        f"{facts.get('seed', '')})."
    )
