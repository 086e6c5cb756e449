"""What features do to outcomes, in points and by shared directions; errors in subgroups."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics.pairwise import cosine_similarity

from deeptobit.app.report.words import UNKNOWN, number, percent, significant
from deeptobit.app.study import FittedStudy
from deeptobit.app.study.measures import Cell
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.estimators.base import CensoredRegressor
from deeptobit.inspection import canonical_subspaces

_PER_OUTCOME = 8  # effects that are shown of one outcome
_LEAST = 0.02  # an effect in units of the noise that is shown


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
    strength[:, [name in rare for name in features]] = 0.0
    strongest = np.argsort(-strength, axis=1, kind="stable")[:, :_PER_OUTCOME]
    pairs = [(task, place) for task, places in enumerate(strongest) for place in places]
    shown = [pair for pair in pairs if strength[pair] >= _LEAST]
    has_intervals, rows = np.isfinite(effects.low).any(), []
    parts = effects.effect, effects.low, effects.high
    for task, place in sorted(shown, key=lambda pair: -strength[pair]):
        target, feature = fitted.model.target_names_[task], features[place]
        step = f"+{effects.step[place]:g} {feature}"
        step = feature.replace("=", ": ") if "=" in feature else step
        effect, low, high = (float(part[task, place]) for part in parts)
        cells = [Cell(target, target), Cell(step, feature), Cell(_signed(effect), round(effect, 6))]
        if has_intervals:
            digits = len(significant(effect).partition(".")[2])
            ends = f"[{number(low, digits)}, {number(high, digits)}]"
            cells.append(Cell(UNKNOWN if np.isnan(low) else ends, None))
        rows.append(cells)
    return rows


def _signed(value: float) -> str:
    text = significant(value)
    return text if value < 0.0 or not np.isfinite(value) else f"+{text}"


# Subgroups.


def part_rows(fitted: FittedStudy, table: pd.DataFrame) -> list[list[Cell]]:
    """Errors in subgroups against those in all rows, averaged over outcomes.

    Column, subgroup, rows, error relative to all rows, bias in units of the noise, coverage; for a
    single outcome the error is in points.
    """
    alone, rows = len(table) == 1, []
    for part in fitted.subgroups:
        relative = part.error / (1.0 if alone else table["mae"].to_numpy())
        bias = part.bias / (1.0 if alone else fitted.model.sigma_)
        error, shift, covered = pd.DataFrame([relative, bias, part.coverage]).mean(axis=1).tolist()
        if np.isnan(error):
            continue
        cells = [Cell(part.column, part.column), Cell(part.level, part.level)]
        cells.append(Cell(f"about {part.rows:,.0f}", part.rows))
        cells.append(Cell(significant(error) if alone else f"{number(error)} ×", round(error, 4)))
        cells.append(Cell(_signed(shift) if alone else number(shift), round(shift, 4)))
        cells.append(Cell(percent(covered), round(covered, 2)))
        rows.append(cells)
    return rows


def horizon_rows(fitted: FittedStudy, min_count: int) -> list[list[Cell]]:
    """Errors of forecasts by how far ahead they are: horizon, visits, and an error per method.

    The smallest is marked. Horizons of fewer visits than ``min_count`` are left out.
    """
    rows = []
    for found in fitted.forecasts:
        ahead, visits, *errors = found.values()
        if visits >= min_count:
            cells = [Cell(f"{ahead:g}", ahead), Cell(f"{visits:,.0f}", visits)]
            marks = ["best" if error == min(errors) else "" for error in errors]
            cells += map(Cell, (f"{error:.3f}" for error in errors), errors, marks)
            rows.append(cells)
    return rows


# The directions that outcomes share, and which outcomes the features move alike.

_LISTED = 5  # loadings of each kind in a sentence
_SMALLEST_SHARE = 0.005  # a component below it would be shown as 0 %


class Directions(NamedTuple):
    """Loadings by component, strongest first.

    Parameters
    ----------
    features : DataFrame of shape (D, R)
    targets : DataFrame of shape (T, R)
    shares : list of R str
        Of the squared effects.
    stable : DataFrame of shape (D, R) or None
        Which loadings of features would keep their sign in another sample, if that is known.
    """

    features: pd.DataFrame
    targets: pd.DataFrame
    shares: list[str]
    stable: pd.DataFrame | None = None


class Component(NamedTuple):
    """A direction in words, and how many of its loadings are stable."""

    number: str
    share: str
    features: list[str]
    targets: list[str]
    n_stable: int | None


def shared_directions(
    model: CensoredRegressor,
    n_components: int,
    rare: Mapping[str, str] | None = None,
    stable: BoolArray | None = None,
) -> Directions | None:
    """Directions of the first layer, which reads the features; None if no feature has an effect.

    Above trees, those of the mean effects of the features over the rows of the fit.
    ``rare`` maps features to the names that are shown in place of theirs, ``stable`` (D, R) tells
    which loadings are.
    """
    sigma = model.layers_[0].sigma if getattr(model, "n_layers_", 1) > 1 else model.sigma_
    effects, names = _effects(model) / sigma[:, None], tuple(map(str, model.feature_names_in_))
    strongest = canonical_subspaces(effects, names, tuple(model.target_names_))[:n_components]
    found = [subspace for subspace in strongest if subspace.share >= _SMALLEST_SHARE]
    if not found:
        return None
    numbers = [str(subspace.number) for subspace in found]
    features = [(rare or {}).get(name, name) for name in found[0].features]
    return Directions(
        pd.DataFrame([one.feature_loadings for one in found], numbers, features).T,
        pd.DataFrame([one.target_loadings for one in found], numbers, list(found[0].targets)).T,
        [percent(subspace.share) for subspace in found],
        None if stable is None else pd.DataFrame(stable[:, : len(found)], features),
    )


def in_words(directions: Directions) -> list[Component]:
    """The largest loadings of every component, with their signs."""
    features, targets, shares, stable = directions
    counts = [None] * len(shares) if stable is None else stable.sum().tolist()
    return [
        Component(number, share, _largest(features[number]), _largest(targets[number]), count)
        for number, share, count in zip(features.columns, shares, counts, strict=True)
    ]


def _largest(loadings: "pd.Series[float]") -> list[str]:
    """Names and signs of loadings of at least a tenth of the largest."""
    strongest = loadings.sort_values(key=abs, ascending=False, kind="stable").iloc[:_LISTED]
    shown = strongest[strongest.abs() > 0.1 * strongest.abs().max()]
    return [f"{'+' if value > 0 else '−'}\u00a0{name}" for name, value in shown.items()]


def task_cosines(model: CensoredRegressor) -> pd.DataFrame:
    """Cosines between the effects of the features on two outcomes, in the first layer, (T, T)."""
    names = list(model.target_names_)
    cosines = np.clip(cosine_similarity(_effects(model)), -1.0, 1.0)
    return pd.DataFrame(cosines, index=names, columns=names)


def _effects(model: CensoredRegressor) -> FloatArray:
    """Effects of one standard deviation of every feature in the first layer, (T, D)."""
    slopes = model.coef_ if hasattr(model, "coef_") else model.mean_slopes_
    return np.asarray(slopes * model.feature_scale_)


def similarity_words(cosines: pd.DataFrame) -> str:
    """Which two outcomes have most in common; empty if there is only one outcome."""
    if len(cosines) < 2:
        return ""
    seconds, firsts = np.tril_indices(len(cosines), k=-1)
    values = cosines.to_numpy()[seconds, firsts]
    most = int(np.abs(values).argmax())
    first, second = (cosines.index[int(places[most])] for places in (firsts, seconds))
    cosine = float(values[most])
    how = "most alike" if cosine >= 0.0 else "in the most opposite directions"
    return f"The features move {first} and {second} {how} (cosine {number(cosine)})."
