"""Extension of Griffe: docstrings written for Sphinx, read as Markdown."""

import re
import textwrap
from itertools import pairwise
from typing import Any

import griffe

_BLOCK = re.compile(
    r"^(?P<indent> *)\.\. math::(?P<first>.*)\n(?P<rest>(?:\n|(?P=indent) +.*\n?)*)", re.MULTILINE
)
_TABLE = re.compile(r"^(=+(?: +=+)+)\n(.+)\n\1\n((?:.+\n)+?)\1$", re.MULTILINE)
_INLINE = re.compile(r":math:`([^`]+)`")
_ROLE = re.compile(r":(?:class|func|meth|mod):`~?([^`]+)`")
# Names that share a description; the parser would give all of them the default of the first.
_GROUP = re.compile(r"^\*{0,2}\w+(?:, \*{0,2}\w+)+(?= : |$)", re.MULTILINE)
_FOOTNOTE = re.compile(r"^( *)\.\. (\[\d+\]) ", re.MULTILINE)


class SphinxToMarkdown(griffe.Extension):
    """Rewrite the docstring of every object as it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Before the numpydoc parser sees it."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(text: str) -> str:
    r"""Formulas, roles, simple tables and footnotes of reStructuredText as Markdown.

    >>> print(to_markdown(r"The mean :math:`\mu` of :class:`~deeptobit.CensoredTargets` [1]_."))
    The mean $\mu$ of `deeptobit.CensoredTargets` [1].
    """
    text = _BLOCK.sub(_display, text + "\n")
    text = _TABLE.sub(_table, text)
    text = _GROUP.sub(lambda names: names[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    text = _INLINE.sub(r"$\1$", text)
    text = _ROLE.sub(r"`\1`", text)
    return _FOOTNOTE.sub(r"\1\2 ", text).replace("]_", "]").rstrip("\n")


def _display(found: re.Match[str]) -> str:
    body = textwrap.dedent(found["rest"]).strip()
    formula = " ".join(f"{found['first'].strip()} {body}".split())
    return f"{found['indent']}$$ {formula} $$\n\n"


def _table(found: re.Match[str]) -> str:
    """Cells begin where the rule does."""
    rule, head, body = found.groups()
    edges = [start.start() for start in re.finditer(r"(?<!=)=", rule)]
    columns = [*pairwise(edges), (edges[-1], None)]
    rows = [[line[start:end].strip() for start, end in columns] for line in body.splitlines()]
    names = [head[start:end].strip() for start, end in columns]
    return "\n".join("| " + " | ".join(row) + " |" for row in [names, ["---"] * len(names), *rows])
