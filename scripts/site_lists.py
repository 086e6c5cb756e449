"""Hook of MkDocs: a name that says everything by itself is not followed by a dash."""

import re
from typing import Any

# What mkdocstrings writes for a parameter or attribute without a description.
_NOTHING = re.compile(r'\s*–\s*<div class="doc-md-description">\s*</div>')


def on_page_content(content: str, **_: Any) -> str:
    r"""Leave out every dash that announces nothing.

    >>> on_page_content('<li>coef_ –\n <div class="doc-md-description">\n</div></li>')
    '<li>coef_</li>'
    """
    return _NOTHING.sub("", content)
