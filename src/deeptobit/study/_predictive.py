"""The distributions that a model predicts for rows, within limits that may differ by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.estimators import SubspaceNetworkCV, SubspaceNetworkRegressor
from deeptobit.likelihood import Predictive

if TYPE_CHECKING:
    import pandas as pd


def predict_rows(
    model: SubspaceNetworkCV | SubspaceNetworkRegressor,
    X: pd.DataFrame,
    lower: FloatArray,
    upper: FloatArray,
) -> Predictive:
    """Predictive distributions of shape (N, T), σ too, within bounds of shape (T,) or (N, T)."""
    latent = model.predict(X, kind="latent")
    sigma = np.broadcast_to(model.sigma_, latent.shape)
    return Predictive(model.noise_, latent, sigma, lower, upper)
