"""What every cohort has, simulated or real."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Cohort:
    """Features and bounded scores of n people.

    Attributes
    ----------
    X : DataFrame of shape (n, D)
        Features; the index identifies the people.
    Y : DataFrame of shape (n, T)
        Scores within their bounds, stored as float; NaN where missing. Same index as X.
    lower, upper : dict
        Bounds by the name of the score; ∓inf where a side is open.
    """

    X: pd.DataFrame
    Y: pd.DataFrame
    lower: dict[str, float]
    upper: dict[str, float]

    @property
    def groups(self) -> NDArray[np.generic[Any]]:
        """Who each row is, (n,): the ``groups`` of scikit-learn's splitters."""
        return self.X.index.to_numpy()
