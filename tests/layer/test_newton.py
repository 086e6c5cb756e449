import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.layer.newton import NewtonResult, solve_newton
from tests.layer.toys import (
    Derivatives,
    Function,
    Toy,
    barrier,
    double_well,
    hyperbola,
    quadratic,
    rosenbrock,
)


def solve(toy: Toy, start: FloatArray, tol: float = 1e-9, max_iter: int = 200) -> NewtonResult:
    return solve_newton(toy, start, tol=np.full(start.shape[1], tol), max_iter=max_iter)


def test_quadratics_are_solved_where_they_are_known_to_be_least() -> None:
    start = np.random.default_rng(0).normal(size=(6, 4))
    result = solve(Toy(quadratic), start)
    expected = np.arange(4) + np.arange(6)[:, None]
    np.testing.assert_allclose(result.point, expected, atol=1e-7)
    np.testing.assert_allclose(result.value, np.arange(4), atol=1e-13)
    assert result.converged.all()
    assert (result.gradient_norm <= 1e-9).all()
    assert (result.n_iter <= 10).all()


@pytest.mark.parametrize("start", [(-1.2, 1.0), (0.0, 0.0), (3.0, -2.0), (-5.0, -5.0)])
def test_curved_valleys_lead_to_their_minimum(start: tuple[float, float]) -> None:
    result = solve(Toy(rosenbrock), np.tile(np.array(start)[:, None], 3), max_iter=1000)
    np.testing.assert_allclose(result.point, 1.0, atol=1e-6)
    np.testing.assert_allclose(result.value, 0.0, atol=1e-12)
    assert result.converged.all()


def test_from_a_ridge_without_positive_curvature_it_descends_into_a_well() -> None:
    start = np.array([[0.1, -0.2, 0.4], [-0.3, -0.05, 0.01]])
    result = solve(Toy(double_well), start)
    np.testing.assert_allclose(result.point, np.sign(start), atol=1e-8)
    assert result.converged.all()
    assert (result.least_curvature < 0.0).all()


def test_full_steps_that_overshoot_are_shortened() -> None:
    result = solve(Toy(hyperbola), np.array([[2.0, -30.0, 0.5]]))
    np.testing.assert_allclose(result.point, 0.0, atol=1e-8)
    np.testing.assert_allclose(result.value, 1.0)
    assert result.converged.all()


def test_steps_out_of_the_domain_are_shortened() -> None:
    result = solve(Toy(barrier), np.array([[5.0, 40.0, 0.01]]))
    np.testing.assert_allclose(result.point, [[1.0, 1 / 2, 1 / 3]], rtol=1e-8)
    assert result.converged.all()


@pytest.mark.parametrize("max_iter", [0, 1, 3])
def test_the_number_of_iterations_is_limited(max_iter: int) -> None:
    start = np.tile([[-1.2], [1.0]], 3)
    result = solve(Toy(rosenbrock), start, max_iter=max_iter)
    assert (result.n_iter == max_iter).all()
    assert not result.converged.any()
    np.testing.assert_allclose(
        result.value, Toy(rosenbrock).evaluate(result.point, np.arange(3)).value
    )
    unmoved = (result.point == start).all()
    assert unmoved if max_iter == 0 else not unmoved


def test_more_iterations_never_end_higher() -> None:
    start = np.tile([[-1.2], [1.0]], 3)
    values = [solve(Toy(rosenbrock), start, max_iter=n).value for n in range(12)]
    assert (np.diff(values, axis=0) <= 1e-13).all()


@pytest.mark.parametrize("function", [quadratic, rosenbrock, double_well, hyperbola])
def test_solving_together_is_solving_apart(function: Function) -> None:
    start = np.array([[-1.2, 0.3, 4.0], [1.0, 0.2, -3.0]])
    together = solve(Toy(function), start)
    for task in range(3):

        def alone(_: int, x: FloatArray, task: int = task) -> Derivatives:
            return function(task, x)

        apart = solve(Toy(alone), start[:, [task]])
        np.testing.assert_allclose(apart.point[:, 0], together.point[:, task], atol=1e-12)
        assert apart.n_iter[0] == together.n_iter[task]


def test_columns_leave_as_they_converge() -> None:
    toy = Toy(rosenbrock)
    start = np.array([[1.0, -1.2, 1.001], [1.0, 1.0, 1.0]])
    result = solve(toy, start)
    assert result.n_iter[0] == 0
    assert (result.point[:, 0] == 1.0).all()
    assert toy.evaluated[0] == [0, 1, 2]
    assert toy.evaluated[1] == [1, 2]
    assert toy.evaluated[-1] == [1]
    assert result.n_iter[2] < result.n_iter[1]


def test_each_column_has_its_own_tolerance() -> None:
    start = np.full((3, 3), 9.0)
    result = solve_newton(Toy(quadratic), start, tol=np.array([np.inf, 1.0, 1e-12]), max_iter=50)
    assert result.converged.all()
    np.testing.assert_array_equal(result.point[:, 0], start[:, 0])
    assert result.gradient_norm[1] <= 1.0
    assert result.gradient_norm[2] <= 1e-12
    assert result.n_iter[0] < result.n_iter[1] < result.n_iter[2]


def test_the_start_is_not_modified() -> None:
    start = np.full((3, 2), 9.0)
    solve(Toy(quadratic), start)
    assert (start == 9.0).all()


def test_steps_respect_the_longest_one_worth_trying() -> None:
    """On a one-dimensional quadratic every half step halves the distance."""

    def parabola(_: int, x: FloatArray) -> Derivatives:
        return float(0.5 * x @ x), x.copy(), np.eye(len(x))

    result = solve(Toy(parabola, longest=0.5), np.array([[1.0]]), max_iter=5)
    assert result.point.item() == pytest.approx(0.5**5)


def test_a_gradient_that_does_not_lead_down_ends_without_convergence() -> None:
    def wrong(_: int, x: FloatArray) -> Derivatives:
        return float(0.5 * x @ x), -x, np.eye(len(x))

    start = np.array([[2.0, 3.0]])
    result = solve(Toy(wrong), start, max_iter=20)
    assert not result.converged.any()
    np.testing.assert_allclose(result.point, start)
    np.testing.assert_allclose(result.value, [2.0, 4.5])
