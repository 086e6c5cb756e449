"""Files that somebody wrote on purpose: the checksum is right, the content is not."""

import json
import tracemalloc
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from deeptobit.exceptions import ModelFileError
from deeptobit.files import read_state
from tests.files.crafted import craft, one_array


def test_a_crafted_file_is_read_where_it_is_sound(tmp_path: Path) -> None:
    path = craft(tmp_path / "a", **one_array("U8", [2], b"\1\2"))
    kind, state = read_state(path)
    assert (kind, state["a"].tolist()) == ("test", [1, 2])


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("F64", [10**13]),
        ("F64", [2**62, 2**62, 4]),
        ("F64", [0, 2**62]),
        ("F64", [-1, -8]),
        ("F64", [True]),
        ("F64", [1.0]),
        ("F64", ["1"]),
        ("F64", [2]),
        ("F64", 1),
        ("BF16", [4]),
        ("F8_E4M3", [8]),
        ("O", [1]),
        ("<f8", [1]),
        (None, [1]),
    ],
)
def test_claims_about_arrays_are_not_believed(tmp_path: Path, dtype: Any, shape: Any) -> None:
    path = craft(tmp_path / "a", **one_array(dtype, shape, bytes(8)))
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        read_state(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**21


def test_truth_values_are_0_and_1(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="a boolean array contains other values"):
        read_state(craft(tmp_path / "a", **one_array("BOOL", [1], b"\2")))


@pytest.mark.parametrize(
    "state",
    [
        {"a": {"$array": "1"}},
        {"a": {"$array": 0}},
        {"a": {"$array": "0", "b": 1}},
        {"a": {"$columns": "7"}},
        {"a": {"$text": ["x", 1]}},
        {"a": {"$text": "x"}},
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
    with pytest.raises(ModelFileError):
        read_state(craft(tmp_path / "a", state, {"0": ("U8", [1], b"\0")}))


METADATA = {"format": "deeptobit", "version": "1", "kind": "test", "state": "{}", "sha256": ""}


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"{",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe{}",
        b'{"__metadata__": 1}',
        b'{"__metadata__": {"format": "deeptobit"}}',
        json.dumps({"__metadata__": METADATA | {"more": ""}}).encode(),
        json.dumps({"__metadata__": METADATA | {"kind": 1}}).encode(),
        json.dumps({"__metadata__": METADATA | {"format": "pt"}}).encode(),
        b'{"a": NaN, "__metadata__": {}}',
        b'{"a":' * 10**5 + b"1" + b"}" * 10**5,
        b"[" * 10**6,
    ],
    ids=lambda header: repr(header[:60]),
)
def test_headers_are_checked(tmp_path: Path, header: bytes) -> None:
    with pytest.raises(ModelFileError):
        read_state(craft(tmp_path / "a", {}, header=header))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"a": NaN}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a":' * 150 + "1" + "}" * 150,
        '{"a":[' + "[]," * 10**6 + "[]]}",
        '{"a":[' + "0," * 10**6 + "0]}",
    ],
    ids=lambda text: repr(text[:40]),
)
def test_documents_are_measured_before_they_are_parsed(tmp_path: Path, text: str) -> None:
    path = craft(tmp_path / "a", text)
    tracemalloc.start()
    with pytest.raises(ModelFileError):
        read_state(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * path.stat().st_size + 2**21


def test_one_long_text_does_not_make_many_long_ones(tmp_path: Path) -> None:
    state = {"a": [{"$text": ["x" * 10**4, *[""] * 1000]} for _ in range(20)]}
    path = craft(tmp_path / "a", state)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="array of text"):
        read_state(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * path.stat().st_size + 2**21


def test_parts_are_counted_however_the_header_writes_them(tmp_path: Path) -> None:
    texts = METADATA | {"state": '{"a":[' + "[]," * 10**5 + "[]]}"}
    texts["sha256"] = sha256(json.dumps([1, "test", texts["state"]]).encode()).hexdigest()
    header = json.dumps({"__metadata__": texts}).replace("[", "\\u005b").replace(",", "\\u002c")
    header = header.replace('"\\u002c "', '", "')  # between the texts
    with pytest.raises(ModelFileError, match="more parts"):
        read_state(craft(tmp_path / "a", {}, header=header.encode()))


@pytest.mark.parametrize("length", [0, 2**26 + 1, 2**63, 2**64 - 1])
def test_lengths_of_the_header_are_checked(tmp_path: Path, length: int) -> None:
    with pytest.raises(ModelFileError, match="header"):
        read_state(craft(tmp_path / "a", {}, length=length))


@pytest.mark.parametrize("version", ["2", str(10**8)])
def test_a_newer_format_asks_for_an_upgrade(tmp_path: Path, version: str) -> None:
    path = craft(tmp_path / "a", {"whatever": "comes"}, version=version)
    with pytest.raises(ModelFileError, match=rf"format {version}.*; upgrade deeptobit"):
        read_state(path)


@pytest.mark.parametrize("version", ["0", "-1", "1.0", "", "9" * 30])
def test_versions_are_numbers(tmp_path: Path, version: str) -> None:
    with pytest.raises(ModelFileError, match="no format"):
        read_state(craft(tmp_path / "a", {}, version=version))


def test_the_error_names_the_file_and_is_a_value_error(tmp_path: Path) -> None:
    path = craft(tmp_path / "broken.model", [])
    with pytest.raises(ValueError, match=r"broken\.model cannot be loaded: "):
        read_state(path)


def test_many_empty_arrays_are_refused_before_any_is_made(tmp_path: Path) -> None:
    arrays = {f"{name:x}": ("U8", [0], b"") for name in range(50_000)}
    tracemalloc.start()
    path = craft(tmp_path / "a", {}, arrays)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    with pytest.raises(ModelFileError, match="its header is too long"):
        read_state(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak - before < 4 * path.stat().st_size
