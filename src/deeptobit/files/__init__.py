"""Files: models saved without pickle, their format, and ONNX."""

from deeptobit.files.container import read_state, write_state, write_whole
from deeptobit.files.models import estimator_from_state, estimator_state, load

__all__ = [
    "estimator_from_state",
    "estimator_state",
    "load",
    "read_state",
    "write_state",
    "write_whole",
]
