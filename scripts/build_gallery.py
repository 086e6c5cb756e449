"""Run examples/*.py and write docs/gallery: for each its code, what it prints and its picture.

Run ``python scripts/build_gallery.py`` from anywhere; ``make docs`` does. An example is a script
whose docstring is a title and a paragraph, and which saves one picture under its own name.
"""

import ast
import io
import os
import runpy
import sys
import tempfile
import time
import warnings
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
GALLERY = ROOT / "docs" / "gallery"

INDEX = """# Gallery

Scripts of a page or less, run when this site was built: what they print is what came out.
They are in `examples/`, and `python examples/NAME.py` runs one.

<div class="gallery" markdown>

[![](../images/patient-1280.png) **The patient page** What a model expects of one person, in a page
that computes by itself.](../patient-page.md)

[![](../images/report-1280.png) **The report** How good a model is, in points, for people who
know the outcomes.](../report.md)

{cards}

</div>
"""
CARD = "[![]({name}.png) **{title}** {summary}]({name}.md)"
PAGE = """# {title}

{text}

![{title}]({name}.png)

```text title="It prints"
{output}
```

```python title="examples/{name}.py"
{code}
```
"""


@dataclass(frozen=True)
class Example:
    """A script that ran: what it says, what it printed, how long it took."""

    name: str
    title: str
    text: str
    code: str
    output: str
    seconds: float

    @property
    def summary(self) -> str:
        """The first sentence of its text."""
        return self.text.replace("\n", " ").split(". ")[0].rstrip(".") + "."


def main() -> None:
    """Build all pages, or stop at the first example that fails, warns or draws nothing."""
    os.environ["MPLBACKEND"] = "Agg"
    GALLERY.mkdir(exist_ok=True)
    examples = [run(script) for script in sorted(EXAMPLES.glob("*.py"))]
    for example in examples:
        page = PAGE.format_map(vars(example))
        (GALLERY / f"{example.name}.md").write_text(page, encoding="utf-8")
        print(f"{example.name}: {example.seconds:.1f} s", file=sys.stderr)
    cards = "\n\n".join(CARD.format(summary=e.summary, **vars(e)) for e in examples)
    (GALLERY / "index.md").write_text(INDEX.format(cards=cards), encoding="utf-8")


def run(script: Path) -> Example:
    """Run a script in a folder of its own and keep its picture."""
    title, text, code = read_script(script)
    output, started = io.StringIO(), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(output):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            runpy.run_path(str(script))
        picture = Path(folder) / f"{script.stem}.png"
        if not picture.exists():
            raise FileNotFoundError(f"{script} did not save {picture.name}")
        (GALLERY / picture.name).write_bytes(picture.read_bytes())
    seconds = time.perf_counter() - started
    return Example(script.stem, title, text, code, output.getvalue().rstrip(), seconds)


def read_script(script: Path) -> tuple[str, str, str]:
    """Title and text of the docstring, and the code below it."""
    source = script.read_text(encoding="utf-8")
    tree = ast.parse(source)
    docstring = ast.get_docstring(tree)
    if docstring is None or "\n\n" not in docstring:
        raise ValueError(f"{script} needs a docstring: a title, an empty line, and a paragraph")
    title, text = docstring.split("\n\n", 1)
    code = "\n".join(source.splitlines()[tree.body[0].end_lineno :])
    return title.rstrip("."), text, code.strip()


if __name__ == "__main__":
    main()
