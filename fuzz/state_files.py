"""Changes to model files that keep the checksum right, so that what lies behind it is reached."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from random import Random
from typing import Any

import numpy as np

from fuzz.target import Change

_DTYPE = re.compile(r"<f[48]|<[iu][1248]|\|[iu]1|\|b1|<U\d{1,3}")
_PREFIX = struct.Struct("<8sIQ32s")
_JUNK: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 3, 7, 624, 10**9, 10**30, 0.5, 1e308),
    *("", "x", "auto", "\ud800", [], {}, [[]], {"is": "tuple", "items": []}),
    *({"$float": "nan"}, {"$float": "inf"}, {"$array": 0}, {"is": "same", "as": 0}),
)


def mutate_state_file(content: bytes, random: Random, change: Change) -> bytes:
    """Change a value, a shape, the text or the numbers behind the checksum; at times, anything."""
    if len(content) < _PREFIX.size or random.random() < 0.02:
        return change(content)
    magic, version, n_header, _ = _PREFIX.unpack_from(content)
    header = content[_PREFIX.size : _PREFIX.size + n_header]
    body = content[_PREFIX.size + len(header) :]
    document = _parse(header)
    choice = random.random()
    if document is None or choice < 0.1:
        header = change(header)
    elif choice < 0.2:
        body = change(body)
    elif choice < 0.4 and document["arrays"]:
        body = _reshape(document["arrays"], body, random)
        header = json.dumps(document).encode()
    else:
        _change_place(document, random)
        header = json.dumps(document).encode()
    return seal(magic, version, header, body)


def seal(magic: bytes, version: int, header: bytes, body: bytes) -> bytes:
    """A file with the right lengths and the right checksum."""
    beginning = _PREFIX.pack(magic, version, len(header), b"")[:-32]
    digest = hashlib.sha256(beginning + header + body).digest()
    return beginning + digest + header + body


def _parse(header: bytes) -> dict[str, Any] | None:
    """The header, if its arrays are described as they should be."""
    try:
        document = json.loads(header)
        sound = all(map(_is_sound, document["arrays"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return document if sound else None


def _is_sound(array: Any) -> bool:
    match array:
        case [str(dtype), [*shape], str()]:
            return bool(_DTYPE.fullmatch(dtype)) and all(type(size) is int for size in shape)
    return False


def _n_bytes(dtype: str, shape: list[int]) -> int:
    return math.prod(map(int, shape)) * np.dtype(dtype).itemsize


def _reshape(arrays: list[Any], body: bytes, random: Random) -> bytes:
    """Give an array another shape or type, and the body as many bytes as that takes."""
    chosen = random.randrange(len(arrays))
    dtype, shape, order = arrays[chosen]
    first = sum(_n_bytes(*spec[:2]) for spec in arrays[:chosen])
    last = first + _n_bytes(dtype, shape)
    if random.random() < 0.2:
        dtype = random.choice(("<f8", "<f4", "<i8", "|b1", "<U3", "<u4"))
    axis = random.randrange(len(shape) + 1)
    shape = random.choice(
        (
            [],
            shape[:axis],
            [*shape, 1],
            shape[::-1],
            [*shape[:axis], random.choice((0, 1, 2, 3, 5)), *shape[axis + 1 :]],
        )
    )
    order = random.choice("CF")
    if _n_bytes(dtype, shape) > 10**5:
        return body
    arrays[chosen] = [dtype, shape, order]
    old, wanted = body[first:last] or bytes(8), _n_bytes(dtype, shape)
    return body[:first] + (old * (wanted // len(old) + 1))[:wanted] + body[last:]


def _change_place(document: dict[str, Any], random: Random) -> None:
    """Replace, remove or double something somewhere in the document."""
    places = _places(document)
    parent, key = random.choice(places)
    choice = random.random()
    if choice < 0.5:
        parent[key] = random.choice(_JUNK)
    elif choice < 0.7:
        other, its_key = random.choice(places)
        parent[key] = json.loads(json.dumps(other[its_key]))
    elif choice < 0.85:
        del parent[key]
    elif isinstance(parent, list):
        parent.insert(key, parent[key])
    else:
        parent[random.choice(("is", "fields", "items", "_stream", "x"))] = parent[key]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Everything in a document, as a container and a key."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        parent = waiting.pop()
        keys = range(len(parent)) if isinstance(parent, list) else list(parent)
        found += [(parent, key) for key in keys]
        waiting += [parent[key] for key in keys if isinstance(parent[key], dict | list)]
    return found
