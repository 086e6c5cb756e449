"""Files: models saved without pickle, their format, and ONNX."""

from deeptobit.files.container import read_state, write_state, write_whole
from deeptobit.files.models import (
    estimator_from_state,
    estimator_state,
    load,
    noise_from_state,
    noise_state,
)
from deeptobit.files.onnx import register_skl2onnx

__all__ = [
    "estimator_from_state",
    "estimator_state",
    "load",
    "noise_from_state",
    "noise_state",
    "read_state",
    "register_skl2onnx",
    "write_state",
    "write_whole",
]
