from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from deeptobit.arrays import FloatArray
from deeptobit.layer import BasisFeatures, Design, Layer, SubspaceProblem, TargetScaling
from deeptobit.likelihood import Gaussian, Logistic, Noise, StudentT, evaluate
from tests.layer.problems import N_SAMPLES, N_TASKS, features, outcomes, row_weights

ONLY = np.zeros(1, dtype=np.intp)
ALPHA, RANK = 0.3, 2
EVERY_NOISE = pytest.mark.parametrize("noise", [Gaussian(), Logistic(), StudentT()], ids=repr)
SPARSE = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


def build(
    *, sparse: bool = False, noise: Noise | None = None, standardize: bool = True, **changes: Any
) -> SubspaceProblem:
    X, weight = features(), row_weights()
    targets = outcomes(X)
    matrix = csr_matrix(X) if sparse else X
    problem = SubspaceProblem(
        features=BasisFeatures.whitened(
            Design.build(matrix, weight, center=True, standardize=standardize), 1e-6
        ),
        targets=targets,
        scaling=TargetScaling.build(targets, weight, center=True),
        noise=Gaussian() if noise is None else noise,
        rank=RANK,
        alpha=ALPHA,
        fit_intercept=True,
        free_sigma=np.ones(N_TASKS, dtype=np.bool_),
        total_weight=float(N_SAMPLES),
    )
    return replace(problem, **changes)


def some_layer(problem: SubspaceProblem, seed: int = 3) -> Layer:
    rng = np.random.default_rng(seed)
    return Layer(
        rng.normal(size=(N_TASKS, problem.rank)),
        rng.normal(size=(problem.features.rank, problem.rank)),
        rng.normal(size=N_TASKS),
        np.log([0.7, 1.3, 2.2]),
    )


def some_point(problem: SubspaceProblem, seed: int = 3) -> FloatArray:
    return problem.pack(some_layer(problem, seed))


def value_at(problem: SubspaceProblem, point: FloatArray) -> float:
    return float(problem.evaluate(point, ONLY).value[0])


def slope(problem: SubspaceProblem, point: FloatArray, direction: FloatArray) -> float:
    """Fourth-order difference of the value along a straight line."""
    step = 1e-3
    at = {k: value_at(problem, point + k * step * direction) for k in (-2, -1, 1, 2)}
    return (8.0 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12.0 * step)


def coefficients(problem: SubspaceProblem, layer: Layer) -> FloatArray:
    """W = UV of the standardised features, (T, D)."""
    return layer.U @ problem.features.coefficients(layer.Z).T


def sketch(problem: SubspaceProblem, layer: Layer) -> FloatArray:
    """V, (R, D)."""
    return problem.features.coefficients(layer.Z).T


def in_basis(problem: SubspaceProblem, V: FloatArray) -> FloatArray:
    """Z with V = (BZ)ᵀ, (r, R)."""
    return np.asarray(np.linalg.solve(problem.features.basis, V.T), dtype=np.float64)


@EVERY_NOISE
@SPARSE
def test_the_objective_is_the_weighted_likelihood_and_the_penalty(
    noise: Noise, sparse: bool
) -> None:
    problem = build(sparse=sparse, noise=noise)
    layer = some_layer(problem)
    X = Design.build(features(), problem.weight, center=True, standardize=True).matrix
    low, high = (problem.scaling.apply(end) for end in (problem.targets.low, problem.targets.high))
    latent = X @ coefficients(problem, layer).T + layer.intercept
    nll = evaluate(noise, low, high, latent, np.exp(layer.log_sigma)).nll
    penalty = np.square(layer.U).sum() + np.square(sketch(problem, layer)).sum()
    expected = problem.weight @ nll.sum(axis=1) + 0.5 * ALPHA * penalty
    np.testing.assert_allclose(value_at(problem, problem.pack(layer)), expected, rtol=1e-11)


@EVERY_NOISE
@SPARSE
def test_the_gradient_is_the_slope_by_every_parameter(noise: Noise, sparse: bool) -> None:
    problem = build(sparse=sparse, noise=noise)
    point = some_point(problem)
    gradient = problem.evaluate(point, ONLY).gradient
    units = np.eye(len(point))[:, :, None]
    slopes = np.array([slope(problem, point, unit) for unit in units])
    found, expected = problem.unpack(gradient), problem.unpack(slopes[:, None])
    for part, reference in zip(found, expected, strict=True):  # U, Z, intercept, log σ
        np.testing.assert_allclose(part, reference, rtol=1e-7, atol=1e-8)


