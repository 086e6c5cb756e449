"""Group sparsity against its definition, and the pieces that every penalty is used with."""

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.penalties import Group, Ridge, balance, group_share, least_subgradient

SPARSITIES = pytest.mark.parametrize("sparsity", [0.0, 0.4, 1.0])
D = 5


def some_columns(seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(2, D))


@SPARSITIES
def test_the_value_is_the_mixture_of_both_norms(sparsity: float) -> None:
    V, share = some_columns(), group_share(sparsity, D)
    norms = np.linalg.norm(V, axis=0)
    expected = 0.5 * ((1 - share) * (norms**2).sum() + share * norms.sum() ** 2 / D)
    np.testing.assert_allclose(Group(sparsity).value(V), expected)
    equal = V / norms  # both parts agree where all columns are equally large
    np.testing.assert_allclose(Group(sparsity).value(equal), D / 2)


def test_without_sparsity_it_is_the_ridge() -> None:
    V, direction = some_columns(), some_columns(1)
    group, ridge = Group(0.0), Ridge()
    np.testing.assert_allclose(group.value(V), ridge.value(V))
    np.testing.assert_allclose(group.gradient(V), ridge.gradient(V))
    np.testing.assert_allclose(group.curvature(V, direction), ridge.curvature(V, direction))


@SPARSITIES
def test_the_best_feature_variances_give_the_penalty(sparsity: float) -> None:
    V, penalty, share = some_columns(), Group(sparsity), group_share(sparsity, D)
    value, squares = penalty.value(V), np.square(V).sum(axis=0)
    for omega in np.random.default_rng(1).dirichlet(np.ones(D), size=200) * D:
        assert 0.5 * (squares * (1 - share + share / omega)).sum() >= value - 1e-12


def test_an_absent_column_resists_with_its_threshold() -> None:
    V, penalty = some_columns(), Group(0.6)
    V[:, 2] = 0.0
    np.testing.assert_array_equal(penalty.zeros(V), [False, False, True, False, False])
    np.testing.assert_array_equal(penalty.gradient(V)[:, 2], 0.0)
    inside = V.copy()
    inside[:, 2] = [3e-7, 4e-7]
    rise = (penalty.value(inside) - penalty.value(V)) / 5e-7
    np.testing.assert_allclose(rise, penalty.threshold(V)[2], rtol=1e-4)
    assert not penalty.smoothed(0.1).zeros(V).any()
    assert not Group(0.0).zeros(V).any()


def test_half_the_sparsity_is_halfway_for_sqrt_d_features() -> None:
    assert group_share(0.0, 100) == 0.0
    assert group_share(1.0, 100) == 1.0
    share = group_share(0.5, 100)
    V = np.zeros((1, 100))
    V[:, :10] = 1.0  # √D equal columns: ridge 10, group 10²/100
    np.testing.assert_allclose((1 - share) * 10.0, share * 1.0)
    np.testing.assert_allclose(Group(0.5).value(V), 10.0 * (1 - share))


def test_the_least_subgradient_is_shorter_by_the_threshold() -> None:
    slopes = some_columns()
    least = least_subgradient(slopes, np.ones(D))
    before, after = np.linalg.norm(slopes, axis=0), np.linalg.norm(least, axis=0)
    np.testing.assert_allclose(after, np.maximum(before - 1.0, 0.0), atol=1e-15)


def test_balancing_keeps_the_product_and_lowers_the_penalty() -> None:
    U, V, penalty = np.random.default_rng(3).normal(size=(4, 2)), some_columns(), Group(0.7)
    V[:, 1] = 0.0
    new_U, new_V = balance(U, V, penalty.variances(V))
    np.testing.assert_allclose(new_U @ new_V, U @ V, atol=1e-12)
    np.testing.assert_array_equal(new_V[:, 1], 0.0)
    factors = (U, V), (new_U, new_V)
    before, after = (0.5 * np.square(one).sum() + penalty.value(two) for one, two in factors)
    assert after < before
    assert balance(U, V, None)[1] is V


def test_the_leading_variances_cannot_be_bettered() -> None:
    rng = np.random.default_rng(0)
    G, share = rng.normal(size=(8, 3)), group_share(0.7, 8)

    def reached(sparsity: float) -> float:
        root = np.sqrt(Group(sparsity).leading_variances(G))
        return float(np.linalg.norm(root[:, None] * G, 2))

    for omega in rng.dirichlet(np.full(8, 0.3), size=2000) * 8:
        variance = 1.0 / (1 - share + share / np.maximum(omega, 1e-300))
        assert np.linalg.norm(np.sqrt(variance)[:, None] * G, 2) <= reached(0.7) * (1 + 1e-9)
    np.testing.assert_allclose(Group(0.0).leading_variances(G), 1.0)
    largest = np.linalg.norm(G, axis=1).max()
    np.testing.assert_allclose(reached(1.0), np.sqrt(8) * largest)
