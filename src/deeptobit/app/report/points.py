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
UNKNOWN_INTERVAL = words.UNKNOWN
_LEAST = 0.02  # an effect in units of the noise that is shown


class Cell(NamedTuple):
    """The text that is read, what is sorted by (None is always last), and whether it is best."""

    text: str
    key: float | str | None
    mark: str = ""


# Effects in units.


def effect_rows(fitted: FittedStudy, rare: Mapping[str, str]) -> list[list[Cell]]:
    """The strongest effects of every outcome: outcome, step in the feature, points, interval.

    Strength is measured in units of the noise. Rare categories are left out.
    """
    effects = fitted.effects
    if effects is None:
        return []
    features, sigma = fitted.encoder.features, fitted.model.sigma_
    strength = np.abs(effects.effect) / sigma[:, None]
    strength[:, [place for place, name in enumerate(features) if name in rare]] = 0.0
    found: list[tuple[float, list[Cell]]] = []
    for task, target in enumerate(fitted.model.target_names_):
        for place in np.argsort(-strength[task], kind="stable")[:_PER_OUTCOME].tolist():
            if not strength[task, place] >= _LEAST:
                continue
            effect, low, high = (
                float(values[task, place]) for values in (effects.effect, effects.low, effects.high)
            )
            interval = UNKNOWN_INTERVAL if isnan(low) else f"{_signed(low)} to {_signed(high)}"
            step = f"+{effects.step[place]:g} {features[place]}"
            if "=" in features[place]:
                step = features[place].replace("=", ": ")
            cells = [Cell(target, target), Cell(step, features[place])]
            cells += [Cell(_signed(effect), round(effect, 6)), Cell(interval, None)]
            found.append((float(strength[task, place]), cells))
    return [cells for _, cells in sorted(found, key=lambda pair: -pair[0])]


def effect_words(fitted: FittedStudy) -> str:
    """The strongest effect as a sentence."""
    rows = effect_rows(fitted, fitted.encoder.rare)
    if not rows:
        return "No feature has an effect of note in this model."
    target, step, effect, interval = (cell.text for cell in rows[0])
    between = "" if interval == UNKNOWN_INTERVAL else f" [{interval}]"
    return f"The strongest: {step}: {effect} {target}{between}."


def has_intervals(fitted: FittedStudy) -> bool:
    """Whether effects have confidence intervals."""
    return fitted.effects is not None and bool(np.isfinite(fitted.effects.low).any())


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


# A methods section, and what it answers.


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
    if fitted.mixed:
        how = (
            f"Performance was measured on the last visits of people ({fitted.n_held_out:,}), "
            "forecast from their earlier ones by models that had not seen them"
        )
    elif fitted.streamed:
        how = f"Performance was measured on {fitted.n_held_out:,} rows held out at random"
    else:
        apart = "" if fitted.n_groups is None else ", keeping the rows of a group together"
        how = (
            f"Performance was measured by {facts.get('folds', 'repeated')}-fold cross-validation"
            f"{apart}; all choices were made again within the training rows of each fold"
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


def tripod_items(fitted: FittedStudy) -> list[tuple[str, str]]:
    """Items of the TRIPOD+AI statement that the page answers, and where; the others are yours."""
    items = [
        (
            "5a, 6a Data, participants",
            "Model card: rows and groups. Source, dates and setting: yours",
        ),
        ("7 Data preparation", "Methods; Model card: encoding of the features"),
        ("8a Outcome", "Outcomes: bounds and shares at them. How and when it was assessed: yours"),
        ("9a Predictors", "Model card: all features. Why these: yours"),
        ("10 Sample size", "Model card: rows and groups. How it was arrived at: yours"),
        ("11 Missing data", "Methods; Model card: features with missing cells"),
        ("12a–c, 12e Analytical methods", "Methods; Model card: kind, settings, seed, versions"),
        ("15 Model output", "Methods: expected value, interval, probability of the bounds"),
        ("20a, 21 Participants in each analysis", "Outcomes: values of each outcome"),
        ("22 Model specification", "The model file; deeptobit open makes a page that computes it"),
        ("23a Model performance", "Outcomes, beside a model without features; Reliability"),
        ("26 Limitations", "The cautions above the first table; Warnings. Others: yours"),
    ]
    if fitted.subgroups is not None and len(fitted.subgroups.level):
        items.insert(-1, ("14, 23a Fairness, key subgroups", "Parts of the rows"))
    return items
