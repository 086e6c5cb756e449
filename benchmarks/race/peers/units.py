"""Units in which a censored distribution that ignores the features is standard."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import fisk, logistic, lognorm, norm

from benchmarks.race.censored import Censored
from benchmarks.race.forecast import Latent
from benchmarks.race.peers.tasks import Task
from deeptobit import CensoredTargets
from deeptobit.app.study import InterceptOnly
from deeptobit.arrays import FloatArray
from deeptobit.exceptions import CensoringWarning

Family: TypeAlias = Literal["normal", "logistic"]

# Distances, in standard deviations, from the least outcome to the origin of the logarithm. From
# nearby the distribution is skewed, from afar the logarithm is a straight line.
_SHIFTS = (0.25, 1.0, 100.0)


class Units(Protocol):
    """From outcomes to the units in which a method works, and back."""

    def standard(self, y: ArrayLike, /) -> FloatArray:
        """Outcomes or bounds in working units."""

    def latent(self, score: FloatArray, sigma: Any, family: Family, /) -> Latent:
        """The distribution of an outcome whose working units are score + sigma · noise."""


@dataclass(frozen=True)
class LinearUnits:
    """w = (y − centre) / spread.

    Examples
    --------
    >>> LinearUnits(2.0, 0.5).latent(np.array([1.0]), 1.0, "normal").mean()
    array([2.5])
    """

    centre: float
    spread: float

    def standard(self, y: ArrayLike, /) -> FloatArray:
        """Outcomes or bounds in working units."""
        return np.asarray((np.asarray(y) - self.centre) / self.spread)

    def latent(self, score: FloatArray, sigma: Any, family: Family, /) -> Latent:
        """A normal or logistic distribution."""
        noise = {"normal": norm, "logistic": logistic}[family]
        return noise(self.centre + self.spread * score, self.spread * sigma)


@dataclass(frozen=True)
class LogUnits:
    """w = (log(y − origin) − centre) / spread.

    Examples
    --------
    >>> LogUnits(-1.0, 0.0, 1.0).latent(np.array([0.0, 1.0]), 0.5, "normal").median().round(3)
    array([0.   , 1.718])
    """

    origin: float
    centre: float
    spread: float

    def standard(self, y: ArrayLike, /) -> FloatArray:
        """Outcomes or bounds in working units; −inf for a bound below the origin."""
        with np.errstate(divide="ignore"):
            log = np.log(np.maximum(np.asarray(y) - self.origin, 0.0))
        return np.asarray((log - self.centre) / self.spread)

    def latent(self, score: FloatArray, sigma: Any, family: Family, /) -> Latent:
        """A shifted log-normal or log-logistic distribution."""
        scale = np.exp(self.centre + self.spread * score)
        if family == "normal":
            return lognorm(s=self.spread * sigma, scale=scale, loc=self.origin)
        return fisk(c=1.0 / (self.spread * sigma), scale=scale, loc=self.origin)


def find_linear_units(task: Task) -> LinearUnits:
    """Units of the censored normal distribution that fits the outcomes of all rows alike."""
    return LinearUnits(*_fit_constant(task.y[task.known], task.lower, task.upper))


def find_log_units(task: Task) -> LogUnits:
    """Units of the shifted log-normal distribution that is likeliest, over a few shifts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> for y in np.exp(rng.normal(size=500)), 5.0 + rng.normal(size=500):
    ...     print(find_log_units(Task(y[:, None], y, 0.0, np.inf, [], 0)).origin)
    -0.25
    -100.0
    """
    y = task.y[task.known]
    least = task.lower if np.isfinite(task.lower) else float(y.min())

    def units(shift: float) -> LogUnits:
        log = LogUnits(least - shift, 0.0, 1.0)
        constant = _fit_constant(*(log.standard(v) for v in (y, task.lower, task.upper)))
        return LogUnits(log.origin, *constant)

    def nll(units: LogUnits) -> float:
        latent = units.latent(np.zeros(1), 1.0, "normal")
        bounds = np.array([task.lower]), np.array([task.upper])
        return float(Censored(latent, *bounds).log_score(y).sum())

    return min(map(units, _SHIFTS), key=nll)


def _fit_constant(y: FloatArray, lower: ArrayLike, upper: ArrayLike) -> tuple[float, float]:
    """Mean and scale of the censored normal distribution of y."""
    with warnings.catch_warnings():
        # Where all values are at bounds the likelihood leaves the scale open; any will do here.
        warnings.simplefilter("ignore", CensoringWarning)
        targets = CensoredTargets.from_bounds(y, lower, upper)
        model = InterceptOnly().fit(np.zeros((len(y), 1)), targets)
    return float(model.intercept_[0]), float(model.sigma_[0])
