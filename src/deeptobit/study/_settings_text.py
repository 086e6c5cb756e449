"""The settings of a study as they may be passed on with its model."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from deeptobit.study._file import Study
from deeptobit.study._toml import toml_key, toml_value

_TABLE = "table"  # in place of the name of the file


def settings_text(study: Study) -> str:
    r"""The study file anew: what it says, without its comments and the name of its table.

    Comments may name anybody, and the name or folder of a table may too. What is left as it is by
    default is not written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('data.file = "jane/a.csv" # ask Jane\ntargets.MMSE.upper = 30')
    ...     print(settings_text(read_study(path)))
    [data]
    file = "table"
    <BLANKLINE>
    [targets.MMSE]
    upper = 30
    <BLANKLINE>
    """
    sections: dict[str, Any] = {
        "data": study.data,
        "features": study.features,
        "model": study.model,
        "evaluation": study.evaluation,
        "report": study.report,
    }
    sections |= {f"targets.{toml_key(target.name)}": target for target in study.targets}
    parts = [
        "".join([f"[{title}]\n", *lines])
        for title, section in sections.items()
        if (lines := _lines(section)) or title.startswith("targets.")
    ]
    return "\n".join(parts)


def _lines(section: Any) -> list[str]:
    """The keys that say something."""
    return [
        f"{item.name} = {toml_value(_TABLE if item.name == 'file' else value)}\n"
        for item in fields(section)
        if item.metadata and (value := getattr(section, item.name)) != item.default
    ]
