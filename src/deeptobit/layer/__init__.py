"""TODO."""

from deeptobit.layer.features import (
    BASIS_RIDGE,
    AlignedFeatures,
    Design,
    RoundFeatures,
    round_features,
    subspace_features,
)
from deeptobit.layer.newton import Course, NewtonResult, Step, solve_newton
from deeptobit.layer.parameters import Layer, TargetScaling, to_standard, to_user
from deeptobit.layer.problem import (
    LayerEvaluation,
    LayerProblem,
    SubspaceEvaluation,
    SubspaceProblem,
)
from deeptobit.layer.solve import (
    SubspaceFit,
    relative_gradient,
    solve_layer,
    solve_path,
    solve_subspace,
)
from deeptobit.layer.start import NullModel, fit_null, floors_for, spectral_start
from deeptobit.layer.tobit import SIGMA_FLOOR, CensoringKinds, OlsenProblem, fit_tobit

__all__ = [
    "BASIS_RIDGE",
    "SIGMA_FLOOR",
    "AlignedFeatures",
    "CensoringKinds",
    "Course",
    "Design",
    "Layer",
    "LayerEvaluation",
    "LayerProblem",
    "NewtonResult",
    "NullModel",
    "OlsenProblem",
    "RoundFeatures",
    "Step",
    "SubspaceEvaluation",
    "SubspaceFit",
    "SubspaceProblem",
    "TargetScaling",
    "fit_null",
    "fit_tobit",
    "floors_for",
    "relative_gradient",
    "round_features",
    "solve_layer",
    "solve_newton",
    "solve_path",
    "solve_subspace",
    "spectral_start",
    "subspace_features",
    "to_standard",
    "to_user",
]
