"""The ADNI study: features and bounded scores of people, joined from its files."""

import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from deeptobit.datasets.common import Cohort, packaged_table

# Versions of FreeSurfer measure differently, so one table is read: the first of these that exists.
# The paper uses ADNI1, whose table is the first.
FREESURFER_TABLES = ("UCSFFSX", "UCSFFSX51", "UCSFFSX6", "UCSFFSX7")

DOWNLOAD = "ida.loni.usc.edu (ADNI > Download > Study Data)"

# Screening comes some weeks before baseline; each test is done at one of the two.
SCREENING_VISITS = ("sc", "scmri")
BASELINE = "bl"

# "Confirmed missing" and "not applicable".
MISSING_CODES = (-1.0, -4.0)

COLUMNS = ("table", "column", "visit", "lower", "upper")


def load_adni(
    folder: str | Path, *, scores: pd.DataFrame | str | Path | None = None, visit: str = "bl"
) -> Cohort:
    """Rebuild 138 cortical measurements and bounded scores from a folder of ADNI downloads.

    With access to the Alzheimer's Disease Neuroimaging Initiative, download its CSV files from
    ida.loni.usc.edu into one folder; an error lists missing files and where to find them. Dates in
    the names of files, and the case of names and columns, do not matter.

    Parameters
    ----------
    folder : str or Path
        Contains UCSFFSX (FreeSurfer 4.3), else UCSFFSX51, UCSFFSX6 or UCSFFSX7, and the tables
        in ``scores``.
    scores : DataFrame, path of a CSV file or None
        One row per score, with the columns ``table``, ``column``, ``visit`` (``bl``, ``m06``,
        ...), ``lower`` and ``upper`` (empty: no bound). None: a proposal of 30 from
        ADASSCORES, NEUROBAT, NPIQ and ADNIMERGE.
    visit : str, default="bl"
        Visit of the scan; scores have their own.

    Returns
    -------
    Cohort
        People with a complete scan and at least one score. X (n, 138) is named by FreeSurfer
        (``lh_bankssts_thickness``), Y (n, T) by column and visit (``TOTAL11_bl``); the index is
        ``RID``.

    Notes
    -----
    Rows are joined by person and visit (VISCODE2 where a table has it, else VISCODE). Screening
    (``sc``, ``scmri``) counts as baseline. -1 and -4 are missing, unless the scale of the score
    goes that low. Of repeated rows the one with the latest RUNDATE counts, else USERDATE.
    Nothing is imputed: scores stay missing, incomplete scans are left out with a warning.

    Examples
    --------
    Files as ADNI offers them, made of simulated people:

    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from deeptobit.datasets import make_clinical_cohort, packaged_table
    >>> people = make_clinical_cohort(40, missing=0, random_state=0)
    >>> scans = people.X.set_axis(packaged_table("adni_features")["column"], axis=1)
    >>> scans = scans.assign(VISCODE="sc", RUNDATE="2007-05-16")
    >>> mmse = pd.DataFrame({"VISCODE": "bl", "MMSCORE": people.Y["MMSE_bl"]})
    >>> chosen = pd.DataFrame({"table": ["MMSE"], "column": ["MMSCORE"], "visit": ["bl"],
    ...                        "lower": [0], "upper": [30]})
    >>> with TemporaryDirectory() as folder:
    ...     scans.to_csv(f"{folder}/UCSFFSX_11_02_15_20Mar2024.csv", index_label="RID")
    ...     mmse.to_csv(f"{folder}/MMSE_20Mar2024.csv", index_label="RID")
    ...     cohort = load_adni(folder, scores=chosen)
    >>> cohort.X.shape, cohort.Y.shape, cohort.upper
    ((40, 138), (40, 1), {'MMSCORE_bl': 30.0})
    >>> cohort.X.equals(people.X.rename_axis("RID"))
    True
    """
    chosen = choose_scores(scores)
    names = dict.fromkeys(score.table for score in chosen)
    scans, files = find_tables(Path(folder), list(names))
    tables = {name: read_table(path) for name, path in files.items()}
    X = read_features(read_table(scans), canonical_visit(visit))
    columns = [read_score(tables[score.table], score) for score in chosen]
    Y = pd.concat(columns, axis=1).reindex(X.index)
    has_score = Y.notna().any(axis=1)
    if not has_score.any():
        raise ValueError(
            f"none of the {len(X)} people with a scan in {scans.name} has one of the scores; "
            f"are all files of the same phase of ADNI?"
        )
    return Cohort(
        X=X[has_score],
        Y=Y[has_score],
        lower={score.name: score.lower for score in chosen},
        upper={score.name: score.upper for score in chosen},
    )


