"""TODO."""

from typing import TYPE_CHECKING

from deeptobit.inspection.calibration import bound_calibrations, draw_calibration, pit_values
from deeptobit.inspection.convergence import (
    Course,
    Stage,
    draw_convergence,
    draw_steps,
    read_course,
)
from deeptobit.inspection.covariance import CovarianceKind, TrainedTobit
from deeptobit.inspection.plots import (
    draw_layers,
    draw_predictions,
    draw_similarity,
    draw_subspaces,
)
from deeptobit.inspection.subspaces import Subspace, canonical_subspaces

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # for signatures of rooms above

__all__ = [
    "Course",
    "CovarianceKind",
    "Stage",
    "Subspace",
    "TrainedTobit",
    "bound_calibrations",
    "canonical_subspaces",
    "draw_calibration",
    "draw_convergence",
    "draw_layers",
    "draw_predictions",
    "draw_similarity",
    "draw_steps",
    "draw_subspaces",
    "pit_values",
    "read_course",
]
