"""Hook of MkDocs: links to examples/, right in the repository, lead to the gallery on the site."""

import re
from typing import Any

_EXAMPLE = re.compile(r"\]\(\.\./((?:\.\./)*)examples(?:/(\w+)\.py)?\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Name the page of every script that is linked, and the gallery where the folder is.

    >>> on_page_markdown("[all](../examples), [one](../../examples/stream.py)")
    '[all](gallery/index.md), [one](../gallery/stream.md)'
    """
    return _EXAMPLE.sub(lambda found: f"]({found[1]}gallery/{found[2] or 'index'}.md)", markdown)
