"""A layer whose features can leave, against finite differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from deeptobit.layer import Design, Layer, SubspaceProblem, TargetScaling, features_for
from deeptobit.penalties import Group
from tests.layer.problems import N_TASKS, features, outcomes, row_weights
from tests.layer.test_subspace_problem import ALPHA, ONLY, RANK, build, slope, some_layer


def build_sparse(
    *, sparsity: float = 0.7, smoothing: float = 0.0, sparse: bool = False
) -> SubspaceProblem:
    """The problem of the other tests, with its features in their own basis."""
    X, weight = features(), row_weights()
    targets = outcomes(X)
    design = Design.build(csr_matrix(X) if sparse else X, weight, center=True, standardize=True)
    scaling = TargetScaling.build(targets, weight, center=True)
    penalty = Group(sparsity, smoothing)
    return replace(
        build(), features=features_for(design, penalty), scaling=scaling, penalty=penalty
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_gradient_of_the_problem_is_its_slope(smoothing: float, sparse: bool) -> None:
    problem = build_sparse(sparse=sparse, smoothing=smoothing)
    point = problem.pack(some_layer(problem))
    gradient = problem.evaluate(point, ONLY).gradient
    expected = [slope(problem, point, unit[:, None]) for unit in np.eye(len(point))]
    np.testing.assert_allclose(gradient[:, 0], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_hessian_of_the_problem_is_that_of_its_gradient(smoothing: float) -> None:
    problem = build_sparse(smoothing=smoothing)
    point, direction = (problem.pack(some_layer(problem, seed)) for seed in (3, 4))
    at, step = problem.evaluate(point, ONLY), 1e-4
    ahead, behind = (problem.evaluate(point + k * step * direction, ONLY) for k in (1, -1))
    expected = (ahead.gradient - behind.gradient) / (2.0 * step)
    error = np.linalg.norm(at.hessian_product(direction) - expected)
    assert error < 1e-4 * np.linalg.norm(expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_preconditioner_is_symmetric_and_positive(smoothing: float) -> None:
    problem = build_sparse(smoothing=smoothing)
    at = problem.evaluate(problem.pack(some_layer(problem)), ONLY)
    matrix = np.hstack([at.precondition(unit[:, None]) for unit in np.eye(len(at.gradient))])
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-7, atol=1e-9)
    assert np.linalg.eigvalsh(matrix).min() > 0.0


def test_its_block_is_the_gauss_newton_hessian_but_for_the_common_term() -> None:
    problem = build_sparse(sparsity=1.0)
    layer = some_layer(problem)
    at = problem.evaluate(problem.pack(layer), ONLY)
    task = layer.U.T @ (layer.U * at.total_curvature[:, None])
    gram = problem.features.gram
    axes = layer.Z / np.linalg.norm(layer.Z, axis=1)[:, None]
    unit = np.random.default_rng(5).normal(size=layer.Z.shape)
    curved = problem.penalty.curvature(layer.Z.T, unit.T).T
    curved = curved - axes * (axes * unit).sum() / len(unit)
    product = gram @ unit @ task + ALPHA * curved
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
    before, after = (problem.evaluate(problem.pack(each)).value for each in (layer, balanced))
    assert after < before
    assert balanced.U.shape == (N_TASKS, RANK)


def test_a_whitened_basis_cannot_let_features_leave() -> None:
    with pytest.raises(ValueError, match="needs features in their own basis: use features_for"):
        replace(build(), penalty=Group(0.5))
