"""TODO."""

from deeptobit.files.container import read_state, write_state, write_whole
from deeptobit.files.onnx import (
    CensoredScores,
    Precision,
    ScoreLayer,
    onnx_bytes,
    register_converter,
)
from deeptobit.files.values import (
    Packer,
    SavedClass,
    Unpacker,
    fits,
    make_random_state,
    take_random_state,
)

__all__ = [
    "CensoredScores",
    "Packer",
    "Precision",
    "SavedClass",
    "ScoreLayer",
    "Unpacker",
    "fits",
    "make_random_state",
    "onnx_bytes",
    "read_state",
    "register_converter",
    "take_random_state",
    "write_state",
    "write_whole",
]
