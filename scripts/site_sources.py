"""Hook of MkDocs: links to files of the repository lead to their text, which the site has too."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
_SOURCE = re.compile(r"\]\(\.\./((?:\.\./)*)((?:benchmarks|paper|src)/[\w/]+\.(?:csv|py))\)")


def on_page_markdown(markdown: str, *, config: Any, files: Any, **_: Any) -> str:
    """Copy every file that is linked, as text that browsers show, and link the copy."""

    def lead_to_copy(found: re.Match[str]) -> str:
        up, path = found.groups()
        uri = f"source/{path}.txt"
        if files.get_file_from_path(uri) is None:
            # The mark in front tells browsers that the text is UTF-8.
            text = "\N{ZERO WIDTH NO-BREAK SPACE}" + (ROOT / path).read_text(encoding="utf-8")
            files.append(File.generated(config, uri, content=text))
        return f"]({up}{uri})"

    return _SOURCE.sub(lead_to_copy, markdown)
