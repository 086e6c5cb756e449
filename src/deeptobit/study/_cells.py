"""The cells of a table as people write them: numbers, decimal commas, blanks, yes and no."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd

# "None" is not among them: it is a category ("treatment: None") more often than a blank.
BLANKS = frozenset({"", ".", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "#N/A", "#NULL!"})
YES = frozenset({"1", "1.0", "true", "t", "yes", "y", "<", ">", "below", "above", "censored"})
NO = frozenset({"0", "0.0", "false", "f", "no", "n", "=", "observed", "detected"})


def parse_numbers(cells: pd.Series[Any], *, decimal_comma: bool) -> tuple[FloatArray, BoolArray]:
    """Numbers of shape (N,), NaN where blank, and where a cell is neither a number nor blank.

    Parameters
    ----------
    cells : Series of str, None where blank
    decimal_comma : bool
        Whether ``1,5`` may stand for 1.5. A column that has both commas and points is not
        guessed at: its cells with a point count as wrong.

    Examples
    --------
    >>> import pandas as pd
    >>> parse_numbers(pd.Series(["1,5", None, "x"]), decimal_comma=True)
    (array([1.5, nan, nan]), array([False, False,  True]))
    """
    import pandas as pd

    text = cells.astype(object)
    known = text.notna().to_numpy()
    ambiguous = np.zeros(len(text), dtype=np.bool_)
    if decimal_comma:
        comma = text.str.contains(",", regex=False).eq(True)
        if comma.any():
            ambiguous = text.str.contains(".", regex=False).eq(True).to_numpy()
            text = text.str.replace(",", ".", regex=False)
    values = np.array(pd.to_numeric(text, errors="coerce"), dtype=np.float64)
    wrong = known & (~np.isfinite(values) | ambiguous)
    return np.where(wrong, np.nan, values), wrong


def parse_flags(cells: pd.Series[Any]) -> tuple[BoolArray, BoolArray]:
    """Which cells say yes, and which say neither yes nor no; a blank says no.

    Examples
    --------
    >>> import pandas as pd
    >>> parse_flags(pd.Series(["yes", "0", None, "maybe"]))
    (array([ True, False, False, False]), array([False, False, False,  True]))
    """
    folded = cells.map(lambda cell: str(cell).strip().lower(), na_action="ignore")
    yes = folded.isin(YES).to_numpy()
    return yes, ~yes & ~(folded.isin(NO) | folded.isna()).to_numpy()


def split_limits(cells: pd.Series[Any]) -> tuple[pd.Series[Any], BoolArray, BoolArray]:
    """Cells such as ``<0.5`` and ``> 1000`` without their sign, and where each sign stood.

    Examples
    --------
    >>> import pandas as pd
    >>> bare, below, above = split_limits(pd.Series(["<0.5", "2", None]))
    >>> bare.tolist(), below, above
    (['0.5', '2', None], array([ True, False, False]), array([False, False, False]))
    """
    text = cells.astype(object)
    sign = text.str.extract(r"^\s*([<>]|≤|≥)=?\s*(?=\S)", expand=False)
    below = sign.isin(["<", "≤"]).to_numpy()
    above = sign.isin([">", "≥"]).to_numpy()
    bare = text.str.replace(r"^\s*[<>≤≥]=?\s*", "", regex=True)
    return bare.where(bare.notna(), None), below, above
