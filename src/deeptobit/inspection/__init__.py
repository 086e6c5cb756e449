"""What a fitted model says: covariances, shared directions, calibration, and pictures.

Pictures and Matplotlib load on first use: a fit does not draw.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from deeptobit.inspection.covariance import (
    CovarianceKind,
    FittedLayer,
    FittedModel,
    FittedTobit,
    Reference,
)
from deeptobit.inspection.stability import Draw, Stability, agreement, align, summarise_draws
from deeptobit.inspection.style import Axes
from deeptobit.inspection.subspaces import Subspace, canonical_subspaces

if TYPE_CHECKING:
    from deeptobit.inspection.calibration import (
        bound_calibrations,
        draw_calibration,
        draw_diagnostics,
        pit_values,
        quantile_residuals,
    )
    from deeptobit.inspection.convergence import draw_convergence, draw_steps
    from deeptobit.inspection.heatmaps import PALE, draw_similarity, draw_subspaces
    from deeptobit.inspection.predictions import draw_layers, draw_predictions

__all__ = [
    "PALE",
    "Axes",
    "CovarianceKind",
    "Draw",
    "FittedLayer",
    "FittedModel",
    "FittedTobit",
    "Reference",
    "Stability",
    "Subspace",
    "agreement",
    "align",
    "bound_calibrations",
    "canonical_subspaces",
    "draw_calibration",
    "draw_convergence",
    "draw_diagnostics",
    "draw_layers",
    "draw_predictions",
    "draw_similarity",
    "draw_steps",
    "draw_subspaces",
    "pit_values",
    "quantile_residuals",
    "summarise_draws",
]

_HOME = {
    "calibration": "bound_calibrations draw_calibration draw_diagnostics pit_values "
    "quantile_residuals",
    "convergence": "draw_convergence draw_steps",
    "heatmaps": "PALE draw_similarity draw_subspaces",
    "predictions": "draw_layers draw_predictions",
}


def __getattr__(name: str) -> object:
    for home, names in _HOME.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
