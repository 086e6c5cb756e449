"""Lots: numbers by chance that a row or a group has in every pass over a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray

_MOST = 2**16  # groups that are counted one by one; beyond, their number is estimated


def draw_lots(of: NDArray[Any], seed: int) -> FloatArray:
    """A number between 0 and 1 for every row number or label, the same for the same one.

    Lots are hashes: nothing has to be remembered to draw them again, and they look like chance
    because the hash of a number does.

    Parameters
    ----------
    of : array of shape (N,)
        Whole numbers, or text.
    seed : int

    Examples
    --------
    >>> draw_lots(np.array(["Ann", "Ben", "Ann"], dtype=object), seed=0).round(2)
    array([0.84, 0.38, 0.84])
    """
    from pandas.util import hash_array

    keys = of if of.dtype == object else of.astype(np.uint64)
    salt = hash_array(np.array([f"seed {seed}"], dtype=object))  # that of the number 0 is 0
    return np.asarray(hash_array(hash_array(keys) ^ salt) / 2.0**64)


@dataclass(frozen=True)
class SmallestLots:
    """The smallest lots of all groups, which tell how many groups there are.

    Memory holds 65,536 lots. Up to as many groups are counted exactly; of more, the largest lot
    that is kept tells the number to about half a percent.

    Parameters
    ----------
    lots : array, ascending

    Examples
    --------
    >>> groups = SmallestLots(np.zeros(0))
    >>> for labels in (["Ann", "Ben"], ["Ann", "Cleo"]):
    ...     groups = groups.more(draw_lots(np.array(labels, dtype=object), seed=0))
    >>> groups.n_groups, round(groups.below(0.7), 2)
    (3, 0.84)
    """

    lots: FloatArray

    def more(self, lots: FloatArray) -> SmallestLots:
        """With the groups of some more rows."""
        return SmallestLots(np.unique(np.concatenate([self.lots, lots]))[:_MOST])

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        if len(self.lots) < _MOST:
            return len(self.lots)
        return round((_MOST - 1) / float(self.lots[-1]))

    def below(self, share: float) -> float:
        """The lot up to which a share of the groups has theirs, and at least one has."""
        wanted = max(1, round(share * self.n_groups))
        return float(self.lots[wanted - 1]) if wanted <= len(self.lots) else share
