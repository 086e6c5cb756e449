"""Predictions for Dask collections: lazy, one partition at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deeptobit.extras import require

Predict = Callable[..., Any]


def predict_lazily(
    predict: Predict, X: Any, targets: Sequence[str], *, one_dimensional: bool, **options: Any
) -> Any:
    """A Dask collection of predictions, partitioned as X is; nothing is computed yet.

    Parameters
    ----------
    predict : function
        From features (n, D) in memory and ``options`` to predictions (n, T), or (n,).
    X : Dask array or DataFrame of shape (N, D)
    targets : sequence of str
        Names of the T tasks: the columns, if X is a DataFrame.
    one_dimensional : bool
        Whether predictions have no task axis.

    Returns
    -------
    Dask array of shape (N, T) or (N,), or a DataFrame or Series if X is a DataFrame
    """
    if hasattr(X, "columns"):
        meta = _framed(np.empty((0, len(targets))), None, targets, one_dimensional)
        return X.map_partitions(
            _predict_frame, predict, tuple(targets), one_dimensional, meta=meta, **options
        )
    array = require("dask.array", "scale")
    X = X.rechunk({1: -1})
    single = X.dtype == np.float32
    chunks = (X.chunks[0],) if one_dimensional else (X.chunks[0], (len(targets),))
    return array.map_blocks(
        _predict_block,
        X,
        predict,
        dtype=np.float32 if single else np.float64,
        chunks=chunks,
        drop_axis=1 if one_dimensional else None,
        meta=np.empty((0,) if one_dimensional else (0, 0)),
        **options,
    )


def _predict_block(X: Any, predict: Predict, **options: Any) -> Any:
    return predict(X, **options)


def _predict_frame(
    X: Any, predict: Predict, targets: Sequence[str], one_dimensional: bool, **options: Any
) -> Any:
    shape = (0,) if one_dimensional else (0, len(targets))
    found = predict(X, **options) if len(X) else np.empty(shape)
    return _framed(found, X.index, targets, one_dimensional)


def _framed(found: Any, index: Any, targets: Sequence[str], one_dimensional: bool) -> Any:
    import pandas as pd

    if one_dimensional:
        return pd.Series(np.ravel(found), index=index, name=targets[0])
    return pd.DataFrame(found, index=index, columns=list(targets))
