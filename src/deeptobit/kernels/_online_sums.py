"""Per-task sums over a block of rows, and the entries of a block, for the online solver.

Kernels with a ``first`` work on the tasks from there on, as many as they are given σ for.
"""

import math

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._jit import jit, jit_sums
from deeptobit.kernels._online_entry import fill_closed, row_entries, standard_entries, two_sided
from deeptobit.kernels._online_types import Block


@jit
def standard_units(
    values: FloatArray, location: FloatArray, precision: FloatArray, out: FloatArray
) -> None:
    """(values − location) · precision, column by column; infinite ends stay infinite."""
    for row in range(values.shape[0]):
        for column in range(values.shape[1]):
            out[row, column] = (values[row, column] - location[column]) * precision[column]


@jit
def fill_middles(low: FloatArray, high: FloatArray, values: FloatArray, known: FloatArray) -> None:
    """Compiled twin of ``reference_middles``."""
    for row in range(len(low)):
        starts, ends, mine, there = low[row], high[row], values[row], known[row]
        for task in range(len(starts)):
            a, b = starts[task], ends[task]
            start, end = b if a == -math.inf else a, a if b == math.inf else b
            value = start + 0.5 * (end - start)
            finite = (value - value) == 0.0
            mine[task] = value if finite else 0.0
            there[task] = 1.0 if finite else 0.0


@jit_sums
def add_squares(X: FloatArray, weight: FloatArray, out: FloatArray) -> None:
    """Add the weighted sums of squares of the columns."""
    for row in range(len(X)):
        x, share = X[row], weight[row]
        for column in range(len(x)):
            out[column] += share * x[column] * x[column]


@jit
def standard_targets(
    low: FloatArray,
    high: FloatArray,
    first: int,
    location: FloatArray,
    precision: FloatArray,
    out: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> int:
    """Entries of all rows in standard units; how many have two finite ends."""
    start, end, edge, sign = out
    last = first + len(location)
    closed = 0
    for row in range(len(low)):
        closed += standard_entries(
            low[row, first:last],
            high[row, first:last],
            location,
            precision,
            (
                start[row, first:last],
                end[row, first:last],
                edge[row, first:last],
                sign[row, first:last],
            ),
        )
    return closed


@jit_sums
def add_null(
    block: Block,
    first: int,
    mean: FloatArray,
    sigma: FloatArray,
    out: FloatArray,
) -> None:
    """Gaussian twin of ``reference_null_sums``, (6, T)."""
    _, low, high, edge, sign, weight, closed = block
    n_tasks = len(sigma)
    last = first + n_tasks
    precision = 1.0 / sigma
    z, entry = np.empty(n_tasks), np.empty((4, n_tasks))
    for row in range(low.shape[0]):
        share = weight[row]
        sides = sign[row, first:last]
        row_entries(edge[row, first:last], sides, mean, precision, z, entry)
        for task in range(n_tasks):
            side, distance, g = sides[task], z[task], entry[1, task]
            exact = side == 0.0
            here = distance if distance == distance else 0.0
            bend = -2.0 * g if exact else -g * (1.0 - here * (g + here))
            out[0, task] += share * entry[0, task]
            out[1, task] += share * g
            out[2, task] += share * entry[3, task]
            out[3, task] += share * entry[2, task]
            out[4, task] += share * bend
            out[5, task] += share * here * bend
        if closed:
            starts, ends = low[row, first:last], high[row, first:last]
            for task in range(n_tasks):
                start, end = starts[task], ends[task]
                if start < end and not math.isinf(start) and not math.isinf(end):
                    a = (start - mean[task]) * precision[task]
                    b = (end - mean[task]) * precision[task]
                    fields = two_sided(a, b)
                    for field in range(6):
                        out[field, task] += share * fields[field]


@jit_sums
def add_evidence(
    block: Block,
    first: int,
    linear: FloatArray,
    intercept: FloatArray,
    sigma: FloatArray,
    out: FloatArray,
) -> None:
    """Gaussian twin of ``reference_evidence``, (6, T)."""
    _, low, high, edge, sign, weight, closed = block
    n_tasks = len(sigma)
    last = first + n_tasks
    precision = 1.0 / sigma
    z, entry = np.empty(n_tasks), np.empty((4, n_tasks))
    latent = np.empty(n_tasks)
    for row in range(len(linear)):
        share, lifts = weight[row], linear[row]
        for task in range(n_tasks):
            latent[task] = lifts[task] + intercept[task]
        edges, sides = edge[row, first:last], sign[row, first:last]
        starts, ends = edges, edges  # enough to tell what is known, and less to read
        row_entries(edges, sides, latent, precision, z, entry)
        if closed:
            starts, ends = low[row, first:last], high[row, first:last]
            fill_closed(starts, ends, latent, precision, entry)
        for task in range(n_tasks):
            start, end, side = starts[task], ends[task], sides[task]
            known = share if start == start else 0.0
            exact = share if start == end else 0.0
            lift = lifts[task] * precision[task]
            out[0, task] += share * entry[0, task]
            out[1, task] += share * entry[1, task] * lift
            out[2, task] += share * entry[2, task] * lift * lift
            out[3, task] += share * entry[3, task]
            out[4, task] += known
            out[5, task] += exact if side == 0.0 else 0.0


@jit_sums
def fill_scores(
    block: Block,
    first: int,
    latent: FloatArray,
    sigma: FloatArray,
    reach: float,
    score: FloatArray,
    out: FloatArray,
) -> None:
    """Gaussian twin of ``reference_scores``: (n, T) and (5, T)."""
    _, low, high, edge, sign, weight, closed = block
    n_tasks = len(sigma)
    last = first + n_tasks
    precision = 1.0 / sigma
    z, entry = np.empty(n_tasks), np.empty((4, n_tasks))
    for row in range(len(latent)):
        share = weight[row]
        edges, sides = edge[row, first:last], sign[row, first:last]
        starts = edges
        row_entries(edges, sides, latent[row], precision, z, entry)
        if closed:
            starts = low[row, first:last]
            fill_closed(starts, high[row, first:last], latent[row], precision, entry)
        for task in range(n_tasks):
            start, side, g = starts[task], sides[task], entry[1, task]
            known = share if start == start else 0.0
            g = reach if g > reach else (-reach if g < -reach else g)
            score[row, task] = share * g * precision[task]
            out[0, task] += share * entry[0, task]
            out[1, task] += share * entry[2, task]
            out[2, task] += share * entry[3, task]
            out[3, task] += known
            out[4, task] += known if side == 0.0 else 0.0


@jit_sums
def fill_entries(
    block: Block,
    latent: FloatArray,
    sigma: FloatArray,
    out: FloatArray,
) -> None:
    """Gaussian twin of ``reference_entries``: nll, score, curvature, pull at σ = 1, (n, 4, T)."""
    _, low, high, edge, sign, _, closed = block
    precision = 1.0 / sigma
    z = np.empty(low.shape[1])
    for row in range(low.shape[0]):
        row_entries(edge[row], sign[row], latent[row], precision, z, out[row])
        if closed:
            fill_closed(low[row], high[row], latent[row], precision, out[row])
