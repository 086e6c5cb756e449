"""A simulated cohort of patients: cortical measurements and bounded clinical scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deeptobit.datasets._brains import brain_population
from deeptobit.datasets._cohort import Cohort
from deeptobit.datasets._impairment import draw_impairment
from deeptobit.datasets._noise import draw_noise
from deeptobit.datasets._random import RandomStateLike, as_random_state
from deeptobit.datasets._scores import SCORES
from deeptobit.datasets._sizes import check_size

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ClinicalCohort(Cohort):
    """What :func:`make_clinical_cohort` returns: the data, and the truth behind them.

    Attributes
    ----------
    X : DataFrame of shape (n, 138)
        Cortical thickness (mm, three digits) and surface area (whole mm²).
    Y : DataFrame of shape (n, 30)
        Scores: integers within their bounds, stored as float; NaN where missing.
    lower, upper : dict
        Bounds by the name of the score.
    latent : DataFrame of shape (n, 30)
        What X says of each score, E[uncensored | X], in its units.
    uncensored : DataFrame of shape (n, 30)
        Latent plus noise, before rounding, censoring and loss.
    explained_variance : Series of length 30
        Var(latent) / Var(uncensored) in the population.
    noise_shape : Series of length 30
        ``"gaussian"``, ``"skewed"`` or ``"heavy"`` (in both tails).
    """

    latent: pd.DataFrame
    uncensored: pd.DataFrame
    explained_variance: pd.Series[float]
    noise_shape: pd.Series[str]


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
        Share of the scores lost at random, in [0, 1). Each score of the visit at month 6 is
        missing with probability 1 - (1 - missing)², those at baseline less often.
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
    import pandas as pd

    check_size("n_subjects", n_subjects, least=2)
    if not 0 <= missing < 1:
        raise ValueError(f"missing must be at least 0 and below 1, got {missing}")
    state = as_random_state(random_state)
    brains = brain_population()
    # The population comes first, so that it does not depend on the number of subjects.
    effects = draw_impairment(brains, [score.test for score in SCORES], state)
    X = brains.sample(n_subjects, state)
    impairment = effects.of((X - brains.mean) / brains.sd, nonlinear=nonlinear)
    noise = draw_noise(n_subjects, [score.noise for score in SCORES], state)
    is_missing = _draw_missing(n_subjects, missing, state)

    table = pd.DataFrame(SCORES, index=[score.name for score in SCORES])
    worse = table["worse"] * table["sd"]
    explained = pd.DataFrame(impairment, columns=table.index) * np.sqrt(table["explained"])
    unexplained = pd.DataFrame(noise, columns=table.index) * np.sqrt(1 - table["explained"])
    latent = table["mean"] + worse * explained
    uncensored = latent + worse * unexplained
    rounded = uncensored.round() + 0.0  # turns -0.0 into 0.0
    Y = rounded.clip(table["lower"], table["upper"], axis=1).mask(is_missing)
    return ClinicalCohort(
        X=pd.DataFrame(X, columns=brains.names),
        Y=Y,
        lower={score.name: float(score.lower) for score in SCORES},
        upper={score.name: float(score.upper) for score in SCORES},
        latent=latent,
        uncensored=uncensored,
        explained_variance=table["explained"].rename("explained_variance"),
        noise_shape=table["noise"].rename("noise_shape"),
    )


def _draw_missing(
    n_subjects: int, missing: float, state: np.random.RandomState
) -> NDArray[np.bool_]:
    """Choose what is lost, (n, 30): the share ``missing`` of all scores, more at month 6."""
    late = np.array([score.visit == "m06" for score in SCORES])
    rate_late = 1 - (1 - missing) ** 2
    rate_early = (missing - late.mean() * rate_late) / (1 - late.mean())
    return state.uniform(size=(n_subjects, late.size)) < np.where(late, rate_late, rate_early)
