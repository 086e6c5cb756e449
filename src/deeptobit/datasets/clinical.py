"""A simulated cohort of patients: cortical measurements and bounded clinical scores."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.linalg import solve_triangular

from deeptobit.arrays import FloatArray, RandomStateLike, check_count
from deeptobit.datasets import common
from deeptobit.datasets.brains import BrainPopulation, brain_population


@dataclass(frozen=True, eq=False)
class ClinicalCohort(common.Cohort):
    """A simulated cohort of :func:`make_clinical_cohort`, with the truth behind it.

    Attributes
    ----------
    X : DataFrame of shape (n, 138)
        Cortical thickness (mm, three digits) and surface area (whole mm²).
    Y : DataFrame of shape (n, 30)
        Scores: integers within their bounds, stored as float; NaN where missing.
    lower, upper : dict
        Bounds by the name of the score.
    latent : DataFrame of shape (n, 30)
        E[uncensored | X], in units of the score.
    uncensored : DataFrame of shape (n, 30)
        Latent plus noise, before rounding, censoring and missing values.
    explained_variance : Series of length 30
        Var(latent) / Var(uncensored) in the population.
    noise_shape : Series of length 30
        ``"gaussian"``, ``"skewed"`` or ``"heavy"`` (in both tails).
    """

    latent: pd.DataFrame
    uncensored: pd.DataFrame
    explained_variance: "pd.Series[float]"
    noise_shape: "pd.Series[str]"


def make_clinical_cohort(
    n_subjects: int = 670,
    *,
    nonlinear: bool = False,
    missing: float = 0.02,
    random_state: RandomStateLike = None,
) -> ClinicalCohort:
    r"""Simulate 138 brain measurements and 30 bounded scores of each of n people.

    Score t of a person with brain x is

    .. math::

        y_t = \operatorname{clip}\bigl(\operatorname{round}(m_t \pm s_t
              [\sqrt{e_t}\, g_t(x) + \sqrt{1 - e_t}\, \varepsilon_t]),\; l_t, u_t\bigr)

    with mean m_t, standard deviation s_t and explained share e_t (0.05 to 0.40) from a table,
    the sign of impairment ±, and g_t(x) of population variance 1: five effects shared by all
    scores, led by temporal and parietal atrophy, and one of the score alone. The noise ε_t has
    mean 0 and variance 1, correlates by about 0.3 between scores and is skewed or heavy-tailed
    in ten of them. Half of the scores have 10 to 50 % of their values at a bound.

    The coefficients depend on ``random_state`` alone. They are standardised by the exact
    covariance of the population of brains, never by the sample, so that cohorts of any size
    with one seed come from one population.

    Parameters
    ----------
    n_subjects : int, default=670
        At least 2.
    nonlinear : bool, default=False
        Whether atrophy harms only beyond a threshold, saturates and interacts with other
        effects. Explained shares stay what they are, but a linear model sees about half.
    missing : float, default=0.02
        Share of the scores that are missing at random, in [0, 1). Each score of the visit at month
        6 is missing with probability 1 - (1 - missing)², those at baseline less often.
    random_state : None, int, numpy Generator or RandomState
        An int names one population and one sample of it, on every version of NumPy. The same
        int gives the same X and the same noise in a linear and a non-linear cohort.

    Returns
    -------
    ClinicalCohort

    Notes
    -----
    The brains are jointly Gaussian around round figures for an adult cortex; homologous
    regions correlate by 0.75 and a hemisphere is close to the sum of its regions. Names and
    ranges of the scores are those of the Alzheimer's Disease Neuroimaging Initiative; no number
    is estimated from its data, and CDRSB is rounded to whole points.

    Examples
    --------
    >>> cohort = make_clinical_cohort(random_state=0)
    >>> cohort.X.shape, cohort.Y.shape
    ((670, 138), (670, 30))
    >>> cohort.Y[["MMSE_bl", "FAQ_bl"]].head(3)
       MMSE_bl  FAQ_bl
    0     30.0     2.0
    1     27.0     1.0
    2     26.0     4.0
    >>> print((cohort.Y["MMSE_bl"] == cohort.upper["MMSE_bl"]).mean().round(2))
    0.18
    >>> cohort.explained_variance[["MMSE_bl", "FAQ_bl"]].to_dict()
    {'MMSE_bl': 0.3, 'FAQ_bl': 0.24}
    """
    check_count("n_subjects", n_subjects, least=2)
    if not 0 <= missing < 1:
        raise ValueError(f"missing must be at least 0 and below 1, got {missing}")
    state = common.as_random_state(random_state)
    brains = brain_population()
    # Before rounding and censoring, a score has mean ``mean`` and standard deviation ``sd``; the
    # brain explains the share ``explained`` of the variance. ``worse`` is the sign of impairment,
    # +1 if a high score is a bad one, and ``noise`` the shape of the rest.
    table = common.packaged_table("clinical_scores")
    table.index = pd.Index((table["test"] + "_" + table["visit"]).tolist())
    # The population comes first, so that it does not depend on the number of subjects.
    effects = draw_impairment(brains, table["test"].tolist(), state)
    X = brains.sample(n_subjects, state)
    impairment = effects.of((X - brains.mean) / brains.sd, nonlinear=nonlinear)
    noise = draw_noise(n_subjects, table["noise"].tolist(), state)
    # A share ``missing`` of all scores, more of those at month 6.
    late = (table["visit"] == "m06").to_numpy()
    rate_late = 1 - (1 - missing) ** 2
    rate_early = (missing - late.mean() * rate_late) / (1 - late.mean())
    is_missing = state.uniform(size=noise.shape) < np.where(late, rate_late, rate_early)

    worse = table["worse"] * table["sd"]
    explained = pd.DataFrame(impairment, columns=table.index) * np.sqrt(table["explained"])
    unexplained = pd.DataFrame(noise, columns=table.index) * np.sqrt(1 - table["explained"])
    latent = table["mean"] + worse * explained
    uncensored = latent + worse * unexplained
    rounded = uncensored.round() + 0.0  # turns -0.0 into 0.0
    return ClinicalCohort(
        X=pd.DataFrame(X, columns=brains.names),
        Y=rounded.clip(table["lower"], table["upper"], axis=1).mask(is_missing),
        lower={str(name): float(bound) for name, bound in table["lower"].items()},
        upper={str(name): float(bound) for name, bound in table["upper"].items()},
        latent=latent,
        uncensored=uncensored,
        explained_variance=table["explained"].rename("explained_variance"),
        noise_shape=table["noise"].rename("noise_shape"),
    )


# The effects of the brain: five that all scores share, and one that each has alone.

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
    """The effects of the brain on T scores: impairment U V z + W z of standardised features z.

    Attributes
    ----------
    U : ndarray of shape (T, R)
    V : ndarray of shape (R, D)
        The first row is atrophy: thin temporal and parietal cortex.
    W : ndarray of shape (T, D)
    """

    U: FloatArray
    V: FloatArray
    W: FloatArray

    def of(self, Z: FloatArray, *, nonlinear: bool) -> FloatArray:
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
    >>> from deeptobit.datasets.brains import brain_population
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

    # Gaussian rows with few entries at random places.
    W = np.zeros((len(tests), len(brains.names)))
    places = state.uniform(size=W.shape).argsort(axis=1)[:, :FEATURES_PER_OWN_EFFECT]
    np.put_along_axis(W, places, state.standard_normal(places.shape), axis=1)
    W -= W @ C @ V.T @ V
    W /= np.sqrt(((W @ C) * W).sum(axis=1, keepdims=True))

    distinct_tests, row_of_score = np.unique(tests, return_inverse=True)
    U = OTHER_EFFECT * state.standard_normal((len(distinct_tests), RANK))
    U[:, 0] = state.uniform(*ATROPHY_EFFECT, len(distinct_tests))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    return Impairment(U[row_of_score], V, W)


def _draw_directions(groups: tuple[str, ...], state: np.random.RandomState) -> FloatArray:
    """Draw directions that act on whole lobes of both sides, the first of them atrophy; (R, D).

    The hemisphere areas have no weight: they repeat what their regions say.
    """
    lobes = np.array(sorted({*groups} - {"hemisphere area"}))
    weights = state.standard_normal((RANK, len(lobes)))
    weights[0] = -np.isin(lobes, ATROPHY_LOBES).astype(np.float64)
    membership = np.equal.outer(lobes, groups)
    return np.asarray(weights @ membership * state.uniform(0.5, 1.5, (RANK, len(groups))))


def _bend_shared(q: FloatArray) -> FloatArray:
    """Replace five linear effects q = V z by thresholds, saturation and interactions, (n, R).

    No linear model sees the products: two independent factors of mean 0 make them uncorrelated
    with every linear function of Gaussian z.
    """
    atrophy = _beyond(RESERVE, PLATEAU, q[:, 0])
    late_effect = _beyond(RESERVE, np.inf, q[:, 1])
    return np.column_stack([atrophy, late_effect, atrophy * q[:, 2], q[:, 3] * q[:, 4], q[:, 4]])


def _beyond(onset: float, plateau: float, q: FloatArray) -> FloatArray:
    """Clip q to [onset, plateau], then standardise by the moments under Gaussian q."""
    grid = np.linspace(-8, 8, 4001)
    density = np.exp(-(grid**2) / 2)
    response = np.clip(grid, onset, plateau)
    mean = np.average(response, weights=density)
    sd = np.sqrt(np.average((response - mean) ** 2, weights=density))
    return np.asarray((np.clip(q, onset, plateau) - mean) / sd)


# Noise of mean 0 and variance 1 in three shapes, correlated between scores.

# Correlation of w between scores: what makes a person do badly on one test recurs in the next.
NOISE_CORRELATION = 0.3

SKEW = 0.5  # a: skewness 1.75
TAIL = 0.7  # b: excess kurtosis 4.7


def draw_noise(n_subjects: int, kinds: Sequence[str], state: np.random.RandomState) -> FloatArray:
    """Draw noise with one shape for each column, "gaussian", "skewed" or "heavy", (n, T).

    Examples
    --------
    >>> noise = draw_noise(100_000, ["gaussian", "skewed", "heavy"], np.random.RandomState(0))
    >>> print(np.abs(noise.mean(axis=0)).max() < 0.01, np.abs(noise.std(axis=0) - 1).max() < 0.02)
    True True
    """
    person = state.standard_normal((n_subjects, 1))
    occasion = state.standard_normal((n_subjects, len(kinds)))
    w = math.sqrt(NOISE_CORRELATION) * person + math.sqrt(1 - NOISE_CORRELATION) * occasion
    growth = math.exp(SKEW**2)
    skewed = (np.exp(SKEW * w) - math.sqrt(growth)) / math.sqrt(growth * (growth - 1))
    heavy = np.sinh(TAIL * w) / math.sqrt(math.expm1(2 * TAIL**2) / 2)
    shape = np.array(kinds)
    return np.select([shape == "skewed", shape == "heavy"], [skewed, heavy], w)
