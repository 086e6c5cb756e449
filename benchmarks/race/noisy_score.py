"""Noise families of deeptobit as distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import Noise, at_scores


@dataclass(frozen=True, eq=False)
class NoisyScore:
    """The distribution of η + σε under a noise family of deeptobit."""

    noise: Noise
    score: FloatArray
    sigma: FloatArray

    def __post_init__(self) -> None:
        """Give every entry the scale of its score."""
        noise, sigma = at_scores(self.noise, self.score, self.sigma)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "sigma", sigma)

    def cdf(self, x: Any, /) -> FloatArray:
        """P(Z ≤ x)."""
        return np.exp(self.logcdf(x))

    def sf(self, x: Any, /) -> FloatArray:
        """P(Z > x)."""
        return np.exp(self.logsf(x))

    def logcdf(self, x: Any, /) -> FloatArray:
        """Log P(Z ≤ x)."""
        return self.noise.log_cdf(self._standard(x))

    def logsf(self, x: Any, /) -> FloatArray:
        """Log P(Z > x)."""
        return self.noise.log_sf(self._standard(x))

    def logpdf(self, x: Any, /) -> FloatArray:
        """Log density."""
        return np.asarray(self.noise.log_pdf(self._standard(x)) - np.log(self.sigma))

    def ppf(self, q: Any, /) -> FloatArray:
        """The q-quantile."""
        return np.asarray(self.score + self.sigma * self.noise.ppf(np.asarray(q, dtype=np.float64)))

    def _standard(self, x: Any) -> FloatArray:
        return np.asarray((x - self.score) / self.sigma)
