"""ADNI's own files, joined into features and bounded scores of people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deeptobit.datasets._adni_features import read_features
from deeptobit.datasets._adni_files import find_tables
from deeptobit.datasets._adni_scores import choose_scores, read_score
from deeptobit.datasets._adni_table import canonical_visit, read_table
from deeptobit.datasets._cohort import Cohort

if TYPE_CHECKING:
    import pandas as pd


def load_adni(
    folder: str | Path,
    *,
    scores: pd.DataFrame | str | Path | None = None,
    visit: str = "bl",
) -> Cohort:
    """Rebuild 138 cortical measurements and bounded scores from a folder of ADNI downloads.

    Who has access to the Alzheimer's Disease Neuroimaging Initiative downloads CSV files from
    ida.loni.usc.edu into one folder; an error says which are missing and where they are. Dates
    in the names of files, and the case of names and columns, do not matter.

    Parameters
    ----------
    folder : str or Path
        Holds UCSFFSX (FreeSurfer 4.3), else UCSFFSX51, UCSFFSX6 or UCSFFSX7, and the tables
        that ``scores`` names.
    scores : DataFrame, path of a CSV file or None
        One row per score, with the columns ``table``, ``column``, ``visit`` (``bl``, ``m06``,
        ...), ``lower`` and ``upper`` (empty: no bound). None takes a proposal of 30 from
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
    >>> from deeptobit.datasets import make_clinical_cohort
    >>> from deeptobit.datasets._packaged import packaged_table
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
    import pandas as pd

    chosen = choose_scores(scores)
    names = dict.fromkeys(score.table for score in chosen)
    scans, files = find_tables(Path(folder), names)
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
