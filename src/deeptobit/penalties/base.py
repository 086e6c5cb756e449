"""What a penalty on the sketch V must offer, and what it may offer besides."""

from abc import ABC, abstractmethod

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray


class Penalty(ABC):
    r"""The function P in :math:`\alpha\left(\tfrac12\|U\|_F^2 + P(V)\right)`, a layer's penalty.

    V has shape (R, D), one column :math:`V_d` for every feature, and belongs to standardised
    features. A penalty is immutable; a frozen dataclass is the simplest way to write one.

    Every solver needs ``value`` and ``gradient``. Newton's method (``solver="batch"``) needs
    ``curvature`` as well. The rest has defaults:

    - A penalty with a kink where a column of V is zero writes ``has_kinks``, ``zeros``,
      ``threshold`` and ``smoothed``. Features can then leave the model, with exact zeros.
    - A penalty of degree two, such as a weighted ridge, writes ``variances``. The solver then
      keeps U and V in balance, and certifies that no vanished component is missed.
    - ``stiffness`` only speeds up the solver.

    ``solver="online"`` and rows beyond memory support :class:`deeptobit.penalties.Ridge` alone.
    """

    @property
    def rotation_invariant(self) -> bool:
        """Whether P(VQ) = P(V) for every orthogonal Q: any basis of the features will do."""
        return False

    @property
    def has_kinks(self) -> bool:
        """Whether columns of V can be exactly zero at the optimum."""
        return False

    @abstractmethod
    def value(self, V: FloatArray) -> float:
        """P(V)."""

    @abstractmethod
    def gradient(self, V: FloatArray) -> FloatArray:
        """∇P, (R, D); 0 in columns at a kink."""

    @abstractmethod
    def curvature(self, V: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian of P times a direction, both (R, D); columns at a kink are not used."""

    def zeros(self, V: FloatArray) -> BoolArray:
        """Columns of V that are zero and at a kink of P, (D,)."""
        return np.zeros(V.shape[1], dtype=np.bool_)

    def threshold(self, V: FloatArray) -> FloatArray:
        """The slope of P by ‖V_d‖ where V_d = 0: what the likelihood must exceed, (D,)."""
        return np.zeros(V.shape[1])

    def smoothed(self, width: float) -> "Penalty":
        """A penalty near this one whose kinks are rounded off over columns of norm ``width``."""
        name = type(self).__name__
        raise NotImplementedError(f"{name} has kinks, so the solver needs its smoothed(width)")

    def variances(self, V: FloatArray) -> FloatArray | None:
        """The τ (D,) with P(V) = ½ Σ_d ‖V_d‖²/τ_d and ∇P = V/τ, or None if there are none."""
        return None

    def leading_variances(self, gradient: FloatArray) -> FloatArray | None:
        """The τ at V = 0 under which √τ times a gradient by W, (D, T), has the largest norm."""
        return self.variances(np.zeros((1, len(gradient))))

    def stiffness(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rough curvature of P across and along each column of V, (D,) each, for preconditioning.

        By default 1/τ, or 1 if there is no τ or it is 0.
        """
        variances, across = self.variances(V), np.ones(V.shape[1])
        if variances is not None:
            np.divide(1.0, variances, out=across, where=variances > 0.0)
        return across, across


def balance(
    U: FloatArray, V: FloatArray, variances: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Factors of the same UV with the least ‖U‖² + Σ_d ‖V_d‖²/τ_d, strongest component first.

    The factors are left as they are if there are no ``variances`` τ (D,).

    Examples
    --------
    >>> U, V = balance(np.array([[2.0]]), np.array([[0.0, 8.0]]), np.ones(2))
    >>> np.abs(U), np.abs(V)
    (array([[4.]]), array([[0., 4.]]))
    """
    if variances is None:
        return U, V
    spread = np.sqrt(variances)
    q_U, r_U = np.linalg.qr(U)
    q_V, r_V = np.linalg.qr(divide(V, spread).T)
    left, singular, right = np.linalg.svd(r_U @ r_V.T)
    root = np.sqrt(singular)
    return q_U @ left * root, (q_V @ right.T * root).T * spread


def divide(columns: FloatArray, by: FloatArray) -> FloatArray:
    """Columns (R, D) over numbers (D,), with 0 where the number is 0."""
    result = np.zeros(columns.shape)
    np.divide(columns, by, out=result, where=by > 0.0)
    return result


def least_subgradient(slopes: FloatArray, threshold: FloatArray) -> FloatArray:
    """Slopes (R, d) by columns that are zero, shortened by the slopes of their kinks (d,).

    Examples
    --------
    >>> least_subgradient(np.array([[3.0, 0.3], [4.0, 0.4]]), np.ones(2))
    array([[2.4, 0. ],
           [3.2, 0. ]])
    """
    sizes = np.linalg.norm(slopes, axis=0)
    return np.asarray(divide(slopes, sizes) * np.maximum(sizes - threshold, 0.0))
