"""The Gaussian Tobit likelihood, one fused pass over the entries."""

import math
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from scipy.special import log_ndtr

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import normal

# How kernels are compiled: cached, without the interpreter's lock, and with NaN respected.

Args = ParamSpec("Args")
Result = TypeVar("Result")


_SUMS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
}


def jit(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile ``function`` on first call.

    No ``fastmath``: it deletes NaN tests, and NaN is how a missing entry looks. No
    ``parallel``: it is not safe when called from several threads.
    """
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast("Callable[Args, Result]", compiled)


def jit_sums(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """Compile ``function`` with sums in any order, so that the compiler can vectorise them.

    Of ``fastmath`` only what leaves NaN and infinity alone: a missing entry is still seen.
    """
    return cast("Callable[Args, Result]", numba.njit(**_SUMS)(function))


def jit_inside(function: Callable[Args, Result]) -> Callable[Args, Result]:
    """The same for a part of a loop that allocates nothing: it becomes part of its caller.

    Counting the references to its arrays would cost half as much as a row of ten tasks.
    """
    options = {**_SUMS, "forceinline": True, "_nrt": False}
    return cast("Callable[Args, Result]", numba.njit(**options)(function))


# The normal tail, log Φ(z) and λ(z) = φ(z)/Φ(z): the compiled twin of ``normal``. Piecewise
# polynomials take a tenth of the time of erfc, exp and log, and have no branches.

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
_SQRT_HALF = math.sqrt(0.5)
_FAR_TAIL, _NEARLY_CERTAIN = -5.0, 2.0  # the table is exact to rounding in between
_FRACTION_TERMS = 30

TABLE_START, TABLE_END = -40.0, 9.0
TABLE_CELLS_PER_UNIT = 16
_DEGREE = 5


def _cell_polynomials() -> FloatArray:
    """Coefficients (cell, 7), lowest power first: log Φ at the centre, then six of λ·h.

    The variable t runs over [−1, 1] within a cell, h is half the cell's width; interpolation is
    at Chebyshev points. As λ = d log Φ/dz, the integral of the six by t gives log Φ.
    """
    n_cells = round((TABLE_END - TABLE_START) * TABLE_CELLS_PER_UNIT) + 1  # the end is inside
    centres = TABLE_START + (np.arange(n_cells) + 0.5) / TABLE_CELLS_PER_UNIT
    points = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    half = 0.5 / TABLE_CELLS_PER_UNIT
    inverse = np.linalg.inv(np.vander(points, increasing=True)).T
    mills = normal.mills(centres[:, None] + points * half)
    return np.column_stack([log_ndtr(centres), half * mills @ inverse])


TABLE = _cell_polynomials()


@jit_sums
def table_log_ndtr_mills(z: float) -> tuple[float, float]:
    """Log Φ(z) and λ(z) for one number within the table."""
    place = (z - TABLE_START) * TABLE_CELLS_PER_UNIT
    cell = int(place)
    t = 2.0 * (place - cell) - 1.0
    c = TABLE[cell]
    a, b = c[5] * (1.0 / 5.0) + t * c[6] * (1.0 / 6.0), c[5] + t * c[6]
    a, b = c[4] * (1.0 / 4.0) + t * a, c[4] + t * b
    a, b = c[3] * (1.0 / 3.0) + t * a, c[3] + t * b
    a, b = c[2] * (1.0 / 2.0) + t * a, c[2] + t * b
    a, b = c[1] + t * a, c[1] + t * b
    return c[0] + t * a, 2.0 * TABLE_CELLS_PER_UNIT * b


@jit_inside
def log_ndtr_mills_excess(z: float) -> tuple[float, float, float]:
    """Log Φ(z), λ(z) and λ(z) + z for one number.

    In the far tail λ + z is a continued fraction, and log Φ = log φ − log λ follows from it. Where
    log Φ is small, erfc keeps its relative accuracy.
    """
    if _FAR_TAIL <= z <= _NEARLY_CERTAIN:
        log_cdf, mills = table_log_ndtr_mills(z)
        return log_cdf, mills, mills + z
    log_pdf = -0.5 * z * z - _LOG_SQRT_2PI
    if z > _NEARLY_CERTAIN:
        tail = 0.5 * math.erfc(z * _SQRT_HALF)
        mills = math.exp(log_pdf) / (1.0 - tail)
        return math.log1p(-tail), mills, mills + z
    excess = 0.0
    for term in range(_FRACTION_TERMS, 0, -1):
        excess = term / (excess - z)
    mills = excess - z
    return log_pdf - math.log(mills), mills, excess


@jit_inside
def open_entry(a: float, b: float) -> tuple[float, float, float, float, float]:
    """An entry with ends a and b in units of σ around its score, unless both are finite and differ.

    Returns the distance z of its end, its nll at σ = 1 with slope and curvature by the score, and
    1 if it is observed, else 0; everything is 0 if it is missing. Derivatives by log σ follow, as
    σ stretches z.
    """
    if a == b:
        return a, 0.5 * a * a + _LOG_SQRT_2PI, -a, 1.0, 1.0
    if math.isnan(a):
        return 0.0, 0.0, 0.0, 0.0, 0.0
    sign, z = (1.0, b) if math.isinf(a) else (-1.0, a)
    log_cdf, mills, excess = log_ndtr_mills_excess(sign * z)
    return z, -log_cdf, sign * mills, mills * excess, 0.0


@jit_inside
def is_closed(start: float, end: float) -> bool:
    """Whether an interval has two finite ends: rare, so the NumPy path serves them."""
    return start < end and not math.isinf(start) and not math.isinf(end)


@jit
def fill_latent(
    low: FloatArray, high: FloatArray, latent: FloatArray, sigma: FloatArray, out: FloatArray
) -> int:
    """Write nll and its derivatives by η and log σ; count the closed intervals, left as they are.

    Parameters
    ----------
    low, high, latent : arrays of shape (N, T)
    sigma : array of shape (T,)
    out : array of shape (6, N, T)
        In the order of ``Derivatives``.
    """
    closed = 0
    precision, log_sigma = 1.0 / sigma, np.log(sigma)
    for row in range(latent.shape[0]):
        for task in range(latent.shape[1]):
            start, end, eta = low[row, task], high[row, task], latent[row, task]
            if is_closed(start, end):
                closed += 1
                continue
            scale = precision[task]
            z, nll, slope, curvature, observed = open_entry(
                (start - eta) * scale, (end - eta) * scale
            )
            bend = z * curvature - slope
            out[0, row, task] = nll + observed * log_sigma[task]
            out[1, row, task] = slope * scale
            out[2, row, task] = observed + z * slope
            out[3, row, task] = curvature * scale * scale
            out[4, row, task] = bend * scale
            out[5, row, task] = z * bend
    return closed


# Conditional expectation of the missing noise of a row given the known noise.


@jit
def fill_missing(residual: FloatArray, missing: BoolArray, precision: FloatArray) -> None:
    """Put E[e_m | e_k] into the missing entries m of every row, where ``residual`` holds 0."""
    n_rows, n_tasks = residual.shape
    tasks = np.empty(n_tasks, dtype=np.int64)
    right, root = np.empty(n_tasks), np.empty((n_tasks, n_tasks))
    for row in range(n_rows):
        n_missing = 0
        for task in range(n_tasks):
            if missing[row, task]:
                tasks[n_missing] = task
                n_missing += 1
        if n_missing in (0, n_tasks):
            continue
        for i in range(n_missing):
            right[i] = 0.0
            for task in range(n_tasks):
                right[i] -= precision[tasks[i], task] * residual[row, task]
            for j in range(i + 1):
                root[i, j] = precision[tasks[i], tasks[j]]
        cholesky(root, n_missing)
        solve_lower(root, right, n_missing)
        solve_upper(root, right, n_missing)
        for i in range(n_missing):
            residual[row, tasks[i]] = right[i]


# Cholesky decompositions of small matrices, which NumPy's calls would outweigh.


@jit
def cholesky(matrix: FloatArray, size: int) -> float:
    """Decompose the leading block in place, lower triangle; returns half its log determinant."""
    half = 0.0
    for i in range(size):
        for j in range(i + 1):
            rest = matrix[i, j]
            for k in range(j):
                rest -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = math.sqrt(rest) if i == j else rest / matrix[j, j]
        half += math.log(matrix[i, i])
    return half


@jit
def solve_lower(root: FloatArray, vector: FloatArray, size: int) -> None:
    """Solve with the lower triangle, in place."""
    for i in range(size):
        rest = vector[i]
        for k in range(i):
            rest -= root[i, k] * vector[k]
        vector[i] = rest / root[i, i]


@jit
def solve_upper(root: FloatArray, vector: FloatArray, size: int) -> None:
    """Solve with the transposed lower triangle, in place."""
    for i in range(size - 1, -1, -1):
        rest = vector[i]
        for k in range(i + 1, size):
            rest -= root[k, i] * vector[k]
        vector[i] = rest / root[i, i]
