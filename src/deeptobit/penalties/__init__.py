"""Penalties on the sketch V of a layer: objects with value, gradient, curvature and zeros."""

from typing import Any

from deeptobit.penalties.base import Penalty, balance, least_subgradient
from deeptobit.penalties.group import Group, group_share
from deeptobit.penalties.ridge import Ridge

PENALTIES: dict[str, type[Penalty]] = {
    "ridge": Ridge,
    "group": Group,
}
"""The penalties that ship, by the name that estimators know them by."""


def resolve_penalty(penalty: Any, feature_sparsity: float = 0.0) -> Penalty:
    """The penalty behind a name, or the object itself.

    ``feature_sparsity`` is that of the group penalty; ``"ridge"`` with a feature sparsity above 0
    is the group penalty too, which mixes both.

    Examples
    --------
    >>> resolve_penalty("ridge"), resolve_penalty("ridge", 0.3), resolve_penalty("group")
    (Ridge(), Group(sparsity=0.3), Group(sparsity=0.5))
    """
    if feature_sparsity > 0.0:
        if penalty not in ("ridge", "group"):
            raise ValueError(
                "feature_sparsity belongs to penalty='ridge' and penalty='group'; with "
                f"penalty={penalty!r} leave it at 0"
            )
        return Group(float(feature_sparsity))
    if isinstance(penalty, Penalty):
        return penalty
    if isinstance(penalty, str) and penalty in PENALTIES:
        return PENALTIES[penalty]()
    names = ", ".join(map(repr, PENALTIES))
    raise ValueError(f"penalty must be {names} or a deeptobit.penalties.Penalty; got {penalty!r}")


__all__ = [
    "PENALTIES",
    "Group",
    "Penalty",
    "Ridge",
    "balance",
    "group_share",
    "least_subgradient",
    "resolve_penalty",
]
