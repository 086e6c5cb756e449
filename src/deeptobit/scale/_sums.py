"""One round: what a pass over the rows tells of the objective at a point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit import likelihood
from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import Noise
from deeptobit.scale._inputs import LayerInputs
from deeptobit.scale._moments import blocks_of
from deeptobit.scale._source import sum_of
from deeptobit.solvers.online import RawRows

_ROWS = 512  # a block of scores stays in the cache while the likelihood is evaluated on it


class RowUnits(NamedTuple):
    """Centre and scale of inputs (D,) and of outcomes (T,)."""

    mean: FloatArray
    scale: FloatArray
    location: FloatArray
    spread: FloatArray


class LayerSums(NamedTuple):
    """Sums over rows at a point, each row counting with its weight; those of shards add up.

    Parameters
    ----------
    nll : array of shape ()
    by_coef : array of shape (D, T)
        Slopes by the coefficients W, transposed, of standardised inputs.
    by_intercept, by_scale, scale_scale : arrays of shape (T,)
        Slopes by intercept and log σ, and the curvature by log σ.
    curvature : array of shape (T, R + 1, R + 1)
        Σ c [q; 1][q; 1]ᵀ with the curvature c of an entry by its score.
    cross : array of shape (T, R + 1)
        The same sum between score and log σ.
    """

    nll: FloatArray
    by_coef: FloatArray
    by_intercept: FloatArray
    by_scale: FloatArray
    scale_scale: FloatArray
    curvature: FloatArray
    cross: FloatArray

    def __add__(self, other: object) -> LayerSums:
        """The sums of both."""
        if not isinstance(other, LayerSums):
            return NotImplemented
        return LayerSums(*(one + two for one, two in zip(self, other, strict=True)))


@dataclass(frozen=True)
class SumLayer:
    """The sums of some rows at a point; a task for a shard.

    Scores are Sq + b with q = Qᵀx, where Q spans the rows of V: what a round needs to know of
    curvature within the subspace is then as small as the subspace is.

    Parameters
    ----------
    inputs : LayerInputs
    units : RowUnits
    noise : Noise
    silent : bool array of shape (T,)
        Tasks that say nothing, because every entry is censored on the same side.
    directions : array of shape (D, R)
        Q, of standardised inputs.
    slopes : array of shape (T, R)
        S.
    intercept, sigma : arrays of shape (T,)
    """

    inputs: LayerInputs
    units: RowUnits
    noise: Noise
    silent: BoolArray
    directions: FloatArray
    slopes: FloatArray
    intercept: FloatArray
    sigma: FloatArray

    def __call__(self, rows: RawRows) -> LayerSums:
        """Sum over blocks of the rows."""
        return sum_of(self._sum(part) for part in blocks_of(rows, _ROWS))

    def _sum(self, rows: RawRows) -> LayerSums:
        units, weight = self.units, rows.weight
        x = self.inputs(rows.X) - units.mean
        x /= units.scale
        q = np.hstack([x @ self.directions, np.ones((len(x), 1))])
        latent = q[:, :-1] @ self.slopes.T + self.intercept
        at = likelihood.evaluate(self.noise, *self._ends(rows), latent, self.sigma)
        share = weight[:, None]
        pull, cross = at.latent * share, at.latent_log_sigma * share
        return LayerSums(
            nll=np.asarray(weight @ at.nll.sum(axis=1)),
            by_coef=x.T @ pull,
            by_intercept=pull.sum(axis=0),
            by_scale=weight @ at.log_sigma,
            scale_scale=weight @ at.log_sigma_log_sigma,
            curvature=_outer_sums(at.latent_latent * share, q),
            cross=cross.T @ q,
        )

    def _ends(self, rows: RawRows) -> tuple[FloatArray, FloatArray]:
        """Ends of the intervals in standard units, missing for silent tasks."""
        low = (rows.low - self.units.location) / self.units.spread
        high = (rows.high - self.units.location) / self.units.spread
        low[:, self.silent] = high[:, self.silent] = np.nan
        return low, high


def _outer_sums(weights: FloatArray, vectors: FloatArray) -> FloatArray:
    """Σ_i w_it v_i v_iᵀ for every column of weights, (T, P, P), as one matrix product."""
    size = vectors.shape[1]
    first, second = _upper_triangle(size)
    upper = weights.T @ (vectors[:, first] * vectors[:, second])
    sums = np.empty((weights.shape[1], size, size))
    sums[:, first, second] = sums[:, second, first] = upper
    return sums


@cache
def _upper_triangle(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Its indices, which take longer to find than to use on a block."""
    return np.triu_indices(size)
