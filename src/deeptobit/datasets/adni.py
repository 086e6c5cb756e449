"""The ADNI study: features and bounded scores of people, joined from its files."""

import re
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from deeptobit.datasets.common import Cohort, packaged_table
from deeptobit.exceptions import warn

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

# What UCSF's raters say of a scan, and of the lobes of its cortex. Their other verdicts (BGQC,
# CWMQC, VENTQC, HIPPOQC, ...) concern structures below the cortex, which are not read.
OVERALL_QC = "OVERALLQC"
LOBE_QC = ("FRONTQC", "TEMPQC", "PARQC", "OCCQC", "INSULAQC")

# Column with the number of a row in the file; those of ADNI are in capitals.
ROW = "row"
SHOWN_CELLS = 3


def load_adni(
    folder: str | Path,
    *,
    scores: pd.DataFrame | str | Path | None = None,
    visit: str = "bl",
    qc: Literal["pass", "any"] = "pass",
    missing: Literal["drop", "keep"] = "drop",
) -> Cohort:
    """Rebuild 138 cortical measurements and bounded scores from a folder of ADNI downloads.

    With access to the Alzheimer's Disease Neuroimaging Initiative, download its CSV files from
    ida.loni.usc.edu into one folder; an error lists missing files and where to find them. In the
    names of files neither ``All_Subjects_`` in front nor dates at the end matter, nor does the
    case of names and columns.

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
    qc : {"pass", "any"}, default="pass"
        ``"pass"``: only what passed UCSF's quality control, see Notes. ``"any"``: all scans.
    missing : {"drop", "keep"}, default="drop"
        Leave out scans without all 138 measurements, or keep them with NaN in X.

    Returns
    -------
    Cohort
        People with a scan and at least one score. X (n, 138) is named by FreeSurfer
        (``lh_bankssts_thickness``), Y (n, T) by column and visit (``TOTAL11_bl``); the index is
        ``RID``.

    Warns
    -----
    UserWarning
        Says how many scans are left out and why, and which cells of a file count as missing
        because they are not on the scale of their column: text, a score outside its bounds, a
        measurement that is not above 0.

    Notes
    -----
    Rows are joined by person and visit (VISCODE2 where a table has it, else VISCODE). Screening
    (``sc``, ``scmri``) counts as baseline. -1 and -4 are missing, unless the scale of the score
    goes that low. Of repeated rows the one with the latest RUNDATE counts, else USERDATE; of
    repeated scans it is the latest of those with the most lobes that passed. Nothing is imputed.

    Quality control: a scan whose OVERALLQC is Pass is used. Of a Partial one, lobes that are Pass
    are used (FRONTQC, TEMPQC, PARQC, OCCQC, INSULAQC); the regions of other lobes are missing, and
    so are the areas of whole hemispheres. A lobe that is Fail is never used. All other scans are
    left out: Fail, Hippocampus Only, and those not rated (blank), which are most of UCSFFSX7.
    Lobes are FreeSurfer's, with the anterior cingulate as frontal and the rest of it as parietal.
    In a table without these columns every scan passes.

    Examples
    --------
    Files as ADNI offers them, made of simulated people:

    >>> from tempfile import TemporaryDirectory
    >>> import pandas as pd
    >>> from deeptobit.datasets import make_clinical_cohort, packaged_table
    >>> people = make_clinical_cohort(40, missing=0, random_state=0)
    >>> scans = people.X.set_axis(packaged_table("adni_features")["column"], axis=1)
    >>> scans = scans.assign(VISCODE="sc", RUNDATE="2007-05-16", OVERALLQC="Pass")
    >>> mmse = pd.DataFrame({"VISCODE": "bl", "MMSCORE": people.Y["MMSE_bl"]})
    >>> chosen = pd.DataFrame({"table": ["MMSE"], "column": ["MMSCORE"], "visit": ["bl"],
    ...                        "lower": [0], "upper": [30]})
    >>> with TemporaryDirectory() as folder:
    ...     scans.to_csv(f"{folder}/UCSFFSX_11_02_15_20Mar2024.csv", index_label="RID")
    ...     mmse.to_csv(f"{folder}/All_Subjects_MMSE_20Mar2024.csv", index_label="RID")
    ...     cohort = load_adni(folder, scores=chosen)
    >>> cohort.X.shape, cohort.Y.shape, cohort.upper
    ((40, 138), (40, 1), {'MMSCORE_bl': 30.0})
    >>> cohort.X.equals(people.X.rename_axis("RID"))
    True
    """
    if qc not in ("pass", "any"):
        raise ValueError(f"qc must be 'pass' or 'any', got {qc!r}")
    if missing not in ("drop", "keep"):
        raise ValueError(f"missing must be 'drop' or 'keep', got {missing!r}")
    chosen = choose_scores(scores)
    scans, files = find_tables(Path(folder), chosen["table"].unique().tolist())
    tables = {name: read_table(path) for name, path in files.items()}
    X = read_features(read_table(scans), canonical_visit(visit), qc, missing)
    # A row without a score does not hide an earlier row that has it: different tests are done at
    # screening and at baseline, which count as one visit.
    known = {
        name: tables[file].at(visit).numbers(column, lower, upper).groupby(level="RID").last()
        for file, column, visit, lower, upper, name in chosen.itertuples(index=False)
    }
    for table in tables.values():
        table.warn_of_bad_cells()
    Y = pd.DataFrame(known, index=X.index)
    has_score = Y.notna().any(axis=1)
    if not has_score.any():
        raise ValueError(
            f"none of the {len(X)} people with a scan in {scans.name} has one of the scores; "
            f"are all files of the same phase of ADNI?"
        )
    bounds = (dict(zip(chosen["name"], chosen[side], strict=True)) for side in ("lower", "upper"))
    return Cohort(X[has_score], Y[has_score], *bounds)


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
    found = {name: path for name in score_tables if (path := find_table(folder, name))}
    wanted = score_tables if scans else [FREESURFER_TABLES[0], *score_tables]
    missing = [name for name in wanted if name not in found]
    if missing:
        tables = packaged_table("adni_tables").set_index("table")
        place = (tables["section"] + " > " + tables["title"]).to_dict()
        lines = [f"{folder} lacks tables; download them from {DOWNLOAD}:"]
        lines += [f"  {name}*.csv: {place.get(name, 'search the page for it')}" for name in missing]
        raise FileNotFoundError("\n".join(lines))
    return scans[0], found


