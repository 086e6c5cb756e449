"""Numbers that are written in a way which is not read as a number."""

from __future__ import annotations

import re

from deeptobit.study._table import Table

UNUSUAL = {
    "percent": "numbers with %; take the sign out of the cells",
    "thousands": "numbers with a comma between thousands; take it out of the cells",
    "comma": "numbers with a decimal comma; write points, or semicolons between the cells",
    "point": "numbers with a decimal comma beside some with a point; write one or the other",
}
_FORMS = {
    "percent": re.compile(r"[+-]?\d*[.,]?\d+\s*%"),
    "thousands": re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"),
    "comma": re.compile(r"[+-]?\d*,\d+"),
    "point": re.compile(r"[+-]?(\d*\.\d+|\d{1,3}(\.\d{3})+,\d+)"),
}


def unusual_form(table: Table, column: str) -> str | None:
    """How the cells are written that are no numbers to us but to people, a key of ``UNUSUAL``.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> cells = pd.DataFrame({"CD4": ["37%", "41 %"], "volume": ["2", "1,5"], "sex": ["f", "m"]})
    >>> table = Table(cells, "a.csv", np.arange(2))
    >>> [unusual_form(table, name) for name in table.columns]
    ['percent', 'comma', None]
    """
    wrong = table.parse(column)[1]
    cells = table.text(column)[wrong].unique().tolist()
    fits = (form for form, pattern in _FORMS.items() if all(map(pattern.fullmatch, cells)))
    return next(fits, None) if cells else None
