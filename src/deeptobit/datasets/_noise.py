r"""Noise of mean 0 and variance 1 in three shapes, correlated between scores.

Each shape is an increasing function of a standard Gaussian w, standardised in closed form:

.. math::

    \text{gaussian: } w, \qquad
    \text{skewed: } \frac{e^{aw} - e^{a^2/2}}{\sqrt{e^{a^2}(e^{a^2} - 1)}}, \qquad
    \text{heavy: } \frac{\sinh(bw)}{\sqrt{(e^{2b^2} - 1)/2}}
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from deeptobit.datasets._scores import NoiseKind

# Correlation of w between scores: what makes a person do badly on one test recurs in the next.
NOISE_CORRELATION = 0.3

SKEW = 0.5  # a: skewness 1.75
TAIL = 0.7  # b: excess kurtosis 4.7


def _skewed(w: NDArray[np.float64]) -> NDArray[np.float64]:
    growth = math.exp(SKEW**2)
    return (np.exp(SKEW * w) - math.sqrt(growth)) / math.sqrt(growth * (growth - 1))


def _heavy(w: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sinh(TAIL * w) / math.sqrt(math.expm1(2 * TAIL**2) / 2)


_SHAPES: dict[NoiseKind, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "gaussian": np.positive,
    "skewed": _skewed,
    "heavy": _heavy,
}


def draw_noise(
    n_subjects: int, kinds: Sequence[NoiseKind], state: np.random.RandomState
) -> NDArray[np.float64]:
    """Draw noise with one shape for each column, (n, T).

    Examples
    --------
    >>> noise = draw_noise(100_000, ["gaussian", "skewed", "heavy"], np.random.RandomState(0))
    >>> print(np.abs(noise.mean(axis=0)).max() < 0.01, np.abs(noise.std(axis=0) - 1).max() < 0.02)
    True True
    """
    person = state.standard_normal((n_subjects, 1))
    occasion = state.standard_normal((n_subjects, len(kinds)))
    w = math.sqrt(NOISE_CORRELATION) * person + math.sqrt(1 - NOISE_CORRELATION) * occasion
    return np.column_stack([_SHAPES[kind](w[:, t]) for t, kind in enumerate(kinds)])
