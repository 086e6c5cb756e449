"""Algorithm 1 as the paper writes it, against the compiled one: sample by sample, task by task.

The reference is plain interpreted Python: for every sample, the gradient of V is a sum over tasks
(Algorithm 2) and every row of U takes its own step. It is measured on 100 samples and scaled to all
of them, in the same run as one pass of the library.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import erfc, exp, pi, sqrt
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.report import Number
from deeptobit import SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.published import PublishedSubspaceTobit

N_SAMPLES, N_FEATURES, N_TASKS, RANK, SIGMA = 5000, 200, 100, 10, 3.0
N_REFERENCE = 100
STEP = 0.001
_REPEATS = 3

Vector = list[float]
Matrix = list[Vector]


def measure() -> Iterator[Number]:
    """One pass of the library at the paper's sizes, in passes of the reference."""
    X, Y, _ = make_subspace(N_SAMPLES, N_FEATURES, N_TASKS, RANK, sigma=SIGMA, random_state=0)
    model = SubspaceTobitRegressor(RANK, solver="online")
    model.fit(X[:500], Y[:500])  # compile
    with threadpool_limits(1):
        fast = min(_seconds_of_library(model, X, Y) for _ in range(_REPEATS))
    slow = _seconds_of_reference(X[:N_REFERENCE], Y[:N_REFERENCE]) * N_SAMPLES / N_REFERENCE
    yield Number(
        "one pass, times as fast as Algorithm 1 in plain Python", slow / fast, 1000, "at least"
    )
    settings: dict[str, Any] = {
        "alpha": 0.01,
        "step_size_V": STEP,
        "step_size_U": STEP,
        "sigma": SIGMA,
    }
    printed = PublishedSubspaceTobit(RANK, **settings, random_state=0)
    with threadpool_limits(1):
        seconds = min(_seconds_of_library(printed, X, Y) for _ in range(_REPEATS))
    yield Number("deeptobit.published, one pass in passes of ours", seconds / fast, 10, "at most")


def one_pass(
    samples: Matrix, outcomes: Matrix, U: Matrix, V: Matrix, step: float, sigma: float
) -> None:
    """Algorithm 1 without a penalty: changes U (T, R) and V (R, D) in place, row by row."""
    for x, y in zip(samples, outcomes, strict=True):
        _sketch(x, y, U, V, step, sigma)
        coordinates = [_dot(row, x) for row in V]
        for t in range(len(U)):
            _refine(U[t], coordinates, y[t], step, sigma)


def _sketch(x: Vector, y: Vector, U: Matrix, V: Matrix, step: float, sigma: float) -> None:
    """Problem P:V by a gradient step (Algorithm 2): the sum over tasks of slope_t U_t xᵀ."""
    gradient = [[0.0] * len(x) for _ in V]
    coordinates = [_dot(row, x) for row in V]
    for t in range(len(U)):
        slope = _slope(y[t], _dot(U[t], coordinates), sigma)
        for r in range(len(V)):
            for d in range(len(x)):
                gradient[r][d] += slope * U[t][r] * x[d]
    for r in range(len(V)):
        for d in range(len(x)):
            V[r][d] -= step * gradient[r][d]


def _refine(row: Vector, coordinates: Vector, y: float, step: float, sigma: float) -> None:
    """Problem P:U of one task, by a gradient step."""
    slope = _slope(y, _dot(row, coordinates), sigma)
    for r in range(len(row)):
        row[r] -= step * slope * coordinates[r]


def _slope(y: float, latent: float, sigma: float) -> float:
    """Derivative of an entry's −log likelihood with respect to its latent score."""
    if y > 0.0:
        return -(y - latent) / sigma**2
    z = -latent / sigma
    return exp(-0.5 * z * z) / sqrt(2.0 * pi) / (sigma * 0.5 * erfc(-z / sqrt(2.0)))


def _dot(a: Vector, b: Vector) -> float:
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


def _seconds_of_library(model: Any, X: FloatArray, Y: FloatArray) -> float:
    started = perf_counter()
    model.fit(X, Y)
    return perf_counter() - started


def _seconds_of_reference(X: FloatArray, Y: FloatArray) -> float:
    rng = np.random.default_rng(0)
    U = (0.1 * rng.standard_normal((N_TASKS, RANK))).tolist()
    V = (0.1 * rng.standard_normal((RANK, N_FEATURES))).tolist()
    samples, outcomes = X.tolist(), Y.tolist()
    started = perf_counter()
    one_pass(samples, outcomes, U, V, STEP, SIGMA)
    return perf_counter() - started
