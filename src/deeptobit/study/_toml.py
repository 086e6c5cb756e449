"""Names and values as TOML writes them."""

from __future__ import annotations

import json
import re


def toml_key(name: str) -> str:
    """A key, in quotes where it needs them.

    Examples
    --------
    >>> print(toml_key("MMSE"), toml_key("CSF tau"))
    MMSE "CSF tau"
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def toml_text(text: str) -> str:
    r"""Text in quotes; JSON's way is TOML's, but for the character DEL.

    Examples
    --------
    >>> print(toml_text('5" \\ é'))
    "5\" \\ é"
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_cell(cell: str) -> str:
    """A cell of a table: a whole number without quotes, anything else as it is written.

    Examples
    --------
    >>> print(toml_cell("-4"), toml_cell("999.0"), toml_cell("refused"))
    -4 "999.0" "refused"
    """
    return cell if re.fullmatch(r"-?[1-9][0-9]*", cell) else toml_text(cell)


def toml_value(value: str | bool | float | tuple[str | float, ...]) -> str:
    """A value of a study file.

    Examples
    --------
    >>> toml_value(True), toml_value(0.5), toml_value((1, "a"))
    ('true', '0.5', '[1, "a"]')
    """
    if isinstance(value, str):
        return toml_text(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return str(value).lower() if isinstance(value, bool) else repr(value)
