"""A cohort in which everything that could tell who somebody is can be found again."""

from __future__ import annotations

import base64
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from deeptobit.extras import require

CANARY = "CANARY"
RARE = "RARE-CONDITION"
EXTREME = 7654.321987  # the volume of one person
N_ROWS, N_PEOPLE, N_RARE = 60, 30, 2
STUDY = f"""\
# Written for {CANARY}-COMMENT
[data]
file = "{CANARY}-FOLDER/{CANARY}-FILE.csv"  # from {CANARY}-COLLEAGUE
id = "visit"
group = "person"
[features]
exclude = ["note"]
[targets.MMSE]
lower = 0
upper = 30
[targets.speed]
[model]
kind = "network"
max_layers = 1
ranks = [1]
alphas = [1.0]
cv = 2
[evaluation]
folds = 2
"""


def canary_table() -> pd.DataFrame:
    """Sixty visits of thirty people; two have a rare condition, one a volume like nobody else."""
    rng = np.random.default_rng(0)
    health = rng.normal(size=N_ROWS)
    volume = (3000.0 + 300.0 * health + 50.0 * rng.normal(size=N_ROWS)).round(3)
    volume[7] = EXTREME
    condition = np.where(rng.uniform(size=N_ROWS) < 0.5, "none", "some").astype(object)
    condition[:N_RARE] = RARE
    return pd.DataFrame(
        {
            "visit": [f"{CANARY}-ID-{row}" for row in range(N_ROWS)],
            "person": [f"{CANARY}-PERSON-{row % N_PEOPLE}" for row in range(N_ROWS)],
            "note": [f"{CANARY}-NOTE-{row}" for row in range(N_ROWS)],
            "volume": volume,
            "condition": condition,
            "implant": (np.arange(N_ROWS) < 3).astype(int),
            "MMSE": np.clip(np.round(28.0 + 2.0 * health + rng.normal(size=N_ROWS)), 0, 30),
            "speed": (10.0 + 2.0 * health + rng.normal(size=N_ROWS)).round(2),
        }
    )


def write_cohort(folder: Path) -> Path:
    """The study file of the table, which lies in a folder below it."""
    table = folder / f"{CANARY}-FOLDER" / f"{CANARY}-FILE.csv"
    table.parent.mkdir()
    canary_table().to_csv(table, index=False)
    path = folder / "clinic.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


def run(*arguments: object) -> Any:
    """A command with ``--json``; what it prints."""
    result = CliRunner().invoke(app, [*(str(argument) for argument in arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def is_in(text: str, path: Path) -> bool:
    """Whether a file holds a text, in any encoding, archive, picture or column."""
    wanted = [text.encode(encoding) for encoding in ("utf-8", "utf-16-le", "utf-32-le")]
    return any(form in part for part in contents(path) for form in wanted)


def contents(path: Path) -> Iterator[bytes]:
    """The bytes of a file, and whatever is packed in them."""
    yield path.name.encode()
    yield from _unpacked(path.read_bytes())


def _unpacked(raw: bytes) -> Iterator[bytes]:
    yield raw
    if zipfile.is_zipfile(io.BytesIO(raw)):
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            for name in archive.namelist():
                yield name.encode()
                yield from _unpacked(archive.read(name))
    if raw.startswith(b"PAR1"):
        yield from _of_parquet(raw)
    if raw.startswith(b"\x89PNG"):
        yield from _of_png(raw)
    for found in re.finditer(rb"base64,([A-Za-z0-9+/=\s]+)", raw):
        yield from _unpacked(base64.b64decode(found[1]))


def _of_parquet(raw: bytes) -> Iterator[bytes]:
    table = require("pyarrow.parquet", "scale").read_table(io.BytesIO(raw))
    for key, value in (table.schema.metadata or {}).items():
        yield key + b" " + value
    yield json.dumps(table.to_pydict(), default=str).encode()


def _of_png(raw: bytes) -> Iterator[bytes]:
    """The texts of a picture, packed ones too."""
    at = 8
    while at < len(raw):
        size, kind = struct.unpack(">I4s", raw[at : at + 8])
        body = raw[at + 8 : at + 8 + size]
        if kind == b"zTXt":
            name, packed = body.split(b"\0", 1)
            yield name + b" " + zlib.decompress(packed[1:])
        at += 12 + size
