"""A model card for people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from deeptobit.report._format import UNKNOWN

_SHOWN = 50  # rows of a table; the others are in the JSON file


def card_markdown(card: Mapping[str, Any]) -> str:
    r"""A card as Markdown: lists of facts, tables of targets and features.

    Examples
    --------
    >>> data = {"rows": 80, "targets": [{"name": "a|b", "r2": 0.5}]}
    >>> print(card_markdown({"name": "clinic", "left_out": "No ids are in it.", "data": data}))
    # Model card: clinic
    <BLANKLINE>
    No ids are in it.
    <BLANKLINE>
    ## Data
    <BLANKLINE>
    - rows: 80
    <BLANKLINE>
    | targets | r2 |
    |---|---|
    | a\|b | 0.5 |
    <BLANKLINE>
    """
    blocks = [f"# Model card: {_text(card['name'])}"]
    if "left_out" in card:
        blocks.append(_text(card["left_out"]))
    for title, content in card.items():
        if title not in ("name", "left_out") and content:
            blocks += [f"## {_heading(title).capitalize()}", *_blocks(content)]
    return "\n\n".join(blocks) + "\n"


def _blocks(content: Mapping[str, Any] | Sequence[str]) -> list[str]:
    """Facts first, then tables."""
    if not isinstance(content, Mapping):
        return ["\n".join(f"- {_text(item)}" for item in content)]
    tables = {title: value for title, value in content.items() if _is_table(value)}
    facts = [
        f"- {_text(title)}: {_text(value)}"
        for title, value in content.items()
        if title not in tables
    ]
    shown = ["\n".join(facts)] if facts else []
    return shown + [_table(title, rows) for title, rows in tables.items()]


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _table(title: str, rows: list[dict[str, Any]]) -> str:
    headings = [_heading(name) for name in (title, *list(rows[0])[1:])]
    lines = [_row(headings), "|" + "---|" * len(headings)]
    lines += [_row(row.values()) for row in rows[:_SHOWN]]
    if len(rows) > _SHOWN:
        lines += ["", f"and {len(rows) - _SHOWN:,} more in the JSON file"]
    return "\n".join(lines)


def _row(cells: Any) -> str:
    return f"| {' | '.join(_text(cell) for cell in cells)} |"


def _heading(key: str) -> str:
    return key.replace("_", " ")


def _text(value: Any) -> str:
    """Text that no Markdown or HTML is read into."""
    if value is None:
        return UNKNOWN
    if isinstance(value, (list, tuple)):
        return ", ".join(_text(item) for item in value) or UNKNOWN
    written = f"{value:g}" if isinstance(value, float) else str(value)
    plain = " ".join(written.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", plain)
