from . import calibration as calibration
from . import convergence as convergence
from . import covariance as covariance
from . import heatmaps as heatmaps
from . import predictions as predictions
from . import style as style
from . import subspaces as subspaces
from .calibration import bound_calibrations as bound_calibrations
from .calibration import draw_calibration as draw_calibration
from .calibration import draw_diagnostics as draw_diagnostics
from .calibration import pit_values as pit_values
from .calibration import quantile_residuals as quantile_residuals
from .convergence import draw_convergence as draw_convergence
from .convergence import draw_steps as draw_steps
from .covariance import CovarianceKind as CovarianceKind
from .covariance import FittedLayer as FittedLayer
from .covariance import FittedModel as FittedModel
from .covariance import FittedTobit as FittedTobit
from .covariance import Reference as Reference
from .heatmaps import PALE as PALE
from .heatmaps import draw_similarity as draw_similarity
from .heatmaps import draw_subspaces as draw_subspaces
from .predictions import draw_layers as draw_layers
from .predictions import draw_predictions as draw_predictions
from .style import Axes as Axes
from .subspaces import Draw as Draw
from .subspaces import Stability as Stability
from .subspaces import Subspace as Subspace
from .subspaces import agreement as agreement
from .subspaces import align as align
from .subspaces import canonical_subspaces as canonical_subspaces
from .subspaces import summarise_draws as summarise_draws

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
