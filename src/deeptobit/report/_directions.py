"""The directions that outcomes share, and which outcomes are moved alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deeptobit.report._format import percent

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.estimators import SubspaceNetworkCV, SubspaceNetworkRegressor

_LISTED = 5  # loadings of each kind in a sentence
_LEAST = 0.005  # share of a component; below it is 0 %, whatever its loadings


class Directions(NamedTuple):
    """Loadings by component, strongest first.

    Parameters
    ----------
    features : DataFrame of shape (D, R)
    targets : DataFrame of shape (T, R)
    shares : list of R str
        Of all effects.
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


class Likeness(NamedTuple):
    """Two outcomes and the cosine between the effects that features have on them."""

    first: str
    second: str
    cosine: float


def shared_directions(
    model: SubspaceNetworkCV | SubspaceNetworkRegressor,
    most: int,
    rare: Mapping[str, str] | None = None,
) -> Directions | None:
    """Of the first layer, which reads the features; None if no feature has an effect.

    The features in ``rare`` are called by the names there.
    """
    import pandas as pd

    # Two rows that have the standard deviations of the table stand for all of it.
    spread = np.vstack([model.feature_scale_, -model.feature_scale_])
    rows = pd.DataFrame(spread, columns=model.feature_names_in_)
    strongest = model.subspaces(0, rows)[:most]
    found = [subspace for subspace in strongest if subspace.share >= _LEAST]
    if not found:
        return None
    table = np.column_stack([subspace.to_frame()["loading"].to_numpy() for subspace in found])
    n_features, numbers = len(found[0].features), [str(subspace.number) for subspace in found]
    features = [(rare or {}).get(name, name) for name in found[0].features]
    return Directions(
        pd.DataFrame(table[:n_features], index=features, columns=numbers),
        pd.DataFrame(table[n_features:], index=list(found[0].targets), columns=numbers),
        [percent(subspace.share) for subspace in found],
    )


def in_words(directions: Directions) -> list[Component]:
    """The largest loadings of every component, with their signs."""
    features, targets, shares = directions
    return [
        Component(number, share, _largest(features[number]), _largest(targets[number]))
        for number, share in zip(features.columns, shares, strict=True)
    ]


def _largest(loadings: pd.Series[float]) -> list[str]:
    """Names and signs; what is a tenth of the largest is left out."""
    sizes = loadings.abs()
    order = np.argsort(-sizes.to_numpy(), kind="stable")[:_LISTED]
    kept = [k for k in order if sizes.iloc[k] > 0.1 * sizes.max()]
    return [f"{'+' if loadings.iloc[k] > 0 else '−'}\u00a0{loadings.index[k]}" for k in kept]


def task_cosines(model: SubspaceNetworkCV | SubspaceNetworkRegressor) -> pd.DataFrame:
    """Cosines between the effects of the features on two outcomes, in the first layer, (T, T)."""
    import pandas as pd

    effects = model.coef_ * model.feature_scale_
    lengths = np.linalg.norm(effects, axis=1, keepdims=True)
    unit = effects / np.where(lengths > 0.0, lengths, 1.0)
    names = list(model.target_names_)
    return pd.DataFrame(np.clip(unit @ unit.T, -1.0, 1.0), index=names, columns=names)


def most_alike(cosines: pd.DataFrame) -> Likeness | None:
    """The two outcomes that are moved most alike; None where there is one alone."""
    values = cosines.to_numpy().copy()
    if len(values) < 2:
        return None
    np.fill_diagonal(values, -np.inf)
    first, second = sorted(int(k) for k in np.unravel_index(values.argmax(), values.shape))
    return Likeness(str(cosines.index[first]), str(cosines.index[second]), values[first, second])
