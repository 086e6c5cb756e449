"""Average ranks, and how far they must be apart to mean anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, studentized_range

from deeptobit.arrays import FloatArray

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05


class RankTest(NamedTuple):
    """Average ranks in ascending order, and which of them do not differ.

    Attributes
    ----------
    names : list of str
    average : array
    distance : float
        The critical difference.
    groups : list of (int, int)
        First and last place of methods that do not differ, each group as large as it can be.
    p_value : float
        Of Friedman's test that all methods are alike; NaN below three data sets or methods.
    """

    names: list[str]
    average: FloatArray
    distance: float
    groups: list[tuple[int, int]]
    p_value: float


def compare_ranks(ranks: pd.DataFrame) -> RankTest:
    r"""Friedman's test of average ranks and Nemenyi's critical difference (Demšar 2006).

    With k methods on n data sets, two average ranks differ at the 5 % level if they are more than

    .. math:: q_{0.05, k} \sqrt{\frac{k(k+1)}{6n}}

    apart, where q is the quantile of the studentised range over √2.

    Parameters
    ----------
    ranks : DataFrame of shape (n, k)

    Examples
    --------
    >>> import pandas as pd
    >>> ranks = pd.DataFrame({"a": [1.0] * 20, "b": [2.5] * 20, "c": [2.5] * 20})
    >>> found = compare_ranks(ranks)
    >>> found.groups, round(found.distance, 3)
    ([(1, 2)], 0.741)
    """
    average = ranks.mean().sort_values(kind="stable")
    n_data, n_methods = ranks.shape
    if n_methods < 2:
        return RankTest(list(average.index), average.to_numpy(), np.nan, [], np.nan)
    quantile = studentized_range.ppf(1.0 - LEVEL, n_methods, np.inf) / np.sqrt(2.0)
    distance = float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_data)))
    p_value = np.nan
    if n_data > 2 and n_methods > 2:
        p_value = float(friedmanchisquare(*ranks.to_numpy().T).pvalue)
    values = average.to_numpy()
    return RankTest(
        [str(name) for name in average.index], values, distance, _groups(values, distance), p_value
    )


def _groups(ascending: Sequence[float] | FloatArray, distance: float) -> list[tuple[int, int]]:
    """Runs of places within the distance, none of them inside another."""
    groups: list[tuple[int, int]] = []
    for first, value in enumerate(ascending):
        last = int(np.searchsorted(ascending, value + distance, side="right")) - 1
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups
