"""The model without features: one mean and one noise scale per task, learned on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._online import null_sums
from deeptobit.kernels._online_types import Block, rows_of
from deeptobit.likelihood import Noise

# A weak prior in standard units, μ ~ N(0, 5²) and log σ ~ N(0, 1.5²), counted as this many rows:
# a task of which every entry is censored has no optimum without it.
_PRIOR = np.array([1.0 / 25.0, 1.0 / 2.25])
_PRIOR_ROWS = 0.05
_MAX_ITER, _TOLERANCE = 40, 1e-3
_LOWEST_LOG_SIGMA = -9.2
_FEW_ROWS = 128


@dataclass
class NullModel:
    """Running Newton steps on (μ, log σ): exact on the first rows, then one step per block.

    Parameters
    ----------
    mean, log_sigma : arrays of shape (T,)
    curvature : array of shape (3, T)
        Second derivatives by (μ, μ), (μ, log σ), (log σ, log σ), summed over all blocks.
    free_mean : bool
    scored : pair of arrays of shape (T,), optional
        nll of the last block before its step, without the log σ of observed entries, and log σ.
    """

    mean: FloatArray
    log_sigma: FloatArray
    curvature: FloatArray
    free_mean: bool
    scored: tuple[FloatArray, FloatArray] | None = None

    @classmethod
    def fit(cls, noise: Noise, block: Block, *, free_mean: bool) -> NullModel:
        """The optimum on the first rows."""
        n_tasks = block.low.shape[1]
        null = cls(np.zeros(n_tasks), np.zeros(n_tasks), np.zeros((3, n_tasks)), free_mean)
        few = rows_of(block, slice(0, _FEW_ROWS))
        for rows, tolerance in ((few, 0.05), (block, _TOLERANCE)):  # most steps on few rows
            for _ in range(_MAX_ITER):
                null.curvature[:] = 0.0
                if np.max(np.abs(null.update(noise, rows, _PRIOR_ROWS))) < tolerance:
                    break
        return null

    @property
    def sigma(self) -> FloatArray:
        """σ, (T,)."""
        return np.exp(self.log_sigma)

    def update(self, noise: Noise, block: Block, prior_rows: float = 0.0) -> FloatArray:
        """One Newton step with the gradient of a block and the curvature of all, (2, T)."""
        sigma = self.sigma
        nll, by_eta, by_scale, eta_eta, eta_scale, scale_scale = null_sums(
            noise, block, self.mean, sigma
        )
        self.scored = nll, self.log_sigma
        prior = prior_rows * _PRIOR
        gradient = np.stack(
            [by_eta / sigma + prior[0] * self.mean, by_scale + prior[1] * self.log_sigma]
        )
        # −z·bend of a badly placed entry is not convex in log σ; its size still says how stiff.
        stiff = np.maximum(scale_scale, 0.5 * np.abs(by_scale))
        self.curvature += np.stack([eta_eta / sigma**2, eta_scale / sigma, stiff])
        floor = _PRIOR_ROWS * _PRIOR
        a, c, d = self.curvature[0] + floor[0], self.curvature[1], self.curvature[2] + floor[1]
        if not self.free_mean:
            gradient[0], c = 0.0, np.zeros_like(c)
        c = np.clip(c, -0.9 * np.sqrt(a * d), 0.9 * np.sqrt(a * d))
        determinant = a * d - c * c
        step = np.stack(
            [
                np.clip((c * gradient[1] - d * gradient[0]) / determinant / sigma, -1.0, 1.0),
                np.clip((c * gradient[0] - a * gradient[1]) / determinant, -0.5, 0.5),
            ]
        )
        self.mean += sigma * step[0]
        # σ → 0 is real where a task is constant; 1e-4 of its spread, or of its size, is the floor.
        self.log_sigma = np.clip(self.log_sigma + step[1], _LOWEST_LOG_SIGMA, -_LOWEST_LOG_SIGMA)
        return step
