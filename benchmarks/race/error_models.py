"""Distributions around predictions of methods that have none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import norm

from benchmarks.race import censored
from benchmarks.race.forecast import Forecast
from benchmarks.race.noisy_score import NoisyScore
from benchmarks.race.problem import Problem
from deeptobit.arrays import FloatArray
from deeptobit.estimators._recalibration import Line, recalibrate
from deeptobit.likelihood import Noise, resolve_noise
from deeptobit.targets import CensoredTargets

_FAMILIES = ("gaussian", "logistic", "student_t")


def clipped_gaussian(problem: Problem, held_out: FloatArray, point: FloatArray) -> Forecast:
    """Gaussian errors as wide as the held-out ones of each task, clipped at the bounds."""
    return Forecast(point, norm(point, _scale(problem, held_out)))


def tobit_step(problem: Problem, held_out: FloatArray, point: FloatArray) -> Forecast:
    """The error model of deeptobit: a Tobit of each task on its held-out predictions.

    It has a level, a slope and σ, and of three families of noise the one under which the held-out
    rows are most likely. The point prediction is then the mean of the clipped distribution.
    """
    line, noise = max(
        ((_refit(problem, held_out, noise), noise) for noise in map(resolve_noise, _FAMILIES)),
        key=lambda found: _log_likelihood(problem, held_out, *found),
    )
    latent = NoisyScore(noise, line.level + line.slope * point, line.sigma)
    return Forecast(censored.mean(latent, problem.lower, problem.upper), latent)


ERROR_MODELS: dict[str, Callable[[Problem, FloatArray, FloatArray], Forecast]] = {
    "clipped Gaussian": clipped_gaussian,
    "Tobit step": tobit_step,
}


def _scale(problem: Problem, held_out: FloatArray) -> FloatArray:
    """Root mean square of the held-out residuals, (T,)."""
    return np.asarray(np.sqrt(np.nanmean(np.square(problem.Y - held_out), axis=0)))


def _refit(problem: Problem, held_out: FloatArray, noise: Noise) -> Line:
    n_rows, n_tasks = problem.Y.shape
    return recalibrate(
        held_out,
        CensoredTargets.from_bounds(problem.Y, problem.lower, problem.upper),
        np.ones(n_rows),
        _scale(problem, held_out),
        noise,
        np.ones(n_tasks, dtype=np.bool_),
        fit_intercept=True,
    )


def _log_likelihood(problem: Problem, held_out: FloatArray, line: Line, noise: Noise) -> float:
    latent = NoisyScore(noise, line.level + line.slope * held_out, line.sigma)
    scores = censored.Censored(latent, problem.lower, problem.upper).log_score(problem.Y)
    return -float(np.nansum(scores))
