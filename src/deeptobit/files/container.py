"""The model file: a fixed prefix, a JSON header, and raw arrays.

======  =====================================================================
bytes   content
======  =====================================================================
8       magic, which a transfer as text would destroy
4       format version, little endian like everything below
8       length of the header
32      SHA-256 of all other bytes of the file
…       header: ``{"kind": …, "arrays": [[dtype, shape, order], …], "state": …}``
…       the arrays, one after the other, to the last byte of the file
======  =====================================================================
"""

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from io import BufferedReader
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deeptobit.exceptions import ModelFileError

AnyArray = NDArray[Any]

_MAGIC = b"\x89DTB\r\n\x1a\n"
_VERSION = 1
_BEGINNING = struct.Struct("<8sIQ")
_PREFIX_BYTES = _BEGINNING.size + hashlib.sha256().digest_size
_LONGEST_HEADER = 2**26  # 64 MiB of names and numbers; arrays have no limit but the file's size
_DTYPES = re.compile(r"\|b1|\|[iu]1|<[iuf][248]|<U[1-9][0-9]{0,5}")
_MOST_DIMENSIONS = 32
_LARGEST = 2**48  # entries, an empty dimension counted as 1: far beyond any file, within int64
_LAST_CHARACTER = 0x10FFFF
_MOST_LEVELS = 100
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

# Arrays as raw little-endian bytes, with a description that is checked before it is believed.


