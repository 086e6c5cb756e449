"""Distributions clipped at bounds: their mean, quantiles and scores, whatever the family."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.race.forecast import Latent
from deeptobit.arrays import FloatArray

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
# Between these quantiles a distribution function is smooth enough for the nodes above; beyond the
# outermost it is taken for 0 and 1.
_TAIL = np.array([1e-10, 1e-8, 1e-6, 1e-4, 0.01, 0.1])
_QUANTILES = np.concatenate([_TAIL, [0.5], 1.0 - _TAIL[::-1]])


@dataclass(frozen=True, eq=False)
class Censored:
    """Y = clip(Z, lower, upper) for every entry, (N, T).

    Attributes
    ----------
    latent : Latent
        The distribution of Z.
    lower, upper : arrays of shape (T,)
        ∓inf where open.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> y = Censored(norm([[0.0], [29.0]], 2.0), np.array([0.0]), np.array([30.0]))
    >>> y.mean().ravel().round(4), y.at_upper().ravel().round(4)
    (array([ 0.7979, 28.6044]), array([0.    , 0.3085]))
    """

    latent: Latent
    lower: FloatArray
    upper: FloatArray

    def at_lower(self) -> FloatArray:
        """P(Y = lower), 0 where there is no bound."""
        return np.asarray(self.latent.cdf(self.lower))

    def at_upper(self) -> FloatArray:
        """P(Y = upper), 0 where there is no bound."""
        return np.asarray(self.latent.sf(self.upper))

    def cdf(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """P(Y < y) and P(Y ≤ y); they differ at a bound."""
        inside = np.asarray(self.latent.cdf(y))
        return np.where(y <= self.lower, 0.0, inside), np.where(y >= self.upper, 1.0, inside)

    def quantile(self, q: float) -> FloatArray:
        """The q-quantile of Y."""
        return np.asarray(np.clip(self.latent.ppf(q), self.lower, self.upper))

    def interval(self, coverage: float) -> tuple[FloatArray, FloatArray]:
        """Ends of the central interval."""
        tail = 0.5 * (1.0 - coverage)
        return self.quantile(tail), self.quantile(1.0 - tail)

    def mean(self) -> FloatArray:
        r"""E[Y] :math:`= b_0 + \int_{b_0}^{b_1} (1 - F)`, with the ends of the support of Y."""
        ends = self._panels()
        return np.asarray(
            ends[0] + sum(self._integral(*panel, above=True) for panel in _pairs(ends))
        )

    def log_score(self, y: FloatArray) -> FloatArray:
        """Minus the log of the mass at a bound, of the density between them; NaN where y is."""
        log = np.where(
            y <= self.lower,
            self.latent.logcdf(self.lower),
            np.where(y >= self.upper, self.latent.logsf(self.upper), self.latent.logpdf(y)),
        )
        return np.where(np.isnan(y), np.nan, -log)

    def crps(self, y: FloatArray) -> FloatArray:
        r"""Continuous ranked probability score :math:`\int (F_Y(x) - 1[x \ge y])^2 dx`.

        In units of y, lower is better, NaN where y is.
        """
        ends = self._panels()
        known = np.where(np.isnan(y), ends[0], y)
        total = np.maximum(ends[0] - known, 0.0) + np.maximum(known - ends[-1], 0.0)
        for start, end in _pairs(ends):
            middle = np.clip(known, start, end)
            total = total + self._integral(start, middle, above=False, power=2)
            total = total + self._integral(middle, end, above=True, power=2)
        return np.where(np.isnan(y), np.nan, total)

    def _panels(self) -> FloatArray:
        """Ends of the pieces that are integrated one by one, (P + 1, N, T)."""
        ends = self.latent.ppf(_QUANTILES[:, None, None])
        return np.asarray(np.clip(ends, self.lower, self.upper))

    def _integral(
        self, start: FloatArray, end: FloatArray, *, above: bool, power: int = 1
    ) -> FloatArray:
        """Gauss–Legendre quadrature of F, or of 1 − F, to a power."""
        half = 0.5 * (end - start)
        x = start + half * (1.0 + _NODES[:, None, None])
        values = self.latent.sf(x) if above else self.latent.cdf(x)
        return np.asarray(half * np.tensordot(_WEIGHTS, np.asarray(values) ** power, axes=1))


def _pairs(ends: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    return list(pairwise(ends))


def mean(latent: Latent, lower: ArrayLike, upper: ArrayLike) -> FloatArray:
    """E[clip(Z, lower, upper)] of every entry, (N, T).

    Examples
    --------
    >>> from scipy.stats import norm
    >>> mean(norm([[0.0], [29.0]], 2.0), [0.0], [30.0]).ravel().round(4)
    array([ 0.7979, 28.6044])
    """
    return Censored(latent, np.asarray(lower), np.asarray(upper)).mean()
