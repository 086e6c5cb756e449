"""The methods that are compared, by the names people type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from deeptobit.baselines import (
    ForestBaseline,
    InterceptOnly,
    LassoBaseline,
    MultiTaskLassoBaseline,
    RidgeBaseline,
    RidgeTobit,
)
from deeptobit.estimators import SubspaceNetworkCV

FLAGSHIP = "network"
_BASELINES = {
    "null": InterceptOnly,
    "ridge": RidgeBaseline,
    "lasso": LassoBaseline,
    "mt-lasso": MultiTaskLassoBaseline,
    "forest": ForestBaseline,
    "tobit": RidgeTobit,
}
METHODS: Mapping[str, str] = {
    "null": "intercepts only, censored",
    "ridge": "ridge regression, clipped",
    "lasso": "lasso, clipped",
    "mt-lasso": "multi-task lasso (ℓ2,1), clipped",
    "forest": "random forest, clipped",
    "tobit": "Tobit with a ridge, task by task",
    FLAGSHIP: "Subspace Network of deeptobit",
}


def make_methods(
    names: Iterable[str] | None = None, *, network: SubspaceNetworkCV | None = None, seed: int = 0
) -> dict[str, Any]:
    """Unfitted estimators by name, in the order of ``METHODS``.

    Parameters
    ----------
    names : iterable of str, optional
        Some of ``METHODS``; all by default.
    network : SubspaceNetworkCV, optional
        The network with other settings than its own.
    seed : int
        Of methods that draw random numbers.

    Examples
    --------
    >>> list(make_methods(["network", "ridge"]))
    ['ridge', 'network']
    >>> make_methods(["rigde"])
    Traceback (most recent call last):
        ...
    ValueError: there is no method 'rigde' (known are null, ridge, lasso, mt-lasso, forest, tobit,
    network); did you mean 'ridge'?
    """
    wanted = list(METHODS if names is None else names)
    for name in wanted:
        if name not in METHODS:
            close = get_close_matches(name, METHODS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"there is no method {name!r} (known are {', '.join(METHODS)}){hint}")
    if not wanted:
        raise ValueError(f"there is no method to compare; known are {', '.join(METHODS)}")
    made: dict[str, Any] = {
        name: kind(random_state=seed) for name, kind in _BASELINES.items() if name in wanted
    }
    if FLAGSHIP in wanted:
        made[FLAGSHIP] = network or SubspaceNetworkCV(random_state=seed)
    return made
