"""What data sets share: the class of a cohort, tables in the package, seeds."""

from dataclasses import dataclass
from importlib.resources import files

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from deeptobit.arrays import RandomStateLike


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
        Bounds by the name of the score; ∓inf if there is none.
    """

    X: pd.DataFrame
    Y: pd.DataFrame
    lower: dict[str, float]
    upper: dict[str, float]


def packaged_table(name: str) -> pd.DataFrame:
    """Read ``data/<name>.csv`` beside this module.

    Examples
    --------
    >>> packaged_table("adni_scores").head(2)
            table    column visit  lower  upper
    0  ADASSCORES   TOTAL11    bl      0   70.0
    1  ADASSCORES  TOTALMOD    bl      0   85.0
    """
    with (files("deeptobit.datasets") / "data" / f"{name}.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream)


def as_random_state(random_state: RandomStateLike) -> np.random.RandomState:
    """Return a ``RandomState`` for a seed, a generator, a state or ``None``.

    NumPy never changes the stream of ``RandomState``, but may change that of ``Generator`` between
    releases (NEP 19). A data set that is named by its seed needs the former, so of a ``Generator``
    only the bits are used, which advances it.

    Examples
    --------
    >>> round(as_random_state(0).standard_normal(), 4)
    1.7641
    >>> generator = np.random.default_rng(0)
    >>> draws = [as_random_state(generator).standard_normal() for _ in range(2)]
    >>> draws[0] == draws[1]
    False
    """
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    state: np.random.RandomState = check_random_state(random_state)
    return state
