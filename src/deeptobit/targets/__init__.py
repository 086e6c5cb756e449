"""Censoring is data: one interval per entry of Y."""

from deeptobit.targets._bounded import read_bounded
from deeptobit.targets._bounds import BoundsLike, by_name, by_target, entry_bounds, task_bounds
from deeptobit.targets._checks import check_order
from deeptobit.targets._steps import OFF_GRID, find_step
from deeptobit.targets._targets import CensoredTargets, recorded_values

__all__ = [
    "OFF_GRID",
    "BoundsLike",
    "CensoredTargets",
    "by_name",
    "by_target",
    "check_order",
    "entry_bounds",
    "find_step",
    "read_bounded",
    "recorded_values",
    "task_bounds",
]
