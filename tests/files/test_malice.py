"""Files that somebody wrote on purpose: the checksum is right, the content is not."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from deeptobit.exceptions import ModelFileError
from deeptobit.files import read_state
from tests.files.crafted import craft, one_array


def test_a_crafted_file_is_read_where_it_is_sound(tmp_path: Path) -> None:
    path = craft(tmp_path / "a", one_array(["|u1", [2], "C"]), b"\1\2")
    kind, state = read_state(path)
    assert (kind, state["a"].tolist()) == ("test", [1, 2])


@pytest.mark.parametrize(
    "description",
    [
        ["<f8", [10**13], "C"],
        ["<f8", [2**62, 2**62, 4], "C"],
        ["<f8", [0, 2**62], "C"],
        ["<f8", [-1, -8], "C"],
        ["<f8", [True], "C"],
        ["<f8", [1.0], "C"],
        ["<f8", ["1"], "C"],
        ["<f8", [1] * 33, "C"],
        ["<f8", [1], "K"],
        ["<f8", 1, "C"],
        ["<f8", [1]],
        ["|O", [1], "C"],
        ["O8", [1], "C"],
        ["|V8", [1], "C"],
        ["<c8", [1], "C"],
        ["<M8[s]", [1], "C"],
        [">f8", [1], "C"],
        ["<f8,<f8", [1], "C"],
        ["<U0", [10**15], "C"],
        ["<U9999999", [1], "C"],
        [None, [1], "C"],
        [["<f8"], [1], "C"],
        {"dtype": "<f8"},
        "<f8",
        None,
    ],
)
def test_claims_about_arrays_are_not_believed(tmp_path: Path, description: Any) -> None:
    path = craft(tmp_path / "a", one_array(description), bytes(8))
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        read_state(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21


@pytest.mark.parametrize(
    ("dtype", "body"), [("|b1", b"\2"), ("<U1", b"\0\0\x11\0"), ("<U1", b"\xff\xff\xff\xff")]
)
def test_bytes_that_mean_nothing_are_refused(tmp_path: Path, dtype: str, body: bytes) -> None:
    with pytest.raises(ModelFileError, match="holds something else"):
        read_state(craft(tmp_path / "a", one_array([dtype, [1], "C"]), body))


@pytest.mark.parametrize(
    "state",
    [
        {"a": {"$array": 1}},
        {"a": {"$array": -1}},
        {"a": {"$array": "0"}},
        {"a": {"$array": 0}, "b": {"$array": 0}},
        {"a": {"$array": 0, "b": 1}},
        {"a": {"$call": ["os.system", "true"]}},
        {"a": {"$float": "1e5"}},
        {"a": {"$float": []}},
        {"a": {"$dict": []}},
        {},
        [],
        None,
    ],
)
def test_references_are_checked(tmp_path: Path, state: Any) -> None:
    content = {"kind": "test", "arrays": [["|u1", [1], "C"]], "state": state}
    with pytest.raises(ModelFileError):
        read_state(craft(tmp_path / "a", content, b"\0"))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe{}",
        b'{"kind": "test", "arrays": []}',
        b'{"kind": "test", "arrays": [], "state": {}, "more": 1}',
        b'{"kind": 1, "arrays": [], "state": {}}',
        b'{"kind": "test", "arrays": {}, "state": {}}',
        b'{"kind": "test", "arrays": [], "state": {"a": NaN}}',
        b'{"kind": "test", "arrays": [], "state": {"a": ' + b"9" * 5000 + b"}}",
        b'{"kind": "test", "arrays": [], "state": ' + b'{"a":' * 150 + b"1" + b"}" * 151,
        b'{"kind": "test", "arrays": [], "state": ' + b'{"a":' * 10**6 + b"1" + b"}" * 10**6 + b"}",
        b"[" * 10**6,
    ],
    ids=lambda header: repr(header[:60]),
)
def test_headers_are_checked(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(ModelFileError):
        read_state(craft(tmp_path / "a", header))


@pytest.mark.parametrize("length", [0, 2**26 + 1, 2**63, 2**64 - 1])
def test_lengths_of_the_header_are_checked(tmp_path: Path, length: int) -> None:
    content = {"kind": "test", "arrays": [], "state": {}}
    with pytest.raises(ModelFileError, match="header"):
        read_state(craft(tmp_path / "a", content, header_bytes=length))


@pytest.mark.parametrize("version", [2, 2**32 - 1])
def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path, version: int) -> None:
    path = craft(tmp_path / "a", {"whatever": "comes"}, version=version)
    with pytest.raises(ModelFileError, match=rf"format {version}.*; upgrade deeptobit"):
        read_state(path)


def test_there_was_no_format_before_the_first(tmp_path: Path) -> None:
    content = {"kind": "test", "arrays": [], "state": {}}
    with pytest.raises(ModelFileError, match="no format 0"):
        read_state(craft(tmp_path / "a", content, version=0))


def test_the_error_names_the_file_and_is_a_value_error(tmp_path: Path) -> None:
    path = craft(tmp_path / "broken.model", json.dumps([]).encode())
    with pytest.raises(ValueError, match=r"broken\.model cannot be loaded: "):
        read_state(path)
