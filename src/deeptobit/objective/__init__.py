"""Objectives: the likelihood at the latent, carried onto parameters by the chain rule."""

from deeptobit.objective._basis import RoundFeatures
from deeptobit.objective._design import Design
from deeptobit.objective._olsen import OlsenProblem
from deeptobit.objective._scaling import TargetScaling
from deeptobit.objective._subspace import Layer, SubspaceEvaluation, SubspaceProblem

__all__ = [
    "Design",
    "Layer",
    "OlsenProblem",
    "RoundFeatures",
    "SubspaceEvaluation",
    "SubspaceProblem",
    "TargetScaling",
]
