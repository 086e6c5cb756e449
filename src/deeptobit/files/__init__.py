"""Files: models saved without pickle, their format, and ONNX."""

from deeptobit.files.container import read_state, write_state, write_whole
from deeptobit.files.models import (
    CLASSES,
    estimator_from_state,
    estimator_state,
    load,
    noise_from_state,
    noise_state,
    register,
    register_estimator,
    save_model,
)
from deeptobit.files.onnx import Precision, register_skl2onnx, write_onnx
from deeptobit.files.values import (
    Packer,
    SavedClass,
    Unpacker,
    by_fields,
    check_sizes,
    check_types,
    ensure,
    fits,
)

__all__ = [
    "CLASSES",
    "Packer",
    "Precision",
    "SavedClass",
    "Unpacker",
    "by_fields",
    "check_sizes",
    "check_types",
    "ensure",
    "estimator_from_state",
    "estimator_state",
    "fits",
    "load",
    "noise_from_state",
    "noise_state",
    "read_state",
    "register",
    "register_estimator",
    "register_skl2onnx",
    "save_model",
    "write_onnx",
    "write_state",
    "write_whole",
]
