"""Distributions around predictions of methods that have none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import norm

from benchmarks.race.forecast import Forecast
from benchmarks.race.noisy_score import NoisyScore
from benchmarks.race.problem import Problem
from deeptobit.arrays import FloatArray
from deeptobit.auto import HeldOutScores, fit_error_model
from deeptobit.auto.noise import TAILS
from deeptobit.likelihood import Predictive, grid_of
from deeptobit.targets import CensoredTargets


def clipped_gaussian(problem: Problem, held_out: FloatArray, point: FloatArray) -> Forecast:
    """Gaussian errors as wide as the held-out ones of each task, clipped at the bounds."""
    return Forecast(point, norm(point, _scale(problem, held_out)))


def tobit_step(problem: Problem, held_out: FloatArray, point: FloatArray) -> Forecast:
    """The error model of deeptobit: a Tobit of each task on its held-out predictions.

    It has a level, a slope and σ, the tails and skew under which the held-out rows are most likely,
    and whole scores where outcomes are. The point prediction is then the mean of the distribution.
    """
    n_rows, n_tasks = problem.Y.shape
    scores = HeldOutScores.build(
        held_out,
        CensoredTargets.from_bounds(problem.Y, problem.lower, problem.upper),
        np.ones(n_rows),
        _scale(problem, held_out),
        np.ones(n_tasks, dtype=np.bool_),
        fit_intercept=True,
    )
    line, noise = fit_error_model(scores, TAILS)
    score = line.level + line.slope * point
    mean = Predictive(noise, score, line.sigma, problem.lower, problem.upper).mean()
    return Forecast(mean, NoisyScore(noise, score, line.sigma), grid_of(noise))


ERROR_MODELS: dict[str, Callable[[Problem, FloatArray, FloatArray], Forecast]] = {
    "clipped Gaussian": clipped_gaussian,
    "Tobit step": tobit_step,
}


def _scale(problem: Problem, held_out: FloatArray) -> FloatArray:
    """Root mean square of the held-out residuals, (T,)."""
    return np.asarray(np.sqrt(np.nanmean(np.square(problem.Y - held_out), axis=0)))
