r"""From standard units of a problem to those of the user, and what a fit says of its parameters.

Standard errors come from the information of the evidence, by the delta method. Loadings are
determined up to rotation, and where a variance is 0 up to sign; covariances are not. The
information is therefore inverted where it is not singular, which gives the standard errors of
everything that the evidence determines.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations_with_replacement, product
from math import comb
from typing import Any

import numpy as np
from scipy.special import chdtrc

from deeptobit.arrays import BoolArray, FloatArray, IntArray
from deeptobit.layer import BasisFeatures, TargetScaling, coefficients_to_user
from deeptobit.mixed.evidence import Effects, MixedProblem, Point
from deeptobit.mixed.solve import Solution

MOST_PARAMETERS = 1500
_STEP = 1e-4  # of finite differences, in standard units
_NO_INFORMATION = 1e-6  # relative to the largest eigenvalue of the scaled information
_MOVES = 1e-2  # share of a number's slope along directions without information
Names = Sequence[str]


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
        by_task = self.of_effects(effects.own.shape[1])
        own, shared = by_task @ effects.own, by_task @ effects.shared
        return effects._replace(own=own, shared=shared).covariance()


@dataclass(frozen=True)
class MixedUnits(EffectUnits):
    """The same with features; ``active`` are the outcomes of the problem."""

    features: BasisFeatures
    active: IntArray

    def rows(self, X: FloatArray) -> FloatArray:
        """Features (N, D) in the basis of the coefficients, (N, r)."""
        design = self.features.design
        return self.features.adjoint(((X - design.mean) / design.scale).T).T

    def fixed(self, point: Point) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coefficients (A, D), intercepts (A,) and σ (A,)."""
        scaling = TargetScaling(self.location[self.active], self.scale[self.active])
        W, sigma = self.features.coefficients(point.coef.T).T, point.effects.sigma
        return coefficients_to_user(self.features.design, scaling, W, point.intercept, sigma)

    def report(self, point: Point) -> FloatArray:
        """Coefficients, intercepts, log σ, and covariances and correlations of effects, in a row.

        Covariances are those within an outcome, correlations those between two.
        """
        coef, intercept, sigma = self.fixed(point)
        total = replace(self, scale=self.scale[self.active]).covariance(point.effects)
        sd = np.sqrt(np.maximum(total.diagonal(), 0.0))
        correlation = total / np.outer(*2 * (np.where(sd > 0.0, sd, 1.0),))
        i, j = np.triu_indices(len(total))
        n_effects = max(point.effects.own.shape[1], 1)
        same = i // n_effects == j // n_effects  # outcome
        within, between = total[i[same], j[same]], correlation[i[~same], j[~same]]
        return np.concatenate([coef.ravel(), intercept, np.log(sigma), within, between])


def reported_terms(
    targets: Names, features: Names, constants: Names, effects: Names
) -> list[tuple[str, str]]:
    """Target and term of every number of :meth:`MixedUnits.report`; constants have a term each."""
    names = [
        *product(targets, features),
        *((name, term) for term, name in product(constants, targets)),
    ]
    between = []
    for (one, a), (two, b) in combinations_with_replacement(product(targets, effects), 2):
        if one == two:
            names.append((one, f"var({a})" if a == b else f"cov({a}, {b})"))
        else:
            between.append((f"{one}, {two}", f"cor({a}, {b})"))
    return names + between


@dataclass(frozen=True, eq=False)
class FittedMixed:
    """A solution with its training data.

    Parameters
    ----------
    solution : Solution
    units : MixedUnits
    """

    solution: Solution
    units: MixedUnits

    @cached_property
    def information(self) -> FloatArray:
        """Minus the Hessian of the penalised evidence, by central differences, (P, P)."""
        problem, point = self.solution.problem, self.solution.point
        theta = problem.pack(point)
        if len(theta) > MOST_PARAMETERS:
            raise ValueError(
                f"standard errors of {len(theta)} parameters would take too long; fit the outcomes "
                "of interest alone, or fewer features"
            )
        matrix = _slopes(lambda at: problem.evaluate(at)[1], theta) * problem.n_rows
        return np.asarray(0.5 * (matrix + matrix.T))

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
        """Units of the parameters, and eigenvalues and axes of the information in these units.

        The last tells which directions the evidence determines.
        """
        scale = np.sqrt(np.maximum(self.information.diagonal(), 0.0))
        scale = np.where(scale > 0.0, scale, 1.0)
        roots, axes = np.linalg.eigh(self.information / np.outer(scale, scale))
        known = np.asarray(roots > _NO_INFORMATION * max(roots.max(initial=0.0), 1e-300))
        return scale, roots, axes, known

    def covariance(self, kind: str = "observed") -> FloatArray:
        """Covariance of the parameters, or the person-level sandwich if ``"robust"``, (P, P)."""
        scale, roots, axes, known = self._spectrum
        inverse = (axes[:, known] / roots[known]) @ axes[:, known].T / np.outer(scale, scale)
        if kind == "observed":
            return np.asarray(inverse)
        problem, point = self.solution.problem, self.solution.point
        squares = problem.total(partial(MixedProblem.squared_scores, point=point))
        return np.asarray(inverse @ squares @ inverse)

    def reported_covariance(self, kind: str = "observed") -> FloatArray:
        """Covariance of the reported numbers, (K, K), NaN for those that are not determined."""
        problem = self.solution.problem
        theta = problem.pack(self.solution.point)
        jacobian = _slopes(lambda at: self.units.report(problem.unpack(at)), theta).T
        found = jacobian @ self.covariance(kind) @ jacobian.T
        scale, _, axes, known = self._spectrum
        scaled = jacobian / scale
        beyond = np.linalg.norm(scaled @ axes[:, ~known], axis=1)
        open_ended = beyond > _MOVES * np.linalg.norm(scaled, axis=1)
        found[open_ended] = found[:, open_ended] = np.nan
        return np.asarray(found)

    @property
    def n_parameters(self) -> int:
        """Free parameters."""
        return self.solution.problem.n_parameters

    def likelihood_ratio(self, other: "FittedMixed") -> dict[str, Any]:
        r"""Twice the difference to a nested model, and its p value.

        Every variance of an outcome that is 0 in the nested model is at the end of its range:
        with B of them the reference is :math:`\sum_b \binom{B}{b} 2^{-B} \chi^2_{k - B + b}`
        (Self and Liang 1987), k being the difference in parameters.
        """
        df = self.n_parameters - other.n_parameters
        ours, theirs = self.solution.problem.shape, other.solution.problem.shape
        at_end = (ours[2] - theirs[2]) * ours[1]
        statistic = 2.0 * (self.solution.log_likelihood - other.solution.log_likelihood)
        value, p_value = max(statistic, 0.0), 0.0
        for b in range(at_end + 1):
            left = df - at_end + b
            tail = float(chdtrc(left, value)) if left > 0 else float(value == 0.0)
            p_value += comb(at_end, b) * 0.5**at_end * tail
        return {"statistic": statistic, "df": df, "p_value": p_value}


def _slopes(function: Callable[[FloatArray], FloatArray], theta: FloatArray) -> FloatArray:
    """Derivatives of a function (P,) → (K,) by central differences, (P, K)."""
    steps = _STEP * np.eye(len(theta))
    ends = [(function(theta + step), function(theta - step)) for step in steps]
    return np.array([(after - before) * (0.5 / _STEP) for after, before in ends])
