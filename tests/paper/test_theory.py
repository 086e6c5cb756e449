"""The paper's claims about one pass, on a problem small enough to follow closely."""

import numpy as np
import pytest

from deeptobit import SubspaceTobitRegressor, datasets
from deeptobit.metrics import principal_angles
from paper.arrays import FloatArray
from paper.theory import Snapshots, follow


@pytest.fixture(scope="module", params=[0, 1])
def data(request: pytest.FixtureRequest) -> tuple[FloatArray, FloatArray, FloatArray]:
    X, Y, truth = datasets.make_subspace(6000, 30, 20, 3, sigma=3.0, random_state=request.param)
    return X, Y, truth.U


@pytest.fixture(scope="module")
def snapshots(data: tuple[FloatArray, FloatArray, FloatArray]) -> Snapshots:
    X, Y, _ = data
    return follow(SubspaceTobitRegressor(rank=3), X, Y, every=64)


def test_the_last_snapshot_is_the_whole_pass(
    data: tuple[FloatArray, FloatArray, FloatArray], snapshots: Snapshots
) -> None:
    X, Y, U = data
    whole = SubspaceTobitRegressor(rank=3, solver="online").fit(X, Y)
    np.testing.assert_allclose(snapshots.coef[-1], whole.coef_, rtol=1e-10)
    assert snapshots.n_seen[-1] == len(X)
    assert np.cos(principal_angles(U, snapshots.U[-1]).max()) > 0.99


def test_iterates_settle_like_one_over_i(snapshots: Snapshots) -> None:
    settling = snapshots.settling()
    assert settling.slope < -0.9
    scaled = snapshots.n_seen[1:] * settling.change
    half = len(scaled) // 2
    assert scaled[half:].max() < scaled[:half].max() <= settling.constant


def test_the_regret_vanishes_under_its_bound(snapshots: Snapshots) -> None:
    regret, bound = snapshots.regret(step=1e-3)
    assert (regret <= bound).all()
    assert abs(regret[-1]) < 0.2 * abs(regret[0])
    assert bound[-1] < 0.1 * bound[0]


def test_the_limit_is_a_stationary_point_of_the_batch_objective(
    data: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    X, Y, _ = data
    norms = []
    for n in (400, 1500, 6000):
        model = SubspaceTobitRegressor(rank=3, solver="online", alpha=0.0).fit(X[:n], Y[:n])
        norms.append(model.relative_gradient(X[:n], Y[:n]))
    assert norms[0] > norms[1] > norms[2]
    batch = SubspaceTobitRegressor(rank=3, solver="batch", alpha=0.0).fit(X, Y)
    assert batch.relative_gradient(X, Y) < 1e-5
