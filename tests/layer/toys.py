"""Small problems with known optima, one per column, as the solver sees them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray

Tasks = NDArray[np.intp]
Derivatives = tuple[float, FloatArray, FloatArray]  # value, gradient (P,), Hessian (P, P)
Function = Callable[[int, FloatArray], Derivatives]


@dataclass(frozen=True)
class ToyPoint:
    value: FloatArray
    gradient: FloatArray
    hessians: FloatArray  # (A, P, P)

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("tpq,qt->pt", self.hessians, direction))

    def precondition(self, residual: FloatArray) -> FloatArray:
        diagonal = np.maximum(np.abs(np.einsum("tpp->pt", self.hessians)), 1e-3)
        return np.asarray(residual / diagonal)


@dataclass
class Toy:
    """Separate problems: ``function`` gives value, gradient and Hessian of one task at a vector."""

    function: Function
    longest: float = 1.0
    evaluated: list[list[int]] = field(default_factory=list)

    def evaluate(self, point: FloatArray, tasks: Tasks) -> ToyPoint:
        self.evaluated.append(tasks.tolist())
        columns = [self.function(int(t), x) for t, x in zip(tasks, point.T, strict=True)]
        values, gradients, hessians = zip(*columns, strict=True)
        return ToyPoint(np.array(values), np.array(gradients).T, np.array(hessians))

    def move(self, point: FloatArray, direction: FloatArray, step: FloatArray) -> FloatArray:
        return np.asarray(point + step * direction)

    def longest_step(self, direction: FloatArray) -> FloatArray:
        return np.full(direction.shape[1], self.longest)


def positive_definite(n: int, seed: int) -> FloatArray:
    root = np.random.default_rng(seed).normal(size=(n, n))
    return np.asarray(root @ root.T + 0.1 * np.eye(n))


def quadratic(task: int, x: FloatArray) -> Derivatives:
    """½(x − c)ᵀA(x − c) + task, with c = (task, task + 1, …)."""
    hessian = positive_definite(len(x), task)
    away = x - task - np.arange(len(x))
    return float(0.5 * away @ hessian @ away) + task, hessian @ away, hessian


def rosenbrock(task: int, x: FloatArray) -> Derivatives:
    """(1 − x₀)² + k(x₁ − x₀²)², not convex; its minimum is 0 at (1, 1)."""
    k = 10.0**task
    gap = x[1] - x[0] ** 2
    gradient = np.array([-2.0 * (1.0 - x[0]) - 4.0 * k * x[0] * gap, 2.0 * k * gap])
    corner = 2.0 - 4.0 * k * (gap - 2.0 * x[0] ** 2)
    hessian = np.array([[corner, -4.0 * k * x[0]], [-4.0 * k * x[0], 2.0 * k]])
    return float((1.0 - x[0]) ** 2 + k * gap**2), gradient, hessian


def double_well(_: int, x: FloatArray) -> Derivatives:
    """Σ (x² − 1)²/4, with a ridge at 0 and minima of value 0 at ±1."""
    return (
        float((0.25 * (x**2 - 1.0) ** 2).sum()),
        np.asarray(x * (x**2 - 1.0)),
        np.diag(3.0 * x**2 - 1.0),
    )


def hyperbola(_: int, x: FloatArray) -> Derivatives:
    """Σ √(1 + x²): a full Newton step from x leads to −x³."""
    root = np.sqrt(1.0 + x**2)
    return float(root.sum()), np.asarray(x / root), np.diag(root**-3)


def barrier(task: int, x: FloatArray) -> Derivatives:
    """Σ cx − log x, defined for x > 0 only and least at 1/c."""
    c = task + 1.0
    if (x <= 0.0).any():
        return np.nan, np.full_like(x, np.nan), np.eye(len(x))
    return float((c * x - np.log(x)).sum()), np.asarray(c - 1.0 / x), np.diag(x**-2)
