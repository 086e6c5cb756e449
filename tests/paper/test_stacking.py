"""Section 3 of the paper: stacking layers without a skip connection loses information."""

from typing import Any

import numpy as np
import pytest

from deeptobit import SubspaceNetworkRegressor
from deeptobit.datasets import make_subspace
from deeptobit.metrics import anmse
from deeptobit.published import PublishedSubspaceNetwork

RANK, DEPTH, STEP = 6, 5, 1e-3


def as_printed(skip: bool) -> Any:
    """All layers start at small Gaussian U and V, and have the same steps."""
    rng = np.random.default_rng(0)
    widths = [40, *[20 + 40 * skip] * (DEPTH - 1)]
    starts = [
        [0.1 * rng.standard_normal(shape) for shape in ((20, RANK), (RANK, d))] for d in widths
    ]
    return PublishedSubspaceNetwork(
        RANK,
        DEPTH,
        alpha=STEP,
        step_size_V=STEP,
        step_size_U=STEP,
        sigma=1.0,
        init=starts,
        skip_connection=skip,
        n_passes=3,
    )


def ours(skip: bool) -> Any:
    return SubspaceNetworkRegressor(
        RANK, DEPTH, skip_connection=skip, joint_tuning=False, prune_layers=False
    )


@pytest.mark.parametrize("make", [as_printed, ours])
@pytest.mark.parametrize("seed", range(3))
def test_it_loses_against_the_skip_connection(make: Any, seed: int) -> None:
    X, Y, _ = make_subspace(
        1500,
        40,
        20,
        3,
        n_layers=2,
        skip_connection=True,
        sigma=1.0,
        hidden_sigma=0.0,
        latent_sd=3.0,
        random_state=seed,
    )
    errors = []
    for skip in (False, True):
        stages = make(skip).fit(X[:1000], Y[:1000]).staged_predict(X[1000:], kind="clip")
        errors.append([float(anmse(Y[1000:], stage)) for stage in stages])
    naive, skipping = errors
    assert 1.02 < naive[-1] / skipping[-1] < 1.25
    assert naive[-1] > naive[1]  # and worse with every layer above the second
