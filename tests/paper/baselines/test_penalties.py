import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from paper.arrays import FloatArray
from paper.baselines.norms import GroupNorm, Penalty, TraceNorm, descend, squared_norm

PENALTIES: list[Penalty] = [TraceNorm(), GroupNorm()]
SHAPES = [(7, 4), (4, 7), (5, 1), (1, 5)]


def _matrix(shape: tuple[int, int], seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_shrinking_meets_the_conditions_of_its_optimum(
    penalty: Penalty, shape: tuple[int, int]
) -> None:
    W = _matrix(shape)
    amount = 0.4 * penalty.dual(W)
    Z = penalty.shrink(W, amount)
    assert 0.0 < penalty.value(Z) < penalty.value(W)
    assert penalty.dual(W - Z) <= amount * (1.0 + 1e-9)
    assert_allclose(np.vdot(W - Z, Z), amount * penalty.value(Z))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_shrinking_beyond_the_dual_norm_leaves_exactly_nothing(
    penalty: Penalty, shape: tuple[int, int]
) -> None:
    W = _matrix(shape)
    assert_array_equal(penalty.shrink(W, 1.0001 * penalty.dual(W)), np.zeros(shape))
    assert_array_equal(penalty.shrink(np.zeros(shape), 0.5), np.zeros(shape))


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_value_and_dual_are_dual_norms(penalty: Penalty, shape: tuple[int, int]) -> None:
    W, G = _matrix(shape), _matrix(shape, seed=1)
    assert np.vdot(G, W) <= penalty.dual(G) * penalty.value(W)
    shares = penalty.shares(W)
    assert_allclose(shares.sum(), penalty.value(W))
    tau = 1e-6
    for task in range(shape[1]):
        scaled = W.copy()
        scaled[:, task] *= np.exp(tau)
        slope = (penalty.value(scaled) - penalty.value(W)) / tau
        assert_allclose(slope, shares[task], rtol=1e-4)


def test_shares_of_a_matrix_with_rows_and_ranks_missing_are_finite() -> None:
    W = np.outer([1.0, 0.0, 2.0], [1.0, 0.0])
    for penalty in PENALTIES:
        assert_allclose(penalty.shares(W), [penalty.value(W), 0.0], atol=1e-12)


def test_momentum_is_faster_than_plain_steps_and_restarts() -> None:
    curvature = np.logspace(0.0, -4.0, 30)
    visited = []

    def done(W: FloatArray) -> bool:
        visited.append(W)
        return float(np.abs(curvature * (W - 1.0)).max()) < 1e-8

    def gradient(W: FloatArray) -> FloatArray:
        return np.asarray(curvature * (W - 1.0))

    W = descend(gradient, lambda W: W, 1.0, np.zeros(30), done, 20_000)
    assert_allclose(W, 1.0, atol=1e-3)
    assert len(visited) < 500  # at five steps each; plain steps need over 90,000
    assert_array_equal(descend(gradient, lambda W: W, 1.0, W, done, 100), W)


def test_the_squared_norm_takes_the_smaller_product() -> None:
    for shape in SHAPES:
        matrix = _matrix(shape)
        assert_allclose(squared_norm(matrix), np.linalg.norm(matrix, 2) ** 2)
