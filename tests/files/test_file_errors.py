"""What is wrong with a file or a state, in the words that users read."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit.exceptions import ModelFileError
from deeptobit.files import container, read_state, write_state
from tests.files.crafted import craft, one_array


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"state": {}, "tensors": {"0": ("U8", [1], b"\1")}},
            "holds arrays that nothing refers to",
        ),
        (one_array("F64", [2], bytes(8)), "it is not a deeptobit model file, or is damaged"),
        ({"state": {"a": nested(200)}}, "its content is nested too deeply"),
        ({"state": {"a": {"$call": 1}}}, "it contains an unknown type ('$call')"),
        ({"state": "{"}, "its header is not JSON, or is nested too deeply"),
        ({"state": "[]"}, "its header is not that of a model file"),
        ({"state": "[" + "0," * 300_000 + "0]"}, "its header is too long"),
        ({"state": {}, "sha256": "0"}, "its bytes do not add up to the stored checksum"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(tmp_path: Path, content: Any, message: str) -> None:
    path = craft(tmp_path / "a.model", **content)
    with pytest.raises(ModelFileError, match=rf"a\.model cannot be loaded: .*{re.escape(message)}"):
        read_state(path)


def test_versions_and_places_are_said(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="its header is too long"):
        read_state(craft(tmp_path / "a", {}, length=2**40))
    with pytest.raises(ModelFileError, match=r"it has format 7, and .* reads up to 1; upgrade"):
        read_state(craft(tmp_path / "a", {}, version="7"))
    with pytest.raises(ModelFileError, match=" is not a file"):
        read_state(tmp_path)
    (tmp_path / "a").write_text("id,age\n1,70\n")
    with pytest.raises(ModelFileError, match="it is not a deeptobit model file"):
        read_state(tmp_path / "a")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (nested(200), "is nested too deeply for a file (100 levels)"),
        (
            np.ma.masked_array([1.0], [True]),
            "is a masked array, which a file cannot hold",
        ),
        (np.array([1j]), "state['a'] is an array of type complex128, which a file cannot hold"),
        (print, "state['a'] is of type builtin_function_or_method, which a file cannot hold"),
    ],
)
def test_what_a_file_cannot_hold_is_said(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        write_state(tmp_path / "a", "test", {"a": value})


def test_long_lists_are_to_be_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "_LONGEST_HEADER", 2000)
    with pytest.raises(ValueError, match=r"bytes beside its arrays, more than a model file holds"):
        write_state(tmp_path / "a", "test", {"a": list(range(1000))})
    write_state(tmp_path / "a", "test", {"a": np.arange(1000)})
