"""What is wrong with a file or a state, in the words that users read."""

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit.exceptions import ModelFileError
from deeptobit.files import container as _file
from deeptobit.files import read_state, write_state
from deeptobit.files.container import ArraySpec
from tests.files.crafted import craft, one_array


def header(**changes: Any) -> dict[str, Any]:
    return {"kind": "test", "arrays": [], "state": {}} | changes


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("content", "body", "message"),
    [
        (one_array(["|O", [1], "C"]), bytes(8), "a type or shape that model files do not have"),
        (one_array(["|b1", [1], "C"]), b"\2", "an array of truth values holds something else"),
        (one_array(["<U1", [1], "C"]), b"\xff" * 4, "an array of text holds something else"),
        (
            one_array(["<f8", [2], "C"]),
            bytes(8),
            "its arrays do not have the size",
        ),
        (header(arrays=[["|u1", [1], "C"]]), b"\1", "it holds arrays that nothing refers to"),
        (header(state={"a": nested(200)}), b"", "its content is nested too deeply"),
        (header(state={"a": {"$call": 1}}), b"", "it holds something unknown ('$call')"),
        (b"{", b"", "its header is not JSON, or is nested too deeply"),
        (b"[]", b"", "its header is not that of a model file"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(
    tmp_path: Path, content: Any, body: bytes, message: str
) -> None:
    path = craft(tmp_path / "a.model", content, body)
    with pytest.raises(ModelFileError, match=rf"a\.model cannot be loaded: .*{re.escape(message)}"):
        read_state(path)


def test_lengths_versions_and_places_are_said(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="its header is longer than it may be"):
        read_state(craft(tmp_path / "a", header(), header_bytes=2**40))
    with pytest.raises(ModelFileError, match=r"it has format 7, and .* reads up to 1; upgrade"):
        read_state(craft(tmp_path / "a", header(), version=7))
    with pytest.raises(ModelFileError, match="there is no format 0"):
        read_state(craft(tmp_path / "a", header(), version=0))
    with pytest.raises(ModelFileError, match=" is not a file"):
        read_state(tmp_path)
    (tmp_path / "a").write_text("id,age\n1,70\n")
    with pytest.raises(ModelFileError, match="it is not a deeptobit model file"):
        read_state(tmp_path / "a")


def test_an_array_that_a_file_cuts_off_is_noticed() -> None:
    spec = ArraySpec.parse(["<f8", [2], "C"])
    with pytest.raises(ModelFileError, match="the file ends too early"):
        spec.load(io.BufferedReader(io.BytesIO(bytes(8))))


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
    monkeypatch.setattr(_file, "_LONGEST_HEADER", 1000)
    with pytest.raises(ValueError, match=r"bytes beside its arrays, more than the 1,000 of"):
        write_state(tmp_path / "a", "test", {"a": list(range(1000))})
    write_state(tmp_path / "a", "test", {"a": np.arange(1000)})
