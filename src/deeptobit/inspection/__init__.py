"""What a fitted model says: covariances, shared directions, calibration, and pictures.

Pictures load on first use: a fit does not draw.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from deeptobit.inspection.covariance import CovarianceKind, FittedTobit
from deeptobit.inspection.subspaces import Subspace, canonical_subspaces

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # for signatures of rooms above

    from deeptobit.inspection.calibration import bound_calibrations, draw_calibration, pit_values
    from deeptobit.inspection.convergence import (
        Stage,
        draw_convergence,
        draw_steps,
        read_convergence,
    )
    from deeptobit.inspection.heatmaps import draw_similarity, draw_subspaces
    from deeptobit.inspection.predictions import draw_layers, draw_predictions

__all__ = [
    "CovarianceKind",
    "FittedTobit",
    "Stage",
    "Subspace",
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
    "read_convergence",
]

_HOME = dict.fromkeys(("bound_calibrations", "draw_calibration", "pit_values"), "calibration")
_HOME |= dict.fromkeys(
    ("Stage", "draw_convergence", "draw_steps", "read_convergence"), "convergence"
)
_HOME |= dict.fromkeys(("draw_similarity", "draw_subspaces"), "heatmaps")
_HOME |= dict.fromkeys(("draw_layers", "draw_predictions"), "predictions")


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