@dataclass(frozen=True)
class ArraySpec:
    """Type, shape and memory order of an array.

    The order is kept because products round differently on rows than on columns.

    Parameters
    ----------
    dtype : str
        As NumPy writes it: bool, integers and floats up to 8 bytes, fixed-width text.
    shape : tuple of int
    order : {"C", "F"}

    Examples
    --------
    >>> spec = ArraySpec.of(np.ones((3, 2)).T)
    >>> spec, spec.n_bytes
    (ArraySpec(dtype='<f8', shape=(2, 3), order='F'), 48)
    """

    dtype: str
    shape: tuple[int, ...]
    order: str

    @classmethod
    def of(cls, array: AnyArray) -> Self:
        """Describe an array; ``TypeError`` if a file cannot hold it."""
        dtype = array.dtype.newbyteorder("<").str
        if not _DTYPES.fullmatch(dtype) or isinstance(array, np.ma.MaskedArray):
            kind = "a masked array" if np.ma.isMA(array) else f"an array of type {array.dtype}"
            raise TypeError(f"{kind}, which a file cannot hold")
        strides = np.empty_like(array, order="K").flags
        return cls(dtype, array.shape, "C" if strides.c_contiguous else "F")

    @classmethod
    def parse(cls, description: Any) -> Self:
        """Read what a file says; nothing is allocated."""
        match description:
            case [str(dtype), [*shape], "C" | "F" as order] if _DTYPES.fullmatch(dtype):
                whole = all(type(size) is int and size >= 0 for size in shape)
                few = len(shape) <= _MOST_DIMENSIONS
                if few and whole and math.prod(max(size, 1) for size in shape) <= _LARGEST:
                    return cls(dtype, tuple(shape), order)
        raise ModelFileError("an array has a type or shape that model files do not have")

    @property
    def n_bytes(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def dump(self, array: AnyArray) -> memoryview:
        """The bytes of the array in its own order."""
        rows = array.T if self.order == "F" else array
        return np.ascontiguousarray(rows, dtype=self.dtype).reshape(-1).view(np.uint8).data

    def load(self, file: BufferedReader) -> AnyArray:
        """Read the array; the caller knows that the file holds that many bytes."""
        flat = np.empty(math.prod(self.shape), self.dtype)
        raw = flat.view(np.uint8)
        if file.readinto(raw.data) != self.n_bytes:
            raise ModelFileError("the file ends too early")
        if flat.dtype.kind == "b" and raw.max(initial=0) > 1:
            raise ModelFileError("an array of truth values holds something else")
        if flat.dtype.kind == "U" and raw.view("<u4").max(initial=0) > _LAST_CHARACTER:
            raise ModelFileError("an array of text holds something else")
        return flat.reshape(self.shape, order="F" if self.order == "F" else "C")


# State as JSON: what JSON has no word for is written as an object with one ``$`` key.


def flatten(value: Any, arrays: list[AnyArray], where: str = "state", depth: int = 0) -> Any:
    """State as a JSON document; the arrays that it refers to are appended to ``arrays``.

    Examples
    --------
    >>> arrays = []
    >>> flatten({"sigma": np.ones(2), "best": float("nan"), "names": ["a"]}, arrays)
    {'sigma': {'$array': 0}, 'best': {'$float': 'nan'}, 'names': ['a']}
    >>> arrays
    [array([1., 1.])]
    """
    if depth > _MOST_LEVELS:
        raise TypeError(f"{where} is nested too deeply for a file ({_MOST_LEVELS} levels)")
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if math.isfinite(value) else {"$float": str(float(value))}
        case np.ndarray():
            try:
                ArraySpec.of(value)
            except TypeError as error:
                raise TypeError(f"{where} is {error}") from None
            arrays.append(value)
            return {"$array": len(arrays) - 1}
        case list():
            items = enumerate(value)
            return [flatten(at, arrays, f"{where}[{index}]", depth + 1) for index, at in items]
        case dict() if all(isinstance(key, str) for key in value):
            found = {}
            for key, item in value.items():
                found[key] = flatten(item, arrays, f"{where}[{key!r}]", depth + 1)
            return {"$dict": found} if any(key.startswith("$") for key in found) else found
    raise TypeError(f"{where} is of type {type(value).__name__}, which a file cannot hold")


def restore(value: Any, unused: dict[int, AnyArray], depth: int = 0) -> Any:
    """State from a JSON document; the arrays that it refers to are taken out of ``unused``.

    Examples
    --------
    >>> restore({"sigma": {"$array": 0}, "best": {"$float": "-inf"}}, {0: np.ones(2)})
    {'sigma': array([1., 1.]), 'best': -inf}
    """
    if depth > _MOST_LEVELS:
        raise ModelFileError("its content is nested too deeply")
    match value:
        case list():
            return [restore(item, unused, depth + 1) for item in value]
        case {"$array": int(index), **rest} if index in unused and not rest:
            return unused.pop(index)
        case {"$float": str(word), **rest} if word in _NOT_FINITE and not rest:
            return _NOT_FINITE[word]
        case {"$dict": dict(items), **rest} if not rest:
            value = items
        case dict() if any(key.startswith("$") for key in value):
            names = ", ".join(map(ascii, value))[:80]
            raise ModelFileError(f"it holds something unknown ({names})")
    if isinstance(value, dict):
        return {key: restore(item, unused, depth + 1) for key, item in value.items()}
    return value


# Files appear whole or not at all.


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write beside the file, then rename: Ctrl-C or a full disk leaves what was there before.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "study.toml"), [b"[data]", b"rows = 5"])
    ...     [file.name for file in Path(folder).iterdir()]
    ['study.toml']
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        draft = Path(file.name)
        try:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            # A temporary file is private; this one has the rights any new file would have.
            mask = os.umask(0)
            os.umask(mask)
            draft.chmod(0o666 & ~mask)
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


# The file.


