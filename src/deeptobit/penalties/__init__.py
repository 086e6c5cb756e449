"""Penalties on the sketch V of a layer: objects with value, gradient, curvature and zeros."""

from deeptobit.penalties.base import Penalty, balance, least_subgradient
from deeptobit.penalties.group import Group, group_share
from deeptobit.penalties.ridge import Ridge

PENALTIES: dict[str, type[Penalty]] = {
    "ridge": Ridge,
    "group": Group,
}
"""The penalties that ship, by the name that estimators know them by."""

__all__ = ["PENALTIES", "Group", "Penalty", "Ridge", "balance", "group_share", "least_subgradient"]
