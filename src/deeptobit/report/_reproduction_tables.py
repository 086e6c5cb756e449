"""Tables and claims of the reproduction, as the page and Markdown show them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import isnan
from typing import Any, NamedTuple, get_args

from deeptobit.experiments.reproduce import Section, TableOf, Verdict
from deeptobit.report._format import UNKNOWN

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_NUMERIC = set("−-+0123456789.,()%<>≤≥× e–")


class Column(NamedTuple):
    """A column of a table: how it is called and how it is read."""

    name: str
    css: str


class ShownTable(NamedTuple):
    """A table whose cells are text."""

    caption: str
    columns: list[Column]
    rows: list[list[str]]


def show_table(table: TableOf) -> ShownTable:
    """Cells as text; numbers to the right, and the paper's values in muted columns."""
    cells = [
        [_text(value) for value in table.frame.iloc[:, k]] for k in range(table.frame.shape[1])
    ]
    columns = [
        Column(str(name), _css(str(name), column))
        for name, column in zip(table.frame.columns, cells, strict=True)
    ]
    return ShownTable(table.caption, columns, [list(row) for row in zip(*cells, strict=True)])


def count_verdicts(sections: Sequence[Section]) -> dict[Verdict, int]:
    """How many claims have each verdict.

    Examples
    --------
    >>> count_verdicts([])
    {'holds': 0, 'does not hold': 0, 'cannot be told': 0}
    """
    found = Counter(claim.verdict for section in sections for claim in section.claims)
    return {verdict: found[verdict] for verdict in VERDICTS}


def as_markdown(section: Section) -> str:
    """A section without its figures; no HTML is read into it, and a lone < is what it was."""
    parts = [f"## {section.title}", section.text]
    for table in section.tables:
        shown = show_table(table)
        parts += [shown.caption, _grid([column.name for column in shown.columns], shown.rows)]
    if section.claims:
        head = ["claim", "paper", "ours", "verdict", "test"]
        rows = [[c.text, c.paper, c.ours, f"**{c.verdict}**", c.test] for c in section.claims]
        parts.append(_grid(head, rows))
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", "\n\n".join(parts)) + "\n"


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_plain(cell) for cell in line) + " |" for line in lines)


def _plain(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return UNKNOWN if isnan(value) else f"{value:.4g}".replace("-", "−")
    text = "" if value is None else str(value)
    return text.replace("-", "−") if _is_number(text) else text


def _css(name: str, cells: Sequence[str]) -> str:
    kind = "number" if all(_is_number(cell) for cell in cells) else "word"
    return f"{kind} paper" if "paper" in name else kind


def _is_number(cell: str) -> bool:
    return set(cell) <= _NUMERIC
