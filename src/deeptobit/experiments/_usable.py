"""Targets that a split can teach and judge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.baselines import Folds
from deeptobit.experiments._splits import Split
from deeptobit.study import FEWEST
from deeptobit.targets import CensoredTargets


class Skipped(NamedTuple):
    """A target that is left out of a split, for all methods, and why."""

    share: float
    repeat: int
    target: str
    reason: str


def find_usable(
    targets: CensoredTargets, split: Split, folds: Folds
) -> tuple[list[int], list[Skipped]]:
    """Tasks that can be compared in a split, and those that cannot.

    A target needs two recorded values for every fold, values that differ in what every fold trains
    on, and values that differ among the test rows. Of fewer than five test values, measures would
    tell the values.
    """
    recorded = targets.has_value
    values = np.where(recorded, targets.values, np.nan)
    train, test = values[split.train], values[split.test]
    enough = (~np.isnan(train)).sum(axis=0) >= 2 * len(folds)
    learnable = np.all([_varied(train[rows]) for rows, _ in folds], axis=0)
    many = (~np.isnan(test)).sum(axis=0) >= FEWEST
    judged = _varied(test)
    usable, skipped = [], []
    for task, name in enumerate(targets.names):
        if not enough[task]:
            reason = f"fewer than {2 * len(folds)} values to train on"
        elif not learnable[task]:
            reason = "its values to train on are all the same"
        elif not many[task]:
            reason = f"fewer than {FEWEST} values to test on"
        elif not judged[task]:
            reason = "its values to test on are all the same"
        else:
            usable.append(task)
            continue
        skipped.append(Skipped(*split.key, name, reason))
    return usable, skipped


def _varied(values: FloatArray) -> FloatArray:
    return np.asarray(np.fmin.reduce(values, axis=0) < np.fmax.reduce(values, axis=0))
