"""Which columns of the table a study speaks of."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Protocol

from deeptobit.study._errors import did_you_mean
from deeptobit.study._file import Study


class Columns(Protocol):
    """A table, in memory or not: the names of its columns, and that of its file."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""

    @property
    def file(self) -> str:
        """Name of the file, for errors."""


def check_columns(study: Study, table: Columns) -> None:
    """Every column that ``[data]`` and ``[targets]`` name must be in the table."""
    named: dict[tuple[str, ...], str | None] = {
        ("data", "id"): study.data.id,
        ("data", "group"): study.data.group,
    }
    for target in study.targets:
        section = ("targets", target.name)
        named[(*section, "column")] = target.values
        named |= {(*section, key): name for key, name in target.helpers.items()}
    for where, name in named.items():
        if name is not None and name not in table.columns:
            raise study.source.error(
                where, f"there is no column {_place(name, table)}" + _unquoted(where[-1], name)
            )


def feature_columns(study: Study, table: Columns) -> list[str]:
    """Columns that are features, in the order of the table.

    A wildcard passes over the id, the group, the targets and their limits and flags; only the
    group may be named outright.
    """
    settings = study.features
    taken = _reserved(study)
    for name in settings.include:
        if name in taken and name in table.columns and name != study.data.group:
            raise study.source.error(
                ("features", "include"), f"column {name!r} is {taken[name]}; it cannot be a feature"
            )
    included = _matches(study, "include", table)
    excluded = _matches(study, "exclude", table)
    free = included - excluded - taken.keys()
    named_group = {study.data.group} & set(settings.include) - excluded
    chosen = [name for name in table.columns if name in free or name in named_group]
    if not chosen:
        raise study.source.error(
            ("features",),
            "no column of the table is left as a feature; include more, or exclude fewer",
        )
    return chosen


def categorical_columns(study: Study, table: Columns) -> set[str]:
    """Columns that the study declares categorical, whatever their cells look like."""
    return _matches(study, "categorical", table)


def _reserved(study: Study) -> dict[str, str]:
    """Columns with another part to play, and which."""
    reserved: dict[str, str] = {}
    for target in study.targets:
        reserved |= {name: f"{key} of a target" for key, name in target.helpers.items()}
        reserved[target.values] = "a target"
    if study.data.id is not None:
        reserved[study.data.id] = "the id"
    if study.data.group is not None:
        reserved[study.data.group] = "the group"
    return reserved


def _matches(study: Study, key: str, table: Columns) -> set[str]:
    known = set(table.columns)
    found: set[str] = set()
    for pattern in getattr(study.features, key):
        wild = {name for name in table.columns if fnmatchcase(name, pattern)} - {pattern}
        matched = {pattern} & known or wild
        if not matched:
            raise study.source.error(("features", key), _absent(pattern, table))
        found |= matched
    return found


def _absent(pattern: str, table: Columns) -> str:
    where = _place(pattern, table)
    wild = set("*?") & set(pattern)
    return f"no column matches {where}" if wild else f"there is no column {where}"


def _place(name: str, table: Columns) -> str:
    """Where a column is not, and which one may be meant."""
    return f"{name!r} in {table.file}{did_you_mean(name, table.columns)}"


def _unquoted(key: str, name: str) -> str:
    """A bound in quotes is the name of a column; perhaps a number was meant."""
    is_bound = key in ("lower", "upper") and re.fullmatch(r"[+-]?\d*\.?\d+", name)
    return f"; a number is written without quotes: {key} = {name}" if is_bound else ""
