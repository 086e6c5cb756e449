"""What a layer sees of a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from deeptobit.arrays import FloatArray


def layer_inputs(X: Any, below: FloatArray | None, *, skip_connection: bool) -> Any:
    """x, [f; x] or f: the outputs below in front of the features, dense or sparse as X is."""
    if below is None:
        return X
    if not skip_connection:
        return below
    if scipy.sparse.issparse(X):
        blocks: list[Any] = [scipy.sparse.csr_array(below), X]
        return scipy.sparse.hstack(blocks, format="csr")
    return np.hstack([below, X])
