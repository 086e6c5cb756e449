"""Group sparsity: a feature that is not needed leaves for all tasks at once."""

from dataclasses import dataclass, field, replace

import numpy as np

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.penalties.base import Penalty, divide

_MAX_ROUNDS = 100
_CONVERGED = 1e-10  # relative gain of a round


@dataclass(frozen=True)
class Group(Penalty):
    r"""A mixture of the squared norm of V and the squared sum of its columns' norms.

    .. math::
        P(V) = \frac{1 - w}{2}\|V\|_F^2 + \frac{w}{2D}\Big(\sum_d \|V_d\|\Big)^2
        = \min_{\omega \ge 0,\ \bar\omega = 1} \tfrac12\sum_d \|V_d\|^2 (1 - w + w/\omega_d)

    The second form says what it does: every feature has a prior variance ω, and these variances
    are learned while their mean is 1. The best is :math:`\omega_d = \|V_d\|/\text{mean}`, so that
    a feature that is not needed ends with variance 0 and leaves. P is of degree two like the
    ridge, hence the penalty on W = UV is of degree one whatever w is.

    With a smoothing ε > 0, :math:`\sqrt{\|V_d\|^2 + \epsilon^2}` replaces :math:`\|V_d\|` in the
    second term. There are no kinks then, and no feature leaves.

    Parameters
    ----------
    sparsity : float
        s from 0 to 1, from which :func:`group_share` computes w.
    smoothing : float
        ε.

    Examples
    --------
    >>> V = np.array([[3.0, 0.0, 0.0], [4.0, 0.0, 1.0]])
    >>> Group(0.0).value(V), Group(1.0).value(V), Group(1.0).zeros(V)
    (13.0, 6.0, array([False,  True, False]))
    """

    sparsity: float = 0.5
    smoothing: float = field(default=0.0, repr=False)

    @property
    def has_kinks(self) -> bool:
        """Whether columns can be exactly zero: not if they are smoothed."""
        return self.sparsity > 0.0 and self.smoothing == 0.0

    def smoothed(self, width: float) -> "Group":
        """The same with ε = ``width``."""
        return replace(self, smoothing=width)

    def value(self, V: FloatArray) -> float:
        """P(V)."""
        share = self._share(V)
        group = self._sizes(V).sum() ** 2 / V.shape[1]
        return 0.5 * float((1.0 - share) * np.square(V).sum() + share * group)

    def gradient(self, V: FloatArray) -> FloatArray:
        """∇P = V/τ, (R, D)."""
        return divide(V, self.variances(V))

    def curvature(self, V: FloatArray, direction: FloatArray) -> FloatArray:
        """The Hessian of P times a direction, (R, D), for columns of V that are not zero."""
        sizes = self._sizes(V)
        # Along a column its norm grows linearly: there only the sum of the norms is curved.
        axes = divide(V, sizes)
        along = (axes * direction).sum(axis=0)
        straight = divide(sizes.mean() * along, sizes) - along.mean()
        return np.asarray(divide(direction, self.variances(V)) - self._share(V) * axes * straight)

    def zeros(self, V: FloatArray) -> BoolArray:
        """Columns of features that have left, (D,)."""
        return np.asarray(~V.any(axis=0) & self.has_kinks)

    def threshold(self, V: FloatArray) -> FloatArray:
        """W times the mean norm of a column, (D,)."""
        return np.full(V.shape[1], self._share(V) * float(self._sizes(V).mean()))

    def variances(self, V: FloatArray) -> FloatArray:
        """τ with 1/τ_d = 1 − w + w/ω_d at the best ω, (D,); 0 for features that have left."""
        share, sizes = self._share(V), self._sizes(V)
        return divide(sizes, (1.0 - share) * sizes + share * sizes.mean())

    def stiffness(self, V: FloatArray) -> tuple[FloatArray, FloatArray]:
        """1/τ across a column and 1 − w along it: a short column is stiff across, soft along."""
        across, _ = super().stiffness(V)
        straight = divide(np.square(V).sum(axis=0), np.square(self._sizes(V)))  # 1 if not smoothed
        return across, across - straight * (across - (1.0 - self._share(V)))

    def leading_variances(self, gradient: FloatArray) -> FloatArray:
        r"""Prior variances of the features for which the gradient G at W = 0 is largest, (D,).

        .. math:: \max_{\|u\| = 1,\ \omega \ge 0,\ \bar\omega = 1}
            \sum_d \tau_d\, (u^\top G_d)^2, \qquad \tau_d = \frac{1}{1 - w + w/\omega_d}

        u and τ are found in turns, from the leading singular vector and from the largest row of
        G (D, T). The root of the better maximum is the alpha above which no feature enters.

        Examples
        --------
        >>> G = np.array([[3.0, 0.0], [0.0, 2.0], [0.0, 2.0], [0.0, 2.0]])
        >>> Group(0.0).leading_variances(G), Group(1.0).leading_variances(G)
        (array([1., 1., 1., 1.]), array([4., 0., 0., 0.]))
        """
        share = self._share(gradient.T)
        if share == 0.0 or not gradient.any():
            return np.ones(len(gradient))
        largest = gradient[np.linalg.norm(gradient, axis=1).argmax()]
        starts = (np.linalg.svd(gradient, full_matrices=False)[2][0], largest)
        found = [_climb(gradient, start, share) for start in starts]
        return max(found, key=lambda each: each[0])[1]

    def _share(self, V: FloatArray) -> float:
        return group_share(self.sparsity, V.shape[1])

    def _sizes(self, V: FloatArray) -> FloatArray:
        """Smoothed norms of the columns, (D,)."""
        return np.asarray(np.sqrt(np.square(V).sum(axis=0) + self.smoothing**2))


