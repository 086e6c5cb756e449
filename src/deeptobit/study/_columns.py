"""Which columns of the table a study speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from deeptobit.study._errors import did_you_mean
from deeptobit.study._file import Study


def check_columns(study: Study, columns: Sequence[str]) -> None:
    """Every column that ``[data]`` and ``[targets]`` name must be in the table."""
    named: dict[tuple[str, ...], str | None] = {
        ("data", "id"): study.data.id,
        ("data", "group"): study.data.group,
    }
    for target in study.targets:
        table = ("targets", target.name)
        named[(*table, "column")] = target.values
        named |= {(*table, key): name for key, name in target.helpers.items()}
    for where, name in named.items():
        if name is not None and name not in columns:
            raise study.source.error(where, _absent(study, name, columns))


def feature_columns(study: Study, columns: Sequence[str]) -> list[str]:
    """Columns that are features, in the order of the table.

    A wildcard passes over the id, the group, the targets and their limits and flags; only the
    group may be named outright.
    """
    settings = study.features
    taken = _reserved(study)
    for name in settings.include:
        if name in taken and name in columns and name != study.data.group:
            raise study.source.error(
                ("features", "include"), f"column {name!r} is {taken[name]}; it cannot be a feature"
            )
    included = _matches(study, "include", columns)
    excluded = _matches(study, "exclude", columns)
    free = included - excluded - taken.keys()
    named_group = {study.data.group} & set(settings.include) - excluded
    chosen = [name for name in columns if name in free or name in named_group]
    if not chosen:
        raise study.source.error(
            ("features",),
            "no column of the table is left as a feature; include more, or exclude fewer",
        )
    return chosen


def categorical_columns(study: Study, columns: Sequence[str]) -> set[str]:
    """Columns that the study declares categorical, whatever their cells look like."""
    return _matches(study, "categorical", columns)


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


def _matches(study: Study, key: str, columns: Sequence[str]) -> set[str]:
    known = set(columns)
    found: set[str] = set()
    for pattern in getattr(study.features, key):
        wild = {name for name in columns if fnmatchcase(name, pattern)} - {pattern}
        matched = {pattern} & known or wild
        if not matched:
            raise study.source.error(("features", key), _absent(study, pattern, columns))
        found |= matched
    return found


def _absent(study: Study, name: str, columns: Sequence[str]) -> str:
    where = f"{name!r} in {study.data.file}{did_you_mean(name, columns)}"
    wild = set("*?") & set(name)
    return f"no column matches {where}" if wild else f"there is no column {where}"
