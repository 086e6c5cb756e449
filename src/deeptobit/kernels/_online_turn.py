"""Small matrices of the online solver, compiled: ten by ten numbers are all overhead in NumPy."""

import math

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._jit import is_finite, jit_sums
from deeptobit.kernels._online_reference import EXPLODED
from deeptobit.kernels._online_types import Iterate


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
def turn(
    both: FloatArray, now: Iterate, mean: Iterate, curvature: FloatArray, damping: float
) -> tuple[FloatArray, float]:
    """Compiled twin of ``reference_turn``."""
    rank = len(now[0])
    there, back = whitening(np.ascontiguousarray(both[:rank, :rank]))
    for part in (now, mean):
        part[0][:] = np.dot(there, part[0])
        part[1][:] = np.dot(back, part[1])
    for r in range(rank):
        mine = _form(there[r], both[:rank, :rank])
        cross = _form(there[r], both[:rank, rank:])
        other = _form(there[r], both[rank:, rank:])
        mine, other = math.sqrt(max(mine, 0.0)), math.sqrt(max(other, 0.0))
        cosine = cross / max(mine * other, 1e-150)
        if other < 0.1 * mine or other > 10.0 * mine or cosine < 0.3:
            mean[0][r] = now[0][r]
            mean[1][r] = now[1][r]
    return sketch_metric(now[1], now[3], curvature, damping)


@jit_sums
def _form(direction: FloatArray, matrix: FloatArray) -> float:
    """The quadratic form of a matrix."""
    total = 0.0
    for r in range(len(direction)):
        for k in range(len(direction)):
            total += direction[r] * matrix[r, k] * direction[k]
    return total


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
def settle(
    both: FloatArray,
    now: Iterate,
    mean: Iterate,
    most: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
) -> bool:
    """Compiled twin of ``reference_settle``."""
    rank = len(now[0])
    total, square = now[0].sum() + now[1].sum() + now[2].sum() + now[3].sum(), 0.0
    for r in range(rank):
        square += both[r, r]
    if not (is_finite(total) and square <= EXPLODED * rank):
        return False
    _limit_linear(now[1], both[:rank, :rank], most)
    _limit_linear(mean[1], both[rank:, rank:], most)
    for part in (now, mean):
        for task in range(len(most)):
            part[2][task] = min(max(part[2][task], lowest[task]), highest[task])
    return True


@jit_sums
def _limit_linear(Ut: FloatArray, second_moments: FloatArray, most: FloatArray) -> None:
    """Shorten each U_t so that U_tᵀVx has at most that deviation."""
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
