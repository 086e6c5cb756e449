"""Finished sections in a folder, one file each, named after what they depend on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deeptobit.experiments.reproduce._section import Claim, FigureOf, Section, TableOf
from deeptobit.persistence import read_state, write_state

if TYPE_CHECKING:
    import pandas as pd

_KIND = "reproduced section"


def section_path(store: Path, settings: Mapping[str, Any]) -> Path:
    """The file of a section with these settings, and of no other."""
    text = json.dumps(settings, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return store / "sections" / f"{settings['name']}-{digest}.section"


def write_section(path: Path, section: Section) -> None:
    """Keep a section, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "name": section.name,
        "title": section.title,
        "text": section.text,
        "tables": [
            {
                "caption": table.caption,
                "frame": _frame_state(table.frame),
                "data": None if table.data is None else _frame_state(table.data),
            }
            for table in section.tables
        ],
        "figures": [
            {"caption": figure.caption, "kind": figure.kind, "data": dict(figure.data)}
            for figure in section.figures
        ],
        "claims": [asdict(claim) for claim in section.claims],
        "seconds": section.seconds,
        "settings": json.dumps(section.settings),
    }
    write_state(path, _KIND, state)


def read_section(path: Path) -> Section:
    """A section as it was written."""
    _, state = read_state(path, _KIND)
    return Section(
        name=state["name"],
        title=state["title"],
        text=state["text"],
        tables=tuple(_table(table) for table in state["tables"]),
        figures=tuple(FigureOf(**figure) for figure in state["figures"]),
        claims=tuple(Claim(**claim) for claim in state["claims"]),
        seconds=state["seconds"],
        settings=json.loads(state["settings"]),
    )


def _frame_state(frame: pd.DataFrame) -> dict[str, Any]:
    """Columns by name; the index of a table says nothing."""
    return {
        "columns": [str(name) for name in frame.columns],
        "values": [frame.iloc[:, column].tolist() for column in range(frame.shape[1])],
    }


def _table(state: Mapping[str, Any]) -> TableOf:
    data = None if state["data"] is None else _frame(state["data"])
    return TableOf(state["caption"], _frame(state["frame"]), data)


def _frame(state: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(dict(zip(state["columns"], state["values"], strict=True)))
