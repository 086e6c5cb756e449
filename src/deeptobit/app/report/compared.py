"""The page of a comparison: methods on held-out rows, in the style of the report."""

from math import isfinite

from deeptobit.app.report.page import environment, script_hash, template_part
from deeptobit.app.report.points import Cell
from deeptobit.app.study import comparison
from deeptobit.app.study.evaluate import Evaluation


def render_comparison(evaluation: Evaluation, name: str) -> str:
    """One self-contained HTML page about methods that were compared on held-out rows."""
    first, *others = comparison.notes(evaluation) or [""]
    script = template_part("tables.js")
    content = {
        "name": name,
        "lede": first,
        "notes": others,
        "script": script,
        "script_hash": script_hash(script),
        "style": template_part("style.css"),
        "tables": [_listed(table) for table in comparison.all_tables(evaluation)],
    }
    return str(environment().get_template("comparison.html.j2").render(content))


def _listed(table: comparison.TextTable) -> dict[str, object]:
    """A table as headings and rows of cells."""
    marks = table.best.map(lambda best: "best" if best else "")
    marks = marks.mask(table.ties, "tie")
    rows = [
        [Cell(text, _number(text), mark) for text, mark in zip(texts, marked, strict=True)]
        for texts, marked in zip(table.cells.to_numpy(), marks.to_numpy(), strict=True)
    ]
    return {"title": table.title, "headings": list(table.cells.columns), "rows": rows}


def _number(text: str) -> float | str | None:
    """The number that a cell begins with, to sort by; the text itself if there is none."""
    try:
        value = float(text.split("±")[0])
    except ValueError:
        return text
    return value if isfinite(value) else None
