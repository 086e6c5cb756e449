"""Newton systems of many problems, solved together by preconditioned conjugate gradients."""

from typing import Protocol

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray

_MAX_PRODUCTS = 200
_FLAT = 1e-12  # relative curvature below which a step length means nothing


class NewtonSystem(Protocol):
    """H d = −g for every column."""

    @property
    def gradient(self) -> FloatArray:
        """g, (P, A)."""
        ...

    def hessian_product(self, direction: FloatArray) -> FloatArray:
        """H d, (P, A)."""
        ...

    def precondition(self, residual: FloatArray) -> FloatArray:
        """M⁻¹r for some positive definite M near H, (P, A)."""
        ...


def newton_direction(
    system: NewtonSystem, wanted: BoolArray, enough: FloatArray
) -> tuple[FloatArray, FloatArray]:
    r"""Descent directions, exact enough for superlinear convergence, and the least curvature met.

    A column stops when its residual is below :math:`\min(0.1, \sqrt{\|g\|})\,\|g\|`, or below what
    is ``enough``, or where it meets a direction without positive curvature (it then keeps what it
    has: a descent direction).

    Parameters
    ----------
    system : NewtonSystem
    wanted : bool array of shape (A,)
        Columns to solve; the others get a zero direction.
    enough : array of shape (A,)
        Residual norm below which further work would be wasted.

    Returns
    -------
    direction : array of shape (P, A)
    least_curvature : array of shape (A,)
        Smallest pᵀHp / pᵀp over the search directions p.
    """
    residual = -system.gradient
    size = np.linalg.norm(residual, axis=0)
    goal = np.maximum(np.minimum(0.1, np.sqrt(size)) * size, enough)
    direction = np.zeros_like(residual)
    search, in_metric = system.precondition(residual), residual.copy()  # p and Mp
    energy = (residual * search).sum(axis=0)
    least = np.full(size.shape, np.inf)
    going = wanted & (size > 0.0)
    for product_count in range(_MAX_PRODUCTS):
        if not going.any():
            break
        product = system.hessian_product(search)
        curvature = (search * product).sum(axis=0)
        metric = (search * in_metric).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = curvature / np.square(search).sum(axis=0)
            least = np.where(going, np.minimum(least, slope), least)
            curved = curvature > _FLAT * metric
            length = np.where(going & curved, energy / curvature, 0.0)
        flat = going & ~curved
        if product_count == 0:
            direction = np.where(flat, search, direction)
        going &= ~flat
        direction += length * search
        residual -= length * product
        going &= np.linalg.norm(residual, axis=0) > goal
        scaled = system.precondition(residual)
        fresh = (residual * scaled).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            keep = np.where(going, fresh / energy, 0.0)
        search = np.where(going, scaled, 0.0) + keep * search
        in_metric = np.where(going, residual, 0.0) + keep * in_metric
        energy = fresh
    return direction, least
