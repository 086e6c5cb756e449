"""The model without features: one mean and one noise scale per task, learned on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._online import null_sums
from deeptobit.kernels._online_types import Block, rows_of
from deeptobit.likelihood import Noise
from deeptobit.solvers.online._between import between

# A weak prior in standard units, μ ~ N(0, 5²) and log σ ~ N(0, 1.5²), counted as this many rows:
# a task of which every entry is censored has no optimum without it.
_PRIOR = np.array([1.0 / 25.0, 1.0 / 2.25])
_PRIOR_ROWS = 0.05
_MAX_ITER = 40
_TOLERANCE = 0.05  # of σ: Newton's steps square, so that the next one would be 0.004
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
    def fit(cls, noise: Noise, block: Block, *, free_mean: bool, n_threads: int = 1) -> NullModel:
        """The optimum on the first rows."""
        n_tasks = block.low.shape[1]
        null = cls(np.zeros(n_tasks), np.zeros(n_tasks), np.zeros((3, n_tasks)), free_mean)
        few = rows_of(block, slice(0, _FEW_ROWS))
        for rows, tolerance in ((few, 4.0 * _TOLERANCE), (block, _TOLERANCE)):
            for _ in range(_MAX_ITER):
                null.curvature[:] = 0.0
                if np.max(np.abs(null.update(noise, rows, _PRIOR_ROWS, n_threads))) < tolerance:
                    break
        return null

    @property
    def sigma(self) -> FloatArray:
        """σ, (T,)."""
        return np.exp(self.log_sigma)

    def update(
        self, noise: Noise, block: Block, prior_rows: float = 0.0, n_threads: int = 1
    ) -> FloatArray:
        """One Newton step with the gradient of a block and the curvature of all, (2, T)."""
        sigma = self.sigma
        nll, by_eta, by_scale, eta_eta, eta_scale, scale_scale = null_sums(
            noise, block, self.mean, sigma, n_threads
        )
        self.scored = nll, self.log_sigma
        prior, floor = prior_rows * _PRIOR, _PRIOR_ROWS * _PRIOR
        by_mean = by_eta / sigma + prior[0] * self.mean
        by_noise = by_scale + prior[1] * self.log_sigma
        # A badly placed entry may not be convex, in η under heavy tails and in log σ by −z·bend;
        # its size still says how stiff it is.
        self.curvature[0] += np.abs(eta_eta) / sigma**2
        self.curvature[1] += eta_scale / sigma
        self.curvature[2] += np.maximum(scale_scale, 0.5 * np.abs(by_scale))
        a, c, d = self.curvature[0] + floor[0], self.curvature[1], self.curvature[2] + floor[1]
        if not self.free_mean:
            by_mean, c = np.zeros_like(c), np.zeros_like(c)
        most = 0.9 * np.sqrt(a) * np.sqrt(d)
        c = between(-most, c, most)
        ratio = c / d  # eliminated one after the other: a determinant may overflow
        by_both = (ratio * by_noise - by_mean) / (a - c * ratio)
        step = np.stack(
            [
                between(-1.0, by_both / sigma, 1.0),
                between(-0.5, -by_noise / d - ratio * by_both, 0.5),
            ]
        )
        self.mean += sigma * step[0]
        # σ → 0 is real where a task is constant; 1e-4 of its spread, or of its size, is the floor.
        self.log_sigma = between(_LOWEST_LOG_SIGMA, self.log_sigma + step[1], -_LOWEST_LOG_SIGMA)
        return step
