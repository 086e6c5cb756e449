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

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

from deeptobit.exceptions import ModelFileError
from deeptobit.persistence._arrays import ArraySpec
from deeptobit.persistence._plain import flatten, restore
from deeptobit.persistence._whole import write_whole

_MAGIC = b"\x89DTB\r\n\x1a\n"
_VERSION = 1
_BEGINNING = struct.Struct("<8sI")
_LENGTH = struct.Struct("<Q")
_DIGEST_BYTES = hashlib.sha256().digest_size
_PREFIX_BYTES = _BEGINNING.size + _LENGTH.size + _DIGEST_BYTES
_LONGEST_HEADER = 2**26  # 64 MiB of names and numbers; arrays have no limit but the file's size
_CHUNK = 2**20


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
    document, arrays = flatten(dict(state))
    specs = [ArraySpec.of(array) for array in arrays]
    content = {
        "kind": kind,
        "arrays": [spec.describe() for spec in specs],
        "state": document,
    }
    header = json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(header) > _LONGEST_HEADER:
        raise ValueError(
            f"the state has {len(header):,} bytes beside its arrays, more than the "
            f"{_LONGEST_HEADER:,} of a model file; store long lists as arrays"
        )
    beginning = _BEGINNING.pack(_MAGIC, _VERSION) + _LENGTH.pack(len(header))
    body: list[bytes | memoryview] = [header]
    body += [spec.dump(array) for spec, array in zip(specs, arrays, strict=True)]
    write_whole(Path(path), [beginning, _digest([beginning, *body]), *body])


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
    beginning = file.read(_BEGINNING.size)
    if not _MAGIC.startswith(beginning[: len(_MAGIC)]):
        raise ModelFileError("it is not a deeptobit model file")
    if n_bytes < _PREFIX_BYTES:
        raise ModelFileError("the file ends too early")
    _, version = _BEGINNING.unpack(beginning)
    if version > _VERSION:
        raise ModelFileError(
            f"it has format {version}, and this version of deeptobit reads up to {_VERSION}; "
            "upgrade deeptobit"
        )
    if version < 1:
        raise ModelFileError(f"there is no format {version}")
    return _read_content(file, beginning, n_bytes)


def _read_content(
    file: BufferedReader, beginning: bytes, n_bytes: int
) -> tuple[str, dict[str, Any]]:
    length = file.read(_LENGTH.size)
    digest = file.read(_DIGEST_BYTES)
    if _digest([beginning, length, *iter(lambda: file.read(_CHUNK), b"")]) != digest:
        raise ModelFileError("it is damaged; its bytes do not add up to the stored checksum")
    (header_bytes,) = _LENGTH.unpack(length)
    if header_bytes > min(_LONGEST_HEADER, n_bytes - _PREFIX_BYTES):
        raise ModelFileError("its header is longer than it may be")
    file.seek(_PREFIX_BYTES)
    kind, descriptions, document = _parse_header(file.read(header_bytes))
    specs = [ArraySpec.parse(description) for description in descriptions]
    if sum(spec.n_bytes for spec in specs) != n_bytes - _PREFIX_BYTES - header_bytes:
        raise ModelFileError("its arrays do not have the size that its header says")
    return kind, restore(document, [spec.load(file) for spec in specs])


def _parse_header(header: bytes) -> tuple[str, list[Any], dict[str, Any]]:
    try:
        content = json.loads(header.decode("ascii"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ModelFileError("its header is not JSON, or is nested too deeply") from None
    match content:
        case {"kind": str(kind), "arrays": [*descriptions], "state": dict(state), **rest}:
            if not rest:
                return kind, descriptions, state
    raise ModelFileError("its header is not that of a model file")


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(word)


def _digest(parts: Iterable[bytes | memoryview]) -> bytes:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.digest()
