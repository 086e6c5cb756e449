"""Every estimator gives the numbers it gave; ``python -m tests.golden.store`` stores new ones."""

import json
from pathlib import Path

import pytest

from tests.golden.cases import CASES, Numbers
from tests.golden.compare import TOLERANCE, differences
from tests.golden.store import FOLDER, main, read, store


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_are_what_they_were(name: str) -> None:
    changes = differences(read(name), CASES[name]())
    assert not changes, f"{changes}; if that is meant, python -m tests.golden.store {name}"


def test_nothing_is_stored_that_nobody_compares() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == CASES.keys()


def test_storing_says_what_changed_and_leaves_the_rest(tmp_path: Path) -> None:
    def numbers(value: float) -> Numbers:
        return {"coef": [[value, 2.0]], "mean": [3.0]}

    assert store(["a"], {"a": lambda: numbers(1.0)}, tmp_path) == ["a: coef: new; mean: new"]
    written = (tmp_path / "a.json").read_text()
    assert json.loads(written) == numbers(1.0)
    nearly = 1.0 + TOLERANCE
    assert store(["a"], {"a": lambda: numbers(nearly)}, tmp_path) == ["a: unchanged"]
    assert (tmp_path / "a.json").read_text() == written
    said = store(["a"], {"a": lambda: numbers(1.5)}, tmp_path)
    assert said == ["a: coef: largest change 0.25"]
    assert json.loads((tmp_path / "a.json").read_text()) == numbers(1.5)


def test_other_changes() -> None:
    nan = float("nan")
    assert differences({"a": [1.0]}, {"a": [1.0, 2.0]}) == ["a: shape (1,) became (2,)"]
    assert differences({"a": [nan]}, {"a": [1.0]}) == ["a: NaN in other places"]
    assert differences({"a": [nan, 0.0]}, {"a": [nan, 0.0]}) == []


def test_an_unknown_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert "unknown case(s) ['nothing']" in capsys.readouterr().err
