"""Hook of MkDocs: LaTeX becomes MathML while the site is built; pages need no script for it."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex leaves behind with ``generic: true``.
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace every formula of a page."""
    content = _DISPLAY.sub(lambda found: _mathml(found[1], "block"), content)
    return _INLINE.sub(lambda found: _mathml(found[1], "inline"), content)


def _mathml(latex: str, display: str) -> str:
    return convert(html.unescape(latex).strip(), display=display)
