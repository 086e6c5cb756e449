"""Noise families, the censored likelihood at the latent score, and predictive distributions."""

from deeptobit.likelihood._evaluate import evaluate
from deeptobit.likelihood._gaussian import Gaussian
from deeptobit.likelihood._logistic import Logistic
from deeptobit.likelihood._olsen import OlsenDerivatives, evaluate_olsen
from deeptobit.likelihood._predictive import Predictive
from deeptobit.likelihood._protocol import Derivatives, Noise
from deeptobit.likelihood._resolve import resolve_noise
from deeptobit.likelihood._standard import StandardNoise, SymmetricNoise
from deeptobit.likelihood._student_t import StudentT

__all__ = [
    "Derivatives",
    "Gaussian",
    "Logistic",
    "Noise",
    "OlsenDerivatives",
    "Predictive",
    "StandardNoise",
    "StudentT",
    "SymmetricNoise",
    "evaluate",
    "evaluate_olsen",
    "resolve_noise",
]
