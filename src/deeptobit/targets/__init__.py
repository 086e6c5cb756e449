"""Censoring is data: one interval per entry of Y."""

from deeptobit.targets.bounds import (
    BoundsLike,
    by_name,
    by_target,
    check_order,
    default_names,
    entry_bounds,
    one_per_task,
    task_bounds,
)
from deeptobit.targets.censored import OFF_GRID, CensoredTargets, find_step, recorded_values

__all__ = [
    "OFF_GRID",
    "BoundsLike",
    "CensoredTargets",
    "by_name",
    "by_target",
    "check_order",
    "default_names",
    "entry_bounds",
    "find_step",
    "one_per_task",
    "recorded_values",
    "task_bounds",
]
