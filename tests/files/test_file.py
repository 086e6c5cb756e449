import math
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit.exceptions import ModelFileError
from deeptobit.files import read_state, write_state

STATE: dict[str, Any] = {
    "numbers": [1, -(2**70), 0.1, -0.0, math.inf, -math.inf, math.nan, 5e-324],
    "words": ["", "µ \ud800 \x00", "$array"],
    "others": [None, True, False, [], {}, [[[]]]],
    "sigma": np.array([1.5, np.nan, -np.inf]),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


def same(a: Any, b: Any) -> bool:
    """Equal with types, signs of zeros and memory orders."""
    if isinstance(a, np.ndarray):
        order = a.flags.c_contiguous == b.flags.c_contiguous
        return a.dtype == b.dtype and order and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


@pytest.mark.parametrize("as_path", [str, Path])
def test_state_comes_back_as_it_was(tmp_path: Path, as_path: type) -> None:
    path = as_path(tmp_path / "µ with space.model")
    write_state(path, "test", STATE)
    kind, state = read_state(path, "test")
    assert kind == "test"
    assert same(state, STATE)


@pytest.mark.parametrize(
    "array",
    [
        *(np.array([[0, 1, 2], [3, 4, 5]], dtype=dtype) for dtype in "?bBhHiIlLqQefd"),
        np.array(["", "µ", "longer"]),
        np.array(3.0),
        np.zeros((0, 4)),
        np.zeros((1,) * 32, dtype=bool),
        np.arange(24.0).reshape(2, 3, 4).transpose(2, 1, 0),
        np.arange(24.0).reshape(4, 6)[::2, ::-3],
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_arrays_keep_type_shape_and_order(tmp_path: Path, array: np.ndarray) -> None:
    write_state(tmp_path / "a", "test", {"a": array})
    found = read_state(tmp_path / "a")[1]["a"]
    assert found.shape == array.shape
    assert same(found, array.copy(order="K"))
    assert found.flags.writeable


def test_other_byte_orders_become_little_endian(tmp_path: Path) -> None:
    write_state(tmp_path / "a", "test", {"a": np.array([1.0, 2.0], dtype=">f8")})
    assert same(read_state(tmp_path / "a")[1]["a"], np.array([1.0, 2.0]))


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ((1, 2), r"state\['a'\]\[0\] is of type tuple"),
        (np.float64, "type"),
        (np.int64(3), "int64"),
        ({1: 2}, "dict"),
        ({"$array": 0}, "dict"),
        (np.array([None]), "array of type object"),
        (np.zeros(2, dtype=complex), "complex128"),
        (np.zeros(2, dtype=np.longdouble), "longdouble|float128"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "datetime64"),
        (np.zeros(2, dtype=[("x", float)]), "array of type"),
        (np.ma.MaskedArray([1.0], mask=[True]), "masked"),
        (lambda: None, "function"),
    ],
)
def test_what_a_file_cannot_hold_is_named_and_leaves_no_file(
    tmp_path: Path, value: Any, named: str
) -> None:
    with pytest.raises(TypeError, match=named):
        write_state(tmp_path / "a", "test", {"a": [value]})
    assert not list(tmp_path.iterdir())


def test_nesting_beyond_what_can_be_read_is_refused_on_writing(tmp_path: Path) -> None:
    deep: Any = 1
    for _ in range(99):
        deep = [deep]
    write_state(tmp_path / "a", "test", {"a": deep})
    assert read_state(tmp_path / "a")[1]["a"] == deep
    with pytest.raises(TypeError, match="nested too deeply"):
        write_state(tmp_path / "a", "test", {"a": [[deep]]})


def test_an_array_that_occurs_again_is_stored_once(tmp_path: Path) -> None:
    array = np.arange(1000.0)
    write_state(tmp_path / "a", "test", {"a": array, "b": [array]})
    assert (tmp_path / "a").stat().st_size < 2 * array.nbytes
    state = read_state(tmp_path / "a")[1]
    assert state["a"] is state["b"][0]


def test_another_kind_is_refused(tmp_path: Path) -> None:
    write_state(tmp_path / "a", "study", {})
    assert read_state(tmp_path / "a") == ("study", {})
    with pytest.raises(ModelFileError, match="holds a 'study', where a 'model' is wanted"):
        read_state(tmp_path / "a", "model")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "a"
    write_state(path, "test", STATE | {"more": np.arange(100.0)})
    return path.read_bytes()


def test_every_truncation_is_refused(tmp_path: Path, sound: bytes) -> None:
    path = tmp_path / "a"
    for length in range(0, len(sound), 3):
        path.write_bytes(sound[:length])
        with pytest.raises(ModelFileError):
            read_state(path)


def test_every_flipped_bit_is_refused(tmp_path: Path, sound: bytes) -> None:
    path = tmp_path / "a"
    rng = np.random.default_rng(0)
    for position in [*range(60), *rng.choice(len(sound), 400, replace=False).tolist()]:
        damaged = bytearray(sound)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            read_state(path)


@pytest.mark.parametrize("rest", [b"\0", b"x" * 5000])
def test_bytes_after_the_end_are_refused(tmp_path: Path, sound: bytes, rest: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(sound + rest)
    with pytest.raises(ModelFileError, match="damaged"):
        read_state(path)


@pytest.mark.parametrize("content", [b"", b"\x89", b"PK\x03\x04" + bytes(100), b"x,y\n1,2\n"])
def test_foreign_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not a deeptobit model file"):
        read_state(path)


def test_a_folder_and_a_pipe_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(ModelFileError, match="is not a file"):
            read_state(path)
    with pytest.raises(FileNotFoundError):
        read_state(tmp_path / "absent")


def test_reading_needs_twice_the_memory_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    write_state(path, "test", {"a": np.ones(2**19)})
    tracemalloc.start()
    state = read_state(path)[1]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert state["a"].sum() == 2**19
    assert peak < 2.2 * path.stat().st_size
