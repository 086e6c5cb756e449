"""Files with a correct checksum and whatever content."""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

Tensor = tuple[str, Any, bytes]  # type and shape as safetensors writes them, and bytes
NUMPY = {"F64": "<f8", "U8": "|u1", "BOOL": "|b1"}


def craft(
    path: Path,
    state: Any,
    tensors: dict[str, Tensor] | None = None,
    *,
    header: bytes | None = None,
    length: int | None = None,
    **metadata: Any,
) -> Path:
    """Write a file as the format describes it, independently of the code under test.

    ``state`` is the document, or its text; ``metadata`` replaces texts of the header, ``header``
    all of it, and ``length`` what the file says of its length.
    """
    text = state if isinstance(state, str) else json.dumps(state, separators=(",", ":"))
    digest = hashlib.sha256(json.dumps([1, "test", text]).encode())
    entries: dict[str, Any] = {}
    body = b""
    for name, (dtype, shape, content) in sorted((tensors or {}).items()):
        entries[name] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(body), len(body) + len(content)],
        }
        body += content
        described = json.dumps([name, NUMPY.get(dtype, dtype), shape])
        digest.update(described.encode() + content)
    texts = {"format": "deeptobit", "version": "1", "kind": "test", "state": text}
    entries["__metadata__"] = texts | {"sha256": digest.hexdigest()} | metadata
    written = json.dumps(entries).encode() if header is None else header
    size = struct.pack("<Q", len(written) if length is None else length)
    path.write_bytes(size + written + body)
    return path


def one_array(dtype: str, shape: Any, content: bytes) -> dict[str, Any]:
    """Arguments of a file with a single array."""
    return {"state": {"a": {"$array": "0"}}, "tensors": {"0": (dtype, shape, content)}}
