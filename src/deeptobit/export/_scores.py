"""What a prediction is computed from, whichever estimator it was fitted by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from deeptobit.arrays import FloatArray


class ScoreLayer(NamedTuple):
    """Scores x ↦ xF₁F₂… + b of one layer.

    ``factors`` are multiplied from the right, the first of shape (D_k, ·), the last of shape
    (·, T); ``intercept`` has shape (T,). A layer above another sees the T outputs below, alone
    (D_k = T) or in front of the features (D_k = T + D).
    """

    factors: tuple[FloatArray, ...]
    intercept: FloatArray


@dataclass(frozen=True, eq=False)
class CensoredScores:
    """A fitted model y = clip(η_K(x) + σε, lower, upper), in the user's units.

    Parameters
    ----------
    layers : tuple of ScoreLayer
        Each but the last passes on its scores, clipped to the bounds.
    sigma, lower, upper : arrays of shape (T,)
    feature_names, target_names : tuple of str
    noise : str
        The family of ε.
    """

    layers: tuple[ScoreLayer, ...]
    sigma: FloatArray
    lower: FloatArray
    upper: FloatArray
    feature_names: tuple[str, ...]
    target_names: tuple[str, ...]
    noise: str = "gaussian"
