"""The scores of ADNI: which ones, from which table, with which bounds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deeptobit.datasets._adni_table import canonical_visit
from deeptobit.datasets._packaged import packaged_table

if TYPE_CHECKING:
    import pandas as pd

    from deeptobit.datasets._adni_table import AdniTable

COLUMNS = ("table", "column", "visit", "lower", "upper")


class AdniScore(NamedTuple):
    """One column of a table at one visit, and the bounds of its scale."""

    table: str
    column: str
    visit: str
    lower: float
    upper: float

    @property
    def name(self) -> str:
        """Column and visit, for example ``TOTAL11_bl``."""
        return f"{self.column}_{self.visit}"


def choose_scores(scores: pd.DataFrame | Path | str | None) -> list[AdniScore]:
    """Read a table of scores; the packaged proposal of 30 if it is None.

    Examples
    --------
    >>> scores = choose_scores(None)
    >>> len(scores), scores[0]
    (30, AdniScore(table='ADASSCORES', column='TOTAL11', visit='bl', lower=0.0, upper=70.0))
    """
    import pandas as pd

    if scores is None:
        scores = packaged_table("adni_scores")
    elif isinstance(scores, str | Path):
        scores = pd.read_csv(scores)
    missing = [name for name in COLUMNS if name not in scores.columns]
    if missing:
        raise ValueError(
            f"scores must have the columns {', '.join(COLUMNS)}; it lacks {', '.join(missing)}"
        )
    bounds = scores.fillna({"lower": -np.inf, "upper": np.inf})
    chosen = [
        AdniScore(table, column, canonical_visit(visit), float(lower), float(upper))
        for table, column, visit, lower, upper in bounds[list(COLUMNS)].to_numpy()
    ]
    _check_names([score.name for score in chosen])
    return chosen


def read_score(table: AdniTable, score: AdniScore) -> pd.Series[float]:
    """Return the last value of each person at the visit of a score; the index is RID.

    A row that lacks this score does not hide an earlier one that has it: at screening and at
    baseline, which count as one visit, different tests are done.
    """
    values = table.numbers(score.column, score.lower)
    at_visit = values[values.index.get_level_values("VISIT") == score.visit]
    last = at_visit.groupby(level="RID").last()
    outside = last[(last < score.lower) | (last > score.upper)]
    if len(outside):
        raise ValueError(
            f"{score.column} of {table.file} is {outside.iloc[0]:g} for RID {outside.index[0]} at "
            f"{score.visit}, outside [{score.lower:g}, {score.upper:g}]; correct the cell, or "
            f"pass scores with other bounds"
        )
    return last.rename(score.name)


def _check_names(names: list[str]) -> None:
    if not names:
        raise ValueError("scores is empty; name at least one")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"scores names {', '.join(twice)} twice; a column and visit counts once")
