r"""Log Φ(z) and the inverse Mills ratio λ(z) = φ(z)/Φ(z) from piecewise polynomials.

Both are analytic within 2.8 of the real line (the nearest zeros of Φ are 1.9 ± 2.8i), so that a
polynomial of degree 5 on a cell of width 1/16 is exact to about 1e-13. A call costs a few
nanoseconds, where ``erfc``, ``exp`` and ``log`` cost about forty.
"""

import numpy as np

from deeptobit import special
from deeptobit.arrays import FloatArray
from deeptobit.kernels._gaussian import log_ndtr_mills_excess
from deeptobit.kernels._jit import jit, jit_sums

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
    mills = special.mills(centres[:, None] + points * half)
    return np.column_stack([special.log_ndtr(centres), half * mills @ inverse])


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


@jit
def log_ndtr_mills(z: float) -> tuple[float, float]:
    """Log Φ(z) and λ(z) for one number."""
    if TABLE_START <= z <= TABLE_END:
        return table_log_ndtr_mills(z)
    log_cdf, mills, _ = log_ndtr_mills_excess(z)
    return log_cdf, mills
