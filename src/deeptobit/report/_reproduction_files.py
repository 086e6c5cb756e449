"""A folder with the page, and every table and figure as files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deeptobit.experiments.reproduce import Section
from deeptobit.extras import require
from deeptobit.report._reproduction import render_reproduction
from deeptobit.report._reproduction_figures import draw
from deeptobit.report._reproduction_tables import as_markdown
from deeptobit.report._svg import drawing
from deeptobit.study import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 200


def write_reproduction(folder: Path, sections: Sequence[Section], name: str) -> list[Path]:
    """Write ``NAME.html``, ``NAME.md``, and a file for every table and figure.

    Tables are CSV as the page shows them, and Parquet with a row per repeat where a table has them;
    figures are PNG and SVG.

    Returns
    -------
    list of Path
        Of the files, the page first.
    """
    require("pyarrow", "app")
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    (folder / "figures").mkdir(exist_ok=True)
    page, text = folder / f"{name}.html", folder / f"{name}.md"
    write_whole(page, render_reproduction(sections))
    write_whole(text, "\n".join(as_markdown(section) for section in sections))
    files = [page, text]
    for section in sections:
        files += _write_tables(folder / "tables", section)
        files += _write_figures(folder / "figures", section)
    return files


def _write_tables(folder: Path, section: Section) -> list[Path]:
    files = []
    for number, table in enumerate(section.tables, start=1):
        frame = table.frame if table.data is None else table.data
        path = folder / f"{section.name}-{number}.csv"
        write_whole(path, table.frame.to_csv(index=False))
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        write_whole(path.with_suffix(".parquet"), buffer.getvalue())
        files += [path, path.with_suffix(".parquet")]
    return files


def _write_figures(folder: Path, section: Section) -> list[Path]:
    files: list[Path] = []
    with drawing():
        drawn = [figure for one in section.figures for figure, _ in draw(one).figures]
        for number, figure in enumerate(drawn, start=1):
            path = folder / f"{section.name}-{number}"
            files += [_save(figure, path.with_suffix(kind)) for kind in (".png", ".svg")]
    return files


def _save(figure: Figure, path: Path) -> Path:
    buffer = io.BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(buffer, format=path.suffix[1:], dpi=_DPI, metadata=metadata)
    write_whole(path, buffer.getvalue())
    return path
