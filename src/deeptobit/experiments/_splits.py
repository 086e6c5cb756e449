"""Rows to learn from and rows to be judged by, the same for every method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, ShuffleSplit


@dataclass(frozen=True)
class Protocol:
    """How methods are compared; the fields are those of ``[evaluation]`` in a study file.

    Attributes
    ----------
    method : {"splits", "folds"}
        Repeated random splits at every share, or every row held out once.
    train_shares : tuple of float
        Shares of the rows, or of the groups, to train on.
    repeats : int
        Splits for every share.
    folds : int
    coverage : float
        Of the prediction intervals.
    seed : int
        Of the splits, and of the folds by which methods are tuned.
    inner_folds : int
        Folds of the training rows by which methods are tuned.
    """

    method: Literal["splits", "folds"] = "splits"
    train_shares: tuple[float, ...] = (0.4, 0.5, 0.6, 0.7, 0.8)
    repeats: int = 10
    folds: int = 5
    coverage: float = 0.9
    seed: int = 0
    inner_folds: int = 5

    def __post_init__(self) -> None:
        """Refuse what no split can follow."""
        if not self.train_shares or not all(0.0 < share < 1.0 for share in self.train_shares):
            raise ValueError(
                f"train shares must lie between 0 and 1; got {list(self.train_shares)}"
            )
        if len(set(self.train_shares)) < len(self.train_shares):
            raise ValueError(f"train shares must differ; got {list(self.train_shares)}")
        if self.repeats < 1:
            raise ValueError(f"repeats must be at least 1; got {self.repeats}")


class Split(NamedTuple):
    """Indices of rows to train on and of rows to test on."""

    share: float
    repeat: int
    train: NDArray[np.intp]
    test: NDArray[np.intp]

    @property
    def key(self) -> tuple[float, int]:
        """Which split it is."""
        return self.share, self.repeat


def draw_splits(n_rows: int, groups: NDArray[np.generic] | None, protocol: Protocol) -> list[Split]:
    """Splits of rows, or of whole groups where there are any.

    Examples
    --------
    >>> splits = draw_splits(10, None, Protocol(train_shares=(0.4, 0.8), repeats=2))
    >>> [(split.share, split.repeat, len(split.train), len(split.test)) for split in splits]
    [(0.4, 0, 4, 6), (0.4, 1, 4, 6), (0.8, 0, 8, 2), (0.8, 1, 8, 2)]
    >>> whole = draw_splits(4, np.array(["a", "b", "a", "c"]), Protocol("folds", folds=3))
    >>> [split.test.tolist() for split in whole]
    [[0, 2], [3], [1]]
    """
    n_units, units = (n_rows, "rows") if groups is None else (len(set(groups)), "groups")
    rows = np.zeros((n_rows, 1))
    if protocol.method == "folds":
        if n_units < max(protocol.folds, 3):
            raise ValueError(f"{protocol.folds} folds need as many {units}, and three at least")
        share = 1.0 - 1.0 / protocol.folds
        shuffled = KFold(protocol.folds, shuffle=True, random_state=protocol.seed)
        splitter = shuffled if groups is None else GroupKFold(protocol.folds)
        pairs = enumerate(splitter.split(rows, None, groups))
        return [Split(share, repeat, train, test) for repeat, (train, test) in pairs]
    splits = []
    for share in protocol.train_shares:
        if share * n_units < 2 or (1.0 - share) * n_units < 1:
            raise ValueError(
                f"{n_units} {units} are too few to train on {share:.0%} of them and test on others"
            )
        kind = ShuffleSplit if groups is None else GroupShuffleSplit
        random = kind(protocol.repeats, train_size=share, random_state=protocol.seed)
        for repeat, (train, test) in enumerate(random.split(rows, None, groups)):
            splits.append(Split(share, repeat, train, test))
    return splits
