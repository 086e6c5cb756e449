from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from deeptobit.arrays import FloatArray
from deeptobit.layer import OlsenProblem, TargetScaling
from deeptobit.layer.newton import NewtonResult, solve_newton
from deeptobit.likelihood import Gaussian, Logistic, Noise
from deeptobit.targets import CensoredTargets
from tests.layer.problems import (
    N_TASKS,
    TASKS,
    build_problem,
    features,
    outcomes,
    row_weights,
)


def solve(problem: OlsenProblem) -> NewtonResult:
    start = np.zeros((problem.features.rank + 2, N_TASKS))
    start[-1] = 1.0
    return solve_newton(problem, start, tol=np.full(N_TASKS, 1e-10), max_iter=100)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_without_censoring_it_is_weighted_least_squares(sparse: bool) -> None:
    X, weight = features(), row_weights()
    Y = np.nan_to_num(outcomes(X).values)
    targets = CensoredTargets.from_bounds(Y)
    scaling = TargetScaling.build(targets, weight, center=True)
    problem = build_problem(sparse=sparse, alpha=0.0, targets=targets, scaling=scaling)
    result = solve(problem)
    root = np.sqrt(weight)[:, None]
    extended = np.column_stack([X, np.ones(len(X))])
    expected = np.linalg.lstsq(root * extended, root * Y, rcond=None)[0]
    sigma = scaling.scale / result.point[-1]
    coef = problem.features.coefficients(result.point[:-2]) * sigma
    np.testing.assert_allclose(
        coef / problem.features.design.scale[:, None], expected[:-1], rtol=1e-7, atol=1e-9
    )
    residual = Y - extended @ expected
    np.testing.assert_allclose(sigma, np.sqrt(weight @ residual**2), rtol=1e-8)
    assert result.converged.all()


@pytest.mark.parametrize("noise", [Gaussian(), Logistic()], ids=repr)
def test_with_every_kind_of_entry_it_ends_where_a_general_optimiser_ends(noise: Noise) -> None:
    problem = build_problem(noise=noise)
    result = solve(problem)
    assert result.converged.all()
    for task in TASKS:

        def objective(x: FloatArray, task: int = int(task)) -> float:
            point = np.append(x[:-1], np.exp(x[-1]))[:, None]
            return float(problem.evaluate(point, np.array([task])).value.item())

        start = np.zeros(problem.features.rank + 2)
        found = minimize(objective, start, method="BFGS", options={"gtol": 1e-7})
        assert result.value[task] == pytest.approx(found.fun, abs=1e-10)
        np.testing.assert_allclose(result.point[:-1, task], found.x[:-1], atol=1e-5)
        assert np.log(result.point[-1, task]) == pytest.approx(found.x[-1], abs=1e-5)


def test_a_few_iterations_suffice() -> None:
    assert solve(build_problem()).n_iter.max() <= 12


def test_a_fixed_precision_stays_where_it_starts() -> None:
    problem = build_problem(free_sigma=np.array([True, False, True]))
    result = solve(problem)
    assert result.converged.all()
    assert result.point[-1, 1] == 1.0
    assert (result.point[-1, [0, 2]] != 1.0).all()


def test_a_task_that_is_fitted_exactly_stops_at_the_largest_precision() -> None:
    X = features()
    targets = CensoredTargets.from_bounds(X @ np.array([[1.0, 2.0, 0.0]] * 4))
    scaling = TargetScaling(np.zeros(N_TASKS), np.ones(N_TASKS))
    problem = replace(build_problem(alpha=0.0), targets=targets, scaling=scaling, max_theta=1e3)
    result = solve(problem)
    np.testing.assert_allclose(result.point[-1], 1e3)
    assert result.converged.all()
