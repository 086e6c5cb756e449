"""Every kind of entry, as ends of intervals in units of the noise around a latent score of 0."""

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise, TwoPiece
from tests.likelihood.families import reach

_NEAR = 0.02  # the seam of two pieces, across which second derivatives jump
WIDTHS = (1e-3, 0.5, 2.0, 8.0, 13.0, 40.0)


def standard_entries(noise: Noise) -> tuple[FloatArray, FloatArray]:
    """Observed, left, right, intervals from short to wide with ends in either tail, and missing."""
    lowest, highest = reach(noise)
    z = np.linspace(lowest, highest, 61)
    low = [z, np.full_like(z, -np.inf), z, np.full(1, np.nan)]
    high = [z, z, np.full_like(z, np.inf), np.full(1, np.nan)]
    for width in WIDTHS:
        start = z[z + width <= highest]
        low.append(start)
        high.append(start + width)
    a, b = np.concatenate(low), np.concatenate(high)
    smooth = (np.abs(a) > _NEAR) & (np.abs(b) > _NEAR) | (not isinstance(noise, TwoPiece))
    return a[smooth | np.isnan(a)], b[smooth | np.isnan(a)]
