"""The directions that outcomes share, in a form that does not depend on how U and V are rotated."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deeptobit.arrays import FloatArray

if TYPE_CHECKING:
    import pandas as pd


_SHOWN = 4  # loadings of each kind in a repr


@dataclass(frozen=True, eq=False, repr=False)
class Subspace:
    r"""One direction :math:`u v^\top` of the effects; they add up to all of them.

    Parameters
    ----------
    number : int
        1 for the strongest.
    share : float
        Share of the sum of squared effects.
    features, targets : tuples of str
    feature_loadings : array of shape (D,)
        v, scaled so that the largest is +1 and none is beyond ±1.
    target_loadings : array of shape (T,)
        u: the effect on each target, in units of its noise, of one standard deviation of the
        feature that loads 1.
    """

    number: int
    share: float
    features: tuple[str, ...]
    targets: tuple[str, ...]
    feature_loadings: FloatArray
    target_loadings: FloatArray

    def __repr__(self) -> str:
        """Name the largest loadings on both sides."""
        features = _largest(self.features, self.feature_loadings)
        targets = _largest(self.targets, self.target_loadings)
        return f"Subspace {self.number} ({self.share:.0%}): {features} -> {targets}"

    def to_frame(self) -> "pd.DataFrame":
        """All loadings, one row per (side, name), side being "feature" or "target"."""
        import pandas as pd

        rows = [("feature", name) for name in self.features]
        rows += [("target", name) for name in self.targets]
        index = pd.MultiIndex.from_tuples(rows, names=["side", "name"])
        loadings = np.concatenate([self.feature_loadings, self.target_loadings])
        return pd.DataFrame({"loading": loadings}, index=index)


def canonical_subspaces(
    effects: FloatArray, features: tuple[str, ...], targets: tuple[str, ...]
) -> list[Subspace]:
    r"""Singular value decomposition of effects of shape (T, D), strongest direction first.

    .. math:: E = \sum_r u_r v_r^\top, \quad u_r \perp u_s,\; v_r \perp v_s,\; \max_d v_{rd} = 1
        = \max_d |v_{rd}|

    Unique up to ties among singular values; directions at rounding level are left out.

    Examples
    --------
    >>> effects = np.array([[0.0, 2.0, -1.0], [0.0, -4.0, 2.0]])
    >>> canonical_subspaces(effects, ("age", "volume", "marker"), ("MMSE", "ADAS"))
    [Subspace 1 (100%): volume +1.00, marker -0.50 -> ADAS -4.00, MMSE +2.00]
    """
    left, strength, right = np.linalg.svd(effects, full_matrices=False)
    total = float(np.square(strength).sum())
    smallest = strength[0] * max(effects.shape) * np.finfo(np.float64).eps
    subspaces = []
    for r in range(int((strength > smallest).sum())):
        peak = right[r, np.argmax(np.abs(right[r]))]
        v, u = right[r] / peak, left[:, r] * strength[r] * peak
        share = float(strength[r] ** 2 / total)
        subspaces.append(Subspace(r + 1, share, features, targets, v, u))
    return subspaces


def _largest(names: tuple[str, ...], loadings: FloatArray) -> str:
    """The largest loadings with their signs; what is a hundredth of the first is left out."""
    order = np.argsort(-np.abs(loadings), kind="stable")
    order = order[np.abs(loadings[order]) > 0.01 * np.abs(loadings).max()]
    shown = ", ".join(f"{names[k]} {loadings[k]:+.2f}" for k in order[:_SHOWN])
    return shown + (", …" if len(order) > _SHOWN else "")
