"""Noise families, the censored likelihood at the latent score, and predictive distributions."""

from deeptobit.likelihood.evaluate import evaluate, has_kernels, missing_noise, reference_evaluate
from deeptobit.likelihood.gaussian import FAMILIES, Gaussian, one_family, resolve_noise
from deeptobit.likelihood.logistic import Logistic
from deeptobit.likelihood.noise import Derivatives, Noise, SymmetricNoise
from deeptobit.likelihood.normal import log_ndtr, mills, mills_excess
from deeptobit.likelihood.predictive import Predictive
from deeptobit.likelihood.skewed import TwoPiece
from deeptobit.likelihood.spread import ScoreGrid, Spread, bend
from deeptobit.likelihood.student import StudentT
from deeptobit.likelihood.tasks import (
    NoiseByTask,
    at_scores,
    grid_of,
    join_families,
    of_task,
    of_tasks,
    with_grid,
    with_one_spread,
    with_spread,
)

__all__ = [
    "FAMILIES",
    "Derivatives",
    "Gaussian",
    "Logistic",
    "Noise",
    "NoiseByTask",
    "Predictive",
    "ScoreGrid",
    "Spread",
    "StudentT",
    "SymmetricNoise",
    "TwoPiece",
    "at_scores",
    "bend",
    "evaluate",
    "grid_of",
    "has_kernels",
    "join_families",
    "log_ndtr",
    "mills",
    "mills_excess",
    "missing_noise",
    "of_task",
    "of_tasks",
    "one_family",
    "reference_evaluate",
    "resolve_noise",
    "with_grid",
    "with_one_spread",
    "with_spread",
]
