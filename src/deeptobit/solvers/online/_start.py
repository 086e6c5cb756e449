"""Where the iterates begin: a spectral start from the first rows, or random."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dposv

from deeptobit.arrays import FloatArray
from deeptobit.kernels._online import entries, whitening
from deeptobit.kernels._online_types import Block, Iterate
from deeptobit.likelihood import Noise
from deeptobit.solvers.online._metric import FeatureMetric
from deeptobit.solvers.online._null import NullModel

_TAUS = 10.0 ** -np.arange(0.0, 10.0)
_CLEARLY_BETTER = 0.95
_NEGLIGIBLE = 1e-13


def spectral_start(
    noise: Noise, block: Block, null: NullModel, metric: FeatureMetric, rank: int
) -> tuple[Iterate, FloatArray]:
    r"""Reduced-rank ridge regression of the null model's working residuals, and mean curvatures.

    With scores g and mean curvature w̄ of the null model, :math:`E = -g/\bar w` are residuals in
    units of s₀. :math:`W = (X^\top X + 0.1(k + D)\tau I)^{-1}X^\top E`; with Q the leading right
    singular vectors of :math:`XW\sqrt{\bar w}`, :math:`U = s_0 Q/\sqrt{\bar w}` and
    :math:`V = (W\sqrt{\bar w}\,Q)^\top`. If the metric is full, τ is chosen by generalised
    cross-validation and kept in the metric.
    """
    sigma = null.sigma
    latent = np.broadcast_to(null.mean, block.low.shape)
    entry = entries(noise, block, np.ascontiguousarray(latent), sigma)
    known = _known(block)
    curvature = np.maximum(block.weight @ entry[:, 2] / known, 0.02)
    fill = np.maximum(known / max(float(block.weight.sum()), 1.0), 0.2)  # missing counts as 0 in E
    root = np.sqrt(block.weight)[:, None]
    X, E = root * block.X, -root * entry[:, 1] / (np.sqrt(curvature) * fill)
    W = _ridge(X, E, metric)
    Q = _leading(X @ W, rank)
    V, Ut = (W @ Q).T, sigma * Q.T / np.sqrt(curvature)
    start = Iterate(V, Ut, null.mean, sigma)
    return start.copy(), curvature  # the copy is in the order that the kernels walk through


def mean_curvature(noise: Noise, block: Block, model: Iterate) -> FloatArray:
    """Mean curvature of a known entry under a model, (T,)."""
    latent = block.X @ model.V.T @ model.Ut + model.intercept
    entry = entries(noise, block, latent, model.sigma)
    return np.maximum(block.weight @ entry[:, 2] / _known(block), 0.02)


def random_start(null: NullModel, n_features: int, rank: int, rng: np.random.Generator) -> Iterate:
    """Small random U and random V."""
    V = rng.standard_normal((rank, n_features)) / np.sqrt(n_features)
    Ut = 0.1 * null.sigma * rng.standard_normal((rank, len(null.mean))) / np.sqrt(rank)
    return Iterate(V, Ut, null.mean, null.sigma).copy()


def fill_empty(start: Iterate, metric: FeatureMetric, rng: np.random.Generator) -> None:
    """Whiten V, and give components without any variance a random direction with U = 0.

    A component with U = V = 0 is a saddle that no gradient leaves.
    """
    turn, back = whitening(metric.inner(start.V))
    start.V[...] = turn @ start.V
    start.Ut[...] = back @ start.Ut
    variances = np.diagonal(metric.inner(start.V))
    if (variances > 0.25).all():
        return
    # The whitening mixed empty directions with full ones: separate them again.
    values, vectors = np.linalg.eigh(metric.inner(start.V))
    start.V[...] = vectors.T @ start.V
    start.Ut[...] = vectors.T @ start.Ut
    for component in np.flatnonzero(values < 0.25).tolist():
        direction = rng.standard_normal((1, start.V.shape[1]))
        square = metric.mean_square(direction)
        start.V[component] = direction[0] / np.sqrt(square if square > 0.0 else 1.0)
        start.Ut[component] = 0.0


def _known(block: Block) -> FloatArray:
    """Weight of the known entries of each task, at least 1."""
    return np.maximum(block.weight @ (~np.isnan(block.low)).astype(np.float64), 1.0)


def _ridge(X: FloatArray, E: FloatArray, metric: FeatureMetric) -> FloatArray:
    n, n_features = X.shape
    ridge = 0.1 * (n + n_features)
    if metric.is_full:
        return _tuned_ridge(X, E, ridge, metric)
    if n_features <= n:
        gram = X.T @ X
        gram.flat[:: n_features + 1] += ridge
        return np.asarray(dposv(gram, X.T @ E)[1])
    gram = X @ X.T
    gram.flat[:: n + 1] += ridge
    return np.asarray(X.T @ np.linalg.solve(gram, E))


def _tuned_ridge(X: FloatArray, E: FloatArray, ridge: float, metric: FeatureMetric) -> FloatArray:
    """The ridge by generalised cross-validation, no smaller than is clearly better."""
    power, axes = _principal(X)
    along = axes.T @ (X.T @ E)  # X = L diag(√power) axesᵀ; this is √power · Lᵀ E
    energy = np.square(along).sum(axis=1) / power
    total = float(np.square(E).sum())
    error = []
    for tau in _TAUS:
        kept = power / (power + ridge * tau)
        residual = total - float(np.sum(energy * (1.0 - np.square(1.0 - kept))))
        freedom = max(1.0 - (float(kept.sum()) + 1.0) / len(X), 1e-3)
        error.append(residual / freedom**2)
    best = 0
    enough = len(X) >= len(metric.moments)  # fewer rows than features fit anything
    for choice in range(1, len(_TAUS) if enough else 1):
        if error[choice] < _CLEARLY_BETTER * error[best]:
            best = choice
    metric.tau = float(_TAUS[best])
    return np.asarray(axes @ (along / (power + ridge * metric.tau)[:, None]))


def _principal(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Squared singular values and right singular vectors of X, without its null space."""
    n, n_features = X.shape
    if n_features <= n:
        power, axes = np.linalg.eigh(X.T @ X)
        kept = power > _NEGLIGIBLE * max(float(power[-1]), 1e-300)
        return power[kept], axes[:, kept]
    power, left = np.linalg.eigh(X @ X.T)
    kept = power > _NEGLIGIBLE * max(float(power[-1]), 1e-300)
    return power[kept], X.T @ (left[:, kept] / np.sqrt(power[kept]))


def _leading(fitted: FloatArray, rank: int) -> FloatArray:
    """Leading right singular vectors, (T, R); orthonormal even where there is no variance."""
    n, n_tasks = fitted.shape
    if n_tasks <= n:
        last = n_tasks - 1
        return np.asarray(eigh(fitted.T @ fitted, subset_by_index=[last - rank + 1, last])[1])
    left = np.zeros((n, rank))  # fewer rows than components: any orthonormal completion
    few = min(n, rank)
    left[:, :few] = eigh(fitted @ fitted.T, subset_by_index=[n - few, n - 1])[1]
    return np.asarray(np.linalg.qr(fitted.T @ left)[0])