def find_table(folder: Path, name: str) -> Path | None:
    """The CSV file of one table, with any dates after its name; None if there is none.

    ``NEUROBAT`` finds ``NEUROBAT.csv`` and ``All_Subjects_NEUROBAT_20Mar2024.csv``; ``UCSFFSX``
    finds ``UCSFFSX_11_02_15_20Mar2024.csv`` but no table of another name, such as
    ``UCSFFSX51_...``.
    """
    pattern = re.compile(rf"(all_subjects_)?{re.escape(name)}(_\d.*)?\.csv", re.IGNORECASE)
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
        Columns in capitals, and ``row``, the number of a row in the file. The index is ``RID``
        and ``VISIT``; of several rows for one person and visit the last is the most recent.
    bad_cells : list of str
        What :meth:`numbers` had to leave out, a line for each column.
    """

    file: str
    rows: pd.DataFrame
    bad_cells: list[str]

    def at(self, visit: str) -> "AdniTable":
        """The rows of one visit."""
        return self._replace(rows=self.rows[self.rows.index.get_level_values("VISIT") == visit])

    def numbers(
        self, column: str, lower: float, upper: float = np.inf, *, above: bool = False
    ) -> "pd.Series[float]":
        """A column as numbers from ``lower`` (or above it) to ``upper``; all else is NaN.

        -1 and -4 are values, not codes for missing, if ``lower`` is that low: the difference of
        two tests may well be -1. What is neither on the scale nor a code goes to ``bad_cells``.
        """
        self.require(column)
        rows = self.rows[column.upper()]
        text = np.array([cell.strip() if isinstance(cell, str) else "" for cell in rows], object)
        values = np.asarray(pd.to_numeric(text, errors="coerce"), dtype=float)
        is_code = np.isin(values, MISSING_CODES) & (np.isinf(lower) | (values < lower))
        is_good = (values > lower if above else values >= lower) & (values <= upper)
        is_good &= np.isfinite(values) & ~is_code
        is_bad = (text != "") & ~is_good & ~is_code
        if is_bad.any():
            cells = sorted(zip(self.rows.loc[is_bad, ROW], text[is_bad], strict=True))
            first = ", ".join(f"row {row}: {cell:.20}" for row, cell in cells[:SHOWN_CELLS])
            more = ", ..." if len(cells) > SHOWN_CELLS else ""
            scale = f"above {lower:g}" if above else f"in [{lower:g}, {upper:g}]"
            noun = "cell" if len(cells) == 1 else "cells"
            self.bad_cells.append(f"{column}: {len(cells)} {noun} not {scale} ({first}{more})")
        return pd.Series(np.where(is_good, values, np.nan), rows.index, name=rows.name)

    def warn_of_bad_cells(self) -> None:
        """One warning for the file, with a line for each column."""
        if self.bad_cells:
            lines = "\n  ".join(self.bad_cells)
            warn(f"cells of {self.file} that are not on their scale count as missing:\n  {lines}")

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
        # Blank lines are read, and left out below, so that rows have the numbers of the file.
        rows = pd.read_csv(path, dtype=str, encoding_errors="replace", skip_blank_lines=False)
    except ValueError as error:
        raise ValueError(f"{path.name} is not a table; download it again ({error})") from None
    rows = rows.rename(columns=lambda name: name.strip().upper())
    rows = rows.assign(**{ROW: range(2, len(rows) + 2)})  # a spreadsheet has the names in row 1
    table = AdniTable(path.name, rows, [])
    table.require("RID", "VISCODE")
    # VISCODE2 counts months in every phase of ADNI; VISCODE does so in ADNI1 alone.
    code = table.rows.get("VISCODE2", table.rows["VISCODE"]).fillna(table.rows["VISCODE"])
    rows = table.rows.assign(RID=table.numbers("RID", 0, 1e9), CODE=code)
    rows = rows.dropna(subset=["RID", "CODE"]).astype({"RID": int})
    # Not set in place: of the hundreds of columns pandas 2 warns that they are fragmented.
    rows = rows.assign(VISIT=[canonical_visit(code) for code in rows["CODE"]])
    return table._replace(rows=_most_recent_last(rows).set_index(["RID", "VISIT"]))


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
    dates = rows.get("RUNDATE", rows.get("USERDATE", pd.Series(pd.NaT, rows.index)))
    dates = pd.to_datetime(dates, format="mixed", errors="coerce")
    order = pd.DataFrame({"date": dates, "is_baseline": is_baseline})
    # Rows without a date come first; otherwise equal ones stay in the order of the file.
    recent = order.sort_values(["date", "is_baseline"], na_position="first", kind="stable")
    return rows.reindex(recent.index)


# The scores.


def choose_scores(scores: pd.DataFrame | Path | str | None) -> pd.DataFrame:
    """A table of scores with their names, as ``TOTAL11_bl``; the packaged 30 if it is None."""
    if scores is None:
        scores = packaged_table("adni_scores")
    elif isinstance(scores, str | Path):
        scores = pd.read_csv(scores)
    missing = [name for name in COLUMNS if name not in scores.columns]
    if missing:
        needed = ", ".join(COLUMNS)
        raise ValueError(f"scores must have the columns {needed}; it lacks {', '.join(missing)}")
    if scores.empty:
        raise ValueError("scores is empty; name at least one")
    chosen = scores[list(COLUMNS)].fillna({"lower": -np.inf, "upper": np.inf})
    chosen = chosen.astype({"lower": float, "upper": float})
    visits = chosen["visit"].map(canonical_visit)
    chosen = chosen.assign(visit=visits, name=chosen["column"] + "_" + visits)
    twice = sorted(set(chosen["name"][chosen["name"].duplicated()]))
    if twice:
        raise ValueError(f"scores names {', '.join(twice)} twice; a column and visit counts once")
    return chosen


# The features: 68 thicknesses, 68 areas and 2 hemispheres of a scan.


def read_features(scans: AdniTable, visit: str, qc: str, missing: str) -> pd.DataFrame:
    """One run of each person's scan at a visit, (n, 138), named by FreeSurfer.

    Runs of one scan are never mixed. Columns that are not cortex in every version (ST22, ST64,
    ST81, ST123: corpus callosum and unknown) are never read.
    """
    visits = scans.rows.index.drop_duplicates().get_level_values("VISIT")
    if visit not in visits:
        there = ", ".join(f"{code} ({n})" for code, n in visits.value_counts().items())
        raise ValueError(f"{scans.file} has no scan at visit {visit!r}; it has {there}")
    used, lobes = choose_runs(scans.at(visit), qc)
    regions = packaged_table("adni_features").fillna("")
    columns = regions[["name", "column", "newer_column", "lobe_qc"]].to_numpy()
    whole = lobes.all(axis=1)
    measured = {
        name: np.where(lobes[lobe] if lobe else whole, _measurement(used, column, newer), np.nan)
        for name, column, newer, lobe in columns
    }
    used.warn_of_bad_cells()
    features = pd.DataFrame(measured, used.rows.index.get_level_values("RID")).sort_index()
    gaps = features.isna()
    n_gaps = gaps.sum()
    left_out = gaps.all(axis=1) if missing == "keep" else gaps.any(axis=1)
    if left_out.all():
        needed = "a measurement" if missing == "keep" else "all 138 measurements"
        worst = f"{n_gaps.idxmax()} is missing in {n_gaps.max()} of {len(features)}"
        raise ValueError(f"no scan of {used.file} has {needed}; {worst}")
    if left_out.any():
        first = features.index[left_out][0]
        lack = "every measurement" if missing == "keep" else "a measurement"
        warn(
            f"{left_out.sum()} of {len(features)} scans of {used.file} are left out because they "
            f"lack {lack} (RID {first}: {gaps.columns[gaps.loc[first]][0]})"
        )
    return features[~left_out]


def choose_runs(scans: AdniTable, qc: str) -> tuple[AdniTable, pd.DataFrame]:
    """One run of each person, and which of its lobes passed, (n, 5); a warning counts the rest.

    Of several runs that with the most such lobes is used, and of these the latest.
    """
    lobes = passed_lobes(scans.rows if qc == "pass" else scans.rows[[]])
    order = lobes.sum(axis=1).to_numpy().argsort(kind="stable")
    chosen = order[~scans.rows.index[order].duplicated(keep="last")]
    rows, lobes = scans.rows.iloc[chosen], lobes.iloc[chosen]
    used = lobes.any(axis=1)
    overall = rows.reindex(columns=[OVERALL_QC])[OVERALL_QC].astype("string").str.strip()
    verdicts = _listed(overall[~used].fillna("").replace("", "blank").value_counts())
    if not used.any():
        what = f"no scan of {scans.file} at this visit passed quality control{verdicts}"
        raise ValueError(f"{what}; qc='any' uses all")
    failed = ~lobes[used]
    if not lobes.all(axis=None):
        warn(
            f"quality control of {scans.file} leaves out {(~used).sum()} of {len(rows)} scans"
            f"{verdicts} and lobes of {failed.any(axis=1).sum()} more{_listed(failed.sum())}; "
            f"qc='any' uses all"
        )
    return scans._replace(rows=rows[used]), lobes[used]


def passed_lobes(rows: pd.DataFrame) -> pd.DataFrame:
    """Which lobes of the cortex passed quality control, (n, 5).

    Examples
    --------
    >>> verdicts = {"OVERALLQC": ["Pass", "Partial", "Fail", ""], "TEMPQC": ["Pass"] * 4}
    >>> passed_lobes(pd.DataFrame(verdicts))
       FRONTQC  TEMPQC  PARQC  OCCQC  INSULAQC
    0     True    True   True   True      True
    1    False    True  False  False     False
    2    False   False  False  False     False
    3    False   False  False  False     False
    """
    text = rows.reindex(columns=[OVERALL_QC, *LOBE_QC]).astype("string").fillna("")
    verdicts = text.apply(lambda column: column.str.strip().str.lower()).to_numpy(dtype=object)
    overall, lobes = verdicts[:, :1], verdicts[:, 1:]
    is_pass = (overall == "pass") | (OVERALL_QC not in rows.columns)
    passed = (is_pass & (lobes != "fail")) | ((overall == "partial") & (lobes == "pass"))
    return pd.DataFrame(passed, index=rows.index, columns=list(LOBE_QC))


def _listed(counts: "pd.Series[int]") -> str:
    """Counts that are not 0, in brackets."""
    parts = [f"{count} {name}" for name, count in counts.items() if count]
    return f" ({', '.join(parts)})" if parts else ""


def _measurement(scans: AdniTable, column: str, newer: str) -> "pd.Series[float]":
    """A column of the scans; newer tables have other names for the hemispheres."""
    if newer in scans.rows.columns:
        quiet = scans._replace(bad_cells=[])
        is_there = column in scans.rows.columns
        column = column if is_there and quiet.numbers(column, 0, above=True).any() else newer
    return scans.numbers(column, 0, above=True)
