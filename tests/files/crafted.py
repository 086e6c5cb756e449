"""Files with a correct checksum and whatever content."""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

MAGIC = b"\x89DTB\r\n\x1a\n"


def craft(
    path: Path,
    content: Any,
    body: bytes = b"",
    *,
    version: int = 1,
    header_bytes: int | None = None,
) -> Path:
    """Write a file as the format describes it, independently of the code under test."""
    header = content if isinstance(content, bytes) else json.dumps(content).encode()
    length = len(header) if header_bytes is None else header_bytes
    beginning = MAGIC + struct.pack("<IQ", version, length)
    digest = hashlib.sha256(beginning + header + body).digest()
    path.write_bytes(beginning + digest + header + body)
    return path


def one_array(description: Any) -> dict[str, Any]:
    """Content with a single array."""
    return {"kind": "test", "arrays": [description], "state": {"a": {"$array": 0}}}
