"""From standard units of a problem to those of the user."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from deeptobit.arrays import FloatArray, IntArray
from deeptobit.layer import BasisFeatures, Layer, TargetScaling, to_user
from deeptobit.mixed.evidence import Effects, Point
from deeptobit.targets import CensoredTargets


@dataclass(frozen=True)
class EffectUnits:
    """Location and scale of the outcomes, (T,), and of time, (2,)."""

    location: FloatArray
    scale: FloatArray
    time: FloatArray

    def z(self, time: FloatArray | None, n_rows: int, n_effects: int) -> FloatArray:
        """1, and time in its unit, (N, q)."""
        z = np.ones((n_rows, n_effects))
        if n_effects > 1:
            assert time is not None
            z[:, 1] = (time - self.time[0]) / self.time[1]
        return z

    def of_effects(self, q: int) -> FloatArray:
        """The matrix of every outcome from standard random effects to the user's, (T, q, q)."""
        start, unit = self.time
        line = np.array([[1.0, -start / unit], [0.0, 1.0 / unit]])[:q, :q]
        return np.asarray(self.scale[:, None, None] * line)

    def covariance(self, effects: Effects) -> FloatArray:
        """Ψ in the user's units, (Tq, Tq)."""
        n_tasks, q = effects.own.shape[:2]
        by_task = self.of_effects(q)
        standard = effects.covariance().reshape(n_tasks, q, n_tasks, q)
        total = np.einsum("tij,tjsk,slk->tisl", by_task, standard, by_task, optimize=True)
        return np.asarray(total.reshape(n_tasks * q, n_tasks * q))


@dataclass(frozen=True)
class MixedUnits(EffectUnits):
    """The same with features; ``active`` are the outcomes of the problem."""

    features: BasisFeatures
    active: IntArray

    @property
    def of_active(self) -> EffectUnits:
        """The units of the problem's outcomes."""
        return EffectUnits(self.location[self.active], self.scale[self.active], self.time)

    def fixed(self, point: Point) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coefficients (A, D), intercepts (A,) and σ (A,)."""
        log_sigma, n_tasks = np.log(point.effects.sigma), len(point.intercept)
        layer = Layer(np.eye(n_tasks), point.coef.T, point.intercept, log_sigma)
        scaling = TargetScaling(self.location[self.active], self.scale[self.active])
        U, V, intercept, sigma = to_user(self.features, scaling, layer, n_tasks)
        return U @ V, intercept, sigma

    def report(self, point: Point) -> FloatArray:
        """Coefficients, intercepts, log σ, and covariances and correlations of effects, in a row.

        Covariances are those within an outcome, correlations those between two.
        """
        coef, intercept, sigma = self.fixed(point)
        total = self.of_active.covariance(point.effects)
        sd = np.sqrt(np.maximum(total.diagonal(), 0.0))
        correlation = total / np.outer(*2 * (np.where(sd > 0.0, sd, 1.0),))
        i, j = np.triu_indices(len(total))
        n_effects = max(point.effects.own.shape[1], 1)
        same = i // n_effects == j // n_effects  # outcome
        within, between = total[i[same], j[same]], correlation[i[~same], j[~same]]
        return np.concatenate([coef.ravel(), intercept, np.log(sigma), within, between])

    def log_scale(self, targets: CensoredTargets, weight: FloatArray) -> float:
        """What densities in the user's units lose against standard ones."""
        return float((weight @ targets.observed)[self.active] @ np.log(self.scale[self.active]))


def beyond_the_bound(targets: CensoredTargets, weight: FloatArray, scale: FloatArray) -> FloatArray:
    """Constants for outcomes that are censored throughout on one side, by Jeffreys' rule, (T,)."""
    n_entries = weight @ ~targets.missing
    distance = -scale * ndtri(0.5 / (n_entries + 1.0))
    lowest = np.where(targets.at_lower, targets.high, np.inf).min(axis=0)
    highest = np.where(targets.at_upper, targets.low, -np.inf).max(axis=0)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.isfinite(lowest), lowest - distance, highest + distance))
