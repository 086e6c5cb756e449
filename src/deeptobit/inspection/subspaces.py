"""The directions that outcomes share, and which parts of them would be there in the next sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.likelihood import log_ndtr
from deeptobit.metrics import principal_angles

# The directions, in a form that does not depend on how U and V are rotated.

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

    def to_frame(self) -> pd.DataFrame:
        """All loadings, one row per (side, name), side being "feature" or "target"."""
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


# Stability. The components of effects E (T, D) are those of `canonical_subspaces`: by singular
# values, strongest first, the largest loading positive, whatever the rotation of U and V. In a draw
# E* of what E may be in truth, component r is the one whose direction of the targets is closest to
# that of E, with its sign, and its loadings are σ*_s v*_s, in the units of σ_r v_r. Signs are
# compared on the same score of the targets: σ_r v_r = u_rᵀE with u_rᵀE*.

SEPARATED = 0.8  # median cosine between a component and its draws, of the targets' directions
_COPIES = (1, 2, 4)  # times the people


class Draw(NamedTuple):
    """Components of a draw, matched to those of E.

    Parameters
    ----------
    loadings : array of shape (R, D)
    cosines : array of shape (R,)
        Between the directions of the targets.
    directions : array of shape (T, R)
        Of the targets, in the draw.
    """

    loadings: FloatArray
    cosines: FloatArray
    directions: FloatArray


def align(effects: FloatArray, draw: FloatArray, n_components: int) -> Draw:
    """Match the components of a draw with those of ``effects``, both (T, D).

    Each is matched on its own, among twice as many components of the draw.

    Examples
    --------
    >>> effects = np.diag([3.0, 2.0])
    >>> align(effects, np.diag([1.0, 2.0]), 2).loadings + 0.0
    array([[1., 0.],
           [0., 2.]])
    """
    left, right = (np.linalg.svd(each, full_matrices=False) for each in (effects, draw))
    cosines = left.U[:, :n_components].T @ right.U[:, : 2 * n_components]
    nearest = np.abs(cosines).argmax(axis=1)
    found = cosines[np.arange(len(nearest)), nearest]
    # The sign of E's component is the one that is shown: its largest loading is positive.
    shown = left.Vh[:n_components]
    sign = np.sign(shown[np.arange(len(shown)), np.abs(shown).argmax(axis=1)])
    directions = right.U[:, nearest] * np.where(found < 0.0, -sign, sign)
    return Draw(directions.T @ draw, np.abs(found), directions)


def agreement(
    first: FloatArray, second: FloatArray, X: FloatArray, n_components: int
) -> FloatArray:
    """Smallest cosine of the principal angles between the leading 1, 2, … directions, (R,).

    Directions are compared by the scores that they give to the rows X (n, D), in standard units:
    where features are nearly copies of each other, very different loadings can describe the same
    direction.

    Examples
    --------
    >>> agreement(np.array([[1.0, 0.0]]), np.array([[1.0, 1.0]]), np.eye(2), 1).round(3)
    array([0.707])
    """
    spaces = [
        X @ np.linalg.svd(each, full_matrices=False).Vh[:n_components].T for each in (first, second)
    ]
    cosines = []
    for count in range(1, spaces[0].shape[1] + 1):
        angles = principal_angles(*(space[:, :count] for space in spaces))
        cosines.append(float(np.cos(angles[-1])) if len(angles) == count else 0.0)
    return np.array(cosines)


def with_more_people(cosines: FloatArray, sizes: FloatArray, n_people: float) -> FloatArray:
    r"""The agreement of two samples of a size, from that of smaller ones.

    Directions of two samples that err independently by a share ε/n of their squared length have
    cosine :math:`1/(1 + ε/n)`; ε is estimated from the cosines found.

    Parameters
    ----------
    cosines : array of shape (k, R)
        Mean agreement of two samples of each size.
    sizes : array of shape (k,)
    n_people : float

    Examples
    --------
    >>> with_more_people(np.array([[0.5], [1 / 3]]), np.array([100.0, 50.0]), 400.0)
    array([0.8])
    """
    error = np.mean(sizes[:, None] * (1.0 / np.maximum(cosines, 1e-3) - 1.0), axis=0)
    return np.asarray(1.0 / (1.0 + error / n_people))


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """How components would come out in other samples.

    Parameters
    ----------
    components : DataFrame, one row per component
        ``share`` of the squared effects; the ``cosine`` with it that half of the draws, and of the
        next samples, are expected to reach, and whether it is ``separated`` from the others (a
        cosine of at least 0.8); ``n_stable`` features;
        ``agreement`` of the subspace up to this component between two halves of the people (the
        cosine of the largest principal angle), the ``chance`` agreement (95 % of those of
        shuffled outcomes are below), and what is to be expected of two samples as large as this one
        (``agreement_x1``), twice and four times as large.
    loadings : DataFrame, one row per (component, feature)
        ``loading`` on the scale of :class:`Subspace`, ``low`` and ``high`` ends of its band,
        ``sign_probability`` that the next sample gives the effect on the same score of the outcomes
        this sign, and whether it is ``stable``.
    confidence : float
        Of the bands.
    probability : float
        The share of the signs of stable features that is to hold in the next sample, on average
        over the features of a component.
    """

    components: pd.DataFrame
    loadings: pd.DataFrame
    confidence: float
    probability: float

    def __repr__(self) -> str:
        """What is stable, in words."""
        return self.sentence()

    def sentence(self) -> str:
        """One sentence: how many features are stable, or that nothing is."""
        n_stable = self.components["n_stable"]
        if not n_stable.any():
            first = self.components.iloc[0]
            outlook = (
                "with four times the people the first direction of two samples would agree by "
                f"{first['agreement_x4']:.2f}"
                if first["agreement"] > first["chance"]
                else "the first directions of two halves of the people agree no better than those "
                "of shuffled outcomes"
            )
            return (
                "Nothing is stable: no loading of any component is sure to keep its sign in "
                f"another sample of this size (asked at {self.probability:.0%}); {outlook}."
            )
        some = n_stable[n_stable > 0]
        parts = [f"{count} in component {number}" for number, count in some.items()]
        n_features = len(self.loadings) // len(n_stable)
        return (
            f"Of {n_features} features, stable ones ({self.probability:.0%} of their signs are "
            f"expected to hold in the next sample): {', '.join(parts)}."
        )

    def stable(self) -> pd.DataFrame:
        """The mask, one row per feature and one column per component."""
        mask: pd.DataFrame = self.loadings["stable"].unstack("component")
        return mask.reindex(self.loadings.index.unique("feature"))


def summarise_draws(
    effects: FloatArray,
    subspaces: Sequence[Subspace],
    draws: Sequence[Draw],
    halves: Sequence[tuple[FloatArray, FloatArray]],
    agreements: dict[float, FloatArray],
    chance: FloatArray,
    *,
    n_people: float,
    confidence: float,
    probability: float,
) -> Stability:
    r"""Bands, stable features and agreements.

    The band of a loading holds ``confidence`` of its draws.

    An estimate from half of the people differs from that of all of them by half of the variance
    with which that of the next sample does. So estimates from halves, of mean m and standard
    deviation s, give z = m/s, and with a flat prior a sign holds with probability
    :math:`\Phi(z/\sqrt2)`. Small loadings are many, and the direction u is fitted to the same
    people, so that signs hold less often: with :math:`\Phi(az)`, where a is the most likely one for
    the signs that the components of one half have in the other. The *stable* features of a
    separated component are the largest set whose mean probability is the one that is asked for.

    Parameters
    ----------
    effects : array of shape (T, D)
    subspaces : sequence of R Subspace
        The leading ones of these effects.
    draws : sequence of Draw
        Of the truth.
    halves : sequence of pairs of arrays of shape (T, D)
        Effects in two halves of the people.
    agreements : dict
        By the number of people, the mean agreement of two samples of that size, (R,).
    chance : array of shape (R,)
    n_people : float
    confidence, probability : float

    Examples
    --------
    >>> from deeptobit.inspection import canonical_subspaces
    >>> effects = np.array([[3.0, 0.1]])
    >>> draws = [align(effects, effects + by, 1) for by in (-0.3, -0.1, 0.1, 0.3)]
    >>> halves = [(effects - by, effects + by) for by in (-0.3, -0.1, 0.1, 0.3)]
    >>> subspaces = canonical_subspaces(effects, ("age", "sex"), ("MMSE",))
    >>> found = summarise_draws(effects, subspaces, draws, halves, {50.0: np.ones(1)}, np.zeros(1),
    ...     n_people=100, confidence=0.9, probability=0.95)
    >>> found.stable()[1].tolist()
    [True, False]
    """
    loadings = np.array([draw.loadings for draw in draws])
    pairs = [order for pair in halves for order in (pair, pair[::-1])]
    aligned = [align(effects, half, len(subspaces)) for half, _ in pairs]
    u = align(effects, effects, len(subspaces)).directions
    of_halves = np.array([u.T @ half for half, _ in pairs])
    median = [np.median([one.cosines for one in some], axis=0) for some in (draws, aligned)]
    apart = 1.0 - np.square(median)
    cosine = np.sqrt(1.0 - np.maximum(apart[0], np.minimum(2.0 * apart[1], 1.0)))
    separated = cosine >= SEPARATED
    ends = np.quantile(loadings, [0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence], axis=0)
    spread = np.maximum(of_halves.std(axis=0, ddof=1), np.finfo(np.float64).tiny)
    z = of_halves.mean(axis=0) / spread
    # Loadings of a half's own components, positive where the other half has the same sign.
    own = [one.directions.T @ np.hstack(pair) for one, pair in zip(aligned, pairs, strict=True)]
    half, other = np.split(np.array(own), 2, axis=2)
    held = half * np.sign(other) / (np.sqrt(2.0) * spread)  # in units of the error of a half
    parts, n_stable = [], []
    for r, subspace in enumerate(subspaces):
        v, unit = subspace.feature_loadings, float(np.linalg.norm(subspace.target_loadings))
        sure = ndtr(_sureness(held[:, r]) * np.sign(v) * z[r])
        mask = _largest_set(sure, probability) & separated[r]
        n_stable.append(int(mask.sum()))
        columns = {"loading": v, "low": ends[0, r] / unit, "high": ends[1, r] / unit}
        columns |= {"sign_probability": sure, "stable": mask}
        parts.append(pd.DataFrame(columns, index=pd.Index(subspace.features, name="feature")))
    sizes, found = np.array(list(agreements)), np.array(list(agreements.values()))
    components = {
        "share": [subspace.share for subspace in subspaces],
        "cosine": cosine,
        "separated": separated,
        "n_stable": n_stable,
        "agreement": found[0],
        "chance": chance,
    }
    for times in _COPIES:
        components[f"agreement_x{times}"] = with_more_people(found, sizes, times * n_people)
    numbers = pd.Index([subspace.number for subspace in subspaces], name="component")
    table = pd.concat(parts, keys=numbers, names=["component", "feature"])
    return Stability(pd.DataFrame(components, index=numbers), table, confidence, probability)


def _sureness(held: FloatArray) -> float:
    """The most likely a, at most that of a flat prior, if signs hold with probability Φ(a|z|)."""
    found = minimize_scalar(lambda a: -log_ndtr(a * held).sum(), bounds=(0.0, np.sqrt(0.5)))
    return float(found.x)


def _largest_set(sure: FloatArray, probability: float) -> BoolArray:
    """The largest set of features whose mean probability is at least the one asked for."""
    order = np.argsort(-sure, kind="stable")
    mean = np.cumsum(sure[order]) / np.arange(1, len(sure) + 1)
    return np.isin(np.arange(len(sure)), order[mean >= probability])