@EVERY_NOISE
@SPARSE
def test_hessian_products_are_differences_of_the_gradient(noise: Noise, sparse: bool) -> None:
    problem = build(sparse=sparse, noise=noise)
    point, step = some_point(problem), 1e-4
    at = problem.evaluate(point, ONLY)
    for block in range(4):  # a direction in each of U, Z, intercept, log σ alone
        parts = [np.zeros_like(part) for part in at.layer]
        parts[block] = some_layer(problem, seed=4)[block]
        direction = problem.pack(Layer(*parts))
        ahead, behind = (
            problem.evaluate(point + k * step * direction, ONLY).gradient for k in (1, -1)
        )
        expected = (ahead - behind) / (2.0 * step)
        error = np.linalg.norm(at.hessian_product(direction) - expected)
        assert error < 1e-4 * np.linalg.norm(expected)


@SPARSE
def test_the_hessian_is_symmetric(sparse: bool) -> None:
    problem = build(sparse=sparse)
    at = problem.evaluate(some_point(problem), ONLY)
    hessian = np.hstack([at.hessian_product(unit[:, None]) for unit in np.eye(len(at.gradient))])
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-4, atol=1e-5)


def test_the_preconditioner_is_symmetric_and_positive() -> None:
    problem = build()
    at = problem.evaluate(some_point(problem), ONLY)
    matrix = np.hstack([at.precondition(unit[:, None]) for unit in np.eye(len(at.gradient))])
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-8, atol=1e-10)
    assert np.linalg.eigvalsh(matrix).min() > 0.0


@pytest.mark.parametrize(
    ("changes", "block"),
    [
        ({"fit_intercept": False}, 2),
        ({"free_sigma": np.zeros(N_TASKS, dtype=np.bool_)}, 3),
    ],
    ids=["intercept", "sigma"],
)
def test_what_is_held_fixed_has_no_slope_and_no_curvature(
    changes: dict[str, Any], block: int
) -> None:
    problem, free = build(**changes), build()
    at, unheld = (p.evaluate(some_point(p), ONLY) for p in (problem, free))
    direction = some_point(problem, seed=5)
    slopes, products = problem.unpack(at.gradient), problem.unpack(at.hessian_product(direction))
    assert not slopes[block].any()
    assert not products[block].any()
    np.testing.assert_array_equal(slopes.U, free.unpack(unheld.gradient).U)
    held = [np.zeros_like(part) for part in at.layer]
    held[block] = np.ones(N_TASKS)
    assert not at.hessian_product(problem.pack(Layer(*held))).any()


def test_at_its_floor_sigma_is_held_only_where_it_would_fall() -> None:
    problem = build()
    layer = some_layer(problem)
    log_sigma = np.log([9.0, 1e-2, 9.0])  # far too wide, far too narrow, far too wide
    floored = replace(problem, min_log_sigma=log_sigma - [0.0, 0.0, 1.0])
    point = problem.pack(
        layer._replace(U=0.0 * layer.U, intercept=np.zeros(N_TASKS), log_sigma=log_sigma)
    )
    slopes = problem.unpack(floored.evaluate(point, ONLY).gradient).log_sigma
    free = problem.unpack(problem.evaluate(point, ONLY).gradient).log_sigma
    np.testing.assert_array_equal(np.sign(free), [1.0, -1.0, 1.0])
    np.testing.assert_array_equal(slopes, free * [0.0, 1.0, 1.0])
    down = problem.pack(problem.unpack(0.0 * point)._replace(log_sigma=-np.ones(N_TASKS)))
    moved = problem.unpack(floored.move(point, down, np.ones(1)))
    np.testing.assert_allclose(moved.log_sigma, log_sigma - [0.0, 0.0, 1.0])


