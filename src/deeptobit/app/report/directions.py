"""The directions that outcomes share, and which outcomes the features move alike."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from deeptobit.app.report.words import number, percent
from deeptobit.app.study.fitted import StudyModel

_LISTED = 5  # loadings of each kind in a sentence
_SMALLEST_SHARE = 0.005  # a component below it would be shown as 0 %
_OPPOSITE = -0.5  # of three outcomes, two have at least this cosine


class Directions(NamedTuple):
    """Loadings by component, strongest first.

    Parameters
    ----------
    features : DataFrame of shape (D, R)
    targets : DataFrame of shape (T, R)
    shares : list of R str
        Of the squared effects.
    """

    features: pd.DataFrame
    targets: pd.DataFrame
    shares: list[str]


class Component(NamedTuple):
    """A direction in words."""

    number: str
    share: str
    features: list[str]
    targets: list[str]


def shared_directions(
    model: StudyModel, n_components: int, rare: Mapping[str, str] | None = None
) -> Directions | None:
    """Directions of the first layer, which reads the features; None if no feature has an effect.

    Above trees, those of the mean effects of the features over the rows of the fit.
    ``rare`` maps features to the names that are shown in place of theirs.
    """
    # Two rows that have the standard deviations of the table stand for all of it.
    spread = np.vstack([model.feature_scale_, -model.feature_scale_])
    rows = pd.DataFrame(spread, columns=model.feature_names_in_)
    above_trees = hasattr(model, "mean_slopes_")
    strongest = model.subspaces(0, None if above_trees else rows)[:n_components]
    found = [subspace for subspace in strongest if subspace.share >= _SMALLEST_SHARE]
    if not found:
        return None
    numbers = [str(subspace.number) for subspace in found]
    features = [(rare or {}).get(name, name) for name in found[0].features]
    return Directions(
        pd.DataFrame([one.feature_loadings for one in found], numbers, features).T,
        pd.DataFrame([one.target_loadings for one in found], numbers, list(found[0].targets)).T,
        [percent(subspace.share) for subspace in found],
    )


def in_words(directions: Directions) -> list[Component]:
    """The largest loadings of every component, with their signs."""
    features, targets, shares = directions
    return [
        Component(number, share, _largest(features[number]), _largest(targets[number]))
        for number, share in zip(features.columns, shares, strict=True)
    ]


def _largest(loadings: "pd.Series[float]") -> list[str]:
    """Names and signs of loadings of at least a tenth of the largest."""
    sizes = loadings.abs()
    order = np.argsort(-sizes.to_numpy(), kind="stable")[:_LISTED]
    shown = [k for k in order if sizes.iloc[k] > 0.1 * sizes.max()]
    return [f"{'+' if loadings.iloc[k] > 0 else '−'}\u00a0{loadings.index[k]}" for k in shown]


def task_cosines(model: StudyModel) -> pd.DataFrame:
    """Cosines between the effects of the features on two outcomes, in the first layer, (T, T)."""
    slopes = model.coef_ if hasattr(model, "coef_") else model.mean_slopes_
    effects = slopes * model.feature_scale_
    lengths = np.linalg.norm(effects, axis=1, keepdims=True)
    unit = effects / np.where(lengths > 0.0, lengths, 1.0)
    names = list(model.target_names_)
    return pd.DataFrame(np.clip(unit @ unit.T, -1.0, 1.0), index=names, columns=names)


def similarity_words(cosines: pd.DataFrame) -> str:
    """Which two outcomes are most alike, if any are; empty if there is only one outcome."""
    values = cosines.to_numpy().copy()
    if len(values) < 2:
        return ""
    np.fill_diagonal(values, -np.inf)
    first, second = sorted(int(k) for k in np.unravel_index(values.argmax(), values.shape))
    most = float(values[first, second])
    both, cosine = f"{cosines.index[first]} and {cosines.index[second]}", f"(cosine {number(most)})"
    if most < _OPPOSITE:
        return (
            f"The features move {both} in opposite directions {cosine}: what raises one lowers the "
            "other."
        )
    if most <= 0.0:
        return f"The features move no two outcomes alike; {both} come closest {cosine}."
    return f"The features move {both} most alike {cosine}."
