"""What differs between stored and present numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# Solvers stop at a relative gradient of 1e-6 or less, and other machines round differently.
TOLERANCE = 1e-5


def differences(stored: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """One sentence for everything that is not the same; distances are in units of the largest.

    Examples
    --------
    >>> differences({"coef": [1.0, 2.0], "rank": [3]}, {"coef": [1.0, 2.1], "sigma": [1.0]})
    ['coef: largest change 0.048', 'rank: gone', 'sigma: new']
    """
    said = []
    for name in sorted(stored.keys() | found.keys()):
        if name not in found or name not in stored:
            said.append(f"{name}: {'new' if name in found else 'gone'}")
            continue
        old, new = np.asarray(stored[name], dtype=float), np.asarray(found[name], dtype=float)
        if old.shape != new.shape:
            said.append(f"{name}: shape {old.shape} became {new.shape}")
        elif not np.array_equal(np.isnan(old), np.isnan(new)):
            said.append(f"{name}: NaN in other places")
        elif (change := _distance(old, new)) > TOLERANCE:
            said.append(f"{name}: largest change {change:.2g}")
    return said


def _distance(old: Any, new: Any) -> float:
    size = np.nanmax(np.abs([old, new]), initial=np.finfo(float).tiny)
    return float(np.nanmax(np.abs(new - old), initial=0.0) / size)
