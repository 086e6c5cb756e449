"""Tobit regression by Newton's method in mpmath: the maximum of the likelihood to 30 digits."""

from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
from scipy.special import log_ndtr

from deeptobit.arrays import FloatArray

_DIGITS, _MAX_STEPS = 40, 100
_CONVERGED = mp.mpf(10) ** -30


class Exact(NamedTuple):
    """What maximises the likelihood, rounded to doubles at the very end."""

    coef: FloatArray
    intercept: float
    sigma: float
    log_likelihood: float


def exact_tobit(X: FloatArray, low: FloatArray, high: FloatArray, alpha: float = 0.0) -> Exact:
    r"""The Gaussian Tobit of one task in Olsen's coordinates γ = β/σ, c = b/σ, θ = 1/σ.

    Minimises :math:`\frac1N\sum_i \mathrm{nll}_i + \frac\alpha2\sum_d (s_d\gamma_d)^2`, where s are
    the standard deviations of the features. An entry with the end e depends on p = (γ, c, θ)
    through z = f·p with f = (−x, −1, e) alone: −log φ(z) − log θ where it is observed, −log Φ(±z)
    where it is censored. The problem is convex: damped Newton steps reach its only optimum.

    Parameters
    ----------
    X : array of shape (N, D)
    low, high : arrays of shape (N,)
        Equal where observed; one of them infinite where censored.
    """
    with mp.workdps(_DIGITS):
        problem = _Problem(X, low, high, alpha)
        p = mp.matrix(problem.start().tolist())
        value = problem.value(p)
        for _ in range(_MAX_STEPS):
            gradient, hessian = problem.derivatives(p)
            step = mp.lu_solve(hessian, -gradient)
            if -(gradient.T * step)[0] < _CONVERGED:  # one more step squares the error
                return problem.in_units_of_the_outcome(p + step)
            while not (lower := problem.value(p + step)) < value:
                step = step / 2
            p, value = p + step, lower
    raise RuntimeError("the reference did not converge")


class _Problem:
    """Mean nll and ridge; every number is one of mpmath's."""

    def __init__(self, X: FloatArray, low: FloatArray, high: FloatArray, alpha: float) -> None:
        self.n_rows, self.size = len(X), X.shape[1] + 2
        self.entries = []
        for x, start, end in zip(X.tolist(), low.tolist(), high.tolist(), strict=True):
            sign = 0 if start == end else (1 if np.isinf(start) else -1)
            edge = start if sign < 0 else end
            self.entries.append(([*(-mp.mpf(v) for v in x), mp.mpf(-1), mp.mpf(edge)], sign))
        self.ridge = [mp.mpf(alpha) * _variance(column) for column in X.T.tolist()]

    def start(self) -> FloatArray:
        """The same steps in double precision, from no slopes, and mean and spread of the ends."""
        rows = np.array([row for row, _ in self.entries], dtype=np.float64)
        sign = np.array([sign for _, sign in self.entries], dtype=np.float64)
        ridge = np.array([*map(float, self.ridge), 0.0, 0.0])
        seen, theta = sign == 0.0, 1.0 / rows[:, -1].std()
        p = np.array([0.0] * (self.size - 2) + [theta * rows[:, -1].mean(), theta])

        def value(p: FloatArray) -> float:
            if p[-1] <= 0.0:
                return np.inf
            z = rows @ p
            nll = np.where(seen, z**2 / 2.0 - np.log(p[-1]), -log_ndtr(sign * z))
            return float(nll.mean() + ridge @ p**2 / 2.0)

        for _ in range(_MAX_STEPS):
            z = rows @ p
            mills = np.exp(-(z**2) / 2.0 - log_ndtr(sign * z)) / np.sqrt(2.0 * np.pi)
            slope = np.where(seen, z, -sign * mills)
            curvature = np.where(seen, 1.0, mills * (mills + sign * z))
            gradient = rows.T @ slope / self.n_rows + ridge * p
            hessian = (rows.T * curvature) @ rows / self.n_rows + np.diag(ridge)
            gradient[-1] -= seen.mean() / p[-1]
            hessian[-1, -1] += seen.mean() / p[-1] ** 2
            step = -np.linalg.lstsq(hessian, gradient)[0]
            while value(p + step) > value(p) and np.abs(step).max() > 0.0:
                step = step / 2.0
            if not value(p + step) < value(p):
                break
            p = p + step
        return p

    def nll(self, p: Any) -> Any:
        """Summed over the entries."""
        theta = p[self.size - 1]
        return mp.fsum(_nll(mp.fdot(row, p), sign, theta) for row, sign in self.entries)

    def value(self, p: Any) -> Any:
        """The objective, infinite where σ would be negative."""
        if p[self.size - 1] <= 0:
            return mp.inf
        penalty = mp.fsum(strength * p[d] ** 2 / 2 for d, strength in enumerate(self.ridge))
        return self.nll(p) / self.n_rows + penalty

    def derivatives(self, p: Any) -> tuple[Any, Any]:
        """Gradient and Hessian of the objective."""
        size, last = self.size, self.size - 1
        gradient = [mp.mpf(0)] * size
        hessian = [[mp.mpf(0)] * size for _ in range(size)]
        for row, sign in self.entries:
            slope, curvature = _slopes(mp.fdot(row, p), sign)
            for i in range(size):
                gradient[i] += slope * row[i]
                weight = curvature * row[i]
                for j in range(i + 1):
                    hessian[i][j] += weight * row[j]
            if sign == 0:  # −log θ
                gradient[last] -= 1 / p[last]
                hessian[last][last] += 1 / p[last] ** 2
        for i in range(size):
            for j in range(i):
                hessian[j][i] = hessian[i][j]
        slopes, curvatures = mp.matrix(gradient) / self.n_rows, mp.matrix(hessian) / self.n_rows
        for d, strength in enumerate(self.ridge):
            slopes[d] += strength * p[d]
            curvatures[d, d] += strength
        return slopes, curvatures

    def in_units_of_the_outcome(self, p: Any) -> Exact:
        *gamma, c, theta = p
        coef = np.array([float(g / theta) for g in gamma])
        return Exact(coef, float(c / theta), float(1 / theta), -float(self.nll(p)))


def _nll(z: Any, sign: int, theta: Any) -> Any:
    if sign == 0:
        return z**2 / 2 + mp.log(2 * mp.pi) / 2 - mp.log(theta)
    return -mp.log(mp.erfc(-sign * z / mp.sqrt(2)) / 2)


def _slopes(z: Any, sign: int) -> tuple[Any, Any]:
    """First and second derivative of the nll by z; −log θ aside."""
    if sign == 0:
        return z, mp.mpf(1)
    mills = mp.npdf(z) / (mp.erfc(-sign * z / mp.sqrt(2)) / 2)
    return -sign * mills, mills * (mills + sign * z)


def _variance(values: list[Any]) -> Any:
    numbers = [mp.mpf(value) for value in values]
    mean = mp.fsum(numbers) / len(numbers)
    return mp.fsum((number - mean) ** 2 for number in numbers) / len(numbers)
