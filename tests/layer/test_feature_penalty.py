"""The penalty that lets features leave, against its definition and finite differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from deeptobit.arrays import FloatArray
from deeptobit.layer import Design, Layer, SubspaceProblem, TargetScaling, subspace_features
from deeptobit.penalties import FeaturePenalty, group_share
from deeptobit.penalties.group import least_subgradient
from tests.layer.problems import N_TASKS, features, outcomes, row_weights
from tests.layer.test_subspace_problem import ALPHA, ONLY, RANK, build, slope, some_layer

SHARES = pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
SMOOTHINGS = pytest.mark.parametrize("smoothing", [0.0, 0.5])
D = 5


def some_rows(seed: int = 0) -> FloatArray:
    return np.random.default_rng(seed).normal(size=(D, 2))


def build_sparse(*, sparsity: float = 0.7, sparse: bool = False) -> SubspaceProblem:
    """The problem of the other tests, with its features in their own basis."""
    X, weight = features(), row_weights()
    targets = outcomes(X)
    design = Design.build(csr_matrix(X) if sparse else X, weight, center=True, standardize=True)
    scaling = TargetScaling.build(targets, weight, center=True)
    return replace(
        build(),
        features=subspace_features(design, sparsity),
        scaling=scaling,
        feature_sparsity=sparsity,
    )


@SHARES
def test_the_value_is_the_mixture_of_both_norms(share: float) -> None:
    Z = some_rows()
    norms = np.linalg.norm(Z, axis=1)
    expected = (1 - share) * (norms**2).sum() + share * norms.sum() ** 2 / D
    np.testing.assert_allclose(FeaturePenalty(np.ones(D), share).value(Z), expected)
    equal = Z / norms[:, None]  # both parts agree where all columns are equally large
    np.testing.assert_allclose(FeaturePenalty(np.ones(D), share).value(equal), D)


@SHARES
def test_the_best_feature_variances_give_the_penalty(share: float) -> None:
    Z, penalty = some_rows(), FeaturePenalty(np.ones(D), share)
    value = penalty.value(Z)
    squares = np.square(Z).sum(axis=1)
    np.testing.assert_allclose((squares / penalty.variance(Z)[:, 0]).sum(), value)
    for omega in np.random.default_rng(1).dirichlet(np.ones(D), size=200) * D:
        assert (squares * (1 - share + share / omega)).sum() >= value - 1e-12


@SHARES
@SMOOTHINGS
def test_slope_and_product_are_differences(share: float, smoothing: float) -> None:
    penalty = FeaturePenalty(np.ones(D), share, smoothing)
    Z, direction, step = some_rows(), some_rows(1), 1e-5
    ahead, behind = Z + step * direction, Z - step * direction
    rise = (penalty.value(ahead) - penalty.value(behind)) / (2 * step)
    np.testing.assert_allclose(2.0 * (penalty.slope(Z) * direction).sum(), rise, rtol=1e-7)
    change = (penalty.slope(ahead) - penalty.slope(behind)) / (2 * step)
    np.testing.assert_allclose(penalty.product(Z, direction), change, rtol=1e-6, atol=1e-8)


def test_an_absent_row_resists_with_its_threshold() -> None:
    Z, penalty = some_rows(), FeaturePenalty(np.ones(D), 0.6)
    Z[2] = 0.0
    np.testing.assert_array_equal(penalty.absent(Z), [False, False, True, False, False])
    np.testing.assert_array_equal(penalty.slope(Z)[2], 0.0)
    inside = Z.copy()
    inside[2] = [3e-7, 4e-7]
    rise = (penalty.value(inside) - penalty.value(Z)) / 5e-7
    np.testing.assert_allclose(rise, 2.0 * penalty.threshold(Z), rtol=1e-4)
    assert not FeaturePenalty(np.ones(D), 0.6, 0.1).absent(Z).any()
    assert not FeaturePenalty(np.ones(D), 0.0).absent(Z).any()


def test_without_a_share_the_basis_counts() -> None:
    Z, norms = some_rows(), np.arange(1.0, D + 1)
    penalty = FeaturePenalty(norms, 0.0)
    np.testing.assert_allclose(penalty.value(Z), (norms[:, None] * Z**2).sum())
    np.testing.assert_allclose(penalty.slope(Z), norms[:, None] * Z)


def test_half_the_sparsity_is_halfway_for_sqrt_d_features() -> None:
    assert group_share(0.0, 100) == 0.0
    assert group_share(1.0, 100) == 1.0
    share = group_share(0.5, 100)
    Z = np.zeros((100, 1))
    Z[:10] = 1.0  # √D equal columns: ridge 10, group 10²/100
    np.testing.assert_allclose((1 - share) * 10.0, share * 1.0)
    np.testing.assert_allclose(FeaturePenalty(np.ones(100), share).value(Z), 20.0 * (1 - share))


def test_the_least_subgradient_is_shorter_by_the_threshold() -> None:
    slopes = some_rows()
    least = least_subgradient(slopes, 1.0)
    before, after = np.linalg.norm(slopes, axis=1), np.linalg.norm(least, axis=1)
    np.testing.assert_allclose(after, np.maximum(before - 1.0, 0.0), atol=1e-15)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_gradient_of_the_problem_is_its_slope(smoothing: float, sparse: bool) -> None:
    problem = replace(build_sparse(sparse=sparse), smoothing=smoothing)
    point = problem.pack(some_layer(problem))
    gradient = problem.evaluate(point, ONLY).gradient
    expected = [slope(problem, point, unit[:, None]) for unit in np.eye(len(point))]
    np.testing.assert_allclose(gradient[:, 0], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_hessian_of_the_problem_is_that_of_its_gradient(smoothing: float) -> None:
    problem = replace(build_sparse(), smoothing=smoothing)
    point, direction = (problem.pack(some_layer(problem, seed)) for seed in (3, 4))
    at, step = problem.evaluate(point, ONLY), 1e-4
    ahead, behind = (problem.evaluate(point + k * step * direction, ONLY) for k in (1, -1))
    expected = (ahead.gradient - behind.gradient) / (2.0 * step)
    error = np.linalg.norm(at.hessian_product(direction) - expected)
    assert error < 1e-4 * np.linalg.norm(expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_preconditioner_is_symmetric_and_positive(smoothing: float) -> None:
    problem = replace(build_sparse(), smoothing=smoothing)
    at = problem.evaluate(problem.pack(some_layer(problem)), ONLY)
    matrix = np.hstack([at.precondition(unit[:, None]) for unit in np.eye(len(at.gradient))])
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-7, atol=1e-9)
    assert np.linalg.eigvalsh(matrix).min() > 0.0


def test_its_block_is_the_gauss_newton_hessian_but_for_the_common_term() -> None:
    problem = build_sparse(sparsity=1.0)
    layer = some_layer(problem)
    at = problem.evaluate(problem.pack(layer), ONLY)
    level = np.abs(at.bend).sum(axis=0, dtype=np.float64)
    task = layer.U.T @ (layer.U * level[:, None])
    gram = problem.features.gram  # type: ignore[attr-defined]
    axes = layer.Z / problem.penalty.sizes(layer.Z)
    unit = np.random.default_rng(5).normal(size=layer.Z.shape)
    bent = problem.penalty.product(layer.Z, unit) - axes * (axes * unit).sum() / len(unit)
    product = gram @ unit @ task + ALPHA * bent
    zeros = Layer(0.0 * layer.U, product, np.zeros(N_TASKS), np.zeros(N_TASKS))
    back = problem.unpack(at.precondition(problem.pack(zeros))).Z
    np.testing.assert_allclose(back, unit, rtol=0.02, atol=0.02)


def test_absent_features_stay_and_entering_ones_move_down_their_gradient() -> None:
    problem = build_sparse(sparsity=1.0)
    layer = some_layer(problem)
    Z = np.zeros_like(layer.Z)
    Z[0] = 1e-3  # a small threshold: what the likelihood wants may enter
    at = problem.evaluate(problem.pack(layer._replace(Z=Z)), ONLY)
    gradient = problem.unpack(at.gradient).Z
    assert gradient[1:].any()
    step = problem.unpack(at.precondition(-at.gradient)).Z
    entering = gradient[1:].any(axis=1)
    cosine = (step[1:] * gradient[1:])[entering].sum(axis=1)
    assert (cosine < 0.0).all()
    assert not step[1:][~entering].any()


def test_a_column_that_turns_back_leaves() -> None:
    problem = build_sparse()
    layer = some_layer(problem)
    direction = layer._replace(U=0.0 * layer.U, Z=0.0 * layer.Z, log_sigma=np.zeros(N_TASKS))
    turn = direction.Z.copy()
    turn[1] = -2.0 * layer.Z[1]
    point, along = problem.pack(layer), problem.pack(direction._replace(Z=turn))
    np.testing.assert_array_equal(
        problem.unpack(problem.move(point, along, np.ones(1))).Z.any(axis=1),
        [True, False, True, True],
    )
    halfway = problem.unpack(problem.move(point, along, np.full(1, 0.4)))
    assert halfway.Z.any(axis=1).all()


def test_balancing_keeps_the_coefficients_and_lowers_the_penalty() -> None:
    problem = build_sparse()
    layer = some_layer(problem)
    layer.Z[2] = 0.0
    balanced = problem.balance(layer)
    np.testing.assert_allclose(balanced.U @ balanced.Z.T, layer.U @ layer.Z.T, atol=1e-12)
    np.testing.assert_array_equal(balanced.Z[2], 0.0)
    before, after = (problem.value(problem.pack(each), ONLY) for each in (layer, balanced))
    assert after < before
    assert balanced.U.shape == (N_TASKS, RANK)


def test_a_round_basis_cannot_let_features_leave() -> None:
    with pytest.raises(ValueError, match="needs aligned features: use subspace_features"):
        replace(build(), feature_sparsity=0.5)
