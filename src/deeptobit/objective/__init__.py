"""Objectives: the likelihood at the latent, carried onto parameters by the chain rule."""

from deeptobit.objective._basis import RoundFeatures
from deeptobit.objective._design import Design
from deeptobit.objective._olsen import OlsenProblem
from deeptobit.objective._scaling import TargetScaling

__all__ = ["Design", "OlsenProblem", "RoundFeatures", "TargetScaling"]
