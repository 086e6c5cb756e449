"""Estimators to ONNX: files of their own, and steps of pipelines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from deeptobit.estimators.inputs import check_kind, feature_names
from deeptobit.estimators.saving import ESTIMATORS
from deeptobit.files import (
    CensoredScores,
    Precision,
    ScoreLayer,
    onnx_bytes,
    register_converter,
    write_whole,
)


def censored_scores(model: Any) -> CensoredScores:
    """What the predictions of a fitted estimator are computed from."""
    check_is_fitted(model)
    return CensoredScores(
        layers=_layers(model),
        sigma=model.sigma_,
        lower=model.lower_,
        upper=model.upper_,
        feature_names=tuple(feature_names(model)),
        target_names=tuple(model.target_names_),
        noise=model.noise_.name,
    )


def _layers(model: Any) -> tuple[ScoreLayer, ...]:
    if hasattr(model, "layers_"):
        return tuple(ScoreLayer((at.V.T, at.U.T), at.intercept) for at in model.layers_)
    return (ScoreLayer((model.coef_.T,), model.intercept_),)


def write_onnx(model: Any, path: str | os.PathLike[str], kind: Any, precision: Precision) -> None:
    """Write an estimator to an ONNX file, whole or not at all."""
    kind = model.prediction if kind is None else kind
    check_kind(kind)
    write_whole(Path(path), [onnx_bytes(censored_scores(model), kind, precision)])


def register_skl2onnx() -> None:
    """Make skl2onnx convert pipelines, searches and ensembles in which these estimators predict.

    Call it once before ``skl2onnx.to_onnx``. The step predicts what its ``predict`` does;
    ``options={SubspaceNetworkRegressor: {"kind": "clip"}}`` (or ``id(step)`` for the class)
    chooses another kind. The output has shape (batch, T), in single precision unless the
    features come in double.

    Examples
    --------
    >>> import numpy as np
    >>> from onnx.reference import ReferenceEvaluator
    >>> from skl2onnx import to_onnx
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from deeptobit import TobitRegressor
    >>> from deeptobit.estimators import register_skl2onnx
    >>> X = np.arange(20.0, dtype=np.float32)[:, None]
    >>> y = np.clip(X[:, 0] - 5 + np.sin(X[:, 0]), 0, 10)
    >>> pipeline = make_pipeline(StandardScaler(), TobitRegressor(upper=10)).fit(X, y)
    >>> register_skl2onnx()
    >>> graph = ReferenceEvaluator(to_onnx(pipeline, X))
    >>> bool(np.abs(graph.run(None, {"X": X})[0][:, 0] - pipeline.predict(X)).max() < 1e-4)
    True
    """
    register_converter(ESTIMATORS, censored_scores)
