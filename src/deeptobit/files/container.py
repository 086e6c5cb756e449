"""The model file: arrays as safetensors, everything else as JSON in its header, nothing to execute.

The header's ``__metadata__`` has five texts: ``format`` ("deeptobit"), ``version``, ``kind``,
``state`` (a JSON document whose arrays are named) and ``sha256`` of the kind, the state and all
arrays. Other programs read the arrays with any safetensors library.
"""

import hashlib
import json
import math
import os
import platform
import re
from collections.abc import Iterable, Mapping
from glob import escape
from pathlib import Path
from secrets import token_hex
from shutil import copymode
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from deeptobit.exceptions import ModelFileError

AnyArray = NDArray[Any]

_FORMAT, VERSION = "deeptobit", 1
_TEXTS = {"version", "kind", "state", "sha256"}  # of the header, beside the format
_DTYPES = re.compile(r"\|b1|\|[iu]1|<[iuf][248]")
_LONGEST_HEADER = 2**23  # 8 MiB of names and numbers; arrays have no limit but the file's size
# Lists and dicts of the header, an empty list being 3 bytes there and 64 here.
_MOST_PARTS = 200_000
_MOST_LEVELS = 100
_MOST_PADDED = 2**24  # characters of arrays of text, whose entries all take the room of the longest
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


# State as JSON: what JSON has no word for is written as an object with one ``$`` key.


def flatten(value: Any, arrays: dict[str, AnyArray], where: str = "state", depth: int = 0) -> Any:
    """State as a JSON document; the arrays that it names are added to ``arrays``.

    The memory order of an array is kept, because products round differently on rows than on
    columns: columns are stored as the rows of the transpose.

    Examples
    --------
    >>> arrays = {}
    >>> flatten({"sigma": np.ones(2), "best": float("nan"), "names": ["a"]}, arrays)
    {'sigma': {'$array': '0'}, 'best': {'$float': 'nan'}, 'names': ['a']}
    >>> arrays
    {'0': array([1., 1.])}
    """
    if depth > _MOST_LEVELS:
        raise TypeError(f"{where} is nested too deeply for a file ({_MOST_LEVELS} levels)")
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return float(value) if math.isfinite(value) else {"$float": str(float(value))}
        case np.ndarray():
            return _flatten_array(value, arrays, where)
        case list():
            items = enumerate(value)
            return [flatten(at, arrays, f"{where}[{index}]", depth + 1) for index, at in items]
        case dict() if all(isinstance(key, str) and not key.startswith("$") for key in value):
            places = {key: (item, arrays, f"{where}[{key!r}]") for key, item in value.items()}
            return {key: flatten(*place, depth + 1) for key, place in places.items()}
    raise TypeError(f"{where} is of type {type(value).__name__}, which a file cannot hold")


def _flatten_array(array: AnyArray, arrays: dict[str, AnyArray], where: str) -> Any:
    masked, dtype = np.ma.isMA(array), array.dtype.newbyteorder("<")
    if dtype.kind == "U" and array.ndim == 1 and not masked:
        return {"$text": array.tolist()}
    if masked or not _DTYPES.fullmatch(dtype.str):
        kind = "a masked array" if masked else f"an array of type {array.dtype}"
        raise TypeError(f"{where} is {kind}, which a file cannot hold")
    known = (name for name, other in arrays.items() if other is array)
    name = next(known, str(len(arrays)))  # an array that occurs again is stored once
    arrays[name] = array
    return {"$array": name} if _is_by_rows(array) else {"$columns": name}


def _is_by_rows(array: AnyArray) -> bool:
    return np.empty_like(array, order="K").flags.c_contiguous


def _as_stored(array: AnyArray) -> AnyArray:
    rows = array if _is_by_rows(array) else array.T
    return np.ascontiguousarray(rows, dtype=array.dtype.newbyteorder("<")).reshape(rows.shape)


def restore(value: Any, arrays: dict[str, AnyArray], used: set[str], depth: int = 0) -> Any:
    """State from a JSON document; the names of its ``arrays`` are added to ``used``.

    Examples
    --------
    >>> restore({"sigma": {"$array": "0"}, "best": {"$float": "-inf"}}, {"0": np.ones(2)}, set())
    {'sigma': array([1., 1.]), 'best': -inf}
    """
    if depth > _MOST_LEVELS:
        raise ModelFileError("its content is nested too deeply")
    match value:
        case list():
            return [restore(item, arrays, used, depth + 1) for item in value]
        case {"$array": str(name), **rest} if name in arrays and not rest:
            used.add(name)
            return arrays[name]
        case {"$columns": str(name), **rest} if name in arrays and not rest:
            used.add(name)
            return arrays[name].T
        case {"$text": [*words], **rest} if all(isinstance(w, str) for w in words) and not rest:
            return np.array(words, dtype=str)
        case {"$float": str(word), **rest} if word in _NOT_FINITE and not rest:
            return _NOT_FINITE[word]
        case dict() if any(key.startswith("$") for key in value):
            names = ", ".join(map(ascii, value))[:80]
            raise ModelFileError(f"it contains an unknown type ({names})")
    if isinstance(value, dict):
        return {key: restore(item, arrays, used, depth + 1) for key, item in value.items()}
    return value


# Files appear whole or not at all.