# The files.


def find_tables(folder: Path, score_tables: list[str]) -> tuple[Path, dict[str, Path]]:
    """The file of the scans, and the files of the score tables by name.

    Raises
    ------
    FileNotFoundError
        If the folder or one of the tables is not there; all that are missing are named.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder; give the one with ADNI's CSV files")
    scans = [path for name in FREESURFER_TABLES if (path := find_table(folder, name))]
    found = {name: find_table(folder, name) for name in score_tables}
    missing = [name for name, path in found.items() if path is None]
    if not scans:
        missing.insert(0, FREESURFER_TABLES[0])
    if missing:
        tables = packaged_table("adni_tables").set_index("table")
        place = (tables["section"] + " > " + tables["title"]).to_dict()
        lines = [f"  {name}*.csv: {place.get(name, 'search the page for it')}" for name in missing]
        raise FileNotFoundError(
            f"{folder} lacks tables; download them from {DOWNLOAD}:\n" + "\n".join(lines)
        )
    return scans[0], {name: path for name, path in found.items() if path}


def find_table(folder: Path, name: str) -> Path | None:
    """The CSV file of one table, with any dates after its name; None if there is none.

    ``NEUROBAT`` finds ``NEUROBAT.csv`` and ``NEUROBAT_20Mar2024.csv``; ``UCSFFSX`` finds
    ``UCSFFSX_11_02_15_20Mar2024.csv`` but no table of another name, such as ``UCSFFSX51_...``.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("neurobat_20Mar2024.csv", "UCSFFSX51_11_08_19.csv"):
    ...         Path(folder, name).touch()
    ...     print(find_table(Path(folder), "NEUROBAT").name, find_table(Path(folder), "UCSFFSX"))
    neurobat_20Mar2024.csv None
    """
    pattern = re.compile(rf"{re.escape(name)}(_\d.*)?\.csv", re.IGNORECASE)
    found = sorted(path for path in folder.iterdir() if pattern.fullmatch(path.name))
    if len(found) > 1:
        raise ValueError(
            f"{folder} has {len(found)} files of the ADNI table {name}: "
            f"{', '.join(path.name for path in found)}; keep the one to use"
        )
    return found[0] if found else None


# One table: text by person and visit, turned into numbers.


class AdniTable(NamedTuple):
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

    def numbers(self, column: str, lower: float) -> "pd.Series[float]":
        """A column as numbers, with NaN for ADNI's codes of missing values.

        -1 and -4 are values, not codes, if ``lower``, the bound of the scale, is that low: the
        difference of two tests may well be -1.
        """
        self.require(column)
        text = self.rows[column.upper()]
        try:
            values = pd.to_numeric(text).astype(float)
        except ValueError as error:
            raise ValueError(f"column {column} of {self.file} is not numeric: {error}") from None
        is_code = values.isin(MISSING_CODES)
        return values.mask(is_code if np.isinf(lower) else is_code & (values < lower))

    def require(self, *columns: str) -> None:
        """Raise if a column is missing; the case of letters does not matter."""
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
    try:
        # Remarks of physicians are in any encoding; what is read here is ASCII.
        rows = pd.read_csv(path, dtype=str, encoding_errors="replace")
    except ValueError as error:
        raise ValueError(f"{path.name} is not a table; download it again ({error})") from None
    table = AdniTable(path.name, rows.rename(columns=lambda name: name.strip().upper()))
    table.require("RID", "VISCODE")
    # VISCODE2 counts months in every phase of ADNI; VISCODE does so in ADNI1 alone.
    code = table.rows.get("VISCODE2", table.rows["VISCODE"]).fillna(table.rows["VISCODE"])
    rows = table.rows.assign(RID=table.numbers("RID", lower=0), CODE=code)
    rows = rows.dropna(subset=["RID", "CODE"]).astype({"RID": int})
    # Not set in place: of the hundreds of columns pandas 2 warns that they are fragmented.
    rows = rows.assign(VISIT=[canonical_visit(code) for code in rows["CODE"]])
    return AdniTable(path.name, _most_recent_last(rows).set_index(["RID", "VISIT"]))


def canonical_visit(code: str) -> str:
    """The code of a visit in lower case; screening counts as baseline.

    Examples
    --------
    >>> [canonical_visit(code) for code in ("M06", "sc", "scmri", "bl")]
    ['m06', 'bl', 'bl', 'bl']
    """
    code = code.strip().lower()
    return BASELINE if code in SCREENING_VISITS else code


def _most_recent_last(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort by the date of processing, else of entry; on one date baseline follows screening."""
    is_baseline = rows["CODE"].str.strip().str.lower().eq(BASELINE)
    order = pd.DataFrame({"date": pd.NaT, "is_baseline": is_baseline})
    for column in ("USERDATE", "RUNDATE"):
        if column in rows.columns:
            order["date"] = pd.to_datetime(rows[column], format="mixed", errors="coerce")
    # Rows without a date come first; otherwise equal ones stay in the order of the file.
    recent = order.sort_values(["date", "is_baseline"], na_position="first", kind="stable")
    return rows.reindex(recent.index)


