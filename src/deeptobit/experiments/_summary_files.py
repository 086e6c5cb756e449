"""A comparison on paper: Markdown and HTML."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from deeptobit.experiments._summary import MEASURES
from deeptobit.experiments._summary_tables import (
    TextTable,
    notes,
    table_by_share,
    table_of_measures,
    table_of_targets,
)
from deeptobit.study import write_whole

if TYPE_CHECKING:
    from deeptobit.experiments._evaluate import Evaluation

_STYLE = (
    "body{font:15px system-ui;margin:2em auto;padding:0 1.5em;max-width:70em}"
    "table{border-collapse:collapse}"
    "th,td{padding:.2em .8em;text-align:right;border-bottom:1px solid #ddd}"
    "th:first-child,td:first-child{text-align:left}"
)


def write_summary(folder: Path, evaluation: Evaluation, name: str) -> None:
    """Write ``summary.md`` and ``summary.html``: all measures, by share and by target."""
    title = f"Methods compared on {name}"
    tables = [
        table_by_share(evaluation, "anmse"),
        table_of_measures(evaluation),
        *(table_by_share(evaluation, measure) for measure in MEASURES if measure != "anmse"),
        table_of_targets(evaluation),
    ]
    lines = notes(evaluation)
    write_whole(folder / "summary.md", as_markdown(title, tables, lines))
    write_whole(folder / "summary.html", as_html(title, tables, lines))


def as_markdown(title: str, tables: list[TextTable], lines: list[str]) -> str:
    """A document in Markdown."""
    parts = [f"# {_plain(title)}", *(_plain(line) for line in lines)]
    for table in tables:
        head = " | ".join(_plain(cell) for cell in table.head)
        rule = "|---|" + "---:|" * (len(table.head) - 1)
        body = [
            " | ".join(
                f"**{_plain(cell)}**" if (i, j) in table.best else _plain(cell)
                for j, cell in enumerate(row)
            )
            for i, row in enumerate(table.rows)
        ]
        parts += [
            f"## {_plain(table.title)}",
            "\n".join([f"| {head} |", rule, *(f"| {line} |" for line in body)]),
        ]
    return "\n\n".join(parts) + "\n"


def as_html(title: str, tables: list[TextTable], lines: list[str]) -> str:
    """One page without scripts or links."""
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style><h1>{escape(title)}</h1>",
        *(f"<p>{escape(line)}</p>" for line in lines),
    ]
    for table in tables:
        parts.append(f"<h2>{escape(table.title)}</h2><table>")
        parts.append("<tr>" + "".join(f"<th>{escape(c)}</th>" for c in table.head) + "</tr>")
        for i, row in enumerate(table.rows):
            cells = (
                f"<td><b>{escape(cell)}</b></td>"
                if (i, j) in table.best
                else f"<td>{escape(cell)}</td>"
                for j, cell in enumerate(row)
            )
            parts.append("<tr>" + "".join(cells) + "</tr>")
        parts.append("</table>")
    return "\n".join(parts) + "\n</html>\n"


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    marked = "".join(f"\\{sign}" if sign in "\\`*_[]<>|#" else sign for sign in text)
    return " ".join(marked.split())
