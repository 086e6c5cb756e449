"""Outcomes in a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from deeptobit.arrays import BoolArray

if TYPE_CHECKING:
    from deeptobit.targets._targets import CensoredTargets

_NAMES_SHOWN = 3


def summarise(targets: CensoredTargets) -> str:
    """Rows, targets and shares of all entries that are not observed.

    Examples
    --------
    >>> from deeptobit.targets import CensoredTargets
    >>> summarise(CensoredTargets.from_bounds([0.0, 4.0, 9.0, 5.0], lower=0))
    'CensoredTargets(4 rows, 1 target: y; 25 % at lower)'
    """
    n_rows, n_tasks = targets.shape
    names = ", ".join(targets.names[:_NAMES_SHOWN]) + (", …" if n_tasks > _NAMES_SHOWN else "")
    kinds = {
        "at lower": targets.at_lower,
        "at upper": targets.at_upper,
        "intervals": ~(targets.missing | targets.has_value),
        "missing": targets.missing,
    }
    shares = [f"{_percent(entries)} {kind}" for kind, entries in kinds.items() if entries.any()]
    if n_rows and not shares:
        shares = ["all observed"]
    return (
        f"CensoredTargets({n_rows:,} row{'s' if n_rows != 1 else ''}, "
        f"{n_tasks:,} target{'s' if n_tasks != 1 else ''}: {names}"
        f"{'; ' if shares else ''}{', '.join(shares)})"
    )


def _percent(entries: BoolArray) -> str:
    percent = 100.0 * float(np.mean(entries))
    return "<1 %" if percent < 0.5 else f"{percent:.0f} %"
