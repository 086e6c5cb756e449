"""Noise whose spread changes with the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.likelihood._task_values import TaskValues

_LARGEST_GROWTH = 100.0  # whose factors are numbers still
_REACH = 3.0  # standard deviations of the scores, beyond which the spread hardly changes


@dataclass(frozen=True, eq=False)
class Spread(TaskValues):
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
        super().__post_init__()
        if (np.abs(self.growth) > _LARGEST_GROWTH).any():
            raise ValueError("the growth of a Spread must lie between -100 and 100")
        if not self.width.all():
            raise ValueError("the width of a Spread must not be 0")

    def factor(self, latent: FloatArray) -> FloatArray:
        """σ(η)/σ, of the shape of the scores, whose last axis is the tasks'."""
        return np.exp(self.growth * bend((latent - self.centre) / self.width))


def bend(u: FloatArray) -> FloatArray:
    """The function h, about u near 0 and never beyond ±3.

    Examples
    --------
    >>> bend(np.array([0.0, 1.0, -1.0, 1e300])).round(2)
    array([ 0.  ,  0.95, -0.95,  3.  ])
    """
    return np.asarray(u / np.hypot(1.0, u / _REACH))
