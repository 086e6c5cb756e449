"""Noise families, the censored likelihood at the latent score, and predictive distributions."""

from deeptobit.likelihood._by_task import NoiseByTask
from deeptobit.likelihood._evaluate import reference_evaluate
from deeptobit.likelihood._gaussian import Gaussian
from deeptobit.likelihood._logistic import Logistic
from deeptobit.likelihood._of_tasks import (
    at_entries,
    at_scores,
    grid_of,
    join_families,
    of_task,
    of_tasks,
    with_grid,
    with_one_spread,
    with_spread,
)
from deeptobit.likelihood._olsen import OlsenDerivatives, evaluate_olsen
from deeptobit.likelihood._predictive import Predictive
from deeptobit.likelihood._protocol import Derivatives, Noise
from deeptobit.likelihood._resolve import one_family, resolve_noise
from deeptobit.likelihood._score_grid import ScoreGrid
from deeptobit.likelihood._spread import Spread, bend
from deeptobit.likelihood._standard import StandardNoise, SymmetricNoise
from deeptobit.likelihood._student_t import StudentT
from deeptobit.likelihood._two_piece import TwoPiece

__all__ = [
    "Derivatives",
    "Gaussian",
    "Logistic",
    "Noise",
    "NoiseByTask",
    "OlsenDerivatives",
    "Predictive",
    "ScoreGrid",
    "Spread",
    "StandardNoise",
    "StudentT",
    "SymmetricNoise",
    "TwoPiece",
    "at_entries",
    "at_scores",
    "bend",
    "reference_evaluate",
    "evaluate_olsen",
    "grid_of",
    "join_families",
    "of_task",
    "of_tasks",
    "one_family",
    "resolve_noise",
    "with_grid",
    "with_one_spread",
    "with_spread",
]
