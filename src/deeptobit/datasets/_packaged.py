"""Tables that ship with the package: which columns of a study are read, and their bounds."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def packaged_table(name: str) -> pd.DataFrame:
    """Read ``data/<name>.csv`` beside this module.

    Examples
    --------
    >>> packaged_table("adni_scores").head(2)
            table    column visit  lower  upper
    0  ADASSCORES   TOTAL11    bl      0   70.0
    1  ADASSCORES  TOTALMOD    bl      0   85.0
    """
    import pandas as pd

    with (files("deeptobit.datasets") / "data" / f"{name}.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream)
