"""Small censored problems for the evidence."""

from typing import Any

import numpy as np

from deeptobit.arrays import FloatArray
from deeptobit.auto.evidence import EvidenceProblem, Spectrum
from deeptobit.auto.path import EvidenceState, start
from deeptobit.targets import CensoredTargets


def linear(
    seed: int = 0, n_samples: int = 120, n_features: int = 6, n_tasks: int = 4
) -> tuple[FloatArray, FloatArray]:
    """Features and uncensored outcomes with two shared directions and noise of sd 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features)) * rng.uniform(0.5, 2.0, n_features)
    coef = rng.normal(size=(n_features, 2)) @ rng.normal(size=(2, n_tasks)) / 3.0
    return X, X @ coef + rng.normal(size=(n_samples, n_tasks))


def posed(X: Any, Y: Any, weight: Any = None, **bounds: Any) -> EvidenceProblem:
    """A problem from arrays, or from targets that bring their own bounds."""
    known = isinstance(Y, CensoredTargets)
    targets = Y if known else CensoredTargets.from_bounds(Y, outside="clip", **bounds)
    weight = np.ones(len(targets)) if weight is None else np.asarray(weight, dtype=np.float64)
    return EvidenceProblem.build(X, targets, weight)


def begun(problem: EvidenceProblem, variance: float = 0.1) -> EvidenceState:
    """The start under one prior variance for all features."""
    n_features = problem.matrix.shape[1]
    return start(problem, Spectrum.build(problem, np.full(n_features, variance)))
