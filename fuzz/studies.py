"""The parser of study files, and what is made of a table by what they say."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from deeptobit.app.study import StudyError, build_data, read_data, read_study
from fuzz.target import Change, Target

_TABLE = """\
id,site,age,sex,MMSE,assay,limit,low
a,1,70,f,30,0.5,0.5,1
b,1,75,m,21,2.5,0.5,0
c,2,,f,30,3.0,0.1,0
d,2,80,f,,<0.1,0.1,0
"""
_PLAIN = """\
[data]
file = "a.csv"
id = "id"
group = "site"
missing = [-4, "refused"]

[features]
include = ["*"]
exclude = ["lim*", "low"]
categorical = ["sex"]
missing = "impute"

[targets.MMSE]
lower = 0
upper = 30
outside = "clip"

[targets."assay µ"]
column = "assay"
lower = "limit"
below = "low"

[model]
kind = "network"
max_layers = 2
cv = 5
scoring = "log"
noise = "gaussian"
ranks = [1, 2]
alphas = [0.1, 1e-3]
feature_sparsities = [0.0, 0.5]
seed = 1

[evaluation]
method = "folds"
train_shares = [0.5]
repeats = 2
folds = 3
coverage = 0.9
seed = 2
"""
_INLINE = """\
data.file = "a.csv"
features.exclude = ["id", "assay"]
targets.MMSE = {lower = 0, upper = 30.0}
"""
_PIECE = re.compile(rb"[A-Za-z0-9_.+-]+|\s+|.", re.DOTALL)
_WORDS = (
    *(b"-1", b"0", b"1e999", b"nan", b"-inf", b"9" * 400, b"9" * 5000, b"0x7f", b"1979-05-27"),
    *(b"true", b'""', b"''", b'"""', b"\\u0000", b"*", b"[", b"]", b"[[", b"{", b"}", b"=", b"."),
    *(b"#", b"\n", b"[" * 2000, b"a." * 200, b" " * 2000, b"../", b"MMSE", b"limit", b"\xff"),
)


def _read(path: Path) -> None:
    """Read the study, and its table as the study says."""
    path.with_name("a.csv").write_text(_TABLE, encoding="utf-8")
    study = read_study(path)
    build_data(study, read_data(study))


def _mutate(content: bytes, random: Random, change: Change) -> bytes:
    """Replace, remove, double or move a word; at times, any bytes."""
    pieces = _PIECE.findall(content)
    choice = random.random()
    if not pieces or choice < 0.3:
        return change(content)
    first, second = sorted(random.randrange(len(pieces)) for _ in range(2))
    if choice < 0.7:
        pieces[first] = random.choice((*_WORDS, pieces[second]))
    elif choice < 0.8:
        del pieces[first : first + random.randrange(1, 8)]
    else:
        pieces.insert(first, b"".join(pieces[second : second + random.randrange(1, 12)]))
    return b"".join(pieces)


def _seeds() -> dict[str, bytes]:
    return {"plain": _PLAIN.encode(), "inline": _INLINE.encode()}


TARGET = Target("studies", "study.toml", _read, StudyError, _seeds, _mutate)
