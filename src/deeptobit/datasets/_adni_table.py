"""One table of ADNI: text in rows of person and visit, turned into numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

# Screening comes some weeks before baseline; each test is done at one of the two.
SCREENING_VISITS = ("sc", "scmri")
BASELINE = "bl"

# "Confirmed missing" and "not applicable".
MISSING_CODES = (-1.0, -4.0)


@dataclass(frozen=True, eq=False)
class AdniTable:
    """The rows of one file.

    Attributes
    ----------
    file : str
        Its name, for messages.
    rows : DataFrame of str
        Columns in capitals. The index is ``RID`` and ``VISIT``; of several rows for one person
        and visit the last is the most recent.
    """

    file: str
    rows: pd.DataFrame

    def numbers(self, column: str, lower: float) -> pd.Series[float]:
        """Return a column as numbers, NaN where ADNI's codes say that it is missing.

        -1 and -4 are values where ``lower``, the bound of the scale, is a number that low: the
        difference of two tests may well be -1.
        """
        import pandas as pd

        self.require(column)
        text = self.rows[column.upper()]
        try:
            values = pd.to_numeric(text).astype(float)
        except ValueError as error:
            raise ValueError(f"column {column} of {self.file} is not numeric: {error}") from None
        is_code = values.isin(MISSING_CODES)
        return values.mask(is_code if math.isinf(lower) else is_code & (values < lower))

    def require(self, *columns: str) -> None:
        """Raise if a column is not there, in whatever case."""
        missing = [name for name in columns if name.upper() not in self.rows.columns]
        if missing:
            raise ValueError(
                f"{self.file} has no column {', '.join(missing)}; download the table again, or "
                f"look the name up in DATADIC.csv (Study Info > Data & Database)"
            )


def read_table(path: Path) -> AdniTable:
    r"""Read a file of ADNI; numbers are parsed later, for the columns in use.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "MMSE_20Mar2024.csv")
    ...     _ = path.write_text("Rid,VISCODE,MMscore\n7,m06,28\n9,sc,30\n9,m06,-4\n")
    ...     print(read_table(path).numbers("MMSCORE", lower=0))
    RID  VISIT
    7    m06      28.0
    9    bl       30.0
         m06       NaN
    Name: MMSCORE, dtype: float64
    """
    import pandas as pd

    try:
        # Remarks of physicians are in any encoding; what is read here is ASCII.
        rows = pd.read_csv(path, dtype=str, encoding_errors="replace")
    except ValueError as error:
        raise ValueError(f"{path.name} is no table; download it again ({error})") from None
    table = AdniTable(path.name, rows.rename(columns=lambda name: name.strip().upper()))
    table.require("RID", "VISCODE")
    rows = table.rows.assign(RID=table.numbers("RID", lower=0), CODE=_visit_codes(table.rows))
    rows = rows.dropna(subset=["RID", "CODE"]).astype({"RID": int})
    # Not set in place: of the hundreds of columns pandas 2 warns that they are fragmented.
    rows = rows.assign(VISIT=[canonical_visit(code) for code in rows["CODE"]])
    return AdniTable(path.name, _most_recent_last(rows).set_index(["RID", "VISIT"]))


def canonical_visit(code: str) -> str:
    """Return the code of a visit in lower case; screening counts as baseline.

    Examples
    --------
    >>> [canonical_visit(code) for code in ("M06", "sc", "scmri", "bl")]
    ['m06', 'bl', 'bl', 'bl']
    """
    code = code.strip().lower()
    return BASELINE if code in SCREENING_VISITS else code


def _visit_codes(rows: pd.DataFrame) -> pd.Series[str]:
    """VISCODE2 counts months in every phase of ADNI; VISCODE does so in ADNI1 alone."""
    if "VISCODE2" not in rows.columns:
        return rows["VISCODE"]
    return rows["VISCODE2"].fillna(rows["VISCODE"])


def _most_recent_last(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort by the date of processing, else of entry; on one date baseline follows screening."""
    import pandas as pd

    is_baseline = rows["CODE"].str.strip().str.lower().eq(BASELINE)
    order = pd.DataFrame({"date": pd.NaT, "is_baseline": is_baseline})
    for column in ("USERDATE", "RUNDATE"):
        if column in rows.columns:
            order["date"] = pd.to_datetime(rows[column], format="mixed", errors="coerce")
    # Rows without a date come first; otherwise equal ones stay in the order of the file.
    recent = order.sort_values(["date", "is_baseline"], na_position="first", kind="stable")
    return rows.reindex(recent.index)