def write_whole(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write beside the file, then rename: Ctrl-C or a full disk leaves what was there before.

    A link is followed, and a file that is replaced keeps its permissions. What a process that was
    killed has left behind is removed.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "study.toml"), [b"[data]", b"rows = 5"])
    ...     [file.name for file in Path(folder).iterdir()]
    ['study.toml']
    """
    path = path.resolve() if path.is_symlink() else path
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a device or a pipe; name a file")
    prefix = f".{path.name}-{hashlib.sha256(platform.node().encode()).hexdigest()[:8]}-"
    _remove_drafts(path.parent, prefix)
    draft = path.with_name(f"{prefix}{os.getpid()}-{token_hex(4)}.draft")
    try:
        with draft.open("xb") as file:
            if path.exists():
                copymode(path, draft)  # before there is anything to read
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _remove_drafts(folder: Path, prefix: str) -> None:
    """Remove drafts of one file whose process, on this machine, is gone."""
    for draft in folder.glob(f"{escape(prefix)}*.draft"):
        process = draft.name.removeprefix(prefix).partition("-")[0]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            draft.unlink(missing_ok=True)


# The file.


def write_state(path: str | os.PathLike[str], kind: str, state: Mapping[str, Any]) -> None:
    """Write state to a file, whole or not at all.

    Parameters
    ----------
    path : path of the file; an older one is replaced
    kind : str
        What the state is of, which :func:`read_state` may ask for.
    state : dict
        Nested dicts with str keys, lists, str, int, float (inf and nan too), bool, None, arrays of
        bool, integers and floats, and 1-d arrays of text. Anything else is a ``TypeError`` that
        says where it is.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_state(Path(folder, "a.model"), "example", {"sigma": np.ones(2), "rank": 5})
    ...     read_state(Path(folder, "a.model"))
    ('example', {'sigma': array([1., 1.]), 'rank': 5})
    """
    arrays: dict[str, AnyArray] = {}
    document = flatten(dict(state), arrays)
    arrays = {name: _as_stored(array) for name, array in arrays.items()}
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    if _padded(document) > _MOST_PADDED:
        raise ValueError("an array of text has an entry that is too long; store it as a list")
    if len(text) > _LONGEST_HEADER // 2 or _count_parts(text) > _MOST_PARTS // 2:
        raise ValueError(
            f"the state has {len(text):,} bytes beside its arrays, more than a model file holds; "
            "store long lists as arrays"
        )
    metadata = {"format": _FORMAT, "version": str(VERSION), "kind": kind, "state": text}
    metadata["sha256"] = _digest(kind, text, arrays)
    write_whole(Path(path), [save(arrays, metadata)])


def read_state(path: str | os.PathLike[str], kind: str | None = None) -> tuple[str, dict[str, Any]]:
    """Read what :func:`write_state` wrote: its kind and its state.

    Whatever is wrong with the content is a :class:`ModelFileError`: a foreign, truncated, altered
    or overlong file, one of another ``kind`` or of a newer version. Memory is bounded by
    twice the size of the file: sizes that it declares are checked against that before use.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ModelFileError(f"{path} is not a file")
    try:
        found, state = _parse(path)
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}") from None
    if kind not in (None, found):
        raise ModelFileError(f"{path} holds a {found!r}, where a {kind!r} is wanted")
    return found, state


def _parse(path: Path) -> tuple[str, dict[str, Any]]:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")  # of the header, as safetensors has it
        header = file.read(min(length, _LONGEST_HEADER)).decode(errors="replace")
    if length > _LONGEST_HEADER or _count_parts(header) > _MOST_PARTS:
        raise ModelFileError("it is not a deeptobit model file, or its header is too long")
    try:
        with safe_open(path, "np") as stored:
            texts = stored.metadata() or {}
            arrays = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except (SafetensorError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise ModelFileError(f"it is not a deeptobit model file, or is damaged ({error})") from None
    if texts.pop("format", "") != _FORMAT:
        raise ModelFileError("it is not a deeptobit model file")
    if texts.keys() != _TEXTS:
        raise ModelFileError("its header is not that of a model file")
    version = texts["version"]
    if not re.fullmatch(r"[1-9]\d{0,8}", version):
        raise ModelFileError(f"there is no format {version[:20]}")
    if int(version) > VERSION:
        reads = f"this version of deeptobit reads up to {VERSION}"
        raise ModelFileError(f"it has format {version}, and {reads}; upgrade deeptobit")
    if _digest(texts["kind"], texts["state"], arrays) != texts["sha256"]:
        raise ModelFileError("it is damaged; its bytes do not add up to the stored checksum")
    document = _from_json(texts["state"])
    if _padded(document) > _MOST_PADDED:
        raise ModelFileError("an array of text in it has an entry that is too long")
    if not isinstance(document, dict):
        raise ModelFileError("its header is not that of a model file")
    for array in arrays.values():
        if array.dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise ModelFileError("a boolean array contains other values")
    used: set[str] = set()
    state = restore(document, arrays, used)
    if arrays.keys() - used:
        raise ModelFileError("it holds arrays that nothing refers to")
    return texts["kind"], state


def _from_json(text: str) -> Any:
    if _count_parts(text) > _MOST_PARTS:  # again: a header may write [ as \u005b
        raise ModelFileError("its header has more parts than a model file holds")
    try:
        # No NaN or Infinity: of these words int makes a ValueError.
        return json.loads(text, parse_constant=int)
    except (ValueError, RecursionError):
        raise ModelFileError("its header is not JSON, or is nested too deeply") from None


def _count_parts(text: str) -> int:
    return text.count("[") + text.count("{") + text.count(",")


def _padded(document: Any) -> int:
    """Characters that the arrays of text of a JSON document will take."""
    total, waiting = 0, [document]
    while waiting:
        match waiting.pop():
            case {"$text": [*words]}:
                lengths = [len(word) for word in words if isinstance(word, str)]
                total += len(words) * max(lengths, default=0)
            case dict() as items:
                waiting += items.values()
            case [*items]:
                waiting += items
    return total


def _digest(kind: str, state: str, arrays: Mapping[str, AnyArray]) -> str:
    digest = hashlib.sha256(json.dumps([VERSION, kind, state]).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
