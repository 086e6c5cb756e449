"""Standard units of features, targets and weights, from the first rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._online import middles, standard_block
from deeptobit.kernels._online_types import Block, Iterate
from deeptobit.solvers.online._pending import RawRows

_VANISHING = 1e-140  # columns without a larger number are taken for zeros: squares would vanish


@dataclass(frozen=True)
class Units:
    """Location and scale of columns, and the mean weight of a row.

    Parameters
    ----------
    feature_mean, feature_scale : arrays of shape (D,)
    target_mean, target_scale : arrays of shape (T,)
    weight : float
    """

    feature_mean: FloatArray
    feature_scale: FloatArray
    target_mean: FloatArray
    target_scale: FloatArray
    weight: float

    @classmethod
    def plain(cls, n_features: int, n_tasks: int) -> Units:
        """The user's own units."""
        zero, one = np.zeros, np.ones
        return cls(zero(n_features), one(n_features), zero(n_tasks), one(n_tasks), 1.0)

    @classmethod
    def build(
        cls, rows: RawRows, *, center: bool, scale_features: bool, scale_targets: bool
    ) -> Units:
        """Mean and spread of the first rows; a bound counts as its value."""
        heavy = rows.weight[rows.weight > 0.0]
        unit = float(heavy.mean()) if len(heavy) else 1.0
        share = rows.weight / unit
        feature_mean, feature_scale = _moments(rows.X, share[:, None])
        values, known = middles(rows.low, rows.high)
        target_mean, target_scale = _moments(values, share[:, None] * known)
        if not center:
            feature_scale, target_scale = (
                np.hypot(feature_scale, feature_mean),
                np.hypot(target_scale, target_mean),
            )
            feature_mean, target_mean = np.zeros_like(feature_mean), np.zeros_like(target_mean)
        if not scale_features:
            feature_scale = np.ones_like(feature_scale)
        if not scale_targets:
            target_scale = np.ones_like(target_scale)
        return cls(feature_mean, feature_scale, target_mean, target_scale, unit)

    def block(self, rows: RawRows, n_threads: int = 1) -> Block:
        """Rows in these units."""
        return standard_block(
            rows.X,
            rows.low,
            rows.high,
            rows.weight / self.weight,
            (self.feature_mean, 1.0 / self.feature_scale),
            (self.target_mean, 1.0 / self.target_scale),
            n_threads,
        )

    def to_user(self, model: Iterate) -> Iterate:
        """Parameters for raw X and raw targets."""
        V = model.V / self.feature_scale
        Ut = model.Ut * self.target_scale
        shift = self.target_mean + model.intercept * self.target_scale
        return Iterate(V, Ut, shift - (V @ self.feature_mean) @ Ut, model.sigma * self.target_scale)

    def to_standard(self, model: Iterate) -> Iterate:
        """What :meth:`to_user` undoes."""
        V = model.V * self.feature_scale
        Ut = model.Ut / self.target_scale
        shift = model.intercept + (model.V @ self.feature_mean) @ model.Ut - self.target_mean
        return Iterate(V, Ut, shift / self.target_scale, model.sigma / self.target_scale)


def _moments(values: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted mean and spread of columns; what has no spread gets its own size, or 1."""
    total = np.maximum(share.sum(axis=0), 1e-300)
    # In units of its largest value no square of a column overflows.
    size = np.abs(values).max(axis=0, initial=0.0)
    size = np.where(size > _VANISHING, size, 1.0)
    scaled = values / size
    mean = _weighted_sum(share, scaled) / total
    scaled -= mean
    spread = np.sqrt(_weighted_sum(share, np.square(scaled, out=scaled)) / total)
    tiny = 64.0 * np.finfo(np.float64).eps
    scale = np.where(spread > tiny, spread, 1.0)
    return mean * size, scale * size


def _weighted_sum(share: FloatArray, values: FloatArray) -> FloatArray:
    """Sums of columns with weights of rows, (n, 1), or of entries, (n, k)."""
    if share.shape[1] == 1:
        return np.asarray(share[:, 0] @ values)
    return np.asarray((share * values).sum(axis=0))
