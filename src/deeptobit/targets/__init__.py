"""Censoring is data: one interval per entry of Y."""

from deeptobit.targets.bounds import BoundsLike as BoundsLike
from deeptobit.targets.bounds import by_entry as by_entry
from deeptobit.targets.bounds import by_name as by_name
from deeptobit.targets.bounds import check_order as check_order
from deeptobit.targets.bounds import default_names as default_names
from deeptobit.targets.bounds import entry_bounds as entry_bounds
from deeptobit.targets.bounds import one_per_task as one_per_task
from deeptobit.targets.bounds import task_bounds as task_bounds
from deeptobit.targets.censored import OFF_GRID as OFF_GRID
from deeptobit.targets.censored import CensoredTargets as CensoredTargets
from deeptobit.targets.censored import find_step as find_step
from deeptobit.targets.censored import recorded_values as recorded_values
