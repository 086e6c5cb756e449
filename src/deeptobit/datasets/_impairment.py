r"""How brains impair scores: five effects that all scores share, and one that each has alone.

With standardised measurements z (D,) of correlation C, the impairments of the T scores are

.. math::

    g = \sqrt{1 - \omega}\; U\, h(V z) + \sqrt{\omega}\; o(W z), \qquad
    V C V^\top = I, \quad W C V^\top = 0, \quad \operatorname{diag}(W C W^\top) = 1

where V (R, D) are shared directions of the brain, row t of U (T, R), of length 1, says how much
score t depends on each, row t of W (T, D) is its effect alone and ω the share of the latter. In
a linear population h and o are the identity. In a non-linear one they bend, but for Gaussian z
each of their values keeps mean 0, variance 1 and no correlation with the others. So
:math:`\operatorname{Var}(g_t) = 1` either way, exactly and without simulation.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from deeptobit.datasets._brains import BrainPopulation

RANK = 5
OWN_SHARE = 0.2
ATROPHY_LOBES = ("temporal thickness", "parietal thickness")
FEATURES_PER_OWN_EFFECT = 6

# How much a score depends on atrophy (at least, at most), and on the other shared directions (sd).
ATROPHY_EFFECT = (0.6, 1.2)
OTHER_EFFECT = 0.6

# Atrophy harms only beyond the brain's reserve, and has done its harm at the plateau (in sd).
RESERVE, PLATEAU = 0.5, 1.5


@dataclass(frozen=True, eq=False)
class Impairment:
    """The effects of the brain on T scores; see the module for the model.

    Attributes
    ----------
    U : ndarray of shape (T, R)
    V : ndarray of shape (R, D)
        The first row is atrophy: thin temporal and parietal cortex.
    W : ndarray of shape (T, D)
    """

    U: NDArray[np.float64]
    V: NDArray[np.float64]
    W: NDArray[np.float64]

    def of(self, Z: NDArray[np.float64], *, nonlinear: bool) -> NDArray[np.float64]:
        """Impairment of people with standardised measurements ``Z``, (n, D) -> (n, T)."""
        shared, own = Z @ self.V.T, Z @ self.W.T
        if nonlinear:
            shared, own = _bend_shared(shared), _beyond(RESERVE, np.inf, own)
        return math.sqrt(1 - OWN_SHARE) * shared @ self.U.T + math.sqrt(OWN_SHARE) * own


def draw_impairment(
    brains: BrainPopulation, tests: list[str], state: np.random.RandomState
) -> Impairment:
    """Draw the effects on one score for each entry of ``tests``.

    A test that is given at two visits has one row of U for both: the visits differ in W only.

    Examples
    --------
    >>> from deeptobit.datasets._brains import brain_population
    >>> brains = brain_population()
    >>> effects = draw_impairment(brains, ["MMSE", "FAQ", "MMSE"], np.random.RandomState(0))
    >>> print((effects.V @ brains.correlation @ effects.V.T).round(6).trace())
    5.0
    >>> print((effects.U[0] == effects.U[2]).all(), (effects.W[0] == effects.W[2]).all())
    True False
    """
    C = brains.correlation
    directions = _draw_directions(brains.groups, state)
    # Gram-Schmidt in the metric C: the first direction keeps its meaning.
    V = solve_triangular(np.linalg.cholesky(directions @ C @ directions.T), directions, lower=True)

    W = _sparse_rows(len(tests), len(brains.names), FEATURES_PER_OWN_EFFECT, state)
    W -= W @ C @ V.T @ V
    W /= np.sqrt(((W @ C) * W).sum(axis=1, keepdims=True))

    distinct_tests, row_of_score = np.unique(tests, return_inverse=True)
    U = OTHER_EFFECT * state.standard_normal((len(distinct_tests), RANK))
    U[:, 0] = state.uniform(*ATROPHY_EFFECT, len(distinct_tests))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    return Impairment(U[row_of_score], V, W)


def _draw_directions(groups: tuple[str, ...], state: np.random.RandomState) -> NDArray[np.float64]:
    """Draw directions that act on whole lobes of both sides, the first of them atrophy; (R, D).

    The hemisphere areas have no weight: they repeat what their regions say.
    """
    lobes = np.array(sorted({*groups} - {"hemisphere area"}))
    weights = state.standard_normal((RANK, len(lobes)))
    weights[0] = -np.isin(lobes, ATROPHY_LOBES).astype(np.float64)
    membership: NDArray[np.float64] = np.equal.outer(lobes, groups).astype(np.float64)
    return weights @ membership * state.uniform(0.5, 1.5, (RANK, len(groups)))


def _sparse_rows(
    n_rows: int, n_columns: int, n_nonzero: int, state: np.random.RandomState
) -> NDArray[np.float64]:
    """Gaussian rows with exactly ``n_nonzero`` entries at random places."""
    rows = np.zeros((n_rows, n_columns))
    places = state.uniform(size=rows.shape).argsort(axis=1)[:, :n_nonzero]
    np.put_along_axis(rows, places, state.standard_normal(places.shape), axis=1)
    return rows


def _bend_shared(q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace five linear effects q = V z by thresholds, saturation and interactions, (n, R).

    No linear model sees the products: two independent factors of mean 0 make them uncorrelated
    with every linear function of Gaussian z.
    """
    atrophy = _beyond(RESERVE, PLATEAU, q[:, 0])
    late_effect = _beyond(RESERVE, np.inf, q[:, 1])
    return np.column_stack([atrophy, late_effect, atrophy * q[:, 2], q[:, 3] * q[:, 4], q[:, 4]])


def _beyond(onset: float, plateau: float, q: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clip q to [onset, plateau], then standardise by the moments under Gaussian q."""
    grid = np.linspace(-8, 8, 4001)
    density = np.exp(-(grid**2) / 2)
    response = np.clip(grid, onset, plateau)
    mean = np.average(response, weights=density)
    sd = np.sqrt(np.average((response - mean) ** 2, weights=density))
    standardised: NDArray[np.float64] = (np.clip(q, onset, plateau) - mean) / sd
    return standardised
