"""The two runtimes that every graph must agree with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from onnx.reference import ReferenceEvaluator

from deeptobit.arrays import FloatArray


def with_onnxruntime(model: bytes, X: FloatArray) -> Any:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"X": X})
    return found


def with_reference(model: bytes, X: FloatArray) -> Any:
    (found,) = ReferenceEvaluator(model).run(None, {"X": X})
    return found


RUNTIMES: dict[str, Callable[[bytes, FloatArray], Any]] = {
    "onnxruntime": with_onnxruntime,
    "onnx.reference": with_reference,
}


def exported(model: Any, folder: Path, *arguments: Any, **settings: Any) -> bytes:
    """The file that ``to_onnx`` writes."""
    path = folder / "model.onnx"
    model.to_onnx(path, *arguments, **settings)
    return path.read_bytes()


def assert_alike(found: Any, expected: Any, ranges: Any, accuracy: float = 1e-5) -> None:
    """Equal up to a part of each target's range."""
    assert found.shape == expected.shape
    assert np.isfinite(found).all()
    assert (np.abs(found - expected) / ranges).max() <= accuracy