# The scores.


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
    if scores is None:
        scores = packaged_table("adni_scores")
    elif isinstance(scores, str | Path):
        scores = pd.read_csv(scores)
    missing = [name for name in COLUMNS if name not in scores.columns]
    if missing:
        needed = ", ".join(COLUMNS)
        raise ValueError(f"scores must have the columns {needed}; it lacks {', '.join(missing)}")
    bounds = scores.fillna({"lower": -np.inf, "upper": np.inf})
    chosen = [
        AdniScore(table, column, canonical_visit(visit), float(lower), float(upper))
        for table, column, visit, lower, upper in bounds[list(COLUMNS)].to_numpy()
    ]
    if not chosen:
        raise ValueError("scores is empty; name at least one")
    names = [score.name for score in chosen]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"scores names {', '.join(twice)} twice; a column and visit counts once")
    return chosen


def read_score(table: AdniTable, score: AdniScore) -> "pd.Series[float]":
    """The last value of each person at the visit of a score; the index is RID.

    A row without this score does not hide an earlier row that has it: different tests are done at
    screening and at baseline, which count as one visit.
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


# The features: 68 thicknesses, 68 areas and 2 hemispheres of a scan.


def read_features(scans: AdniTable, visit: str) -> pd.DataFrame:
    """The latest run of each person's scan at a visit, (n, 138), named by FreeSurfer.

    Of a scan that was processed more than once, the run with the latest RUNDATE is used, and no
    other. A scan without all 138 measurements is left out, with a warning.
    Columns that are not cortex in every version (ST22, ST64, ST81, ST123: corpus callosum and
    unknown) are never read.
    """
    regions = packaged_table("adni_features").fillna({"newer_column": ""})
    columns = regions[["name", "column", "newer_column"]].to_numpy()
    measured = pd.DataFrame(
        {name: _measurement(scans, column, newer) for name, column, newer in columns}
    )
    latest = measured[~measured.index.duplicated(keep="last")]
    visits = latest.index.get_level_values("VISIT")
    if visit not in visits:
        there = ", ".join(f"{code} ({n})" for code, n in visits.value_counts().items())
        raise ValueError(f"{scans.file} has no scan at visit {visit!r}; it has {there}")
    features = latest[visits == visit].droplevel("VISIT").sort_index()
    gaps = features.isna()
    incomplete = gaps.any(axis=1)
    if incomplete.all():
        raise ValueError(
            f"no scan of {scans.file} has all 138 measurements; {gaps.sum().idxmax()} is missing "
            f"in {gaps.sum().max()} of {len(features)}"
        )
    if incomplete.any():
        first = features.index[incomplete][0]
        warnings.warn(
            f"{incomplete.sum()} of {len(features)} scans of {scans.file} are left out because "
            f"they lack a measurement (RID {first}: {gaps.columns[gaps.loc[first]][0]})",
            stacklevel=3,
        )
    return features[~incomplete]


def _measurement(scans: AdniTable, column: str, newer: str) -> "pd.Series[float]":
    """A column of the scans; newer tables have other names for the hemispheres."""
    if newer and newer in scans.rows.columns:
        older = column in scans.rows.columns and scans.numbers(column, lower=0).notna().any()
        column = column if older else newer
    return scans.numbers(column, lower=0)
