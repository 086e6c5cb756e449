"""Numbers that are no measurements: identifiers, and codes for missing values."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.study._build import StudyData
from deeptobit.study._codes import holders, lone_codes
from deeptobit.study._errors import listed
from deeptobit.study._file import Study
from deeptobit.study._finding import Finding
from deeptobit.study._identifiers import is_numbered, names_person, repeats
from deeptobit.study._kinds import MOST_CATEGORIES
from deeptobit.study._table import Table
from deeptobit.study._toml import toml_cell, toml_value

_SHOWN = 20  # names in one message; a table may have thousands of columns
_LEAST_ROWS = 20  # fewer whole numbers may follow each other by chance
_YEARS = (1800, 2100)


def identifiers(study: Study, data: StudyData) -> Iterator[Finding]:
    """Features that tell rows apart, and columns whose rows belong together but are no group."""
    features = [column.name for column in data.encoder.columns if column.reference is None]
    suspects = {name: why for name in features if (why := _why_identifier(data, name))}
    people = [] if study.data.group else _people(data.table, suspects)
    for name, why in suspects.items():
        if name not in people:
            message = f"looks like an identifier ({why}), and is a feature; exclude it"
            yield Finding("warning", name, message)
    for name in people:
        message = (
            "looks like an identifier that repeats, so that some rows of a person are held out and "
            f"others not; group = {name!r} under [data] keeps them together"
        )
        yield Finding("warning", name, message)


def codes(study: Study, data: StudyData) -> Iterator[Finding]:
    """Codes for missing values that the study takes for numbers."""
    columns: dict[int, list[str]] = {}
    for column in data.encoder.columns:
        if column.reference is None:
            for code in lone_codes(data.table.parse(column.name)[0]):
                columns.setdefault(code, []).append(column.name)
    for code, names in columns.items():
        yield Finding("warning", "features", _of_code(study, data.table, code, names))


def _of_code(study: Study, table: Table, code: int, names: list[str]) -> str:
    said = f"{code} repeats in {listed(names, _SHOWN)}, far from all other values: "
    meant = holders(table, code, names)
    if meant:
        return f"{said}if it means missing, leave those cells blank ({listed(meant)} may mean it)"
    written = {str(cell) for n in names for cell in table.text(n)[table.parse(n)[0] == code]}
    missing = ", ".join([*map(toml_value, study.data.missing), *map(toml_cell, sorted(written))])
    return f"{said}if it means missing, write missing = [{missing}] under [data]"


def _people(table: Table, suspects: Collection[str]) -> list[str]:
    """Columns that name the people whom several rows are about."""
    named = [name for name in table.columns if name in suspects or names_person(name)]
    return [name for name in named if repeats(table.text(name))]


def _why_identifier(data: StudyData, name: str) -> str | None:
    values, text = data.table.parse(name)[0], data.table.text(name)
    known = values[~np.isnan(values)]
    if (known % 1.0 != 0.0).any() or len(np.unique(known)) <= min(MOST_CATEGORIES, len(values) - 1):
        return None
    if names_person(name):
        return "by its name"
    if is_numbered(text):
        return "by its leading zeros"
    return "it counts the rows" if _counts_rows(values) else None


def _counts_rows(values: FloatArray) -> bool:
    """Whether every row has the number after that of the row before: 1, 2, 3 or 1001, 1002.

    Ages or years that follow each other are measurements.
    """
    if len(values) < _LEAST_ROWS or not (np.diff(values) == 1.0).all():
        return False
    first, last = values[0], values[-1]
    return bool(first in (0, 1) or (first >= 100 and not (_YEARS[0] <= first < last <= _YEARS[1])))
