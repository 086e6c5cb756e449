"""Features that say the same: pairs, and sums of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigvalsh, qr

from deeptobit.arrays import FloatArray

if TYPE_CHECKING:
    import pandas as pd

MOST_FEATURES = 2000  # beyond it the correlations take longer than the model
_SAME = 0.999
_NOTHING_LEFT = 1e-8


def same_pairs(X: pd.DataFrame) -> list[tuple[str, str, float]]:
    """Pairs of features with a correlation of 0.999 or more, in size.

    Examples
    --------
    >>> import pandas as pd
    >>> same_pairs(pd.DataFrame({"kg": [1.0, 2, 4], "g": [1e3, 2e3, 4e3], "age": [3.0, 1, 2]}))
    [('kg', 'g', 1.0)]
    """
    Z = _standard(X)
    correlation = Z.T @ Z
    first, second = np.nonzero(np.triu(np.abs(correlation) >= _SAME, k=1))
    return [
        (str(X.columns[i]), str(X.columns[j]), round(float(correlation[i, j]), 4))
        for i, j in zip(first.tolist(), second.tolist(), strict=True)
    ]


def dependent_features(X: pd.DataFrame) -> list[str]:
    """Features that are exactly a linear combination of others; none if there are too few rows.

    Examples
    --------
    >>> import pandas as pd
    >>> total = pd.DataFrame({"left": [1.0, 2, 4, 1], "right": [3.0, 1, 2, 2]})
    >>> dependent_features(total.assign(both=total.left + total.right))
    ['both']
    """
    Z = _standard(X)
    varies = np.flatnonzero(Z.any(axis=0))
    Z, names = Z[:, varies], X.columns[varies]
    # The smallest eigenvalue is cheap and settles most cases; pivoting then finds the names.
    if not 0 < Z.shape[1] < Z.shape[0] or eigvalsh(Z.T @ Z)[0] > _NOTHING_LEFT:
        return []
    R, order = qr(Z, mode="r", pivoting=True)
    left = np.abs(np.diag(R))
    return sorted(str(names[order[k]]) for k in np.flatnonzero(left <= _NOTHING_LEFT).tolist())


def _standard(X: pd.DataFrame) -> FloatArray:
    """Columns with mean 0 and length 1; a constant one is 0."""
    values = X.to_numpy(dtype=np.float64)
    centred = values - values.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    varies = length > 1e-12 * np.abs(values).max(axis=0)
    return np.where(varies, centred, 0.0) / np.where(varies, length, 1.0)
