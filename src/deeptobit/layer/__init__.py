"""One low-rank Tobit layer to the optimum: problem, null model, start, Newton–CG, certificate."""

from deeptobit.layer.features import BASIS_RIDGE, BasisFeatures, Design, features_for
from deeptobit.layer.newton import (
    NewtonResult,
    Objective,
    minimize_each,
    positive_inverse,
    solve_newton,
)
from deeptobit.layer.parameters import Factors, Layer, TargetScaling, Units, to_standard, to_user
from deeptobit.layer.problem import LayerEvaluation, LayerProblem, SubspaceProblem
from deeptobit.layer.solve import (
    Step,
    StepLog,
    SubspaceFit,
    relative_gradient,
    solve_layer,
    solve_path,
    solve_subspace,
)
from deeptobit.layer.start import NullLayer, null_layer, sigma_floors, spectral_start
from deeptobit.layer.tobit import (
    SIGMA_FLOOR,
    CensoringKinds,
    NullModel,
    OlsenProblem,
    fit_null,
    fit_tobit,
)

__all__ = [
    "BASIS_RIDGE",
    "SIGMA_FLOOR",
    "BasisFeatures",
    "CensoringKinds",
    "Design",
    "Factors",
    "Layer",
    "LayerEvaluation",
    "LayerProblem",
    "NewtonResult",
    "NullLayer",
    "NullModel",
    "Objective",
    "OlsenProblem",
    "Step",
    "StepLog",
    "SubspaceFit",
    "SubspaceProblem",
    "TargetScaling",
    "Units",
    "features_for",
    "fit_null",
    "fit_tobit",
    "minimize_each",
    "null_layer",
    "positive_inverse",
    "relative_gradient",
    "sigma_floors",
    "solve_layer",
    "solve_newton",
    "solve_path",
    "solve_subspace",
    "spectral_start",
    "to_standard",
    "to_user",
]
