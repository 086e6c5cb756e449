"""What a fitted model says: covariances, shared directions, calibration, and pictures.

Matplotlib loads when something is drawn.
"""

from deeptobit.inspection.calibration import (
    bound_calibrations,
    draw_calibration,
    draw_diagnostics,
    pit_values,
    quantile_residuals,
)
from deeptobit.inspection.convergence import draw_convergence, draw_steps
from deeptobit.inspection.covariance import (
    CovarianceKind,
    FittedLayer,
    FittedModel,
    FittedTobit,
    Reference,
)
from deeptobit.inspection.heatmaps import PALE, draw_similarity, draw_subspaces
from deeptobit.inspection.predictions import draw_layers, draw_predictions
from deeptobit.inspection.style import Axes
from deeptobit.inspection.subspaces import (
    Draw,
    Stability,
    Subspace,
    agreement,
    align,
    canonical_subspaces,
    summarise_draws,
)

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