def group_share(sparsity: float, n_features: int) -> float:
    r"""The weight w of the group part of P for a sparsity s: :math:`s\sqrt D/(1 - s + s\sqrt D)`.

    With k equal columns the group part of P is k/D of the ridge. With w = s the ridge would
    therefore dominate until s is close to 1, and hardly a feature would leave; with this weight
    both parts are equal at s = ½ for :math:`k = \sqrt D`.

    Examples
    --------
    >>> [group_share(s, 100) for s in (0.0, 0.5, 1.0)]
    [0.0, 0.9090909090909091, 1.0]
    """
    group = sparsity * float(np.sqrt(n_features))
    return group / (1.0 - sparsity + group)


def _climb(gradient: FloatArray, direction: FloatArray, share: float) -> tuple[float, FloatArray]:
    """The best τ for u, the best u for τ, and so on: the norm reached, and τ (D,)."""
    height = 0.0
    for _ in range(_MAX_ROUNDS):
        variances = _best_variances(np.abs(gradient @ direction), share)
        _, singular, right = np.linalg.svd(
            np.sqrt(variances)[:, None] * gradient, full_matrices=False
        )
        direction = right[0]
        if singular[0] <= height * (1.0 + _CONVERGED):
            break
        height = float(singular[0])
    return float(singular[0]), variances


def _best_variances(slopes: FloatArray, share: float) -> FloatArray:
    """The τ that maximise Σ_d τ_d a_d²: (1 − m w/a_d)₊/(1 − w), where m makes the mean of ω one."""
    n_features = len(slopes)
    if share == 1.0:
        return np.where(np.arange(n_features) == slopes.argmax(), float(n_features), 0.0)
    ordered = np.sort(slopes)[::-1]
    counts = np.arange(1, n_features + 1)
    means = np.cumsum(ordered) / (n_features * (1.0 - share) + counts * share)
    inside = ordered > share * means
    threshold = share * means[np.flatnonzero(inside)[-1]]
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(1.0 - threshold / slopes, 0.0) / (1.0 - share))