def write_state(path: str | os.PathLike[str], kind: str, state: Mapping[str, Any]) -> None:
    """Write state to a file, whole or not at all.

    Parameters
    ----------
    path : path of the file; an older one is replaced
    kind : str
        What the state is of, which :func:`read_state` may ask for.
    state : dict
        Nested dicts with str keys, lists, str, int, float (inf and nan too), bool, None, and
        arrays of bool, integers, floats or fixed-width text. Anything else is a ``TypeError``
        that says where it is.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_state(Path(folder, "a.model"), "example", {"sigma": np.ones(2), "rank": 5})
    ...     read_state(Path(folder, "a.model"))
    ('example', {'sigma': array([1., 1.]), 'rank': 5})
    """
    arrays: list[AnyArray] = []
    document = flatten(dict(state), arrays)
    specs = [ArraySpec.of(array) for array in arrays]
    content = {"kind": kind, "arrays": list(map(astuple, specs)), "state": document}
    header = json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(header) > _LONGEST_HEADER:
        raise ValueError(
            f"the state has {len(header):,} bytes beside its arrays, more than the "
            f"{_LONGEST_HEADER:,} of a model file; store long lists as arrays"
        )
    beginning = _BEGINNING.pack(_MAGIC, _VERSION, len(header))
    body: list[bytes | memoryview] = [header]
    body += [spec.dump(array) for spec, array in zip(specs, arrays, strict=True)]
    digest = hashlib.sha256(beginning)
    for part in body:
        digest.update(part)
    write_whole(Path(path), [beginning, digest.digest(), *body])


def read_state(path: str | os.PathLike[str], kind: str | None = None) -> tuple[str, dict[str, Any]]:
    """Read what :func:`write_state` wrote: its kind and its state.

    Whatever is wrong with the content is a :class:`ModelFileError`: a foreign, truncated, altered
    or overlong file, one of another ``kind`` or of a newer version. Memory is bounded by
    the size of the file, which is compared with what the header says before any array is made.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ModelFileError(f"{path} is not a file")
    with path.open("rb") as file:
        try:
            found, state = _read(file)
        except ModelFileError as error:
            raise ModelFileError(f"{path} cannot be loaded: {error}") from None
    if kind not in (None, found):
        raise ModelFileError(f"{path} holds a {found!r}, where a {kind!r} is wanted")
    return found, state


def _read(file: BufferedReader) -> tuple[str, dict[str, Any]]:
    n_bytes = os.fstat(file.fileno()).st_size
    beginning, digest = file.read(_BEGINNING.size), file.read(_PREFIX_BYTES - _BEGINNING.size)
    if not _MAGIC.startswith(beginning[: len(_MAGIC)]):
        raise ModelFileError("it is not a deeptobit model file")
    if n_bytes < _PREFIX_BYTES:
        raise ModelFileError("the file ends too early")
    _, version, header_bytes = _BEGINNING.unpack(beginning)
    if version > _VERSION:
        reads = f"this version of deeptobit reads up to {_VERSION}"
        raise ModelFileError(f"it has format {version}, and {reads}; upgrade deeptobit")
    if version < 1:
        raise ModelFileError(f"there is no format {version}")
    if hashlib.file_digest(file, lambda: hashlib.sha256(beginning)).digest() != digest:
        raise ModelFileError("it is damaged; its bytes do not add up to the stored checksum")
    if header_bytes > min(_LONGEST_HEADER, n_bytes - _PREFIX_BYTES):
        raise ModelFileError("its header is longer than it may be")
    file.seek(_PREFIX_BYTES)
    kind, descriptions, document = _parse_header(file.read(header_bytes))
    specs = [ArraySpec.parse(description) for description in descriptions]
    if sum(spec.n_bytes for spec in specs) != n_bytes - _PREFIX_BYTES - header_bytes:
        raise ModelFileError("its arrays do not have the size that its header says")
    arrays = {number: spec.load(file) for number, spec in enumerate(specs)}
    state = restore(document, arrays)
    if arrays:
        raise ModelFileError("it holds arrays that nothing refers to")
    return kind, state


def _parse_header(header: bytes) -> tuple[str, list[Any], dict[str, Any]]:
    try:
        # No NaN or Infinity: of these words int makes a ValueError.
        content = json.loads(header.decode("ascii"), parse_constant=int)
    except (ValueError, RecursionError):
        raise ModelFileError("its header is not JSON, or is nested too deeply") from None
    match content:
        case {"kind": str(kind), "arrays": [*descriptions], "state": dict(state), **rest}:
            if not rest:
                return kind, descriptions, state
    raise ModelFileError("its header is not that of a model file")
