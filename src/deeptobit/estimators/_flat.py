"""Directions of the regression line that the rows of a task say nothing about."""

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.objective import OlsenProblem

_FLAT = 1e-10  # of the largest eigenvalue of the rows' second moments


def line_rows(problem: OlsenProblem) -> FloatArray:
    """Features in the round basis and, with an intercept, a column of ones, (N, r or r + 1)."""
    rows = np.vstack([block.dense() for _, block in problem.features.blocks()])
    return np.column_stack([rows, np.ones(len(rows))]) if problem.fit_intercept else rows


def flat_directions(rows: FloatArray) -> FloatArray:
    """Orthonormal directions along which the scores of all ``rows`` stay as they are, (P, k)."""
    values, vectors = np.linalg.eigh(rows.T @ rows)
    return np.asarray(vectors[:, values <= _FLAT * values.max(initial=0.0)])


def take_minimum_norm(problem: OlsenProblem, point: FloatArray, tasks: BoolArray) -> FloatArray:
    """Move the ``tasks`` along their flat directions to the smallest coefficients, (r + 2, T)."""
    point = point.copy()
    for task in np.flatnonzero(tasks).tolist():
        entry = ~problem.targets.missing[:, task] & (problem.weight > 0.0)
        flat = flat_directions(line_rows(problem)[entry])
        rank = problem.features.rank
        along = problem.features.coefficients(flat[:rank])
        gamma = problem.features.coefficients(point[:-2, [task]])[:, 0]
        shift, *_ = np.linalg.lstsq(along, -gamma, rcond=None)
        point[: len(flat), task] += flat @ shift
    return point
