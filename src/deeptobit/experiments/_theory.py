"""The three claims of section 2.2 and the appendix of the paper, as numbers to look at.

Along one pass: iterates settle like O(1/i), the online regret stays under its bound, and the limit
is a stationary point of the batch objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray
from deeptobit.estimators import SubspaceTobitRegressor
from deeptobit.likelihood import evaluate, resolve_noise
from deeptobit.targets import CensoredTargets


class Settling(NamedTuple):
    """How the subspace comes to rest.

    Parameters
    ----------
    change : array of shape (K - 1,)
        ‖U_i − U_{i−1}‖_F per row, between snapshots.
    constant : float
        B = max i·‖U_i − U_{i−1}‖: the claim is that it stays bounded as i grows.
    slope : float
        Of log change against log i, by least squares: −1 is O(1/i), less is faster.
    """

    change: FloatArray
    constant: float
    slope: float


class Regret(NamedTuple):
    """Online regret after each snapshot, and its bound, (K - 1,)."""

    regret: FloatArray
    bound: FloatArray


@dataclass(frozen=True)
class Course:
    """Snapshots of a model while it learns.

    Parameters
    ----------
    n_seen : int array of shape (K,)
    U : array of shape (K, T, R)
    coef : array of shape (K, T, D)
    intercept, sigma : arrays of shape (K, T)
    loss_before : array of shape (K - 1,)
        Mean loss of the rows between two snapshots under the earlier one.
    loss_after : array of shape (K - 1,)
        Mean loss of all rows up to the later snapshot under that snapshot.
    """

    n_seen: NDArray[np.intp]
    U: FloatArray
    coef: FloatArray
    intercept: FloatArray
    sigma: FloatArray
    loss_before: FloatArray
    loss_after: FloatArray

    def settling(self) -> Settling:
        """Claim 1: successive subspaces differ by O(1/i)."""
        rows = np.diff(self.n_seen)
        change = np.linalg.norm(np.diff(self.U, axis=0), axis=(1, 2)) / rows
        at = self.n_seen[1:]
        moving = change > 0.0
        slope = np.polyfit(np.log(at[moving]), np.log(change[moving]), 1)[0]
        return Settling(change, float((at * change).max()), float(slope))

    def regret(self, step: float) -> Regret:
        r"""Claim 2: the cost of the last iterate exceeds the online loss by little.

        .. math::
            \hat C_n - \bar C_n \le \frac{B^2(\ln n + 1)^2}{2\mu n} + \frac{5B^2}{6\mu n}
        """
        rows = np.diff(self.n_seen)
        online = np.cumsum(rows * self.loss_before) / np.cumsum(rows)
        n, constant = self.n_seen[1:].astype(np.float64), self.settling().constant
        bound = constant**2 / (step * n) * (0.5 * (np.log(n) + 1.0) ** 2 + 5.0 / 6.0)
        return Regret(self.loss_after - online, bound)


def follow(model: SubspaceTobitRegressor, X: FloatArray, Y: Any, *, every: int = 100) -> Course:
    """Let a model learn from consecutive rows, and look at it every ``every`` rows.

    Parameters
    ----------
    model : SubspaceTobitRegressor
        Unfitted; it is trained with ``partial_fit``.
    X : array of shape (N, D)
    Y : array of shape (N, T)
    every : int

    Examples
    --------
    >>> from deeptobit import SubspaceTobitRegressor, datasets
    >>> X, Y, _ = datasets.make_subspace(3000, 20, 15, 2, random_state=0)
    >>> course = follow(SubspaceTobitRegressor(rank=2), X, Y, every=500)
    >>> course.n_seen
    array([ 500, 1000, 1500, 2000, 2500, 3000])
    >>> bool(course.settling().slope < -0.5)
    True
    """
    snapshots: list[tuple[Any, ...]] = []
    before: list[float] = []
    after: list[float] = []
    targets = CensoredTargets.from_bounds(Y, model.lower, model.upper)
    for start in range(0, len(X), every):
        rows = slice(start, min(start + every, len(X)))
        if snapshots:
            before.append(_mean_loss(model, X[rows], targets[rows]))
        model.partial_fit(X[rows], targets[rows])
        if snapshots:
            after.append(_mean_loss(model, X[: rows.stop], targets[: rows.stop]))
        snapshots.append((rows.stop, model.U_, model.coef_, model.intercept_, model.sigma_))
    n_seen, U, coef, intercept, sigma = (np.array(part) for part in zip(*snapshots, strict=True))
    return Course(n_seen, U, coef, intercept, sigma, np.array(before), np.array(after))


def stationarity(model: SubspaceTobitRegressor, X: Any, Y: Any) -> float:
    """Claim 3: the gradient of the batch objective at a fitted model, relative to that at W = 0.

    Examples
    --------
    >>> from deeptobit import SubspaceTobitRegressor, datasets
    >>> X, Y, _ = datasets.make_subspace(2000, 20, 15, 2, random_state=0)
    >>> model = SubspaceTobitRegressor(rank=2, solver="batch").fit(X, Y)
    >>> stationarity(model, X, Y) < 1e-5
    True
    """
    return model.relative_gradient(X, Y)


def _mean_loss(model: SubspaceTobitRegressor, X: FloatArray, targets: CensoredTargets) -> float:
    latent = X @ model.coef_.T + model.intercept_
    noise = resolve_noise(model.noise)
    nll = evaluate(noise, targets.low, targets.high, latent, model.sigma_).nll
    return float(nll.sum(axis=1).mean())
