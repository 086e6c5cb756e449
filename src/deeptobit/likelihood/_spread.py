"""Noise whose spread changes with the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deeptobit.arrays import FloatArray

_LARGEST_GROWTH = 100.0  # whose factors are numbers still
_REACH = 3.0  # standard deviations of the scores, beyond which the spread hardly changes


@dataclass(frozen=True, eq=False)
class Spread:
    r"""How the noise scale of every task changes with the score.

    .. math:: \sigma_t(\eta) = \sigma_t \exp\left(g_t\, h\left(\frac{\eta - c_t}{w_t}\right)\right),
        \qquad h(u) = u / \sqrt{1 + u^2/9}

    People who are expected to have many visits also differ more. Near the middle of the scores σ
    grows by the factor :math:`e^g` per width; h is bounded, so that scores beyond all that were
    seen do not have any spread whatever. Where σ falls as the score rises, E[y|x] may fall with it
    near a bound.

    Parameters
    ----------
    growth : array of shape (T,)
        g, 0 where the spread is the same everywhere.
    centre, width : arrays of shape (T,)
        Middle and standard deviation of the scores, in their units; the width may be negative,
        never 0.

    Examples
    --------
    >>> spread = Spread(np.array([0.0, 0.5]), np.array([10.0, 10.0]), np.array([2.0, 2.0]))
    >>> spread.factor(np.array([[10.0, 10.0], [12.0, 12.0], [1e9, 1e9]])).round(2)
    array([[1.  , 1.  ],
           [1.  , 1.61],
           [1.  , 4.48]])
    """

    growth: FloatArray
    centre: FloatArray
    width: FloatArray

    def __post_init__(self) -> None:
        """Refuse what has no spread."""
        for name in ("growth", "centre", "width"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        shapes = {part.shape for part in (self.growth, self.centre, self.width)}
        if len(shapes) != 1 or self.growth.ndim != 1:
            raise ValueError("a spread needs growth, centre and width of every task")
        if not all(np.isfinite(part).all() for part in (self.growth, self.centre, self.width)):
            raise ValueError("growth, centre and width of a spread must be finite")
        if (np.abs(self.growth) > _LARGEST_GROWTH).any():
            raise ValueError("the growth of a spread must lie between -100 and 100")
        if not self.width.all():
            raise ValueError("the width of a spread must not be 0")

    def factor(self, latent: FloatArray) -> FloatArray:
        """σ(η)/σ, of the shape of the scores, whose last axis is the tasks'."""
        return np.exp(self.growth * bend((latent - self.centre) / self.width))

    def of(self, places: NDArray[np.intp]) -> Spread:
        """The spread of some tasks, or of the tasks of single entries."""
        return Spread(self.growth[places], self.centre[places], self.width[places])

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are the same."""
        return isinstance(other, Spread) and self._bytes() == other._bytes()

    def __hash__(self) -> int:
        """By the numbers."""
        return hash(self._bytes())

    def _bytes(self) -> tuple[bytes, ...]:
        return tuple(part.tobytes() for part in (self.growth, self.centre, self.width))


def bend(u: FloatArray) -> FloatArray:
    """The function h, about u near 0 and never beyond ±3.

    Examples
    --------
    >>> bend(np.array([0.0, 1.0, -1.0, 1e300])).round(2)
    array([ 0.  ,  0.95, -0.95,  3.  ])
    """
    return np.asarray(u / np.hypot(1.0, u / _REACH))
