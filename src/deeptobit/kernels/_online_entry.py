"""Censored Gaussian entries at σ = 1: likelihood and derivatives, compiled.

A block of rows is prepared once: an entry that is observed or open on one side becomes an ``edge``
and a ``sign`` (0 observed, 1 left-censored, −1 right-censored), so that a row is evaluated without
branches, which would be mispredicted half of the time. Missing entries have a NaN edge. Intervals
with two finite ends have one too; they are rare and filled in afterwards.
"""

import math

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.kernels._jit import jit, jit_sums
from deeptobit.kernels._mills_table import (
    TABLE_END,
    TABLE_START,
    log_ndtr_mills,
    table_log_ndtr_mills,
)

Entry = tuple[float, float, float, float, float, float]

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_NARROW = 1e-5  # the density is constant over the interval
_SHORT, _LEVEL = 2.0, 8.0  # 16 nodes are exact below, and nothing cancels above


@jit
def standard_entries(
    low: FloatArray,
    high: FloatArray,
    location: FloatArray,
    precision: FloatArray,
    out: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> int:
    """Write ends in standard units, edge and sign of a row; count those with two finite ends.

    An entry that is open on both sides becomes a missing one.
    """
    start, end, edge, sign = out
    closed = 0
    for task in range(len(low)):
        a = (low[task] - location[task]) * precision[task]
        b = (high[task] - location[task]) * precision[task]
        left, right = a == -math.inf, b == math.inf
        # Not "and": that would be a branch, mispredicted half of the time.
        inside, nothing = (a < b) & (not left) & (not right), left & right
        closed += 1 if inside else 0
        start[task] = math.nan if nothing else a
        end[task] = math.nan if nothing else b
        value = b if left else a
        edge[task] = math.nan if inside | nothing else value
        sign[task] = (1.0 if left else 0.0) - (1.0 if right else 0.0)
    return closed


@jit_sums
def row_entries(
    edge: FloatArray,
    sign: FloatArray,
    latent: FloatArray,
    precision: FloatArray,
    z: FloatArray,
    out: FloatArray,
) -> None:
    """Distances z and, at σ = 1, nll, score, curvature and pull on log σ of one row, (4, T).

    Missing entries give zeros.
    """
    for task in range(len(edge)):
        z[task] = (edge[task] - latent[task]) * precision[task]
    far = False
    for task in range(len(edge)):
        turned = sign[task] * z[task]
        far |= turned < TABLE_START
        turned = turned if turned >= TABLE_START else TABLE_START  # and what is missing
        turned = TABLE_END if turned > TABLE_END else turned  # both are below 1e-18 from there on
        log_cdf, out[1, task] = table_log_ndtr_mills(turned)
        out[0, task] = -log_cdf
    if far:
        for task in range(len(edge)):
            if sign[task] * z[task] < TABLE_START:
                log_cdf, out[1, task] = log_ndtr_mills(sign[task] * z[task])
                out[0, task] = -log_cdf
    # Every load comes before the choices: a load inside a choice would make it a branch.
    for task in range(len(edge)):
        side, distance, tail, mills = sign[task], z[task], out[0, task], out[1, task]
        exact, known = side == 0.0, distance == distance
        here = distance if known else 0.0
        turned = side * here
        square = here * here
        nll = 0.5 * square + _LOG_SQRT_2PI if exact else tail
        score = -here if exact else side * mills
        curvature = 1.0 if exact else mills * (mills + turned)
        pull = 1.0 - square if exact else turned * mills
        out[0, task] = nll if known else 0.0
        out[1, task] = score if known else 0.0
        out[2, task] = curvature if known else 0.0
        out[3, task] = pull if known else 0.0


@jit
def fill_closed(
    low: FloatArray,
    high: FloatArray,
    latent: FloatArray,
    precision: FloatArray,
    out: FloatArray,
) -> None:
    """Overwrite the entries of one row that have two different finite ends, (4, T)."""
    for task in range(len(low)):
        start, end = low[task], high[task]
        if start < end and not math.isinf(start) and not math.isinf(end):
            a = (start - latent[task]) * precision[task]
            b = (end - latent[task]) * precision[task]
            nll, score, pull, curvature, _, _ = two_sided(a, b)
            out[0, task] = nll
            out[1, task] = score
            out[2, task] = curvature
            out[3, task] = pull


@jit
def two_sided(a: float, b: float) -> Entry:
    """Fields of ``Derivatives`` for an interval [a, b] around a latent score of 0."""
    width = b - a
    middle = 0.5 * (a + b)
    if width * max(1.0, abs(middle)) <= _NARROW:
        z = middle
        nll = 0.5 * z * z + _LOG_SQRT_2PI - math.log(width)
        return nll, -z, 1.0 - z * z, 1.0, 2.0 * z, 2.0 * z * z
    near, far = (a, b) if middle >= 0.0 else (-b, -a)
    fall = math.exp(-width * abs(middle))  # of the density, from the near to the far end
    if width <= _SHORT and width * abs(middle) <= _LEVEL:
        mass = 0.0  # over the density at the near end
        for node in range(16):
            t = 0.5 * width * (1.0 + _NODES[node])
            mass += 0.5 * width * _WEIGHTS[node] * math.exp(-t * (near + 0.5 * t))
        at_near = 1.0 / mass
        nll = 0.5 * near * near + _LOG_SQRT_2PI - math.log(mass)
    else:
        log_near, mills_near = log_ndtr_mills(-near)
        log_far, _ = log_ndtr_mills(-far)
        rest = -math.expm1(log_far - log_near)
        at_near = mills_near / rest
        nll = -log_near - math.log(rest)
    at_a, at_b = (at_near, at_near * fall) if middle >= 0.0 else (at_near * fall, at_near)
    pull, stretch = at_b - at_a, b * at_b - a * at_a
    square = b * b * at_b - a * a * at_a
    cube = b * b * b * at_b - a * a * a * at_a
    return (
        nll,
        pull,
        stretch,
        min(max(stretch + pull * pull, 0.0), 1.0),
        square + pull * stretch - pull,
        cube + stretch * stretch - stretch,
    )
