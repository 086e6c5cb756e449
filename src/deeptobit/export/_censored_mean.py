r"""The mean of a censored normal variable, by operators that every runtime has in double precision.

With g(z) = E(ε − z)₊ = φ(z) − zΦ(−z), and because g(−z) = z + g(z),

.. math::
    E[y] = \mathrm{clip}(\eta) + \sigma\left(g(|\eta - \mathrm{lower}|/\sigma)
    - g(|\mathrm{upper} - \eta|/\sigma)\right),

which nothing cancels in, however far η is from the bounds. The error function is not available in
double precision everywhere, so g is computed as e^{−z²/2} p(t), where p interpolates the smooth
factor that is left in t = (4 − z)/(4 + z).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from deeptobit.arrays import FloatArray
from deeptobit.export._graph import Graph
from deeptobit.special import mills_excess

_CENTRE = 4.0  # t = 0 there; of 2, 3, 4 and 5 the one that needs the lowest degree
_DEGREE = 16  # an error of g below 1e-12
_FARTHEST = 40.0  # g is 0 in double precision beyond, and open ends are infinitely far


def clip(graph: Graph, score: str, lower: FloatArray, upper: FloatArray) -> str:
    """Scores (N, T) held within their bounds (T,); a side that is open everywhere costs nothing."""
    if not np.isneginf(lower).all():
        score = graph.add("Max", score, lower)
    if not np.isposinf(upper).all():
        score = graph.add("Min", score, upper)
    return score


def censored_mean(
    graph: Graph, score: str, sigma: FloatArray, lower: FloatArray, upper: FloatArray
) -> str:
    """E[clip(score + σε)] for standard normal ε, (N, T).

    Examples
    --------
    >>> graph, bounds = Graph(), (np.zeros(1), np.full(1, np.inf))
    >>> _ = censored_mean(graph, "score", np.ones(1), *bounds)
    >>> sorted({node.operator for node in graph.nodes})
    ['Abs', 'Add', 'Div', 'Exp', 'Max', 'Min', 'Mul', 'Sub']
    """
    mean = clip(graph, score, lower, upper)
    for end, is_open, raise_or_lower in (
        (lower, np.isneginf, "Add"),
        (upper, np.isposinf, "Sub"),
    ):
        if not is_open(end).all():
            excess = graph.add("Mul", _excess(graph, score, sigma, end), sigma)
            mean = graph.add(raise_or_lower, mean, excess)
    # Rounding must not carry a prediction beyond its bounds.
    return clip(graph, mean, lower, upper)


def _excess(graph: Graph, score: str, sigma: FloatArray, end: FloatArray) -> str:
    """g(|score − end|/σ), and 0 where the end is infinite."""
    distance = graph.add("Abs", graph.add("Div", graph.add("Sub", score, end), sigma))
    z = graph.add("Min", distance, _FARTHEST)
    half_square = graph.add("Mul", graph.add("Mul", z, z), -0.5)
    t = graph.add("Div", graph.add("Sub", _CENTRE, z), graph.add("Add", z, _CENTRE))
    return graph.add("Mul", graph.add("Exp", half_square), _polynomial(graph, t))


def _polynomial(graph: Graph, t: str) -> str:
    """Horner's scheme."""
    *lower_powers, last = smooth_factor().tolist()
    value = graph.add("Mul", t, last)
    for coefficient in reversed(lower_powers[1:]):
        value = graph.add("Mul", graph.add("Add", value, coefficient), t)
    return graph.add("Add", value, lower_powers[0])


@cache
def smooth_factor() -> FloatArray:
    r"""Coefficients of p, lowest power first: :math:`p(t) = e^{z^2/2} g(z)` for all z ≥ 0.

    Examples
    --------
    >>> z = np.array([0.0, 1.0, 3.0])
    >>> p = np.polynomial.Polynomial(smooth_factor())
    >>> (np.exp(-z * z / 2) * p((4 - z) / (4 + z))).round(6).tolist()
    [0.398942, 0.083315, 0.000382]
    """
    t = chebyshev.chebpts1(_DEGREE + 1)
    z = _CENTRE * (1.0 - t) / (1.0 + t)
    factor = 0.5 * erfcx(z / np.sqrt(2.0)) * mills_excess(-z)
    return np.asarray(chebyshev.cheb2poly(chebyshev.chebfit(t, factor, _DEGREE)), dtype=np.float64)
