"""Changes to model files that keep the checksum right, so that what lies behind it is reached."""

from __future__ import annotations

import hashlib
import json
from random import Random
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fuzz.target import Change

_JUNK: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 3, 7, 624, 10**9, 10**30, 0.5, 1e308),
    *("", "x", "auto", "\ud800", [], {}, [[]], {"is": "tuple", "items": []}),
    *({"$float": "nan"}, {"$float": "inf"}, {"$array": "0"}, {"is": "same", "as": 0}),
    {"is": "range", "ends": [0, 10**8, 1]},
)
_NUMBERS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308)


def mutate_state_file(content: bytes, random: Random, change: Change) -> bytes:
    """Change a value, a shape, the text or the numbers behind the checksum; at times, anything."""
    found = _parse(content)
    if found is None or random.random() < 0.02:
        return change(content)
    metadata, arrays = found
    choice = random.random()
    if choice < 0.1:
        metadata["state"] = change(metadata["state"].encode()).decode("utf-8", "replace")
    elif choice < 0.15:
        name = random.choice(list(metadata))
        metadata[name] = change(metadata[name].encode()).decode("utf-8", "replace")
    elif choice < 0.4 and arrays:
        name = random.choice(list(arrays))
        arrays[name] = _changed(arrays[name], random)
    else:
        document = json.loads(metadata["state"])
        _change_place(document, random)
        metadata["state"] = json.dumps(document)
    return seal(metadata, arrays)


def seal(metadata: dict[str, str], arrays: dict[str, Any]) -> bytes:
    """A file with the right checksum."""
    digest = hashlib.sha256(json.dumps([1, metadata["kind"], metadata["state"]]).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return save(arrays, metadata | {"sha256": digest.hexdigest()})


def _parse(content: bytes) -> tuple[dict[str, str], dict[str, Any]] | None:
    """The texts and arrays of a file, if it is one."""
    try:
        arrays = load(content)
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length])["__metadata__"]
        sound = isinstance(json.loads(metadata["state"]), dict) and "kind" in metadata
    except (SafetensorError, ValueError, TypeError, KeyError, RecursionError):
        return None
    return (metadata, arrays) if sound else None


def _changed(array: Any, random: Random) -> Any:
    """The array with another type, another shape or another number."""
    choice = random.random()
    if choice < 0.2:
        with np.errstate(all="ignore"):
            return array.astype(random.choice(("<f8", "<f4", "<i8", "|b1", "<u4")))
    if choice < 0.6 and array.size:
        array = array.copy()
        with np.errstate(all="ignore"):
            values = np.array(_NUMBERS).astype(array.dtype)
        array.reshape(-1)[random.randrange(array.size)] = random.choice(values)
        return array
    shape, axis = list(array.shape), random.randrange(array.ndim + 1)
    other = random.choice(
        (
            [],
            shape[:axis],
            [*shape, 1],
            shape[::-1],
            [*shape[:axis], random.choice((0, 1, 2, 3, 5)), *shape[axis + 1 :]],
        )
    )
    if np.prod(other) > 10**5:
        return array
    return np.resize(array, other) if array.size else np.zeros(other, array.dtype)


def _change_place(document: dict[str, Any], random: Random) -> None:
    """Replace, remove or double something somewhere in the document."""
    places = _places(document)
    if not places:
        document["x"] = random.choice(_JUNK)
        return
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
