"""Objectives: the likelihood at the latent, carried onto parameters by the chain rule."""

from deeptobit.objective._basis import Basis, find_basis
from deeptobit.objective._design import Design
from deeptobit.objective._olsen import OlsenProblem
from deeptobit.objective._scaling import TargetScaling

__all__ = ["Basis", "Design", "OlsenProblem", "TargetScaling", "find_basis"]
