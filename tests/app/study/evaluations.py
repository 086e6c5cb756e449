"""Small comparisons that take a second."""

from typing import Any

import numpy as np

from deeptobit import CensoredTargets
from deeptobit.app.study import EvaluationData, Protocol

QUICK = Protocol(train_shares=(0.5, 0.7), repeats=2)


def small_data(n_rows: int = 80, *, groups: Any = None, names: Any = None) -> EvaluationData:
    """Three scores, two of them bounded, with gaps in features and scores."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 4))
    latent = X @ rng.standard_normal((4, 3)) + rng.standard_normal((n_rows, 3))
    Y = np.clip(latent, [-1.0, -np.inf, -np.inf], [1.0, 2.0, np.inf])
    Y[rng.random(Y.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.05] = np.nan
    targets = CensoredTargets.from_bounds(
        Y, [-1.0, -np.inf, -np.inf], [1.0, 2.0, np.inf], names=names or ["a", "b", "c"]
    )
    return EvaluationData("small", X, targets, groups)
