"""Study files: what is written is read, and whatever is not understood is a sentence."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deeptobit.app.study import StudyError
from deeptobit.app.study.config import Source, parse_study
from tests.properties.strategies import study_contents as any_contents

OFTEN = settings(max_examples=40, deadline=None)
Content = dict[str, dict[str, Any]]
TOKENS = st.sampled_from(
    (
        *("[", "]", "[[", "{", "}", "=", ".", ",", "#", '"', "'", '"""', "\n", " ", "\\u0000"),
        *("data", "file", "targets", "MMSE", "lower", "upper", "model", "cv", "features", "x"),
        *("1", "-1e999", "nan", "true", "0x" + "f" * 5000, "9" * 400, "1979-05-27", "[" * 3000),
    )
)


def study_contents() -> st.SearchStrategy[Content]:
    """Sound studies: a grid without values is refused."""
    return any_contents().filter(lambda content: [] not in content["model"].values())


def quote(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def lines_of(content: Content) -> list[str]:
    """The content as TOML, a key on each line."""
    lines = []
    for section, keys in content.items():
        tables = keys.items() if section == "targets" else [("", keys)]
        for name, table in tables:
            lines.append(f"[{section}.{quote(name)}]" if name else f"[{section}]")
            lines += [f"{key} = {quote(value)}" for key, value in table.items()]
    return lines


def parse(text: str) -> Any:
    return parse_study(Source(Path("study.toml"), text))


@OFTEN
@given(study_contents())
def test_what_is_written_is_read(content: Content) -> None:
    study = parse("\n".join(lines_of(content)))
    for section in ("data", "features", "model", "evaluation"):
        for key, value in content[section].items():
            found = getattr(getattr(study, section), key)
            assert found == (tuple(value) if isinstance(value, list) else value)
    assert [target.name for target in study.targets] == list(content["targets"])
    for target, keys in zip(study.targets, content["targets"].values(), strict=True):
        assert {key: getattr(target, key) for key in keys} == keys


@OFTEN
@given(study_contents(), st.data())
def test_a_key_that_is_not_known_is_named_with_its_line(
    content: Content, data: st.DataObject
) -> None:
    lines = lines_of(content)
    number = data.draw(st.integers(1, len(lines)))
    lines.insert(number, "nonsense = 1")
    with pytest.raises(StudyError, match=f"^study.toml, line {number + 1}: .*no key 'nonsense'"):
        parse("\n".join(lines))


@OFTEN
@given(st.one_of(st.text(), st.lists(TOKENS).map("".join)))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(StudyError):
        parse(text)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("missing = " + "[" * 3000, "^study.toml is nested too deeply$"),
        ("missing = [" + "9" * 5000 + "]", "^study.toml is not valid TOML: "),
        ("id = 0x" + "f" * 5000, "line 3: .data. id must be the name of a column; got a numb"),
        ("missing = [" + "9" * 400 + "]", r"line 3: .data. missing must be .*; got \[9{199}…$"),
        ('file = "a\\u0000.csv"', "line 2: .data. file must be the name of a CSV, Excel"),
        (" " * 50_000 + "\nfiles = 1", r"line 4: .data. has no key 'files' .*did you mean 'file'"),
    ],
    ids=["nested", "long", "hexadecimal", "large", "zero byte", "spaces"],
)
def test_what_python_stumbles_over_is_a_sentence(line: str, sentence: str) -> None:
    first = "" if line.startswith("file =") else 'file = "a.csv"\n'
    with pytest.raises(StudyError, match=sentence):
        parse(f"[data]\n{first}{line}\n[targets.MMSE]\n")
