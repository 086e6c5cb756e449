from dataclasses import dataclass

import numpy as np
import pytest

from deeptobit.arrays import FloatArray
from deeptobit.layer.newton import newton_direction
from tests.layer.toys import positive_definite

ALL = np.ones(3, dtype=np.bool_)
NOTHING = np.zeros(3)


@dataclass
class System:
    hessians: FloatArray  # (A, P, P)
    gradient: FloatArray
    n_products: int = 0

    @property
    def value(self) -> FloatArray:
        raise NotImplementedError

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        self.n_products += 1
        return np.asarray(np.einsum("tpq,qt->pt", self.hessians, direction))

    def precondition(self, residual: FloatArray) -> FloatArray:
        return np.asarray(residual / np.asarray(np.abs(np.einsum("tpp->pt", self.hessians))))


def make_system(size: float = 1.0, n: int = 8) -> System:
    hessians = np.stack([positive_definite(n, seed) for seed in range(3)])
    gradient = np.random.default_rng(9).normal(size=(n, 3))
    return System(hessians, size * gradient / np.linalg.norm(gradient, axis=0))


@pytest.mark.parametrize("size", [1e3, 1.0, 1e-4, 1e-8])
def test_the_residual_is_as_small_as_superlinear_convergence_needs(size: float) -> None:
    system = make_system(size)
    direction, _ = newton_direction(system, ALL, NOTHING)
    residual = np.linalg.norm(system.hessian_product(direction) + system.gradient, axis=0)
    assert (residual <= (1 + 1e-6) * min(0.1, np.sqrt(size)) * size).all()


def test_near_the_optimum_it_solves_the_linear_system() -> None:
    system = make_system(1e-12)
    direction, _ = newton_direction(system, ALL, NOTHING)
    exact = -np.linalg.solve(system.hessians, system.gradient.T[..., None])[..., 0].T
    np.testing.assert_allclose(direction, exact, rtol=0, atol=1e-5 * np.abs(exact).max())


def test_what_is_enough_ends_the_work() -> None:
    precise, rough = make_system(1e-6), make_system(1e-6)
    newton_direction(precise, ALL, NOTHING)
    direction, _ = newton_direction(rough, ALL, np.full(3, 0.5e-6))
    assert rough.n_products < precise.n_products
    residual = np.linalg.norm(rough.hessian_product(direction) + rough.gradient, axis=0)
    assert (residual <= 0.5e-6).all()


def test_columns_that_are_not_wanted_get_no_direction() -> None:
    direction, least = newton_direction(make_system(), np.array([True, False, True]), NOTHING)
    whole, _ = newton_direction(make_system(), ALL, NOTHING)
    assert (direction[:, 1] == 0.0).all()
    assert least[1] == np.inf
    np.testing.assert_allclose(direction[:, [0, 2]], whole[:, [0, 2]], rtol=1e-12)


def test_a_diagonal_system_takes_one_product() -> None:
    diagonal = np.array([[1.0, 10.0, 1e6]] * 3)
    system = System(np.stack([np.diag(d) for d in diagonal]), np.ones((3, 3)))
    direction, least = newton_direction(system, ALL, NOTHING)
    assert system.n_products == 1
    np.testing.assert_allclose(direction, -1.0 / diagonal.T)
    search = 1.0 / diagonal[0]
    expected = (search**2 * diagonal[0]).sum() / (search**2).sum()
    np.testing.assert_allclose(least, expected)


def test_the_least_curvature_lies_in_the_spectrum() -> None:
    system = make_system(1e-12)
    _, least = newton_direction(system, ALL, NOTHING)
    for hessian, found in zip(system.hessians, least, strict=True):
        scale = 1.0 / np.sqrt(np.diag(hessian))
        spectrum = np.linalg.eigvalsh(hessian * np.outer(scale, scale))
        assert spectrum[0] - 1e-12 <= found <= np.median(spectrum)


def test_without_positive_curvature_it_goes_down_the_gradient() -> None:
    hessians = np.stack([-np.eye(2), np.diag([2.0, -1.0]), np.eye(2)])
    system = System(hessians, np.array([[1.0, 0.1, 1.0], [2.0, 3.0, 1.0]]))
    direction, least = newton_direction(system, ALL, NOTHING)
    slope = (direction * system.gradient).sum(axis=0)
    assert (slope < 0.0).all()
    np.testing.assert_allclose(direction[:, 0], [-1.0, -2.0])
    np.testing.assert_allclose(direction[:, 2], [-1.0, -1.0])
    np.testing.assert_allclose(least[[0, 2]], [-1.0, 1.0])
    assert least[1] < 0.0


def test_curvature_lost_on_the_way_keeps_the_descent_so_far() -> None:
    hessian = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 3.0], [0.0, 3.0, 1.0]])
    gradient = np.array([[1.0], [0.3], [-0.2]])
    system = System(hessian[None], gradient)
    direction, least = newton_direction(system, np.ones(1, dtype=np.bool_), np.zeros(1))
    assert least.item() < 0.0
    assert (direction * gradient).sum() < 0.0


def test_a_zero_gradient_needs_no_product() -> None:
    system = make_system(0.0)
    direction, _ = newton_direction(system, ALL, NOTHING)
    assert system.n_products == 0
    assert (direction == 0.0).all()
