"""docs/errors.md explains every message of the code, and a test quotes every message."""

import ast
import doctest
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.error_messages import GAP, PACKAGE, Message, read_messages
from scripts.untested_messages import ROOT, find_untested, read_executed
from scripts.write_errors import PAGE, Problem, Topic, find_gaps, read_topics, render

TESTS = Path(__file__).parent
MESSAGES = read_messages()
# So many characters of a message in a row, which no other message has, are a quotation of it.
QUOTED = 13

HELPERS = '''\
"""What errors are made of."""

HINT = "{}: pass numbers"


def refusal(name: str, why: str) -> ValueError:
    return ValueError(f"{name!r} is refused: {why}")
'''
SPEAKING = '''\
"""Every way to say something."""

import warnings

from house.helpers import HINT, refusal

KINDS = {"dates": "holds dates", "words": "holds words"}


def fail(path, count, kind):
    if count < 1:
        raise ValueError("count must be positive; got " + str(count))
    if path is None:
        raise FileNotFoundError(f"{path}{count:g} is not there" if count else "nothing is there")
    warnings.warn(
        f"{count} row(s) are empty",
        stacklevel=2,
    )
    raise refusal(path, f"it {KINDS[kind]}")


class Reader:
    def read(self):
        try:
            self._refuse(1, "is both below and above")
            self._refuse(2, "has no limit")
        except KeyError as error:
            raise TypeError(str(error)) from None
        raise TypeError(HINT.format("X is text"))

    def _refuse(self, row, what):
        raise KeyError(f"row {row} {what}")


    @property
    def shortage(self):
        return MemoryError("there is no room")


def stop(reader):
    if reader:
        raise reader.shortage
    raise StopIteration
'''


@pytest.fixture
def house(tmp_path: Path) -> Path:
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helpers.py").write_text(HELPERS)
    (package / "speaking.py").write_text(SPEAKING)
    return package


def test_messages_are_read_from_the_source(house: Path) -> None:
    found = read_messages(house)
    assert [(message.line, message.kind, message.text) for message in found] == [
        (12, "ValueError", "count must be positive; got …"),
        (14, "FileNotFoundError", "… is not there"),
        (14, "FileNotFoundError", "nothing is there"),
        (15, "UserWarning", "… row(s) are empty"),
        (19, "ValueError", "… is refused: it holds dates"),
        (19, "ValueError", "… is refused: it holds words"),
        (29, "TypeError", "X is text: pass numbers"),
        (32, "KeyError", "row … is both below and above"),
        (32, "KeyError", "row … has no limit"),
        (42, "MemoryError", "there is no room"),
    ]
    assert {message.room for message in found} == {"house.speaking"}
    assert [message.method for message in found] == [""] * 6 + ["read", "", "", ""]


def test_an_exception_of_unknown_make_is_refused(house: Path) -> None:
    (house / "other.py").write_text("def fail():\n    raise made_elsewhere('a', 'b')\n")
    with pytest.raises(LookupError, match=r"made_elsewhere\(\) makes an exception"):
        read_messages(house)


def test_untested_messages_stand_on_lines_that_were_not_executed(house: Path) -> None:
    found = read_messages(house)
    executed = {house / "speaking.py": {12, 14, 15, 19, 32, 42}}
    assert [message.text for message in find_untested(found, executed)] == [
        "X is text: pass numbers"
    ]
    assert find_untested(found, {}) == found


def test_executed_lines_are_those_of_a_coverage_report(tmp_path: Path) -> None:
    report = tmp_path / "coverage.json"
    report.write_text('{"files": {"src/deeptobit/extras.py": {"executed_lines": [1, 28]}}}')
    assert read_executed(report) == {ROOT / "src" / "deeptobit" / "extras.py": {1, 28}}


def test_every_message_has_a_cause_and_a_remedy() -> None:
    gaps = find_gaps(read_topics(), MESSAGES)
    assert not gaps, "\n".join(gaps)


def test_gaps_between_table_and_code_are_told(house: Path) -> None:
    said = read_messages(house)
    problem = Problem((said[0].text, said[0].text, "nobody says this"), "So it is.", "Change it.")
    assert find_gaps([Topic("All", "", (problem,))], said[:2]) == [
        "speaking.py, line 14: errors.toml has no cause and remedy of: … is not there",
        "errors.toml explains what no code says: nobody says this",
        "errors.toml explains twice: count must be positive; got …",
    ]


def test_causes_and_remedies_are_sentences() -> None:
    for topic in read_topics():
        for problem in topic.problems:
            for text in (problem.cause, problem.remedy):
                assert text[0].isupper() or text[0] == "`", text
                assert text.endswith("."), text


def test_the_page_is_up_to_date() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == render(read_topics(), MESSAGES), "run: python -m scripts.write_errors"


def strings_of_tests() -> Iterator[str]:
    """Every literal text in the tests, and every error that a doctest expects."""
    for path in TESTS.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes if path != Path(__file__) else ():
            if isinstance(node, ast.Constant) and id(node) not in docstrings:
                yield str(node.value).replace("\\", "")  # of a regular expression
    parser = doctest.DocTestParser()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                examples = parser.get_examples(ast.get_docstring(node) or "")
                yield from (example.exc_msg for example in examples if example.exc_msg)


def runs(text: str) -> set[str]:
    """All runs of characters of a text that are long enough to be a quotation."""
    return {
        part[start : start + QUOTED]
        for part in " ".join(text.split()).split(GAP)
        for start in range(len(part) - QUOTED + 1)
    }


def test_every_message_is_quoted_by_a_test() -> None:
    """But for those of a few words; scripts/untested_messages.py sees what is really produced."""
    by_text: dict[str, Message] = {message.text: message for message in MESSAGES}
    owners = Counter(run for text in by_text for run in runs(text))
    quoted = {run for text in strings_of_tests() for run in runs(text)}
    unquoted = []
    for text, message in by_text.items():
        own = {run for run in runs(text) if owners[run] == 1} or runs(text)
        if own and not own & quoted:
            unquoted.append(f"{message.path.name}, line {message.line}: {text}")
    assert not unquoted, "\n".join(unquoted)
