"""What the errors of a row tell about those of its entries that are missing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.kernels._jit import jit


@jit
def fill_missing(residual: FloatArray, missing: BoolArray, precision: FloatArray) -> None:
    """Put E[e_m | e_k] into the missing entries m of every row, where ``residual`` holds 0."""
    n_rows, n_tasks = residual.shape
    tasks = np.empty(n_tasks, dtype=np.int64)
    right, root = np.empty(n_tasks), np.empty((n_tasks, n_tasks))
    for row in range(n_rows):
        n_missing = _list_missing(missing[row], tasks)
        if n_missing in (0, n_tasks):
            continue
        for i in range(n_missing):
            right[i] = 0.0
            for task in range(n_tasks):
                right[i] -= precision[tasks[i], task] * residual[row, task]
        _solve(precision, tasks[:n_missing], root, right)
        for i in range(n_missing):
            residual[row, tasks[i]] = right[i]


@jit
def _list_missing(missing: BoolArray, tasks: NDArray[np.int64]) -> int:
    """Write the tasks that are missing to the beginning of ``tasks``; how many they are."""
    count = 0
    for task in range(len(missing)):
        if missing[task]:
            tasks[count] = task
            count += 1
    return count


@jit
def _solve(
    precision: FloatArray, tasks: NDArray[np.int64], root: FloatArray, right: FloatArray
) -> None:
    """Solve with the part of ``precision`` that belongs to some tasks, by its Cholesky root."""
    n = len(tasks)
    for i in range(n):
        for j in range(i + 1):
            rest = precision[tasks[i], tasks[j]]
            for k in range(j):
                rest -= root[i, k] * root[j, k]
            root[i, j] = np.sqrt(rest) if i == j else rest / root[j, j]
        for k in range(i):
            right[i] -= root[i, k] * right[k]
        right[i] /= root[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            right[i] -= root[k, i] * right[k]
        right[i] /= root[i, i]
