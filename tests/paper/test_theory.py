"""The paper's claims about one pass, on a problem small enough to follow closely."""

import numpy as np
import pytest

from deeptobit import CensoredTargets, SubspaceTobitRegressor, datasets
from deeptobit.likelihood import Gaussian, evaluate
from deeptobit.metrics import principal_angles
from deeptobit.published import PublishedSubspaceTobit
from paper.arrays import FloatArray
from paper.section import SMALL
from paper.theory import (
    Snapshots,
    draw,
    follow,
    gradient_norm,
    relative_gradients,
    slope_by_coefficients,
)
from tests.estimators.subspaces import relative_gradient


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
    np.testing.assert_allclose(snapshots.U[-1] @ snapshots.V[-1], whole.coef_, rtol=1e-10)
    assert snapshots.n_seen[-1] == len(X)
    assert np.cos(principal_angles(U, snapshots.U[-1]).max()) > 0.99


def test_iterates_settle_like_one_over_i(snapshots: Snapshots) -> None:
    assert snapshots.slope < -0.9
    scaled = snapshots.n_seen[1:] * snapshots.change
    half = len(scaled) // 2
    assert scaled[half:].max() < scaled[:half].max() <= snapshots.constant


def test_the_regret_vanishes_under_its_bound(snapshots: Snapshots) -> None:
    regret, bound = snapshots.regret(step=1e-3)
    assert (regret <= bound).all()
    assert abs(regret[-1]) < 0.2 * abs(regret[0])
    assert bound[-1] < 0.1 * bound[0]


def printed(alpha: float = 0.6, step: float = 0.001, **ways: object) -> PublishedSubspaceTobit:
    steps = {"step_size_V": step, "step_size_U": step}
    return PublishedSubspaceTobit(3, alpha=alpha, sigma=3.0, random_state=0, **steps, **ways)  # type: ignore[arg-type]


def test_the_printed_pass_tells_the_change_of_every_row() -> None:
    X, Y, _ = datasets.make_subspace(300, 10, 6, 3, random_state=0)
    snapshots = follow(printed(), X, Y, every=60)
    whole = printed().fit(X, Y)
    change = whole.history_["change"][0].reshape(5, 60).mean(axis=1)
    np.testing.assert_allclose(snapshots.change, change[1:])
    np.testing.assert_array_equal(snapshots.U[-1], whole.U_)
    costs = 0.3 * (np.linalg.norm(whole.U_) ** 2 + np.linalg.norm(whole.V_) ** 2)
    assert snapshots.penalty[-1] == pytest.approx(costs)


def test_the_regret_of_the_printed_pass_contains_its_penalty() -> None:
    X, Y, _ = datasets.make_subspace(300, 10, 6, 3, random_state=0)
    snapshots = follow(printed(), X, Y, every=150)
    first, last = snapshots.penalty
    expected = snapshots.loss_after[0] + last - (snapshots.loss_before[0] + first)
    assert snapshots.regret(step=1e-3)[0] == pytest.approx(expected)


@pytest.mark.parametrize("name", ["U", "V"])
def test_the_gradient_is_that_of_the_batch_objective(name: str) -> None:
    X, Y, _ = datasets.make_subspace(80, 5, 4, 2, random_state=0)
    targets, rng, sigma = CensoredTargets.from_bounds(Y, 0.0), np.random.default_rng(1), np.ones(4)
    U, V = rng.standard_normal((4, 2)), rng.standard_normal((2, 5))

    def objective(U: FloatArray, V: FloatArray) -> float:
        nll = evaluate(Gaussian(), targets.low, targets.high, X @ V.T @ U.T, sigma).nll
        squares = np.vdot(U, U) + np.vdot(V, V)
        return float(nll.sum(axis=1).mean() + 0.35 * squares)

    def norm(move: float) -> float:
        parts = {"U": U, "V": V}
        parts[name] = parts[name] + move * direction
        return objective(**parts)

    slope = slope_by_coefficients(U @ V, X, targets, sigma)
    by_U, by_V = slope @ V.T + 0.7 * U, U.T @ slope + 0.7 * V
    direction = by_U if name == "U" else by_V
    found = (norm(1e-6) - norm(-1e-6)) / 2e-6
    assert found == pytest.approx(np.vdot(direction, direction), rel=1e-6)
    both = np.hypot(np.linalg.norm(by_U), np.linalg.norm(by_V))
    assert gradient_norm(U, V, slope, 0.7) == pytest.approx(both)


def test_gradients_are_relative_to_the_random_start() -> None:
    X, Y, _ = datasets.make_subspace(200, 10, 6, 3, random_state=0)
    still = follow(printed(step=1e-12), X, Y, every=100)
    np.testing.assert_allclose(relative_gradients(still, X, Y, 0.6, seed=0), 1.0, rtol=1e-6)


def test_the_published_penalty_leads_to_zero_on_rows_of_length_one() -> None:
    X, Y, truth = draw(SMALL, 0, length_one=True)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1.0)
    observed = Y > 0.0
    assert np.std((Y - X @ truth.coef.T)[observed]) < SMALL.sigma
    targets, sigma = CensoredTargets.from_bounds(Y, 0.0), np.full(SMALL.n_tasks, SMALL.sigma)
    zero = np.zeros_like(truth.coef)
    assert np.linalg.norm(slope_by_coefficients(zero, X, targets, sigma), 2) < 0.1
    snapshots = follow(printed(step=0.01), X, Y, every=100)
    gradients = relative_gradients(snapshots, X, Y, 0.6, seed=0)
    assert gradients[-1] < 0.01
    assert np.linalg.norm(snapshots.U[-1]) < 0.1 < 5.0 < np.linalg.norm(truth.U)


def test_the_limit_is_a_stationary_point_of_the_batch_objective(
    data: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    X, Y, _ = data
    norms = []
    for n in (1500, 3000, 6000):
        model = SubspaceTobitRegressor(rank=3, solver="online", alpha=0.0).fit(X[:n], Y[:n])
        norms.append(relative_gradient(model, X[:n], Y[:n]))
    assert norms[0] > norms[1] > norms[2]
    batch = SubspaceTobitRegressor(rank=3, solver="batch", alpha=0.0).fit(X, Y)
    assert relative_gradient(batch, X, Y) < 1e-5
