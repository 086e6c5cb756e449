import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.layer import BasisFeatures, Design, OlsenProblem
from deeptobit.likelihood import Gaussian, Logistic, Noise, StudentT, evaluate
from deeptobit.targets import CensoredTargets
from tests.layer.problems import (
    N_TASKS,
    TASKS,
    build_problem,
    features,
    outcomes,
    some_direction,
    some_point,
    take_rows,
)

EVERY_NOISE = pytest.mark.parametrize("noise", [Gaussian(), Logistic(), StudentT()], ids=repr)
SPARSE = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


def value_along(
    problem: OlsenProblem, point: FloatArray, direction: FloatArray, step: float
) -> FloatArray:
    return problem.evaluate(problem.move(point, direction, np.full(N_TASKS, step)), TASKS).value


def quadratic_form(problem: OlsenProblem, point: FloatArray, direction: FloatArray) -> FloatArray:
    """Second difference of the value along the straight line that a direction starts."""
    tau = direction[-1]
    change = direction + point * tau
    change[-1] = point[-1] * tau
    step = 1e-2
    at = {k: problem.evaluate(point + k * step * change, TASKS).value for k in (-2, -1, 0, 1, 2)}
    bend = 16.0 * (at[-1] + at[1]) - (at[-2] + at[2]) - 30.0 * at[0]
    return np.asarray(bend / (12.0 * step**2))


@EVERY_NOISE
@SPARSE
def test_the_objective_is_the_weighted_likelihood_and_the_ridge(noise: Noise, sparse: bool) -> None:
    alpha = 0.3
    problem = build_problem(sparse=sparse, noise=noise, alpha=alpha)
    point = some_point(problem)
    gamma = problem.features.coefficients(point[:-2])
    X = Design.build(features(), problem.weight, center=True, standardize=True).matrix
    low, high = (problem.scaling.apply(end) for end in (problem.targets.low, problem.targets.high))
    sigma = 1.0 / point[-1]
    nll = evaluate(noise, low, high, (X @ gamma + point[-2]) * sigma, sigma).nll
    expected = problem.weight @ nll + 0.5 * alpha * np.square(gamma).sum(axis=0)
    np.testing.assert_allclose(problem.evaluate(point, TASKS).value, expected, rtol=1e-11)
    np.testing.assert_allclose(problem.evaluate(point, TASKS).value, expected, rtol=1e-11)


@EVERY_NOISE
@SPARSE
def test_the_gradient_is_the_slope_along_every_direction(noise: Noise, sparse: bool) -> None:
    problem = build_problem(sparse=sparse, noise=noise)
    point, step = some_point(problem), 1e-3
    gradient = problem.evaluate(point, TASKS).gradient
    for parameter in range(len(point)):
        direction = np.zeros_like(point)
        direction[parameter] = 1.0
        near, far = (
            value_along(problem, point, direction, k * step)
            - value_along(problem, point, direction, -k * step)
            for k in (1, 2)
        )
        slope = (8.0 * near - far) / (12.0 * step)
        np.testing.assert_allclose(gradient[parameter], slope, rtol=1e-7, atol=1e-9)


@EVERY_NOISE
@SPARSE
def test_hessian_products_are_second_differences(noise: Noise, sparse: bool) -> None:
    problem = build_problem(sparse=sparse, noise=noise)
    point = some_point(problem)
    at = problem.evaluate(point, TASKS)
    one, two = 0.5 * some_direction(problem, 4), 0.5 * some_direction(problem, 5)
    both, first, second = (quadratic_form(problem, point, d) for d in (one + two, one, two))
    mixed = 0.5 * (both - first - second)  # a bilinear form, by polarisation
    size = np.linalg.norm(at.hessian_product(one), axis=0) * np.linalg.norm(two, axis=0)
    error = (at.hessian_product(one) * two).sum(axis=0) - mixed
    assert (np.abs(error) < 2e-5 * size).all()


