"""What feature_sparsity s means: the weight w of the group part of the penalty."""

from collections.abc import Callable
from unittest.mock import patch

import numpy as np

from benchmarks.decisions.table import Table
from deeptobit import SubspaceTobitRegressor
from deeptobit.arrays import FloatArray
from deeptobit.penalties import group, group_share

SEEDS = range(3)
N_TRAIN, N_FEATURES, N_MATTER = 300, 150, 10


def measure() -> Table:
    """Ten of 150 features matter: held-out negative log score, and features used."""
    yield "s", "w", "log score", "features used"
    for s, name, share in (
        (0.0, "0", group_share),
        (0.5, "s", _unchanged),
        (0.5, "s√D/(1 − s + s√D)", group_share),
        (1.0, "1", group_share),
    ):
        score, used = np.mean([_run(s, share, seed) for seed in SEEDS], axis=0).tolist()
        yield s, name, score, used


def _unchanged(sparsity: float, n_features: int) -> float:
    return sparsity


def _run(s: float, share: Callable[[float, int], float], seed: int) -> tuple[float, int]:
    X, Y = _draw(seed, N_TRAIN + 2000)
    with patch.object(group, "group_share", share):
        model = SubspaceTobitRegressor(feature_sparsity=s).fit(X[:N_TRAIN], Y[:N_TRAIN])
    used = int(model.V_.any(axis=0).sum())
    return -float(model.score_log(X[N_TRAIN:], Y[N_TRAIN:])), used


def _draw(seed: int, n_rows: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES))
    latent = X[:, :N_MATTER] @ rng.normal(size=(N_MATTER, 5)) @ rng.normal(size=(5, 30))
    latent /= np.sqrt(5 * N_MATTER)
    return X, np.maximum(0.3 + latent + rng.normal(size=latent.shape), 0.0)
