"""Find the tables of ADNI in a folder of downloads, or say where ADNI offers them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from deeptobit.datasets._packaged import packaged_table

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Versions of FreeSurfer measure differently, so one table is read: the first of these that is
# there. The paper's people were scanned in ADNI1, whose table is the first.
FREESURFER_TABLES = ("UCSFFSX", "UCSFFSX51", "UCSFFSX6", "UCSFFSX7")

DOWNLOAD = "ida.loni.usc.edu (ADNI > Download > Study Data)"


def find_tables(folder: Path, score_tables: Iterable[str]) -> tuple[Path, dict[str, Path]]:
    """Return the file of the scans, and those of the tables of scores by name.

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
        raise FileNotFoundError(_what_to_download(folder, missing))
    return scans[0], {name: path for name, path in found.items() if path}


def find_table(folder: Path, name: str) -> Path | None:
    """Return the CSV file of one table, whatever dates follow its name.

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


def _what_to_download(folder: Path, missing: list[str]) -> str:
    tables = packaged_table("adni_tables")
    place = dict(zip(tables["table"], tables["section"] + " > " + tables["title"], strict=True))
    lines = [f"  {name}*.csv: {place.get(name, 'search the page for it')}" for name in missing]
    return f"{folder} lacks tables; download them from {DOWNLOAD}:\n" + "\n".join(lines)
