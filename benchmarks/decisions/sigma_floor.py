"""The factor on the count of parameters in the floor of σ."""

import warnings
from unittest.mock import patch

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.decisions.losses import excess
from benchmarks.decisions.table import Table
from deeptobit import SubspaceTobitRegressor
from deeptobit.datasets import make_subspace
from deeptobit.estimators.inputs import automatic_alpha
from deeptobit.layer import solve

N_PROBLEMS = 60
SEEDS = range(10)
N_TEST = 1000
N_TASKS, RANK = 10, 3


def measure() -> Table:
    """Losses on badly scaled problems, σ over the truth and log scores of small cohorts."""
    yield (
        "factor",
        "bad problems: mean loss",
        "worst loss",
        "60 × 20: σ over the truth",
        "log score",
        "40 × 100, a tenth of alpha: σ over the truth",
        "log score",
    )
    for factor in (0.0, 1.0, 1.5, 2.0, 3.0):
        with patch.object(solve, "_CAUTION", factor):
            loss = excess(N_PROBLEMS, _alpha)
            small, wide = _cohorts(60, 20, 1.0), _cohorts(40, 100, 0.1)
            yield factor, float(loss.mean()), float(loss.max()), *small, *wide


def _alpha(n_rows: float, n_features: int, n_tasks: int) -> float:
    """The automatic penalty where nothing is missing."""
    return automatic_alpha(np.full(n_tasks, float(n_rows)), n_rows, n_features)


def _cohorts(n_rows: int, n_features: int, share: float) -> tuple[float, float]:
    """Mean σ over the truth and negative log score, under a share of the automatic alpha."""
    alpha = share * _alpha(n_rows, n_features, N_TASKS)
    found = []
    for seed in SEEDS:
        X, Y, _ = make_subspace(
            n_rows + N_TEST, n_features, N_TASKS, RANK, sigma=1.0, latent_sd=5.0, random_state=seed
        )
        model = SubspaceTobitRegressor(RANK, alpha=alpha, solver="batch")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # without a floor there is no end
            model.fit(X[N_TEST:], Y[N_TEST:])
        loss = -float(model.score_log(X[:N_TEST], Y[:N_TEST]))
        found.append((float(model.sigma_.mean()), loss))
    sigma, loss = np.mean(found, axis=0).tolist()
    return sigma, loss
