"""Write docs/errors.md: the messages of the code, with causes and remedies of docs/errors.toml."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.error_messages import GAP, Message, read_messages

DOCS = Path(__file__).parents[1] / "docs"
TABLE, PAGE = DOCS / "errors.toml", DOCS / "errors.md"
HEAD = f"""\
<!-- Written by `python -m scripts.write_errors` from the code and errors.toml; edit those. -->

# Errors and warnings

Every sentence that deeptobit stops or warns with, why it does, and what to do about it. Search this
page for a few words of yours; {GAP} stands for what differs: names of columns, rows, numbers.
Below a message are the class of the exception or warning, and the package that it comes from.
"""


@dataclass(frozen=True)
class Problem:
    """Messages with the same cause and remedy."""

    messages: tuple[str, ...]
    cause: str
    remedy: str


@dataclass(frozen=True)
class Topic:
    """A chapter of the page."""

    title: str
    about: str
    problems: tuple[Problem, ...]


def read_topics(table: Path = TABLE) -> list[Topic]:
    """The chapters, as the table has them."""
    return [
        Topic(
            topic["title"],
            _one_line(topic.get("about", "")),
            tuple(
                Problem(
                    tuple(problem["messages"]),
                    _one_line(problem["cause"]),
                    _one_line(problem["remedy"]),
                )
                for problem in topic["problem"]
            ),
        )
        for topic in tomllib.loads(table.read_text(encoding="utf-8"))["topic"]
    ]


def find_gaps(topics: Iterable[Topic], messages: Iterable[Message]) -> list[str]:
    """What keeps table and code from telling the same, one line each."""
    explained = [text for topic in topics for p in topic.problems for text in p.messages]
    said = {message.text: f"{message.path.name}, line {message.line}" for message in messages}
    silent = [text for text in said if text not in explained]
    unsaid = [text for text in dict.fromkeys(explained) if text not in said]
    twice = [text for text in dict.fromkeys(explained) if explained.count(text) > 1]
    return [
        *(f"{said[text]}: errors.toml has no cause and remedy of: {text}" for text in silent),
        *(f"errors.toml explains what no code says: {text}" for text in unsaid),
        *(f"errors.toml explains twice: {text}" for text in twice),
    ]


def render(topics: Iterable[Topic], messages: Iterable[Message]) -> str:
    """The page."""
    said: dict[str, list[Message]] = {}
    for message in messages:
        said.setdefault(message.text, []).append(message)
    return "\n".join([HEAD, *(line for topic in topics for line in _chapter(topic, said))])


def _chapter(topic: Topic, said: dict[str, list[Message]]) -> Iterator[str]:
    yield f"## {topic.title}\n"
    if topic.about:
        yield f"{topic.about}\n"
    for number, problem in enumerate(topic.problems):
        if number:
            yield "---\n"
        for text in problem.messages:
            yield f"- {_as_code(text)}<br>{_origin(said[text])}"
        yield f"\n**Cause.** {problem.cause}<br>\n**Remedy.** {problem.remedy}\n"


def _origin(messages: list[Message]) -> str:
    """Classes and places of a message: ``ValueError``, ``deeptobit.metrics``."""
    kinds = dict.fromkeys(f"`{message.kind}`" for message in messages)
    places = dict.fromkeys(
        f"`{message.room}`" + (f" (`{message.method}`)" if message.method else "")
        for message in messages
    )
    return f"{', '.join(kinds)} from {', '.join(places)}"


def _as_code(text: str) -> str:
    """Verbatim in Markdown; a text with backticks takes two around it."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """Write the page, or say what the table lacks."""
    topics, messages = read_topics(), read_messages()
    gaps = find_gaps(topics, messages)
    if gaps:
        sys.exit("\n".join(gaps))
    PAGE.write_text(render(topics, messages), encoding="utf-8")


if __name__ == "__main__":
    main()
