"""One low-rank Tobit layer to the optimum: problem, null model, start, Newton–CG, certificate."""

from deeptobit.layer.alpha import choose_alpha
from deeptobit.layer.features import (
    BasisFeatures,
    Design,
    Layer,
    TargetScaling,
    column_moments,
    features_for,
    to_standard,
    to_user,
)
from deeptobit.layer.newton import Objective, minimize_each, positive_inverse
from deeptobit.layer.problem import (
    LayerEvaluation,
    LayerProblem,
    SubspaceEvaluation,
    SubspaceProblem,
)
from deeptobit.layer.solve import (
    NullLayer,
    Step,
    null_layer,
    relative_gradient,
    solve_path,
    solve_subspace,
    spectral_start,
)
from deeptobit.layer.tobit import SIGMA_FLOOR, CensoringKinds, OlsenProblem, fit_tobit

__all__ = [
    "SIGMA_FLOOR",
    "BasisFeatures",
    "CensoringKinds",
    "Design",
    "Layer",
    "LayerEvaluation",
    "LayerProblem",
    "NullLayer",
    "Objective",
    "OlsenProblem",
    "Step",
    "SubspaceEvaluation",
    "SubspaceProblem",
    "TargetScaling",
    "choose_alpha",
    "column_moments",
    "features_for",
    "fit_tobit",
    "minimize_each",
    "null_layer",
    "positive_inverse",
    "relative_gradient",
    "solve_path",
    "solve_subspace",
    "spectral_start",
    "to_standard",
    "to_user",
]
