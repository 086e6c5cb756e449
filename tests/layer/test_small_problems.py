"""Newton's method on problems of a handful of parameters."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import minimize

from deeptobit.arrays import FloatArray
from deeptobit.layer import Objective, minimize_each, positive_inverse


def rosenbrock(scale: FloatArray) -> Callable[[FloatArray], Objective]:
    """One valley per column, each with its own scale (T,)."""

    def objective(point: FloatArray) -> Objective:
        x, y = point
        valley = y - x**2
        value = (1.0 - x) ** 2 + scale * valley**2

        def derivatives() -> tuple[FloatArray, FloatArray]:
            gradient = np.stack([2.0 * (x - 1.0) - 4.0 * scale * x * valley, 2.0 * scale * valley])
            cross = -4.0 * scale * x
            corner = 2.0 - 4.0 * scale * (valley - 2.0 * x**2)
            hessian = np.array([[corner, cross], [cross, 2.0 * scale * np.ones_like(x)]])
            return gradient, hessian

        return value, derivatives

    return objective


def test_every_column_reaches_its_minimum() -> None:
    start = np.array([[-1.2, 0.0, 3.0], [1.0, -2.0, -1.0]])
    point, value = minimize_each(
        rosenbrock(np.array([1.0, 10.0, 100.0])), start, longest=2.0, max_steps=200
    )
    np.testing.assert_allclose(point, 1.0, rtol=1e-8)
    np.testing.assert_allclose(value, 0.0, atol=1e-14)


def test_steps_are_bounded_and_never_rise() -> None:
    objective, point = rosenbrock(np.full(1, 100.0)), np.array([[-1.2], [1.0]])
    for _ in range(5):
        (before,), _ = objective(point)
        moved, (after,) = minimize_each(objective, point, longest=0.1, max_steps=1)
        assert np.abs(moved - point).max() <= 0.1 * (1 + 1e-12)
        assert after <= before
        point = moved


def test_a_column_that_cannot_be_evaluated_further_stays() -> None:
    def objective(point: FloatArray) -> Objective:
        value = np.where(point[0] > 0.0, np.nan, -point[0])
        return value, lambda: (-np.ones_like(point), np.ones_like(point)[None])

    point, value = minimize_each(objective, np.zeros((1, 2)), longest=1.0, max_steps=3)
    np.testing.assert_array_equal(point, 0.0)
    np.testing.assert_array_equal(value, 0.0)


@pytest.mark.parametrize("seed", [0, 1])
def test_it_agrees_with_scipy(seed: int) -> None:
    matrix = np.random.default_rng(seed).normal(size=(3, 3))

    def value(x: FloatArray) -> float:
        return float(np.logaddexp(0.0, matrix @ x).sum() + 0.1 * x @ x)

    def objective(point: FloatArray) -> Objective:
        share = 1.0 / (1.0 + np.exp(-matrix @ point))

        def derivatives() -> tuple[FloatArray, FloatArray]:
            weight = share * (1.0 - share)
            hessian = np.einsum("ki,kt,kj->ijt", matrix, weight, matrix)
            return matrix.T @ share + 0.2 * point, hessian + 0.2 * np.eye(3)[:, :, None]

        return np.array([value(column) for column in point.T]), derivatives

    point, _ = minimize_each(objective, np.ones((3, 1)), longest=5.0, max_steps=50)
    expected = minimize(value, np.ones(3), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(point[:, 0], expected, atol=1e-6)


def test_negative_curvature_counts_with_its_size() -> None:
    hessian = np.array([[2.0, 0.0], [0.0, -4.0]])[:, :, None]
    np.testing.assert_allclose(positive_inverse(hessian)[:, :, 0], np.diag([0.5, 0.25]))
