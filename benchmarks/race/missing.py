"""Outcomes deleted at random: left missing, or filled with the mean of their training rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.race import ours
from benchmarks.race.peer import Fitted, Peer
from benchmarks.race.problem import Problem
from deeptobit.arrays import FloatArray

SHARES = (0.05, 0.3)


def delete(Y: FloatArray, share: float, seed: int) -> FloatArray:
    """Y without a random share of its entries.

    Examples
    --------
    >>> print(np.isnan(delete(np.zeros((1000, 3)), 0.3, seed=0)).mean().round(2))
    0.3
    """
    gone = np.random.default_rng(seed).uniform(size=Y.shape) < share
    return np.where(gone, np.nan, Y)


def fit_without(problem: Problem, *, share: float, impute: bool) -> Fitted:
    """Fit deeptobit to what is left, or to that with means in place of the rest."""
    problem = problem._replace(Y=delete(problem.Y, share, problem.seed))
    return ours.fit(impute_means(problem) if impute else problem)


def impute_means(problem: Problem) -> Problem:
    """The problem with the mean of its task in place of every missing outcome."""
    Y = problem.Y
    return problem._replace(Y=np.where(np.isnan(Y), np.nanmean(Y, axis=0), Y))


def name_of(share: float, *, impute: bool) -> str:
    """How results are called."""
    return f"{ours.NAME}, {100 * share:g} % deleted, {'mean imputed' if impute else 'left missing'}"


def _peer(share: float, *, impute: bool) -> Peer:
    fit = partial(fit_without, share=share, impute=impute)
    return Peer(name_of(share, impute=impute), fit, prepare=ours.prepare)


MISSING: dict[str, Peer] = {
    f"missing-{100 * share:g}{'-imputed' if impute else ''}": _peer(share, impute=impute)
    for share in SHARES
    for impute in (False, True)
}
