"""Small matrices of the online solver, compiled: ten by ten numbers are all overhead in NumPy."""

import math

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._jit import jit_sums


@jit_sums
def whitening(second_moments: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compiled twin of ``reference_whitening``."""
    values, vectors = np.linalg.eigh(second_moments)
    tiny = 1e-8 * max(values[-1], 1e-12)
    there, back = np.empty(vectors.shape), np.empty(vectors.shape)
    for k in range(len(values)):
        root = math.sqrt(values[k]) if values[k] > tiny else 1.0
        for r in range(len(values)):
            there[r, k] = vectors[r, k] / root
            back[r, k] = vectors[r, k] * root
    return np.dot(there, vectors.T), np.dot(back, vectors.T)


@jit_sums
def sketch_metric(
    Ut: FloatArray, sigma: FloatArray, curvature: FloatArray, damping: float
) -> tuple[FloatArray, float]:
    """Compiled twin of ``reference_sketch_metric``."""
    rank, n_tasks = Ut.shape
    scaled, heavy = np.empty(Ut.shape), np.empty(Ut.shape)
    for r in range(rank):
        for t in range(n_tasks):
            scaled[r, t] = Ut[r, t] / sigma[t]
            heavy[r, t] = scaled[r, t] * curvature[t]
    mean, most = np.dot(heavy, scaled.T), np.dot(scaled, scaled.T)
    ridge = 1e-4 * np.trace(mean) / rank + damping
    for r in range(rank):
        mean[r, r] += ridge
    inverse = np.linalg.inv(mean)
    spread = np.sum(inverse * most) / rank
    return 0.5 * (inverse + inverse.T), max(1.0, spread)


@jit_sums
def limit_linear(Ut: FloatArray, second_moments: FloatArray, most: FloatArray) -> None:
    """Compiled twin of ``reference_limit_linear``."""
    rank, n_tasks = Ut.shape
    variance = np.zeros(n_tasks)
    for r in range(rank):
        for k in range(rank):
            scale, mine, other = second_moments[r, k], Ut[r], Ut[k]
            for task in range(n_tasks):
                variance[task] += scale * mine[task] * other[task]
    for task in range(n_tasks):
        length = math.sqrt(max(variance[task], 1e-300))
        variance[task] = min(1.0, most[task] / length)
    for r in range(rank):
        for task in range(n_tasks):
            Ut[r, task] *= variance[task]
