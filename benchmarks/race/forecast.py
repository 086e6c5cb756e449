"""What a method says about rows that it has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from deeptobit.arrays import FloatArray
from deeptobit.likelihood import ScoreGrid


class Latent(Protocol):
    """Distributions of all entries before clipping, one for each of (N, T).

    A frozen distribution of ``scipy.stats`` with parameters of shape (N, T) is one. Arguments are
    broadcast against (N, T): an array of shape (Q, 1, 1) gives (Q, N, T).
    """

    def cdf(self, x: Any, /) -> Any:
        """P(Z ≤ x)."""

    def sf(self, x: Any, /) -> Any:
        """P(Z > x)."""

    def logcdf(self, x: Any, /) -> Any:
        """Log P(Z ≤ x), exact in the tail."""

    def logsf(self, x: Any, /) -> Any:
        """Log P(Z > x), exact in the tail."""

    def logpdf(self, x: Any, /) -> Any:
        """Log density at x."""

    def ppf(self, q: Any, /) -> Any:
        """The q-quantile."""


@dataclass(frozen=True, eq=False)
class Forecast:
    """Predictions of test rows; the outcome is clip(latent, lower, upper), or a score near it.

    Attributes
    ----------
    point : array of shape (N, T)
        The method's prediction of the outcome, in the units of ``Problem.Y``. It need not lie
        within the bounds: the race clips it there. With a distribution it should be the mean of the
        clipped latent, :func:`benchmarks.race.censored.mean`.
    latent : Latent or None
        The distribution before clipping; None if the method has none. The race then makes two of
        ``point`` and the predictions that were held out.
    grid : ScoreGrid or None
        The scores that outcomes have, as the method says; None if it takes all for continuous.
    """

    point: FloatArray
    latent: Latent | None = None
    grid: ScoreGrid | None = None
