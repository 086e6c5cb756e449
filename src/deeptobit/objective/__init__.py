"""Objectives: the likelihood at the latent, carried onto parameters by the chain rule."""

from deeptobit.objective._aligned import AlignedFeatures, round_features, subspace_features
from deeptobit.objective._basis import BASIS_RIDGE, RoundFeatures
from deeptobit.objective._design import Design
from deeptobit.objective._feature_penalty import FeaturePenalty, group_share
from deeptobit.objective._layer import Layer
from deeptobit.objective._layer_evaluation import LayerEvaluation
from deeptobit.objective._layer_problem import LayerProblem
from deeptobit.objective._olsen import OlsenProblem
from deeptobit.objective._scaling import TargetScaling
from deeptobit.objective._subspace import SubspaceProblem
from deeptobit.objective._subspace_evaluation import SubspaceEvaluation
from deeptobit.objective._user_units import to_standard, to_user

__all__ = [
    "BASIS_RIDGE",
    "AlignedFeatures",
    "Design",
    "FeaturePenalty",
    "Layer",
    "LayerEvaluation",
    "LayerProblem",
    "OlsenProblem",
    "RoundFeatures",
    "SubspaceEvaluation",
    "SubspaceProblem",
    "TargetScaling",
    "group_share",
    "round_features",
    "subspace_features",
    "to_standard",
    "to_user",
]
