"""The penalty on the sketch V: a ridge, with a share that lets features leave for all tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class FeaturePenalty:
    r"""A mixture of the squared norm of V and the squared sum of its columns' norms.

    .. math::
        \Omega(V) = (1 - w)\|V\|_F^2 + \frac{w}{D}\Big(\sum_d \|V_d\|\Big)^2
        = \min_{\omega \ge 0,\ \bar\omega = 1} \sum_d \|V_d\|^2 (1 - w + w/\omega_d)

    The second form says what it does: every column has a prior variance, and these variances are
    learned while their total is given. The best one is :math:`\omega_d = \|V_d\|/\text{mean}`, so
    that a column which is not needed ends with variance 0 and leaves. Ω is of degree two like the
    ridge, hence the penalty on W = UV stays of degree one whatever w is.

    A smoothing ε > 0 replaces :math:`\|V_d\|` by :math:`\sqrt{\|V_d\|^2 + \epsilon^2}` in the
    second term: no column is at a kink then, and none leaves.

    V is written in a basis of the features, V = (BZ)ᵀ. A column of V is a row of Z only if B is the
    identity, so w > 0 needs that.

    Parameters
    ----------
    squared_norms : array of shape (r,)
        ‖B_j‖² of the basis.
    share : float
        w, from 0 to 1.
    smoothing : float
        ε.

    Examples
    --------
    >>> Z = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0]])
    >>> FeaturePenalty(np.ones(3), 0.0).value(Z), FeaturePenalty(np.ones(3), 1.0).value(Z)
    (26.0, 12.0)
    """

    squared_norms: FloatArray
    share: float
    smoothing: float = 0.0

    def value(self, Z: FloatArray) -> float:
        """Ω at V = (BZ)ᵀ."""
        ridge = (self.squared_norms[:, None] * np.square(Z)).sum()
        if self.share == 0.0:
            return float(ridge)
        group = self.sizes(Z).sum() ** 2 / len(Z)
        return float((1.0 - self.share) * ridge + self.share * group)

    def sizes(self, Z: FloatArray) -> FloatArray:
        """The norms of the rows, smoothed, (r, 1)."""
        return np.asarray(np.sqrt(np.square(Z).sum(axis=1) + self.smoothing**2)[:, None])

    def variance(self, Z: FloatArray) -> FloatArray:
        """The prior variances τ that Ω amounts to, Ω = Σ_j ‖Z_j‖²/τ_j and ∇Ω/2 = Z/τ, (r, 1)."""
        if self.share == 0.0:
            return np.asarray(1.0 / self.squared_norms[:, None])
        sizes = self.sizes(Z)
        stiffness = (1.0 - self.share) * sizes + self.share * sizes.mean()
        return divide_rows(sizes, stiffness)

    def balance(self, U: FloatArray, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Factors of the same UZᵀ with the least ‖U‖² + Σ_j ‖Z_j‖²/τ_j, τ being that of Z.

        The strongest component comes first.
        """
        spread = np.sqrt(self.variance(Z))
        q_U, r_U = np.linalg.qr(U)
        q_Z, r_Z = np.linalg.qr(divide_rows(Z, spread))
        left, singular, right = np.linalg.svd(r_U @ r_Z.T)
        root = np.sqrt(singular)
        return q_U @ left * root, q_Z @ right.T * root * spread

    def slope(self, Z: FloatArray) -> FloatArray:
        """∇Ω/2, (r, R); 0 in the rows that are 0."""
        return divide_rows(Z, self.variance(Z))

    def product(self, Z: FloatArray, direction: FloatArray) -> FloatArray:
        """Half the Hessian of Ω times a direction, (r, R), for rows of Z that are not 0."""
        straight = divide_rows(direction, self.variance(Z))
        if self.share == 0.0:
            return straight
        # Along a column its norm grows linearly: there only the sum of the norms is curved.
        sizes = self.sizes(Z)
        axes = divide_rows(Z, sizes)
        along = (axes * direction).sum(axis=1)[:, None]
        curved = divide_rows(sizes.mean() * along, sizes) - along.mean()
        return np.asarray(straight - self.share * axes * curved)

    def threshold(self, Z: FloatArray) -> float:
        """The slope of Ω/2 by ‖Z_j‖ where Z_j = 0: what the likelihood must exceed to enter it."""
        return self.share * float(self.sizes(Z).mean()) if self.kinked else 0.0

    @property
    def kinked(self) -> bool:
        """Whether rows can be exactly 0."""
        return self.share > 0.0 and self.smoothing == 0.0

    def absent(self, Z: FloatArray) -> BoolArray:
        """Rows at which Ω has a kink and the feature is out of the model, (r,)."""
        return np.asarray(~Z.any(axis=1) & self.kinked)


def divide_rows(rows: FloatArray, by: FloatArray) -> FloatArray:
    """Rows (r, A) over numbers (r, 1), with 0 where the number is 0."""
    result = np.zeros(rows.shape)
    np.divide(rows, by, out=result, where=by > 0.0)
    return result


def least_subgradient(slopes: FloatArray, threshold: float) -> FloatArray:
    """Slopes (a, R) of the likelihood by rows that are 0, less what their kink makes up for.

    Examples
    --------
    >>> least_subgradient(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """
    sizes = np.linalg.norm(slopes, axis=1)[:, None]
    return np.asarray(divide_rows(slopes, sizes) * np.maximum(sizes - threshold, 0.0))


def group_share(sparsity: float, n_features: int) -> float:
    r"""The weight w of the group part of Ω for a sparsity s: :math:`s\sqrt D/(1 - s + s\sqrt D)`.

    With k equal columns the group part of Ω is k/D of the ridge. In a plain mixture the ridge would
    therefore rule until s is next to 1, and hardly a feature would leave; with this weight both
    parts are equal at s = ½ for :math:`k = \sqrt D`.

    Examples
    --------
    >>> [group_share(s, 100) for s in (0.0, 0.5, 1.0)]
    [0.0, 0.9090909090909091, 1.0]
    """
    group = sparsity * float(np.sqrt(n_features))
    return group / (1.0 - sparsity + group)