@SPARSE
def test_the_hessian_is_symmetric_and_convex_for_gaussian_noise(sparse: bool) -> None:
    problem = build_problem(sparse=sparse)
    at = problem.evaluate(some_point(problem), TASKS)
    units = np.eye(problem.features.rank + 2)
    columns = [at.hessian_product(np.repeat(unit[:, None], N_TASKS, axis=1)) for unit in units]
    for hessian in np.stack(columns).transpose(2, 0, 1):
        np.testing.assert_allclose(hessian, hessian.T, rtol=1e-4, atol=1e-5)
        assert np.linalg.eigvalsh(hessian).min() > 0.0
    assert (at.precondition(np.ones_like(at.gradient)) > 0.0).all()


def test_sparse_and_dense_features_give_the_same_problem() -> None:
    dense, sparse = build_problem(), build_problem(sparse=True)
    gamma = np.random.default_rng(0).normal(size=(4, N_TASKS))
    found = []
    for problem in (dense, sparse):
        z = np.linalg.solve(problem.features.basis, gamma)
        at = problem.evaluate(np.vstack([z, some_point(problem)[-2:]]), TASKS)
        # The gradient by γ = Bz, whatever the basis.
        by_gamma = np.linalg.solve(problem.features.basis.T, at.gradient[:-2])
        found.append(np.vstack([at.value, by_gamma, at.gradient[-2:]]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-10)


def test_some_tasks_are_columns_of_all_tasks() -> None:
    problem = build_problem()
    point, chosen = some_point(problem), np.array([2, 0])
    whole, part = problem.evaluate(point, TASKS), problem.evaluate(point[:, chosen], chosen)
    np.testing.assert_allclose(part.value, whole.value[chosen], rtol=1e-13)
    np.testing.assert_allclose(part.gradient, whole.gradient[:, chosen], rtol=1e-10, atol=1e-13)
    direction = some_direction(problem, 4)
    expected = whole.hessian_product(direction)[:, chosen]
    np.testing.assert_allclose(
        part.hessian_product(direction[:, chosen]), expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_any_partition_of_the_rows_adds_up_to_the_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = build_problem()
    cuts = np.sort(rng.integers(0, 700, size=4))
    blocks = np.split(rng.permutation(700), cuts)
    parts = [take_rows(problem, rows, share=len(rows) / 700) for rows in blocks]
    point, direction = some_point(problem), some_direction(problem, 4)
    whole = problem.evaluate(point, TASKS)
    shards = [part.evaluate(point, TASKS) for part in parts]
    np.testing.assert_allclose(sum(at.value for at in shards), whole.value, rtol=1e-12)
    np.testing.assert_allclose(sum(at.gradient for at in shards), whole.gradient, atol=1e-12)
    product = sum(at.hessian_product(direction) for at in shards)
    np.testing.assert_allclose(product, whole.hessian_product(direction), rtol=1e-4, atol=1e-5)


def test_a_row_of_weight_two_is_the_row_twice() -> None:
    problem = build_problem()
    point = some_point(problem)
    twice = take_rows(problem, np.concatenate([np.arange(700), np.arange(700)]), share=2.0)
    once, doubled = problem.evaluate(point, TASKS), twice.evaluate(point, TASKS)
    np.testing.assert_allclose(doubled.value, 2.0 * once.value, rtol=1e-12)
    np.testing.assert_allclose(doubled.gradient, 2.0 * once.gradient, atol=1e-12)


def test_a_missing_entry_is_a_row_left_out() -> None:
    problem = build_problem()
    point = some_point(problem)
    known = ~problem.targets.missing
    np.testing.assert_allclose(problem.known_share(), problem.weight @ known)
    for task in TASKS:
        part = take_rows(problem, np.flatnonzero(known[:, task]), share=1.0)
        assert len(part.targets) < 700
        here = problem.evaluate(point, TASKS)
        there = part.evaluate(point, TASKS)
        np.testing.assert_allclose(there.value[task], here.value[task], rtol=1e-12)
        np.testing.assert_allclose(there.gradient[:, task], here.gradient[:, task], atol=1e-12)


def test_what_is_fixed_has_neither_slope_nor_curvature() -> None:
    fixed = np.array([True, False, True])
    problem = build_problem(fit_intercept=False, free_sigma=fixed)
    at = problem.evaluate(some_point(problem), TASKS)
    product = at.hessian_product(some_direction(problem, 4))
    for rows in (at.gradient, product):
        assert (rows[-2] == 0.0).all()
        assert rows[-1, 1] == 0.0
        assert (rows[-1, [0, 2]] != 0.0).all()
        assert (rows[:-2] != 0.0).all()


def test_a_precision_pressed_against_its_cap_stays_there() -> None:
    problem = build_problem(max_theta=0.01)
    point = np.zeros((problem.features.rank + 2, N_TASKS))
    point[-1] = 0.01
    at = problem.evaluate(point, TASKS)
    assert (at.gradient[-1] == 0.0).all()
    freed = build_problem(max_theta=0.02).evaluate(point, TASKS)
    assert (freed.gradient[-1] < 0.0).all()
    upward = np.zeros_like(point)
    upward[-1] = 0.5
    assert (problem.move(point, upward, np.ones(N_TASKS))[-1] == 0.01).all()


def test_a_precision_at_its_cap_may_fall() -> None:
    problem = build_problem(max_theta=100.0)
    point = np.zeros((problem.features.rank + 2, N_TASKS))
    point[-1] = 100.0
    assert (problem.evaluate(point, TASKS).gradient[-1] > 0.0).all()


def test_a_change_of_precision_keeps_the_regression_line() -> None:
    problem = build_problem()
    point = some_point(problem)
    direction = np.zeros_like(point)
    direction[-1] = [0.5, -0.3, 0.1]
    moved = problem.move(point, direction, np.ones(N_TASKS))
    np.testing.assert_allclose(moved[:-1] / moved[-1], point[:-1] / point[-1], rtol=1e-13)
    assert (np.sign(moved[-1] - point[-1]) == [1.0, -1.0, 1.0]).all()


def test_a_change_of_the_line_keeps_the_precision() -> None:
    problem = build_problem()
    point, direction = some_point(problem), some_direction(problem, 4)
    direction[-1] = 0.0
    moved = problem.move(point, direction, np.array([0.0, 0.5, 1.0]))
    np.testing.assert_array_equal(moved, point + direction * [0.0, 0.5, 1.0])


@pytest.mark.parametrize("tau", [-1e3, -2.0, -0.9, -0.1, 0.0, 0.3, 0.9, 1.0, 1e3])
def test_the_longest_step_leaves_the_precision_within_a_factor_of_ten(tau: float) -> None:
    problem = build_problem()
    point, direction = some_point(problem), some_direction(problem, 4)
    direction[-1] = tau
    step = problem.longest_step(direction)
    assert (step == 1.0).all() if abs(tau) <= 0.9 else (step <= 1.0).all()
    ratio = problem.move(point, direction, step)[-1] / point[-1]
    assert ((ratio > 0.0999) & (ratio < 10.0)).all()
    assert ((ratio < 1.0) == (tau < 0.0)).all()


def test_uncensored_scores_reach_their_best_precision_in_one_newton_step() -> None:
    """With normal noise and the line held, the curvature by log θ knows where the best θ is."""
    targets = CensoredTargets.from_bounds(outcomes(features()).values)
    problem = build_problem(targets=targets)
    point = np.zeros((problem.features.rank + 2, N_TASKS))
    point[-1] = [0.6, 1.0, 1.5]
    at = problem.evaluate(point, TASKS)
    direction = np.zeros_like(point)
    direction[-1] = 1.0
    direction[-1] = -at.gradient[-1] / at.hessian_product(direction)[-1]
    moved = problem.move(point, direction, np.ones(N_TASKS))
    slope = problem.evaluate(moved, TASKS).gradient[-1]
    assert (np.abs(slope) < 1e-6).all()


@EVERY_NOISE
def test_rotating_the_basis_leaves_the_objective(noise: Noise) -> None:
    problem = build_problem(noise=noise, alpha=0.0)
    rounded = problem.features
    assert rounded.matrix is not None
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    turned = BasisFeatures(
        rounded.design, rounded.basis @ rotation, rounded.ridge, rounded.matrix @ rotation
    )
    point = some_point(problem)
    there = np.vstack([rotation.T @ point[:-2], point[-2:]])
    np.testing.assert_allclose(
        build_problem(noise=noise, alpha=0.0, features=turned).evaluate(there, TASKS).value,
        problem.evaluate(point, TASKS).value,
        rtol=1e-12,
    )
