"""Data of known depth, as in scripts/depth_figure.py, and what a model makes of them."""

from typing import Any, NamedTuple

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.datasets import make_subspace
from deeptobit.metrics import anmse

N_TEST = 2000
TRUTHS: dict[str, dict[str, Any]] = {
    "three layers, with skip": {"n_layers": 3, "skip_connection": True, "hidden_sigma": 0.3},
    "three layers, no skip": {"n_layers": 3, "skip_connection": False, "hidden_sigma": 0.3},
    "one layer": {"n_layers": 1},
}


class Rows(NamedTuple):
    """Rows to train on and rows to be judged by."""

    X: FloatArray
    Y: FloatArray
    X_test: FloatArray
    Y_test: FloatArray

    def error(self, model: Any) -> float:
        """ANMSE of E[y|x] on the rows that were not seen."""
        return float(anmse(self.Y_test, model.predict(self.X_test)))


def draw(truth: str, n_rows: int, seed: int) -> Rows:
    """50 features, 30 outcomes with a floor, 5 directions, a signal of sd 3 and noise of 1."""
    X, Y, _ = make_subspace(
        N_TEST + n_rows,
        50,
        30,
        5,
        sigma=1.0,
        latent_sd=3.0,
        random_state=seed,
        **TRUTHS[truth],
    )
    return Rows(X[N_TEST:], Y[N_TEST:], X[:N_TEST], Y[:N_TEST])


def pure_noise(n_rows: int, n_features: int, n_tasks: int, seed: int) -> Rows:
    """Outcomes that have nothing to do with the features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_TEST + n_rows, n_features))
    Y = np.maximum(0.3 + rng.normal(size=(len(X), n_tasks)), 0.0)
    return Rows(X[N_TEST:], Y[N_TEST:], X[:N_TEST], Y[:N_TEST])
