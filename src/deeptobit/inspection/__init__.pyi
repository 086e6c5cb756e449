from . import calibration as calibration
from . import convergence as convergence
from . import covariance as covariance
from . import heatmaps as heatmaps
from . import predictions as predictions
from . import style as style
from . import subspaces as subspaces
from .calibration import (
    bound_calibrations,
    draw_calibration,
    draw_diagnostics,
    pit_values,
    quantile_residuals,
)
from .convergence import draw_convergence, draw_steps
from .covariance import CovarianceKind, FittedLayer, FittedModel, FittedTobit, Reference
from .heatmaps import PALE, draw_similarity, draw_subspaces
from .predictions import draw_layers, draw_predictions
from .style import Axes
from .subspaces import (
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
