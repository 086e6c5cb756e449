"""A model as the bytes of an ONNX file."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any, Literal

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.export._graph import DOUBLE, FLOAT, Graph
from deeptobit.export._prediction import write_prediction
from deeptobit.export._scores import CensoredScores
from deeptobit.extras import require

Precision = Literal["float32", "float64"]

EXTRA = "onnx"
# Operators as they have been since 2022, so that runtimes of that year can read the file.
_OPERATOR_SET, _FILE_VERSION = 17, 8
_ACCURACY = 1e-5  # of a target's range


def onnx_bytes(
    model: CensoredScores, kind: Literal["mean", "clip", "latent"], precision: Precision
) -> bytes:
    """The file: one input ``X`` of shape (batch, D), one output named by its kind, (batch, T).

    The metadata hold names, bounds, noise and its scales, kind and version, those that are lists
    as JSON; an open bound is null.

    Examples
    --------
    >>> import onnx
    >>> from deeptobit.export import ScoreLayer
    >>> layer = ScoreLayer((np.ones((2, 1)),), np.zeros(1))
    >>> model = CensoredScores((layer,), np.ones(1), np.zeros(1), np.full(1, np.inf),
    ...     ("age", "volume"), ("MMSE",))
    >>> read = onnx.load_from_string(onnx_bytes(model, "mean", "float32"))
    >>> {entry.key: entry.value for entry in read.metadata_props}["upper"]
    '[null]'
    """
    element_type = {"float32": FLOAT, "float64": DOUBLE}.get(precision)
    if element_type is None:
        raise ValueError(f"dtype must be 'float32' or 'float64'; got {precision!r}")
    if precision == "float32":
        _check_resolution(model)
    onnx = require("onnx", EXTRA)
    graph = Graph()
    write_prediction(graph, "X", model, kind, output=kind, element_type=element_type)
    proto = onnx.helper.make_model(
        _proto(graph, model, kind, element_type),
        opset_imports=[onnx.helper.make_opsetid("", _OPERATOR_SET)],
        ir_version=_FILE_VERSION,
        producer_name="deeptobit",
        producer_version=version("deeptobit"),
    )
    onnx.helper.set_model_props(proto, _metadata(model, kind))
    onnx.checker.check_model(proto)
    return bytes(proto.SerializeToString())


def _proto(graph: Graph, model: CensoredScores, kind: str, element_type: int) -> Any:
    onnx = require("onnx", EXTRA)
    helper = onnx.helper
    sizes = {"X": len(model.feature_names), kind: len(model.target_names)}
    described = [
        helper.make_tensor_value_info(name, element_type, ["batch", size])
        for name, size in sizes.items()
    ]
    nodes = [
        helper.make_node(node.operator, node.inputs, [node.output], **node.attributes)
        for node in graph.nodes
    ]
    constants = [
        onnx.numpy_helper.from_array(value, name) for name, value in graph.constants.items()
    ]
    return helper.make_graph(nodes, "deeptobit", described[:1], described[1:], constants)


def _metadata(model: CensoredScores, kind: str) -> dict[str, str]:
    lists = {
        "feature_names": list(model.feature_names),
        "target_names": list(model.target_names),
        "lower": _plain(model.lower),
        "upper": _plain(model.upper),
        "sigma": _plain(model.sigma),
    }
    as_json = {key: json.dumps(values, ensure_ascii=False) for key, values in lists.items()}
    facts = {"kind": kind, "noise": model.noise, "deeptobit_version": version("deeptobit")}
    return facts | as_json


def _plain(values: FloatArray) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _check_resolution(model: CensoredScores) -> None:
    """Single precision must tell predictions apart as finely as is promised."""
    for name, lower, upper in zip(model.target_names, model.lower, model.upper, strict=True):
        rounding = np.finfo(np.float32).eps * max(abs(lower), abs(upper))
        if np.isfinite(rounding) and rounding > _ACCURACY * (upper - lower):
            raise ValueError(
                f"target {name!r} lies between {lower:.10g} and {upper:.10g}, which single "
                "precision does not resolve; pass dtype='float64'"
            )