def test_a_step_changes_no_sigma_by_more_than_e_squared() -> None:
    problem = build()
    direction = np.zeros_like(some_point(problem))
    assert problem.longest_step(direction) == 1.0
    direction[-2] = -8.0
    assert problem.longest_step(direction) == 0.25


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_any_partition_of_rows_and_weights_adds_up_to_the_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = build()
    point, direction = some_point(problem), some_point(problem, seed=4)
    whole, whole_features = problem.evaluate(point, ONLY), problem.features
    assert whole_features.matrix is not None
    # Every row belongs to three parts, with a share of its weight in each.
    shares = rng.dirichlet(np.ones(3), size=N_SAMPLES)
    parts = []
    for column in range(3):
        rows = rng.permutation(N_SAMPLES)
        weight = (problem.weight * shares[:, column])[rows]
        design = replace(whole_features.design, weight=weight)
        some = replace(whole_features, design=design, matrix=whole_features.matrix[rows])
        targets = problem.targets[rows]
        part = replace(problem, features=some, targets=targets, alpha=ALPHA / 3)
        parts.append((part, part.evaluate(point, ONLY)))
    np.testing.assert_allclose(sum(at.value for _, at in parts), whole.value, rtol=1e-12)
    np.testing.assert_allclose(sum(at.gradient for _, at in parts), whole.gradient, rtol=1e-9)
    products = sum(at.hessian_product(direction) for _, at in parts)
    np.testing.assert_allclose(products, whole.hessian_product(direction), rtol=1e-4, atol=1e-5)
    by_W = sum(at.coefficient_gradient() for _, at in parts)
    np.testing.assert_allclose(by_W, whole.coefficient_gradient(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_balancing_keeps_the_coefficients_and_lowers_the_penalty(rank: int) -> None:
    problem = build(rank=rank)
    layer = some_layer(problem)
    balanced = problem.balance(layer)
    np.testing.assert_allclose(
        coefficients(problem, balanced), coefficients(problem, layer), rtol=1e-10, atol=1e-12
    )
    U, V = balanced.U, sketch(problem, balanced)
    np.testing.assert_allclose(U.T @ U, V @ V.T, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(U.T @ U, np.diag(np.diag(U.T @ U)), atol=1e-10)
    trace_norm = np.linalg.norm(coefficients(problem, layer), "nuc")
    np.testing.assert_allclose(0.5 * (np.sum(U**2) + np.sum(V**2)), trace_norm, rtol=1e-10)
    before, after = (value_at(problem, problem.pack(each)) for each in (layer, balanced))
    assert after < before
    again = problem.pack(problem.balance(balanced))
    np.testing.assert_allclose(value_at(problem, again), after, rtol=1e-13)


def test_balancing_nothing_gives_nothing() -> None:
    problem = build()
    layer = some_layer(problem)
    zero = layer._replace(U=0.0 * layer.U, Z=0.0 * layer.Z)
    balanced = problem.balance(zero)
    assert not balanced.U.any()
    assert not balanced.Z.any()


@EVERY_NOISE
def test_rotating_the_factors_leaves_the_objective(noise: Noise) -> None:
    problem = build(noise=noise)
    layer = some_layer(problem)
    rotation = np.linalg.qr(np.random.default_rng(7).normal(size=(RANK, RANK)))[0]
    turned = layer._replace(U=layer.U @ rotation, Z=layer.Z @ rotation)
    at, other = (problem.evaluate(problem.pack(each), ONLY) for each in (layer, turned))
    np.testing.assert_allclose(other.value, at.value, rtol=1e-13)
    before, after = problem.unpack(at.gradient), problem.unpack(other.gradient)
    np.testing.assert_allclose(after.U, before.U @ rotation, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.Z, before.Z @ rotation, rtol=1e-9, atol=1e-12)


def test_packing_and_unpacking_are_inverse() -> None:
    problem = build()
    layer = some_layer(problem)
    point = problem.pack(layer)
    assert point.shape == (N_TASKS * RANK + problem.features.rank * RANK + 2 * N_TASKS, 1)
    for found, expected in zip(problem.unpack(point), layer, strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(problem.pack(problem.unpack(point)), point)


@SPARSE
@pytest.mark.parametrize("standardize", [True, False])
def test_the_coefficient_gradient_is_that_by_every_coefficient(
    sparse: bool, standardize: bool
) -> None:
    # With U = I and no penalty the objective is a function of W = V alone.
    problem = build(sparse=sparse, standardize=standardize, rank=N_TASKS, alpha=0.0)
    basis = problem.features.basis
    n_features = len(basis)
    W = np.random.default_rng(0).normal(size=(N_TASKS, n_features)) / problem.features.design.scale
    start = some_layer(problem)

    def pack(coef: FloatArray) -> FloatArray:
        return problem.pack(start._replace(U=np.eye(N_TASKS), Z=in_basis(problem, coef)))

    origin = pack(0.0 * W)
    expected = np.empty_like(W)
    for task, column in np.ndindex(*W.shape):
        unit = np.zeros_like(W)
        unit[task, column] = 1.0
        expected[task, column] = slope(problem, pack(W), pack(unit) - origin)
    found = problem.evaluate(pack(W), ONLY).coefficient_gradient()
    axes = basis / np.linalg.norm(basis, axis=0)  # orthonormal
    size = np.abs(expected).max()
    np.testing.assert_allclose(axes @ found, expected.T, rtol=1e-5, atol=1e-6 * size)
    norms = [np.linalg.norm(matrix, 2) for matrix in (found, expected)]
    np.testing.assert_allclose(norms[0], norms[1], rtol=1e-6)


def test_sparse_and_dense_features_give_the_same_problem() -> None:
    found = []
    V = np.random.default_rng(0).normal(size=(RANK, 4))
    for problem in (build(), build(sparse=True)):
        basis = problem.features.basis
        point = problem.pack(some_layer(problem)._replace(Z=in_basis(problem, V)))
        at = problem.evaluate(point, ONLY)
        slopes = problem.unpack(at.gradient)
        by_V = np.linalg.solve(basis.T, slopes.Z)  # whatever the basis
        spectrum = np.linalg.svd(at.coefficient_gradient(), compute_uv=False)
        parts = [at.value, slopes.U, by_V, slopes.intercept, slopes.log_sigma]
        found.append((np.concatenate([part.ravel() for part in parts]), spectrum))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-5)
