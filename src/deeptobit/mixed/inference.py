r"""What a fit says of its own parameters: information of the evidence, and the delta method.

Loadings are determined up to rotation, and where a variance is 0 up to sign; covariances are not.
The information is therefore inverted where it is not singular, which gives the standard errors of
everything that the evidence determines.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from scipy.special import chdtrc

from deeptobit.arrays import BoolArray, FloatArray
from deeptobit.mixed.evidence import Point
from deeptobit.mixed.solve import Solution

MOST_PARAMETERS = 1500
_STEP = 1e-4  # of finite differences, in standard units
_NO_INFORMATION = 1e-6  # relative to the largest eigenvalue of the scaled information
_MOVES = 1e-2  # share of a number's slope along directions without information


@dataclass(frozen=True, eq=False)
class FittedMixed:
    """A solution with its training data.

    Parameters
    ----------
    solution : Solution
    report : function
        From a point to the reported numbers in the user's units, (K,).
    """

    solution: Solution
    report: Callable[[Point], FloatArray] = field(repr=False)

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
        sites = self.solution.sites.copy()
        matrix = _slopes(lambda at: problem.evaluate(at, sites)[1], theta) * problem.total
        return np.asarray(0.5 * (matrix + matrix.T))

    @cached_property
    def scores(self) -> FloatArray:
        """Slopes of the log evidence of every person by the parameters, weighted, (n, P)."""
        problem, point = self.solution.problem, self.solution.point
        found = problem.evidence(point, self.solution.sites.copy(), by_person=True)
        starts = problem.visits.starts[:-1]
        fixed = [
            np.add.reduceat(pull[:, None] * problem.features, starts, axis=0)
            for pull in found.pull.T
        ]
        constant = np.add.reduceat(found.pull, starts, axis=0) * problem.fit_intercept
        parts = [*fixed, constant, problem.effect_slopes(found.slopes)]
        return np.concatenate(parts, axis=1) * problem.visits.weight[:, None]

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
        reach = self.scores @ inverse
        return np.asarray(reach.T @ reach)

    def reported_covariance(self, kind: str = "observed") -> FloatArray:
        """Covariance of the reported numbers, (K, K), NaN for those that are not determined."""
        problem = self.solution.problem
        theta = problem.pack(self.solution.point)
        jacobian = _slopes(lambda at: self.report(problem.unpack(at)), theta).T
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
