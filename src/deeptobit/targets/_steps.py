"""Steps between neighbouring scores, where outcomes are whole numbers or multiples of a step."""

from __future__ import annotations

import numpy as np

from deeptobit.arrays import FloatArray

OFF_GRID = 0.01  # of a step: thirds of 100 are recorded as 33.33 and 66.67
_FEWEST = 3  # different values: any two are a step apart


def find_step(values: FloatArray, lower: float = -np.inf, upper: float = np.inf) -> float:
    """Distance between neighbouring scores on a regular grid, 0 if there is none.

    Parameters
    ----------
    values : array of shape (N,)
        What was recorded, NaN where missing.
    lower, upper : float
        Bounds, which are scores too; ∓inf where open.

    Examples
    --------
    >>> find_step(np.array([0.0, 3.0, 4.0, np.nan])), find_step(np.array([33.33, 66.67]), 0, 100)
    (1.0, 33.333333333333336)
    >>> find_step(np.array([0.1, 0.34, 0.95]))
    0.0
    """
    found = np.append(values, [lower, upper])
    found = np.unique(found[np.isfinite(found)])
    if len(found) < _FEWEST:
        return 0.0
    with np.errstate(over="ignore"):  # from one end of all numbers to the other
        gap, width = float(np.diff(found).min()), float(found[-1] - found[0])
    step = width / round(width / gap) if np.isfinite(width / gap) else 0.0
    # The smallest gap is rounded as the values are; its error would add up over many steps.
    places = (found - found[0]) / step if step > 0.0 else found
    on_grid = step > 0.0 and bool((np.abs(places - places.round()) <= OFF_GRID).all())
    return step if on_grid else 0.0
