"""Objectives: the likelihood at the latent, carried onto parameters by the chain rule."""

from deeptobit.objective._aligned import AlignedFeatures, round_features, subspace_features
from deeptobit.objective._basis import RoundFeatures
from deeptobit.objective._design import Design
from deeptobit.objective._feature_penalty import FeaturePenalty, group_share
from deeptobit.objective._layer import Layer
from deeptobit.objective._olsen import OlsenProblem
from deeptobit.objective._scaling import TargetScaling
from deeptobit.objective._subspace import SubspaceProblem
from deeptobit.objective._subspace_evaluation import SubspaceEvaluation

__all__ = [
    "AlignedFeatures",
    "Design",
    "FeaturePenalty",
    "Layer",
    "OlsenProblem",
    "RoundFeatures",
    "SubspaceEvaluation",
    "SubspaceProblem",
    "TargetScaling",
    "group_share",
    "round_features",
    "subspace_features",
]
