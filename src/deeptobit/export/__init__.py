"""Fitted models as graphs that other systems run: ONNX, alone or inside a pipeline."""

from deeptobit.export._onnx import Precision, onnx_bytes
from deeptobit.export._scores import CensoredScores, ScoreLayer
from deeptobit.export._skl2onnx import register_converter

__all__ = [
    "CensoredScores",
    "Precision",
    "ScoreLayer",
    "onnx_bytes",
    "register_converter",
]
